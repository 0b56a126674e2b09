"""Isolated trials: unchanged bits, contained failures, and no process that outlives its worker."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from study.engine.calls import Limits
from study.engine.function import FunctionTraining, IsolatedTraining
from tests.processes import READY_S
from tests.study.engine.function.test_training import bits, record_of, start, through_a_file, trial_of

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are watched, and limited, as Linux does it")


def isolated(mytrials, name: str, limits: Limits | None = None, checkpoint: Any = None, **values) -> IsolatedTraining:
    return IsolatedTraining(
        partial(mytrials.load, name), trial_of(**values), limits=limits, checkpoint=checkpoint, state_every_s=0.0
    )


@pytest.mark.parametrize("name", ["once", "steps", "resumable"])
def test_isolation_does_not_change_a_bit(mytrials, name):
    """Steps, curves and the best step are those of a trial in this process."""
    assert bits(record_of(isolated(mytrials, name))) == bits(record_of(start(getattr(mytrials, name))))


@pytest.mark.slow
def test_a_late_import_is_seeded(mytrials):
    """Torch, imported during the call, is seeded in a process without it."""
    assert bits(record_of(isolated(mytrials, "with_torch"))) == bits(record_of(start(mytrials.with_torch)))


def test_a_killed_trial_resumes_from_its_state(mytrials):
    """A killed trial fails; resumed from its checkpoint in any process, it ends with the bits of an undisturbed one."""
    undisturbed = record_of(start(mytrials.resumable, trial_of(count=6)))
    training = isolated(mytrials, "resumable", count=6, die_at=3)
    assert record_of(training).error == "its process was ended by SIGKILL (perhaps the machine ran out of memory)"
    checkpoint = through_a_file(training.checkpoint())
    assert checkpoint["steps"].tolist() == [0, 1, 2]
    resumed = isolated(mytrials, "resumable", checkpoint=checkpoint, count=6)
    assert bits(record_of(resumed)) == bits(undisturbed)
    resumed_in_process = FunctionTraining(mytrials.resumable, trial_of(count=6), checkpoint=checkpoint)
    assert bits(record_of(resumed_in_process)) == bits(undisturbed)
    ended = record_of(isolated(mytrials, "resumable", checkpoint=checkpoint, count=3))  # no step is left
    assert ended.reports_steps
    assert bits(ended) == bits(record_of(start(mytrials.resumable, trial_of(count=3))))


ENDS = {
    "segmentation fault": "its process was ended by SIGSEGV (a segmentation fault)",
    "abort": "its process was ended by SIGABRT (it aborted)",
    "exit": "its process ended with exit code 7 before the function did, for example by os._exit",
    "sys.exit": "it ended Python by sys.exit('enough') (",
    "raise": "RuntimeError: no convergence (",
    "interrupt": "KeyboardInterrupt (",
    "nothing": None,
}


@pytest.mark.parametrize("way", ENDS)
def test_a_failure_is_contained(mytrials, way, capfd):
    """The error names the reason, this process continues, and the trial's output is on standard error."""
    record = record_of(isolated(mytrials, "end_by", way=way))
    assert (record.error or "").startswith(ENDS[way] or "")
    assert (record.error is None) == (way == "nothing")
    printed = capfd.readouterr()
    assert f"about to end {way}\n" in printed.err
    assert ("the end" in printed.err) == (way == "nothing")
    assert printed.out == ""


@LINUX
def test_memory_has_a_limit(mytrials):
    """A failed allocation is Python's MemoryError, with the user's line."""
    record = record_of(isolated(mytrials, "end_by", Limits(memory_gb=1.0), way="memory"))
    assert record.error.startswith("MemoryError: Unable to allocate 16.0 GiB")
    assert "mytrials.py:" in record.error
    assert record_of(isolated(mytrials, "end_by", Limits(memory_gb=1.0), way="nothing")).error is None


def test_a_time_limit_kills_an_endless_step(mytrials):
    """An endless step is killed at the limit, and earlier steps are kept."""
    training = isolated(mytrials, "sleepy", Limits(time_limit_s=1000.0))
    while training.advance(0.1).step is None:
        assert not training.done
    training._limits = Limits(time_limit_s=0.0)  # set now, since starting the process may take long
    record = record_of(training)
    assert record.error == "it took longer than its time limit of 0 s, and was killed"
    assert record.steps.tolist() == [0]


def after_a_step(mytrials, how: str) -> IsolatedTraining:
    """Start a trial that writes to the pipe of its reports, and wait for its first step."""
    training = isolated(mytrials, "meddle", Limits(time_limit_s=1000.0), how=how)
    while training.advance(0.1).step is None:
        assert not training.done
    return training


@LINUX
def test_half_a_message_does_not_block(mytrials):
    """A trial that never writes the other half of a message is killed at its time limit."""
    training = after_a_step(mytrials, "half a message")
    training._limits = Limits(time_limit_s=0.0)
    record = record_of(training)
    assert record.error == "it took longer than its time limit of 0 s, and was killed"
    assert record.steps.tolist() == [0]


