"""Trials of programs: their inputs, their results, and reasons of failures."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from study.engine.calls import CallRecord, CallTrial, Limits, TrialOutput
from study.engine.calls.pack import outcome_of
from study.engine.program import ProgramTraining
from study.engine.program.process import Process
from study.interface.declarations import Metric
from study.interface.program import Program, Results
from study.records import Outcome
from tests.study.engine.function.test_isolated import LINUX, has_ended
from tests.study.engine.function.test_training import bits, through_a_file

METRICS = {"loss": Metric(), "accuracy": Metric(higher_is_better=True)}
LOSS = {"loss": Metric()}
FILE = Results("file", "metrics.json")
LINES = Results("lines", "json")
TABLE = Results("csv", "log.csv")

Start = Callable[..., ProgramTraining]
Ids = Callable[[], list[int]]
Go = Callable[[], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the path of the trial's folder; the folder doesn't exist yet."""
    return tmp_path / "trial"


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Return a function that begins a trial of a program with a log; a single word is a shell script."""
    started = []

    def begin(
        *words: str,
        results: Results = FILE,
        metrics: dict[str, Metric] = LOSS,
        seed: int = 3,
        iterations: int | None = None,
        values: dict[str, Any] | None = None,
        resumes: bool = False,
        is_shell: bool = False,
        **settings: Any,
    ) -> ProgramTraining:
        command = ("sh", "-c", *words) if len(words) == 1 and not is_shell else words
        (folder / "log.txt").unlink(missing_ok=True)
        trial = CallTrial(seed=seed, values=values or {}, metrics=metrics, iterations=iterations)
        output = TrialOutput(folder / "log.txt", is_shared=False)
        program = Program(command, results, is_shell, resumes)
        started.append(ProgramTraining(program, trial, folder=folder, output=output, **settings))
        return started[-1]

    yield begin
    for training in started:
        training.close()


def record_of(training: ProgramTraining, for_s: float = 60.0) -> CallRecord:
    """Train to the end, and close the log as a pack does."""
    while not training.done:
        training.advance(for_s)
    training._output.close()
    return training.finish()


def after_a_step(training: ProgramTraining) -> ProgramTraining:
    """Wait until a step is read while the program runs."""
    while training.advance(0.05).step is None:
        assert not training.done, training.failure
    return training


@pytest.fixture
def ids(folder: Path) -> Ids:
    """Make a pipe ``ids``, and return a function that waits for the process ids that a program writes to it."""
    folder.mkdir()
    os.mkfifo(folder / "ids")
    return lambda: [int(word) for word in (folder / "ids").read_text().split()]


@pytest.fixture
def go(folder: Path) -> Go:
    """Make a pipe ``go`` that a program reads, and return a function that lets the program continue."""
    folder.mkdir()
    os.mkfifo(folder / "go")
    return lambda: (folder / "go").write_text("on\n")


# --- results


def test_an_object_is_one_result(start: Start) -> None:
    """A program that writes a JSON object has one result and no steps."""
    record = record_of(start("""echo '{"loss": 0.5, "accuracy": 1, "more": 3}' > metrics.json""", metrics=METRICS))
    assert (record.error, record.metrics, record.best_step) == (None, {"loss": 0.5, "accuracy": 1.0}, 0)
    assert (record.reports_steps, record.steps.tolist(), record.undeclared["more"].tolist()) == (False, [0], [3.0])
    assert record.training_s > 0


CURVE = r"printf 'step,loss,accuracy\n0,4,\n1,3,0.1\n2,1,\n3,2,0.3\n' > log.csv"


def test_rows_are_a_curve(start: Start) -> None:
    """The best step is that of the first metric; a step counts once every metric has a value."""
    record = record_of(start(CURVE, results=TABLE, metrics=METRICS))
    assert (record.best_step, record.last_step, record.metrics) == (2, 3, {"loss": 1.0, "accuracy": 0.1})
    assert {name: curve.tolist() for name, curve in record.curves.items()} == {
        "loss": [3.0, 1.0, 2.0], "accuracy": [0.1, 0.1, 0.3]
    }  # fmt: skip
    assert (record.reports_steps, record.steps.tolist()) == (True, [1, 2, 3])


def test_steps_beyond_iterations_are_ignored(start: Start) -> None:
    """Steps beyond `iterations` are ignored, even with NaN."""
    record = record_of(start(f"{CURVE}; echo 4,nan,0 >> log.csv", results=TABLE, metrics=METRICS, iterations=1))
    assert (record.steps.tolist(), record.metrics, record.error) == ([1], {"loss": 3.0, "accuracy": 0.1}, None)


@pytest.mark.parametrize("for_s", [0.0, 60.0])
def test_slices_change_nothing(start: Start, for_s: float) -> None:
    """A trial has the same numbers in slices of any length."""
    text = """for i in 1 2 3 4 5; do echo "{\\"step\\": $i, \\"loss\\": 1$i}"; done"""
    record = record_of(start(text, results=LINES), for_s)
    assert (record.steps.tolist(), record.curves["loss"].tolist()) == ([1, 2, 3, 4, 5], [11, 12, 13, 14, 15])


def test_progress_is_the_latest_step(start: Start, go: Go) -> None:
    """Progress has the latest step while the program runs."""
    text = """echo '{"step": 4, "loss": 1}'; read go < go; echo '{"step": 5, "loss": 2}'"""
    training = start(text, results=LINES, iterations=9)
    after_a_step(training)
    progress = training.advance(0.0)
    assert (progress.step, progress.iterations, progress.is_done) == (4, 9, False)
    go()
    assert record_of(training).steps.tolist() == [4, 5]
    assert training.advance(1.0).is_done


def test_all_output_counts(start: Start, folder: Path) -> None:
    """All printed lines are read and logged, however many come at once."""
    text = """seq 1 30000 | sed 's/.*/{"step": &, "loss": &}/'"""
    record = record_of(start(text, results=LINES))
    assert (record.last_step, len(record.steps), record.best_step) == (30_000, 30_000, 1)
    assert len((folder / "log.txt").read_text().splitlines()) == 30_000


@pytest.mark.parametrize("results", [LINES, Results("pattern", "loss.: (?P<loss>[0-9.]+)"), FILE])
def test_the_log_has_output_and_errors(start: Start, folder: Path, results: Results) -> None:
    """The log has output and errors in the program's encoding, also if results are read from the output."""
    text = r"""echo out; echo err >&2; echo '{"loss": 1}' | tee metrics.json; printf 'gr\366\337e\n'"""
    assert record_of(start(text, results=results)).metrics == {"loss": 1.0}
    assert (folder / "log.txt").read_bytes() == b'out\nerr\n{"loss": 1}\ngr\xf6\xdfe\n'


