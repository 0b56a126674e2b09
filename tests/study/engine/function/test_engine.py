"""The engine of training functions: results don't depend on pack, slice or process."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from study.driver.own_engine import own_engine
from study.engine.function import FunctionEngine
from study.plan.plan import make_plan
from study.records import Outcome, Pack, Result, Trial
from tests.study.lab import study_of


def engine_and_trials(folder: Path, **changed: object) -> tuple[FunctionEngine, tuple[Trial, ...]]:
    spec = study_of(folder, **changed)
    engine = own_engine(spec)
    assert isinstance(engine, FunctionEngine)
    return engine, make_plan(spec).trials


def results(engine: FunctionEngine, trials: tuple[Trial, ...], for_s: float = 1.0) -> list[Result]:
    """Train a pack to its end, and return its results without training times."""
    training = engine.start(Pack(trials), device="cpu")
    while not training.done:
        training.advance(for_s)
    training.close()
    return [replace(result, training_s=0.0) for result in training.finish()[0]]


def test_a_result_does_not_depend_on_the_pack(lab: Path) -> None:
    """A result doesn't depend on the pack, the position in it or time slices: each call is seeded anew."""
    engine, trials = engine_and_trials(lab)
    packed = results(engine, trials)
    assert packed == [result for trial in trials for result in results(engine, (trial,))]
    assert packed == results(engine, trials, for_s=0.0)
    assert packed[::-1] == results(engine, trials[::-1])
    assert len({result.metrics["accuracy"] for result in packed}) > 1


def test_outcomes_and_times(lab: Path) -> None:
    """A trial is solved if its best step meets the criterion; solved-at is the first step that met it."""
    engine, trials = engine_and_trials(lab, grid=None, fixed={"width": 4}, seeds=20)
    training = engine.start(Pack(trials), device="cpu")
    while not training.done:
        progress = training.advance(1.0)
    ended, curves, weights = training.finish()
    assert {result.outcome for result in ended} == {Outcome.SOLVED}
    assert progress.solved == 20
    assert not weights
    for result, curve in zip(ended, curves, strict=True):
        accuracy = curve.metrics["accuracy"]
        assert result.solved_at_iteration == curve.iteration[np.argmax(accuracy >= 0.9)]
        assert result.best_iteration == curve.iteration[accuracy.argmax()]
        assert result.metrics["accuracy"] == accuracy.max()
        assert result.iterations == 4
        assert result.criterion == "accuracy >= 0.9"
    engine, trials = engine_and_trials(lab, success={"accuracy": {"at_least": 2.0}})
    assert {(result.outcome, result.solved_at_iteration) for result in results(engine, trials)} == {
        (Outcome.UNSOLVED, None)
    }


def test_without_a_criterion_a_trial_is_finished(lab: Path) -> None:
    """A function that returns a dict gives finished trials without a curve and a best step."""
    engine, trials = engine_and_trials(lab, train="mylab.training:once", metrics={"loss": "lower"}, success=None)
    training = engine.start(Pack(trials), device="cpu")
    while not training.done:
        training.advance(1.0)
    ended, curves, _ = training.finish()
    assert {result.outcome for result in ended} == {Outcome.FINISHED}
    assert not curves
    assert {(result.best_iteration, result.criterion) for result in ended} == {(None, None)}
    assert all(0 < result.metrics["loss"] < 1 for result in ended)


@pytest.mark.parametrize("isolation", [None, "process"])
def test_undeclared_numbers_are_in_curves_with_a_notice(lab: Path, isolation: str | None) -> None:
    """Undeclared numbers are in curves and checkpoints but not in the result's metrics."""
    (lab / "mylab" / "more.py").write_text(
        "from study import seeded\n\n@seeded\ndef train(seed, *, resume=None):\n"
        "    for step in range(0 if resume is None else resume + 1, 4):\n"
        "        more = {'rate': 0.5 ** step} if step else {}\n"
        "        yield {'step': step, 'loss': 1.0, 'state': step} | more\n"
    )
    changed = {"success": None, "grid": None, "isolation": isolation, "metrics": {"loss": "lower"}}
    engine, trials = engine_and_trials(lab, train="mylab.more:train", **changed)
    training = engine.start(Pack(trials[:1]), device="cpu")
    training.advance(0.0)
    resumed = engine.start(Pack(trials[:1]), device="cpu", checkpoint=training.checkpoint())
    training.close()
    while not resumed.done:
        resumed.advance(1.0)
    ((result,), (curve,), _) = resumed.finish()
    assert (set(result.metrics), set(curve.metrics)) == ({"loss"}, {"loss", "rate"})
    np.testing.assert_array_equal(curve.metrics["rate"], [np.nan, 0.5, 0.25, 0.125])
    (notice,) = resumed.take_notices()
    assert notice == "numbers that metrics doesn't declare are kept in curves and MLflow only: rate"


