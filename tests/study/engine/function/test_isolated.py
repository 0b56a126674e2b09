"""A trial in a process of its own: the same bits; whatever it does, it fails alone; it never outlives its worker."""

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
def test_a_process_of_its_own_changes_no_bit(mytrials, name):
    """Steps, curves and the best step are those of a trial in this process."""
    assert bits(record_of(isolated(mytrials, name))) == bits(record_of(start(getattr(mytrials, name))))


@pytest.mark.slow
def test_a_library_that_is_imported_late_is_seeded_there_too(mytrials):
    """It is torch, imported during the call in a process that doesn't have it yet."""
    assert bits(record_of(isolated(mytrials, "with_torch"))) == bits(record_of(start(mytrials.with_torch)))


def test_a_killed_trial_goes_on_from_its_state(mytrials):
    """Killed in the middle, it has failed; resumed from its checkpoint, anywhere, it has the undisturbed bits."""
    whole = record_of(start(mytrials.resumable, trial_of(count=6)))
    training = isolated(mytrials, "resumable", count=6, die_at=3)
    assert record_of(training).error == "its process was ended by SIGKILL (perhaps the machine ran out of memory)"
    checkpoint = through_a_file(training.checkpoint())
    assert checkpoint["steps"].tolist() == [0, 1, 2]
    again = isolated(mytrials, "resumable", checkpoint=checkpoint, count=6)
    assert bits(record_of(again)) == bits(whole)
    here = FunctionTraining(mytrials.resumable, trial_of(count=6), checkpoint=checkpoint)
    assert bits(record_of(here)) == bits(whole)
    ended = record_of(isolated(mytrials, "resumable", checkpoint=checkpoint, count=3))  # after its last step
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
def test_whatever_it_does_only_it_fails(mytrials, way, capfd):
    """The reason is in words, this process goes on, and what it printed is there, on standard error."""
    record = record_of(isolated(mytrials, "end_by", way=way))
    assert (record.error or "").startswith(ENDS[way] or "")
    assert (record.error is None) == (way == "nothing")
    printed = capfd.readouterr()
    assert f"about to end {way}\n" in printed.err
    assert ("the end" in printed.err) == (way == "nothing")
    assert printed.out == ""


@LINUX
def test_memory_has_a_limit(mytrials):
    """What it can't allocate is Python's own error, with the line that wanted it."""
    record = record_of(isolated(mytrials, "end_by", Limits(memory_gb=1.0), way="memory"))
    assert record.error.startswith("MemoryError: Unable to allocate 16.0 GiB")
    assert "mytrials.py:" in record.error
    assert record_of(isolated(mytrials, "end_by", Limits(memory_gb=1.0), way="nothing")).error is None


def test_a_time_limit_kills_what_would_go_on(mytrials):
    """A step that never ends is ended; what was reported before remains."""
    training = isolated(mytrials, "sleepy", Limits(time_limit_s=1000.0))
    while training.advance(0.1).step is None:
        assert not training.done
    training._limits = Limits(time_limit_s=0.0)  # it has had its start, however slow this machine is
    record = record_of(training)
    assert record.error == "it took longer than its time limit of 0 s, and was killed"
    assert record.steps.tolist() == [0]


def after_a_step(mytrials, how: str) -> IsolatedTraining:
    """Start a trial that writes to the pipe of its reports, and wait for the step before."""
    training = isolated(mytrials, "meddle", Limits(time_limit_s=1000.0), how=how)
    while training.advance(0.1).step is None:
        assert not training.done
    return training


@LINUX
def test_half_a_message_is_no_reason_to_wait(mytrials):
    """A trial that never writes the other half is killed at its time limit."""
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
def test_what_is_no_report_fails_the_trial(mytrials, how, written):
    """Its reason has what was written; the trial is never one that diverged."""
    record = record_of(after_a_step(mytrials, how))
    assert re.fullmatch(f"its process wrote {written} to the pipe of its reports: .* hasn't opened", record.error)
    assert record.metrics == {"loss": 0.0, "accuracy": 0.0}


@LINUX
def test_the_usual_descriptors_are_the_trials_own(mytrials, capfd):
    """A trial that writes to all of them, and closes them, disturbs no report."""
    record = record_of(isolated(mytrials, "scribble"))
    assert (record.error, record.metrics) == (None, {"loss": 0.5, "accuracy": 0.5})
    assert "printed" in capfd.readouterr().err


def test_the_process_has_the_environment_of_its_limits(mytrials):
    """Threads are as many as its processors, and texts have the same hashes in each process."""
    records = [record_of(isolated(mytrials, "environment", Limits(cpus=3))) for _ in range(2)]
    assert [record.metrics["loss"] for record in records] == [3.0, 3.0]
    assert records[0].metrics == records[1].metrics
    assert Limits(gpus=0).environment()["CUDA_VISIBLE_DEVICES"] == ""
    assert Limits(gpus=1).environment().get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES")


def test_what_cannot_be_imported_is_said(mytrials):
    """A function that isn't there fails the trial, with the user's line; and so does a module."""
    record = record_of(isolated(mytrials, "missing"))
    assert record.error.startswith("KeyError: 'missing' (")
    assert "mytrials.py:" in record.error


@pytest.mark.parametrize("load", [lambda: None, partial(os.path.join, b"a"), partial(int, base=10), 3])
def test_what_another_process_cannot_import_is_refused(load):
    """The function is named as data: a function within another, or an argument that isn't of JSON, can't be."""
    with pytest.raises(ValueError, match=r"load must be|must be of JSON"):
        IsolatedTraining(load, trial_of())


def has_ended(process: int) -> bool:
    """Wait until a process has ended, also one of which nobody takes notice."""
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
    """A pipe that a trial writes its id to, and that of a process which it has started; and how to read them."""
    path = tmp_path / "ids"
    os.mkfifo(path)
    return path, lambda: [int(word) for word in path.read_text().split()]


@LINUX
def test_nothing_outlives_a_killed_worker(mytrials, ids):
    """After kill -9 of the worker, a trial that holds Python's lock in C ends, with what it has started."""
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
    """If somebody kills the guard alone, the trial ends too, and has failed."""
    path, read = ids
    with closing(isolated(mytrials, "forever", pipe_path=str(path))) as training:
        training.advance(0.0)
        trial, started = read()
        os.kill(training._process._guard.pid, signal.SIGKILL)
        assert record_of(training).error.startswith("its process was ended by SIGKILL")
        assert has_ended(trial)
        os.kill(started, signal.SIGKILL)  # of this one, only the guard knew


@LINUX
def test_nothing_outlives_its_trial(mytrials, ids):
    """Not even a process in a session of its own, whose parent has ended before."""
    path, read = ids
    training = isolated(mytrials, "leave", pipe_path=str(path))
    training.advance(0.0)
    (left,) = read()
    assert record_of(training).error is None
    assert has_ended(left)


@LINUX
@pytest.mark.parametrize("is_apart", [False, True])
def test_closing_ends_the_process(mytrials, ids, is_apart):
    """As after Ctrl-C: nothing of the trial is left, processes in sessions of their own included."""
    path, read = ids
    training = isolated(mytrials, "forever", pipe_path=str(path), is_apart=is_apart)
    training.advance(0.0)
    processes = read()
    training.close()
    assert all(map(has_ended, processes))
    training.close()