def test_a_program_may_close_its_output(start: Start, folder: Path, go: Go) -> None:
    """A program may close its output and continue; a child process that holds the output open is killed."""
    training = start("""echo '{"loss": 1}'; exec > /dev/null 2>&1; read go < go""", results=LINES)
    after_a_step(training)
    go()
    assert record_of(training).metrics == {"loss": 1.0}
    second = record_of(start("""sleep 1000 & echo $! > left; echo '{"loss": 2}'""", results=LINES))
    assert (second.metrics, second.error) == ({"loss": 2.0}, None)
    assert has_ended(int((folder / "left").read_text()))


# --- failures

FAILURES: dict[str, tuple[str, Results, str]] = {
    "exit code": ("echo one; echo 'no luck' >&2; exit 7", FILE, "it ended with exit code 7: no luck"),
    "silence": ("exit 1", FILE, "it ended with exit code 1, and printed nothing"),
    "results before": ("echo '{\"loss\": 1}'; exit 2", LINES, 'it ended with exit code 2: {"loss": 1}'),
    "half-written results": (
        "printf '{\"loss\": 0.' > metrics.json; echo x; exit 2", FILE, "it ended with exit code 2: x"
    ),
    "signal": ("echo before; kill -SEGV $$", FILE, "it was ended by SIGSEGV (a segmentation fault): before"),
    "out of memory": (
        "kill -9 $$", FILE, "it was ended by SIGKILL (perhaps the machine ran out of memory), and printed nothing"
    ),
    "no results": ("echo done", FILE, "it ended with exit code 0, but there are no results in metrics.json"),
    "no lines": (
        "echo done", LINES, "it ended with exit code 0, but there are no results in the lines of JSON in its output"
    ),
    "no match": (
        "echo done", Results("pattern", "loss (?P<loss>.*)"),
        "it ended with exit code 0, but there are no results in its output: no line matches the pattern",
    ),
    "no events": (
        "mkdir runs", Results("tensorboard", "runs"),
        "it ended with exit code 0, but there are no results in the folder runs",
    ),
    "a metric that never appears": (
        "echo '{\"Loss\": 1, \"rate\": 2}' > metrics.json", FILE,
        "it ended with exit code 0, but loss never appeared in metrics.json, only Loss, rate",
    ),
    "no whole JSON": (
        "printf '{\"loss\": 0.' > metrics.json", FILE, "metrics.json isn't valid JSON: Expecting"
    ),
    "a broken row": (
        "printf 'step,loss\\n1,2\\n3\\n' > log.csv", TABLE, "line 3 of log.csv has 1 value, and the header 2 columns"
    ),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_has_a_reason(start: Start, failure: str) -> None:
    text, results, reason = FAILURES[failure]
    training = start(text, results=results)
    record = record_of(training)
    assert record.error is not None
    assert record.error.startswith(reason)
    assert outcome_of(record, {}) is Outcome.FAILED
    assert training.failure == f"{record.details}\n{record.error}".strip()


@pytest.mark.parametrize("code", [1, 0])
def test_a_traceback_is_kept(start: Start, code: int) -> None:
    """The details are the last traceback of the output, with any exit code; else the end of the log."""
    text = f"echo begin; python -c 'int(\"x\")'; exit {code}"
    record = record_of(start(text))
    reason = (
        "it ended with exit code 1" if code else "it ended with exit code 0, but there are no results in metrics.json"
    )
    assert record.error == reason
    assert record.details.startswith("Traceback (most recent call last)")
    assert record.details.endswith("ValueError: invalid literal for int() with base 10: 'x'")
    other = record_of(start("seq 1 30; exit 1"))
    assert other.details.split() == [str(number) for number in range(21, 31)]


def test_steps_before_a_failure_remain(start: Start) -> None:
    record = record_of(start(f"{CURVE}; exit 3", results=TABLE, metrics=METRICS))
    assert (record.steps.tolist(), record.error) == ([1, 2, 3], "it ended with exit code 3, and printed nothing")


def test_unreadable_results_end_the_program(start: Start, ids: Ids) -> None:
    """Unreadable results end the program at once, and the error names the problem."""
    training = start(
        "echo $$ > ids; echo 'loss=1,'; exec sleep 1000", results=Results("pattern", r"loss=(?P<loss>\S+)")
    )
    training.advance(0.0)
    (program,) = ids()
    record = record_of(training)
    assert has_ended(program)
    assert str(record.error).startswith("the pattern's group loss matched '1,', which isn't a number")


def test_ignored_steps_are_an_error(start: Start) -> None:
    """The error says that steps are beyond `iterations`, or that a metric came too late."""
    text = """echo '{"step": 5, "loss": 1}'"""
    beyond = record_of(start(text, results=LINES, iterations=4))
    assert beyond.error == "its first step is 5, beyond iterations: 4"
    text = """echo '{"step": 1, "loss": 1}'; echo '{"step": 2, "accuracy": 1}'"""
    late = record_of(start(text, results=LINES, metrics=METRICS))
    assert late.error == (
        "no step in the lines of JSON in its output counts: loss must be reported at or after the first accuracy"
    )
    text = """echo '{"step": 1, "rate": 1}'; echo '{"step": 9, "loss": 1}'"""
    assert record_of(start(text, results=LINES, iterations=4)).error == "its first step is 9, beyond iterations: 4"


def test_a_missing_program_is_an_error(start: Start) -> None:
    """The error has the program's name and the system's reason."""
    record = record_of(start("nosuch", "--lr", "1"))
    assert record.error == "nosuch can't be run: No such file or directory"


@LINUX
def test_a_killed_guard_fails_only_its_trial(start: Start, ids: Ids) -> None:
    training = start("echo $PPID > ids; exec sleep 1000")
    training.advance(0.0)
    (guard,) = ids()
    os.kill(guard, signal.SIGKILL)
    assert record_of(training).error == "its guard process was killed, and the program with it"
    assert record_of(start("echo '{\"loss\": 1}' > metrics.json")).error is None


# --- limits


FOREVER = """echo '{"step": 1, "loss": 1}'; sleep 1000 & wait"""


def test_a_time_limit_ends_the_program(start: Start) -> None:
    """A program is terminated at its limit, and earlier steps are kept."""
    training = start(FOREVER, results=LINES, limits=Limits(time_limit_s=1000.0))
    after_a_step(training)
    training._limits = Limits(time_limit_s=0.0)  # set now, since starting a program may take long
    record = record_of(training)
    assert record.error == "it took longer than its time limit of 0 s"
    assert record.steps.tolist() == [1]


def test_a_program_that_ignores_its_time_limit_is_killed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Process.terminate, "__defaults__", (0.0,))  # instead of 5 s
    training = start(f"trap '' TERM; {FOREVER}", results=LINES, limits=Limits(time_limit_s=1000.0))
    after_a_step(training)
    training._limits = Limits(time_limit_s=0.0)
    ignored = "it took longer than its time limit of 0 s; it ignored SIGTERM for 5 s, and was killed"
    assert record_of(training).error == ignored