REPORTING = """
import random
from study import Trial, seeded

@seeded
def train(seed, *, width=4, trial: Trial):
    total, first = trial.resume or (0.0, 0)
    for step in range(first, 30):
        total += width * random.Random(100 * seed + step).random()
        trial.report(step, loss=total)
        trial.save((total, step + 1))
"""


@pytest.mark.parametrize("isolation", [None, "process"])
def test_a_reporting_function_resumes_from_its_state(lab: Path, isolation: str | None) -> None:
    """Time slices, a resume and a separate process don't change a bit of the results."""
    (lab / "mylab" / "reporting.py").write_text(REPORTING)
    changed = {"success": None, "metrics": {"loss": "lower"}, "train": "mylab.reporting:train"}
    undisturbed = results(*engine_and_trials(lab, **changed))
    engine, trials = engine_and_trials(lab, **changed, isolation=isolation)
    training = engine.start(Pack(trials), device="cpu")
    training.advance(0.0 if isolation is None else 1.0)
    checkpoint = training.checkpoint()
    training.close()
    resumed = engine.start(Pack(trials), device="cpu", checkpoint=checkpoint)
    while not resumed.done:
        resumed.advance(0.0)
    assert [replace(result, training_s=0.0) for result in resumed.finish()[0]] == undisturbed
    assert len({result.metrics["loss"] for result in undisturbed}) == len(trials)


@pytest.mark.parametrize(("fail", "outcome"), [("raise", Outcome.FAILED), ("nan", Outcome.DIVERGED)])
def test_a_failed_trial_does_not_affect_others(lab: Path, fail: str, outcome: Outcome) -> None:
    engine, trials = engine_and_trials(lab, fixed={"fail": fail})
    by_seed = {result.trial.seed: result for result in results(engine, trials)}
    assert by_seed[1].outcome is outcome
    assert {by_seed[seed].outcome for seed in (0, 2)} <= {Outcome.SOLVED, Outcome.UNSOLVED}
    if fail == "raise":
        assert by_seed[1].error is not None
        assert by_seed[1].error.splitlines()[-1] == "RuntimeError: no luck (mylab/training.py:15)"
        assert not by_seed[1].metrics


def test_a_pack_resumes(lab: Path) -> None:
    """Ended trials aren't called again, and the results are those of an uninterrupted pack."""
    engine, trials = engine_and_trials(lab)
    undisturbed = results(engine, trials)
    training = engine.start(Pack(trials), device="cpu")
    for _ in range(8):  # one step per slice: the second trial has begun
        training.advance(0.0)
    checkpoint = training.checkpoint()
    training.close()
    (lab / "mylab" / "training.py").write_text("raise SystemExit  # the copy runs, never the live file\n")
    resumed = engine.start(Pack(trials), device="cpu", checkpoint=checkpoint)
    slices = 0
    while not resumed.done:
        slices += 1
        resumed.advance(0.0)
    assert [replace(result, training_s=0.0) for result in resumed.finish()[0]] == undisturbed
    assert slices == 6 * (len(trials) - 1)
    assert resumed.checkpoint().training_s >= checkpoint.training_s > 0
    with pytest.raises(ValueError, match="other trials"):
        engine.start(Pack(trials[:2]), device="cpu", checkpoint=checkpoint)


def test_a_pickled_engine_is_equivalent(lab: Path) -> None:
    """A pickled engine gives the same results; an engine gives a reason for cells that it refuses."""
    engine, trials = engine_and_trials(lab)
    sent = pickle.loads(pickle.dumps(engine))  # noqa: S301
    assert results(sent, trials) == results(engine, trials)
    assert engine.refuses(trials[0].cell) is None
    assert "nothing else" in str(engine.refuses(trials[0].cell.replace(model="mylab.training:once")))


@pytest.mark.slow
def test_a_crash_fails_only_its_trial(lab: Path) -> None:
    """A segmentation fault fails only its trial; the others have the results of trials without isolation."""
    in_process_results = results(*engine_and_trials(lab))
    engine, trials = engine_and_trials(lab, fixed={"fail": "crash"}, isolation="process", grid=None)
    ended = results(engine, trials)
    assert [result.outcome is Outcome.FAILED for result in ended] == [False, True, False]
    assert "SIGSEGV" in str(ended[1].error)
    assert ended[0].metrics == next(
        result.metrics
        for result in in_process_results
        if (result.trial.seed, result.trial.cell.value("width")) == (0, 4)
    )