@LINUX
@pytest.mark.parametrize(
    ("how", "written"),
    [
        ("junk", r"b'\\x00\\x00\\x01\\x00he'"),
        ("[]", r"\[\]"),
        ("null", "None"),
        ('{"step": 1}', "{'step': 1}"),
        ('{"step": 1, "metrics": {"loss": "x"}, "training_s": 0.0, "reports_steps": true}', "{'step': 1, .*"),
        ('{"error": 1, "details": ""}', "{'error': 1, 'details': ''}"),
        ("no state", "b'no state'"),
    ],
)
def test_an_invalid_report_fails_the_trial(mytrials, how, written):
    """The error quotes the invalid report; the trial has failed and not diverged."""
    record = record_of(after_a_step(mytrials, how))
    assert re.fullmatch(f"its process wrote {written} to the pipe of its reports: .* hasn't opened", record.error)
    assert record.metrics == {"loss": 0.0, "accuracy": 0.0}


@LINUX
def test_a_trial_may_close_all_descriptors(mytrials, capfd):
    """A trial that writes to its descriptors and closes them doesn't disturb its reports."""
    record = record_of(isolated(mytrials, "scribble"))
    assert (record.error, record.metrics) == (None, {"loss": 0.5, "accuracy": 0.5})
    assert "printed" in capfd.readouterr().err


def test_the_process_has_the_environment_of_its_limits(mytrials):
    """The number of threads follows the limits, and strings have the same hashes in each process."""
    records = [record_of(isolated(mytrials, "environment", Limits(cpus=3))) for _ in range(2)]
    assert [record.metrics["loss"] for record in records] == [3.0, 3.0]
    assert records[0].metrics == records[1].metrics
    assert Limits(gpus=0).environment()["CUDA_VISIBLE_DEVICES"] == ""
    assert Limits(gpus=1).environment().get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES")


def test_an_import_error_is_reported(mytrials):
    """A missing function or module fails the trial, with the user's line."""
    record = record_of(isolated(mytrials, "missing"))
    assert record.error.startswith("KeyError: 'missing' (")
    assert "mytrials.py:" in record.error


@pytest.mark.parametrize("load", [lambda: None, partial(os.path.join, b"a"), partial(int, base=10), 3])
def test_an_unimportable_function_is_refused(load):
    """A nested function, or an argument that isn't JSON, is refused, since another process can't load it."""
    with pytest.raises(ValueError, match=r"load must be|must be of JSON"):
        IsolatedTraining(load, trial_of())


def has_ended(process: int) -> bool:
    """Return True once a process has ended, with or without a waiting parent; False after READY_S seconds."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], READY_S)[0])
    finally:
        os.close(descriptor)


@pytest.fixture
def ids(tmp_path: Path):
    """Make a pipe for the ids of a trial and of its child process; return the path and a function that reads them."""
    path = tmp_path / "ids"
    os.mkfifo(path)
    return path, lambda: [int(word) for word in path.read_text().split()]


@LINUX
def test_nothing_outlives_a_killed_worker(mytrials, ids):
    """After kill -9 of the worker, a trial that holds Python's lock in C ends, with its child process."""
    path, read = ids
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    worker = subprocess.Popen([sys.executable, mytrials.__file__, str(path)], env=environment)
    trial, started = read()
    worker.kill()
    worker.wait()
    assert has_ended(trial)
    assert has_ended(started)


@LINUX
def test_a_trial_ends_with_its_guard(mytrials, ids):
    """If the guard is killed, the trial is killed too, and has failed."""
    path, read = ids
    with closing(isolated(mytrials, "forever", pipe_path=str(path))) as training:
        training.advance(0.0)
        trial, started = read()
        os.kill(training._process._guard.pid, signal.SIGKILL)
        assert record_of(training).error.startswith("its process was ended by SIGKILL")
        assert has_ended(trial)
        os.kill(started, signal.SIGKILL)  # only the guard knew of this process


@LINUX
def test_nothing_outlives_its_trial(mytrials, ids):
    """A trial's end kills even an orphaned process in another session."""
    path, read = ids
    training = isolated(mytrials, "leave", pipe_path=str(path))
    training.advance(0.0)
    (orphan,) = read()
    assert record_of(training).error is None
    assert has_ended(orphan)


@LINUX
@pytest.mark.parametrize("is_apart", [False, True])
def test_closing_ends_the_process(mytrials, ids, is_apart):
    """Closing, as after Ctrl-C, kills all processes of the trial, even in other sessions."""
    path, read = ids
    training = isolated(mytrials, "forever", pipe_path=str(path), is_apart=is_apart)
    training.advance(0.0)
    processes = read()
    training.close()
    assert all(map(has_ended, processes))
    training.close()