@LINUX
def test_memory_has_a_limit(start: Start) -> None:
    """Python reports a failed allocation itself; a crash under the limit gets a hint."""
    limits = Limits(memory_gb=0.5)
    text = """python -c 'x = bytearray(SIZE)' && echo '{"loss": 1}' > metrics.json"""
    record = record_of(start(text.replace("SIZE", "2**31"), limits=limits))
    assert record.error == "it ended with exit code 1"
    assert record.details.endswith("MemoryError")
    assert record_of(start(text.replace("SIZE", "2**20"), limits=limits)).error is None
    crash = record_of(start("kill -SEGV $$", limits=limits))
    why = "a segmentation fault; perhaps its memory_gb of 0.5 wasn't enough"
    assert crash.error == f"it was ended by SIGSEGV ({why}), and printed nothing"
    assert record_of(start("kill $$", limits=limits)).error == "it was ended by SIGTERM, and printed nothing"


# --- NaN


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_not_finite_ends_the_program(start: Start, ids: Ids, value: str) -> None:
    """The trial has diverged and not failed, and its best step is an earlier one."""
    text = f"""echo $$ > ids; echo '{{"step": 1, "loss": 2}}'; echo '{{"step": 2, "loss": {value}}}'; sleep 1000"""
    training = start(text, results=LINES)
    training.advance(0.0)
    (program,) = ids()
    record = record_of(training)
    assert (record.error, record.has_diverged, record.last_step, record.best_step) == (None, True, 2, 1)
    assert record.metrics == {"loss": 2.0}
    assert outcome_of(record, {}) is Outcome.DIVERGED
    assert has_ended(program)


