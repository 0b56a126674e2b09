"""The engine of programs: results don't depend on pack, slice, folder or attempt."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.driver.own_engine import own_engine
from study.engine.calls import CallTrial
from study.engine.program import ProgramEngine
from study.plan.plan import make_plan
from study.records import Checkpoint, Outcome, Pack, Result, Trial
from study.spec import parse_spec
from study.spec.calls import CallSpec
from study.store import Store, StudyStore
from tests.study.engine.function.test_isolated import has_ended

TRAIN = """
. ${0%/*}/helper.sh
echo seed $1 width $2
mode=$3
for step in 0 1 2 3; do
    test $mode$1 = fail1 && test $step = 2 && { echo no luck >&2; exit 3; }
    test $mode$1 = nan1 && test $step = 2 && { row $step nan; continue; }
    row $step $(( (10 * $1 + $2) * (7 - step) % 13 ))
done
"""
HELPER = "row() { test -f log.csv || echo step,loss > log.csv; echo $1,$2 >> log.csv; }\n"

STUDY = {
    "study": "mine",
    "command": "sh train.sh {seed} {width} {mode}",
    "include": ["helper.sh"],
    "results": "log.csv",
    "metrics": {"loss": "lower"},
    "success": {"loss": {"below": 2}},
    "grid": {"width": [1, 4]},
    "fixed": {"mode": "plain"},
    "seeds": 3,
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a program; its copies are unpacked beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.sh").write_text(TRAIN)
    (folder / "helper.sh").write_text(HELPER)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StudyStore]:
    """Return a stored study without results."""
    study = Store(tmp_path / "studies").study("mine")
    study.write_spec("study: mine\n")
    return study


def engine_and_trials(
    project: Path, store: StudyStore | None = None, **changed: Any
) -> tuple[ProgramEngine, tuple[Trial, ...]]:
    content = {name: value for name, value in (STUDY | changed).items() if value is not None}
    spec = parse_spec(yaml.safe_dump(content, sort_keys=False), source="mine.yaml", folder=project)
    assert isinstance(spec, CallSpec)
    engine = own_engine(spec)
    assert isinstance(engine, ProgramEngine)
    if store is not None:
        engine = engine.with_folders(store.trial_files(project, spec.keep_files), is_shared=False)
    return engine, make_plan(spec).trials


def results(
    engine: ProgramEngine, trials: tuple[Trial, ...], for_s: float = 60.0, checkpoint: Checkpoint | None = None
) -> list[Result]:
    """Train a pack to its end, and return its results without training times."""
    training = engine.start(Pack(trials), device="cpu", checkpoint=checkpoint)
    while not training.done:
        training.advance(for_s)
    training.close()
    return [replace(result, training_s=0.0) for result in training.finish()[0]]


def files_of(store: StudyStore, trial: Trial) -> dict[str, str]:
    return {name: store.read_file(store.trial_file(trial.id, name)).decode() for name in store.file_sizes(trial.id)}  # type: ignore[union-attr]


def test_a_result_does_not_depend_on_the_pack(project: Path, store: StudyStore) -> None:
    """A result doesn't depend on the pack, the position in it, time slices or the trial's folder."""
    engine, trials = engine_and_trials(project)
    packed = results(engine, trials)
    assert packed == [result for trial in trials for result in results(engine, (trial,))]
    assert packed == results(engine, trials, for_s=0.0)
    assert packed[::-1] == results(engine, trials[::-1])
    assert packed == results(*engine_and_trials(project, store))
    assert len({result.metrics["loss"] for result in packed}) > 1


def test_outcomes_and_times(project: Path) -> None:
    """A trial is solved if its best step meets the criterion; solved-at is the first step that met it."""
    engine, trials = engine_and_trials(project)
    training = engine.start(Pack(trials), device="cpu")
    while not training.done:
        progress = training.advance(60.0)
    ended, curves, weights = training.finish()
    assert not weights
    for result, curve in zip(ended, curves, strict=True):
        losses = curve.metrics["loss"].tolist()
        seed, width = result.trial.seed, result.trial.cell.value("width")
        assert losses == [(10 * seed + width) * (7 - step) % 13 for step in range(4)]
        assert (result.metrics["loss"], result.best_iteration) == (min(losses), losses.index(min(losses)))
        solved = [step for step, loss in enumerate(losses) if loss < 2]
        assert result.outcome is (Outcome.SOLVED if solved else Outcome.UNSOLVED)
        assert result.solved_at_iteration == (solved[0] if solved else None)
        assert (result.iterations, result.criterion, result.engine) == (3, "loss < 2.0", "program")
    assert {Outcome.SOLVED, Outcome.UNSOLVED} == {result.outcome for result in ended}
    assert progress.solved == sum(result.outcome is Outcome.SOLVED for result in ended)


@pytest.mark.parametrize(("mode", "outcome"), [("fail", Outcome.FAILED), ("nan", Outcome.DIVERGED)])
def test_a_failed_trial_does_not_affect_others(project: Path, store: StudyStore, mode: str, outcome: Outcome) -> None:
    """Other trials keep their metrics; the reason of a failure is in the result and in the trial's folder."""
    engine, trials = engine_and_trials(project, store, fixed={"mode": mode}, grid={"width": [4]})
    plain = results(*engine_and_trials(project, grid={"width": [4]}))
    ended = results(engine, trials)
    assert [result.outcome is outcome for result in ended] == [False, True, False]
    assert [result.metrics for result in ended[::2]] == [result.metrics for result in plain[::2]]
    files = files_of(store, trials[1])
    if mode == "fail":
        assert ended[1].error == "seed 1 width 4\nno luck\nit ended with exit code 3: no luck"
        assert files["error.txt"] == ended[1].error
    assert files["log.txt"].splitlines()[0] == "seed 1 width 4"
    assert set(files_of(store, trials[0])) == {"log.csv", "log.txt"}


def test_results_of_an_earlier_attempt_are_removed(project: Path, store: StudyStore) -> None:
    """A restarted trial's folder is empty, without earlier files or logs."""
    engine, trials = engine_and_trials(project, store)
    assert engine.folders is not None
    folder = engine.folders.folder(trials[0].id)
    folder.mkdir(parents=True)
    (folder / "log.csv").write_text("step,loss\n9,-100\n")
    (folder / "log.txt").write_text("an earlier attempt\n")
    (ended,) = results(engine, trials[:1])
    assert ended == results(*engine_and_trials(project))[0]
    assert files_of(store, trials[0])["log.txt"] == "seed 0 width 1\n"
    silent, _ = engine_and_trials(project, store, command="sh -c 'echo {seed} {width} {mode}'", version=1)
    (restarted,) = results(silent, trials[:1])
    assert restarted.outcome is Outcome.FAILED


RESUMING = """
. ${0%/*}/helper.sh
echo $STUDY_RESUME >> attempts
first=0
test "$STUDY_RESUME" = 1 && first=$(cat saved)
for step in $(seq $first 3); do
    if test $1$step$STUDY_RESUME = 120 && test -p PIPE; then echo $$ > PIPE; exec sleep 1000; fi
    row $step $((100 * $1 + $2 + step))
    echo $((step + 1)) > saved
    echo step $step
done
"""
"""A program that saves each step; with seed 1, it stops at step 2 of its first attempt if there is a pipe."""

RESUMED = {"success": None, "grid": {"width": [1]}}


@pytest.fixture
def pipe(project: Path) -> Path:
    """Return the path of a pipe that isn't made yet; if the pipe exists, the program stops there."""
    path = project.parent / "pipe"
    (project / "train.sh").write_text(RESUMING.replace("PIPE", str(path)))
    return path


def interrupted(engine: ProgramEngine, trials: tuple[Trial, ...], pipe: Path) -> tuple[Checkpoint, int]:
    """Train a pack until its second program has stopped, and close it; return a checkpoint and the program's id."""
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    training = engine.start(Pack(trials), device="cpu")
    while not (written := os.read(reading, 100)):
        training.advance(0.05)
    checkpoint = training.checkpoint()
    training.close()
    os.close(reading)
    pipe.unlink()
    return checkpoint, int(written)


def test_a_pack_resumes(project: Path, store: StudyStore, pipe: Path) -> None:
    """Ended trials aren't run again, and the interrupted one continues in its folder."""
    engine, trials = engine_and_trials(project, store, resume=True, **RESUMED)
    undisturbed = results(engine, trials)
    checkpoint, program = interrupted(engine, trials, pipe)
    assert has_ended(program)
    (project / "train.sh").write_text("exit 1  # the copy runs, never the live file\n")
    first = files_of(store, trials[0])
    ended = results(engine, trials, checkpoint=checkpoint)
    assert ended == undisturbed
    assert files_of(store, trials[0]) == first
    second = files_of(store, trials[1])
    assert (second["attempts"], second["log.txt"]) == ("0\n1\n", "step 0\nstep 1\nstep 2\nstep 3\n")
    assert len({result.metrics["loss"] for result in ended}) == 3
    with pytest.raises(ValueError, match="other trials"):
        engine.start(Pack(trials[:2]), device="cpu", checkpoint=checkpoint)


def test_a_program_that_cannot_resume_restarts(project: Path, store: StudyStore, pipe: Path) -> None:
    """After an interruption the folder of a program that can't resume is emptied, and its result is unchanged."""
    engine, trials = engine_and_trials(project, store, **RESUMED)
    undisturbed = results(engine, trials)
    checkpoint, _ = interrupted(engine, trials, pipe)
    assert files_of(store, trials[1])["log.csv"] == "step,loss\n0,101\n1,102\n"
    assert results(engine, trials, checkpoint=checkpoint) == undisturbed
    second = files_of(store, trials[1])
    assert (second["attempts"], second["log.csv"]) == ("0\n", "step,loss\n0,101\n1,102\n2,103\n3,104\n")


def test_a_pickled_engine_is_equivalent(project: Path) -> None:
    """A pickled engine gives the same results; an engine gives a reason for cells that it refuses."""
    engine, trials = engine_and_trials(project)
    packed = results(engine, trials)
    sent = pickle.loads(pickle.dumps(engine))  # noqa: S301
    (project / "train.sh").unlink()
    assert results(sent, trials) == packed
    assert engine.refuses(trials[0].cell) is None
    refused = str(engine.refuses(trials[0].cell.replace(model="other.sh")))
    assert refused == "it calls train.sh, and nothing else"


def test_errors_name_the_users_files(project: Path) -> None:
    """Errors have the path of the user's file instead of the copy's."""
    (project / "train.py").write_text("import helper\nhelper.fail()\n")
    (project / "helper.py").write_text("def fail():\n    raise ValueError('no luck')\n")
    changed = {"command": "python train.py {seed} {width} {mode}", "include": None}
    engine, trials = engine_and_trials(project, **changed)
    (ended,) = results(engine, trials[:1])
    error = str(ended.error)
    assert "cache" not in error
    assert '  File "helper.py", line 2, in fail' in error
    assert error.splitlines()[-2:] == ["ValueError: no luck", "it ended with exit code 1"]


def test_a_rehearsal_runs_the_program(project: Path, tmp_path: Path) -> None:
    """A rehearsal runs in a temporary folder without a time limit."""
    engine, trials = engine_and_trials(project, resources={"time_limit_s": 1e-9})
    call = CallTrial(seed=5, values=engine.values_of(trials[0].cell), metrics=engine.metrics)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    rehearsed = engine.rehearse(call, scratch)
    while not rehearsed.done:
        rehearsed.advance(60.0)
    rehearsed.close()
    assert rehearsed.failure is None
    assert sorted(path.name for path in scratch.iterdir()) == ["called", "log.txt", "trial"]
    assert (scratch / "log.txt").read_text() == "seed 5 width 1\n"


def test_the_command_of_a_trial(project: Path, tmp_path: Path) -> None:
    """`study run --debug` gets the command's words, with paths in the code copy, and its environment."""
    engine, trials = engine_and_trials(project)
    call = CallTrial(seed=5, values=engine.values_of(trials[0].cell), metrics=engine.metrics)
    words, environment = engine.command(call, tmp_path)
    copy = engine.code.folder().path
    assert words == ["sh", f"{copy}/train.sh", "5", "1", "plain"]
    assert (environment["STUDY_SEED"], environment["STUDY_PARAM_MODE"]) == ("5", "plain")
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(copy)