def test_a_program_that_fails_after_nan_has_diverged(start: Start) -> None:
    """A program that fails after NaN has diverged, and later steps are ignored."""
    text = "printf 'step,loss\\n1,nan\\n2,1\\n' > log.csv; exit 1"
    record = record_of(start(text, results=TABLE))
    assert (record.error, record.has_diverged, record.steps.tolist()) == (None, True, [1])


def test_ignored_numbers_may_be_nan(start: Start, go: Go) -> None:
    """NaN among undeclared numbers, or before every metric has a value, doesn't end the trial."""
    lines = ['{"step": 1, "loss": NaN}', '{"step": 2, "loss": 1, "accuracy": 0.5, "more": NaN}']
    text = f"echo '{lines[0]}'; read go < go; echo '{lines[1]}'"
    training = start(text, results=LINES, metrics=METRICS)
    after_a_step(training)
    assert not training.done
    go()
    record = record_of(training)
    assert (record.error, record.steps.tolist(), record.has_diverged) == (None, [2], False)


# --- inputs of a program


def written_by(start: Start, folder: Path, command: str, **settings: Any) -> str:
    """Run a command followed by a valid result, and return its output."""
    assert record_of(start(f"""{command}; echo '{{"loss": 1}}' > metrics.json""", **settings)).error is None
    return (folder / "log.txt").read_text()


def test_a_program_gets_its_folder_and_values(start: Start, folder: Path) -> None:
    """Hyperparameters and seed are in the command and in the environment of a program."""
    values = {"lr": 0.5, "model.width": 8, "name": "a b", "layers": [8, 8]}
    printed = written_by(start, folder, "pwd; echo {seed} {lr} {model.width}; env", seed=7, values=values).splitlines()
    assert printed[:2] == [str(folder), "7 0.5 8"]
    assert {line for line in printed if line.startswith("STUDY_")} == {
        "STUDY_SEED=7", f"STUDY_FOLDER={folder}", "STUDY_RESUME=0", "STUDY_PARAM_LR=0.5", "STUDY_PARAM_MODEL_WIDTH=8",
        "STUDY_PARAM_NAME=a b", "STUDY_PARAM_LAYERS=[8, 8]",
    }  # fmt: skip


def test_limits_are_in_the_environment(start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads, GPUs, unbuffered output and fixed hashes are set; Python finds modules beside a script."""
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("MINE", "kept")
    text = "echo $OMP_NUM_THREADS, $CUDA_VISIBLE_DEVICES, $PYTHONUNBUFFERED $PYTHONHASHSEED $PYTHONSAFEPATH, $MINE"
    assert written_by(start, folder, text, limits=Limits(cpus=3, gpus=0)) == "3, , 1 0 , kept\n"


def test_hyperparameters_are_in_a_file(start: Start, folder: Path) -> None:
    """A command with {config} gets a file of hyperparameters as nested tables."""
    values = {"lr": 1e-5, "model.width": 8, "model.act": "rel\u00fc", "flag": True, "none": None}
    written_by(start, folder, "cat {config}", values=values)
    assert json.loads((folder / "config.json").read_bytes()) == {
        "lr": 1e-5, "model": {"width": 8, "act": "rel\u00fc"}, "flag": True, "none": None
    }  # fmt: skip
    assert (folder / "log.txt").read_bytes().startswith((folder / "config.json").read_bytes())


def test_python_is_the_services_own(start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python is the service's own, unless a virtual environment is active, whose programs come first."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    text = "python -c 'import sys; print(sys.prefix)'"
    assert written_by(start, folder, text) == f"{sys.prefix}\n"
    active = folder.parent / "bin"
    active.mkdir()
    (active / "python").write_text("#!/bin/sh\necho another\n")
    (active / "python").chmod(0o755)
    monkeypatch.setenv("VIRTUAL_ENV", str(folder.parent))
    monkeypatch.setenv("PATH", f"{active}{os.pathsep}{os.environ['PATH']}")
    assert written_by(start, folder, text).endswith("another\n")


def test_the_copy_of_the_code_runs(start: Start, folder: Path, tmp_path: Path) -> None:
    """Scripts, modules and executables are those of the copy; a shell command finds it by {code}."""
    code = tmp_path / "copy"
    code.mkdir()
    (code / "train.py").write_text("import helper\nhelper.write(1)\n")
    (code / "helper.py").write_text("def write(loss):\n    open('metrics.json', 'w').write('{\"loss\": %s}' % loss)\n")
    (code / "run").write_text("#!/bin/sh\necho '{\"loss\": 2}' > metrics.json\n")
    copy = {"code": code, "files": ("train.py", "helper.py", "run")}
    losses = [
        record_of(start("python", "train.py", **copy)).metrics,
        record_of(start("./run", "x", **copy)).metrics,
        record_of(start("python", "-c", "import helper; helper.write(3)", **copy)).metrics,
        record_of(start("cat /dev/null && sh {code}/run", is_shell=True, **copy)).metrics,
    ]
    assert losses == [{"loss": 1.0}, {"loss": 2.0}, {"loss": 3.0}, {"loss": 2.0}]


def test_mlflow_writes_into_the_trials_folder(start: Start, folder: Path) -> None:
    """MLflow writes into the trial's folder, independent of the machine's tracking server."""
    text = 'mkdir -p runs; echo "$MLFLOW_TRACKING_URI $MLFLOW_ALLOW_FILE_STORE"'
    record = record_of(start(text, results=Results("mlflow", "runs")))
    assert (folder / "log.txt").read_text() == f"{folder / 'runs/mlruns'} true\n"
    assert record.error == "it ended with exit code 0, but there are no results in the folder runs"


# --- end and resume


def test_closing_ends_the_program(start: Start, ids: Ids) -> None:
    """Closing, as after Ctrl-C, ends the program; closing twice or before the start is a no-op."""
    training = start("sleep 1000 & echo $$ $! > ids; wait")
    training.close()
    training.advance(0.0)
    processes = ids()
    training.close()
    assert all(map(has_ended, processes))
    training.close()
    assert not training.done
    with pytest.raises(ValueError, match="the trial must be done, but is at step None"):
        training.finish()


def test_a_trial_without_a_folder_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder, a trial and its log use a temporary one, removed at the end."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = Program(("sh", "-c", "pwd; echo '{\"loss\": 1}' > metrics.json; exit $STUDY_PARAM_CODE"), FILE)
    trials = [CallTrial(seed=1, values={"code": code}, metrics=LOSS) for code in (0, 1)]
    fine, failed = (record_of(ProgramTraining(program, trial)) for trial in trials)
    assert fine.metrics == {"loss": 1.0}
    assert str(failed.error).startswith(f"it ended with exit code 1: {tmp_path}/study-trial-")
    assert list(tmp_path.iterdir()) == []


SAVING = """
test $STUDY_RESUME = 1 && first=$(cat saved) || { first=0; echo step,loss > log.csv; }
for step in $(seq $first 5); do
    test $step = 3 && test $STUDY_RESUME = 0 && { echo $$ > ids; exec sleep 1000; }
    echo $step,$((20 - step)) >> log.csv
    echo $((step + 1)) > saved
done
"""


def test_a_trial_resumes_in_its_folder(start: Start, ids: Ids) -> None:
    """A resumed program continues from its saved state, with the numbers of an uninterrupted trial."""
    training = start(SAVING, results=TABLE, resumes=True, limits=Limits(time_limit_s=1000.0))
    training.advance(0.0)
    ids()
    checkpoint = through_a_file(training.checkpoint())
    training.close()
    record = record_of(start(SAVING, results=TABLE, resumes=True, checkpoint=checkpoint))
    assert (record.error, record.steps.tolist(), record.curves["loss"].tolist()) == (
        None, [0, 1, 2, 3, 4, 5], [20, 19, 18, 17, 16, 15]
    )  # fmt: skip
    assert record.training_s > checkpoint["training_s"] > 0
    undisturbed = start(SAVING.replace("test $step = 3 && ", "false && "), results=TABLE, resumes=True)
    assert bits(record_of(undisturbed)) == bits(record)


def test_time_before_a_checkpoint_counts(start: Start, ids: Ids) -> None:
    """Time before a checkpoint counts for the limit and for the trial's training time."""
    training = start(SAVING, results=TABLE, resumes=True)
    training.advance(0.0)
    ids()
    checkpoint = dict(training.checkpoint() or {})
    training.close()
    checkpoint["training_s"] = checkpoint["training_s"] + 5000.0
    record = record_of(
        start("sleep 1000", results=TABLE, resumes=True, checkpoint=checkpoint, limits=Limits(time_limit_s=1000.0))
    )
    assert record.error == "it took longer than its time limit of 1000 s"
    assert record.training_s > 5000


def test_a_program_that_cannot_resume_has_no_checkpoint(start: Start, ids: Ids) -> None:
    """Trials of a program that can't resume have no checkpoint."""
    training = start("echo $$ > ids; exec sleep 1000", results=TABLE)
    assert training.checkpoint() is None
    training.advance(0.0)
    ids()
    assert training.checkpoint() is None


def test_a_checkpoint_with_other_metrics_is_refused(start: Start) -> None:
    training = start("true", resumes=True)
    training.advance(0.0)
    with pytest.raises(ValueError, match="the checkpoint must have the metrics"):
        start("true", resumes=True, metrics=METRICS, checkpoint=training.checkpoint())
