"""The packed engine on user code, by the contract of all engines."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study.driver.own_engine import own_engine, proven, training_notices
from study.engine.packed.engine import PackedEngine
from study.errors import InputError
from study.plan.packs import shape_key
from study.plan.plan import Plan, make_plan
from study.records import Checkpoint, Outcome, Pack, Trial
from tests.study.lab import packed_study

MLP = "mylab.models:mlp"
GRID = {"learning_rate": [0.01, 0.1], "schedule": ["constant", "cosine"]}


def planned(folder: Path, root: Path, **changed: Any) -> tuple[PackedEngine, Plan]:
    """Plan a study of one shape, whose trials differ in seed, rate and schedule, and prove its layout."""
    spec = packed_study(folder, **({"models": [MLP], "grid": GRID, "fixed": None} | changed))
    plan = make_plan(spec)
    engine = proven(own_engine(spec), plan, root)
    assert isinstance(engine, PackedEngine)
    return engine, plan


def comparable(finished: Any) -> list[tuple[Any, ...]]:
    """Return the parts of results, curves and weights that must be equal bit for bit."""
    return [
        (
            replace(result, training_s=0.0),
            curve.iteration.tobytes(),
            {name: values.tobytes() for name, values in curve.metrics.items()},
            {name: (array.shape, array.tobytes()) for name, array in weights.arrays.items()},
            weights.iteration,
        )
        for result, curve, weights in zip(*finished, strict=True)
    ]


def trained(
    engine: PackedEngine, trials: tuple[Trial, ...], *, for_s: float = 1e9, checkpoint: Checkpoint | None = None
) -> list[tuple[Any, ...]]:
    """Train a pack to its end."""
    training = engine.start(Pack(trials), device="cpu", checkpoint=checkpoint)
    while not training.done:
        training.advance(for_s)
    return comparable(training.finish())


@pytest.mark.parametrize("models", [MLP, "mylab.models:dropping"])
def test_a_result_does_not_depend_on_the_pack(packed_lab: Path, tmp_path: Path, models: str) -> None:
    """A trial's bits don't depend on its pack, position or time slices, side by side or one after another."""
    engine, plan = planned(packed_lab, tmp_path, models=[models])
    trials = plan.trials
    assert len({shape_key(trial.cell) for trial in trials}) == 1
    assert bool(training_notices(plan.cells, engine)) == (models != MLP)
    packed = trained(engine, trials)
    assert trained(engine, trials[::-1]) == packed[::-1]
    assert trained(engine, trials, for_s=0.0) == packed
    for place in (0, 5, len(trials) - 1):
        assert trained(engine, (trials[place],)) == [packed[place]]
    assert len({str(row[3]) for row in packed}) == len(trials)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
def test_a_pack_resumes(packed_lab: Path, tmp_path: Path, optimizer: str) -> None:
    """Resumed after any slice, a pack ends with the same bits, even if the user's files have changed."""
    protocol = {"iterations": 4, "evaluate_every": 2}
    engine, plan = planned(packed_lab, tmp_path, fixed={"optimizer": optimizer}, protocol=protocol)
    expected = trained(engine, plan.trials)
    training = engine.start(Pack(plan.trials), device="cpu")
    (packed_lab / "mylab" / "models.py").write_text("raise SystemExit  # the copy runs, never the live file\n")
    slices = 0
    while not training.done:
        training.advance(0.0)
        slices += 1
        checkpoint = training.checkpoint()
        arrays = {name: array.copy() for name, array in checkpoint.arrays.items()}
        assert all(array.dtype != object and len(array) == len(plan.trials) for array in arrays.values())
        assert trained(engine, plan.trials, checkpoint=replace(checkpoint, arrays=arrays)) == expected
    assert slices == 5
    with pytest.raises(ValueError, match="other trials"):
        engine.start(Pack(plan.trials[:2]), device="cpu", checkpoint=checkpoint)
    with pytest.raises(ValueError, match="engine"):
        engine.start(Pack(plan.trials), device="cpu", checkpoint=replace(checkpoint, engine="another"))


def test_nan_does_not_affect_other_trials(packed_lab: Path, tmp_path: Path) -> None:
    """A rate that makes trials diverge leaves their neighbours' bits unchanged."""
    grid = {"learning_rate": [0.01, 1e38]}
    protocol = {"iterations": 40, "evaluate_every": 10}
    engine, plan = planned(packed_lab, tmp_path, grid=grid, fixed={"optimizer": "momentum"}, protocol=protocol)
    packed = trained(engine, plan.trials)
    wild = [trial.cell.value("learning_rate") > 1 for trial in plan.trials]
    assert [row[0].outcome is Outcome.DIVERGED for row in packed] == wild
    for trial, row, is_wild in zip(plan.trials, packed, wild, strict=True):
        accuracy = np.frombuffer(row[2]["test_accuracy"])
        assert np.isnan(accuracy[-1]) == is_wild
        assert trained(engine, (trial,)) == [row]


def test_every_number_of_a_result(packed_lab: Path, tmp_path: Path) -> None:
    """The first metric's best step in the window decides the outcome; solved-at is the criterion's first step."""
    protocol = {"iterations": 200, "evaluate_every": 20, "best_step_window": 5}
    criterion = {"test_accuracy": {"at_least": 0.8}}
    task = {"name": "mylab.tasks:Spirals", "turns": 0.5, "batch_size": 64}
    engine, plan = planned(
        packed_lab, tmp_path, protocol=protocol, success=criterion, task=task, grid={"learning_rate": [0.05, 1e-6]}
    )
    training = engine.start(Pack(plan.trials), device="cpu")
    while not training.done:
        progress = training.advance(1e9)
    results, curves, weights = training.finish()
    for trial, result, curve, weight in zip(plan.trials, results, curves, weights, strict=True):
        assert (result.trial, result.engine, result.device) == (trial, "packed", "cpu")
        assert curve.iteration.tolist() == list(range(0, 201, 20))
        loss, accuracy = curve.metrics["validation_loss"], curve.metrics["test_accuracy"]
        best = 6 + int(np.argmin(loss[6:]))
        assert result.best_iteration == 20 * best
        assert result.metrics == {"validation_loss": loss[best], "test_accuracy": accuracy[best]}
        assert result.outcome is (Outcome.SOLVED if accuracy[best] >= 0.8 else Outcome.UNSOLVED)
        met = np.flatnonzero(accuracy >= 0.8)
        is_solved = result.outcome is Outcome.SOLVED
        assert result.solved_at_iteration == (20 * met[0] if is_solved else None)
        assert (result.criterion, result.threshold) == ("test_accuracy >= 0.8", None)
        assert (weight.iteration, weight.arrays["0.weight"].shape) == (201, (4, 2))
    outcomes = [result.outcome for result in results]
    assert set(outcomes) == {Outcome.SOLVED, Outcome.UNSOLVED}
    assert (progress.iteration, progress.iterations, progress.trials) == (201, 201, len(results))
    assert progress.solved == sum((curve.metrics["test_accuracy"] >= 0.8).any() for curve in curves)


def test_without_a_criterion_a_trial_is_finished(packed_lab: Path, tmp_path: Path) -> None:
    engine, plan = planned(packed_lab, tmp_path, success=None)
    assert {row[0].outcome for row in trained(engine, plan.trials[:2])} == {Outcome.FINISHED}


def test_an_untrainable_model_is_an_error_before_the_start(packed_lab: Path, tmp_path: Path) -> None:
    """The error has the user's line without the path of the copy."""
    models = packed_lab / "mylab" / "models.py"
    models.write_text(models.read_text().replace("nn.Linear(2, hidden)", "nn.Linear(3, hidden)"))
    with pytest.raises(InputError, match=r"mylab.models:mlp can't be trained on mylab.tasks:Spirals: ") as caught:
        planned(packed_lab, tmp_path)
    assert "cache" not in str(caught.value)


def test_a_panic_is_an_error_before_the_start(packed_lab: Path, tmp_path: Path) -> None:
    """Errors that don't derive from Exception, such as a panic in Rust, are reported as well."""
    models = packed_lab / "mylab" / "models.py"
    panicking = "class Panic(BaseException):\n    pass\n\n\ndef net(hidden, *middle):\n    raise Panic('unwrap')\n"
    models.write_text(models.read_text().replace("def net(hidden, *middle):\n", panicking))
    with pytest.raises(InputError, match=r"(?s)can't be trained on .*models.py, line .*\nPanic: unwrap$"):
        planned(packed_lab, tmp_path)


def test_a_pickled_engine_is_equivalent(packed_lab: Path, tmp_path: Path) -> None:
    """A pickled engine gives the same results; an engine refuses other cells, and proves layouts that it lacks."""
    engine, plan = planned(packed_lab, tmp_path)
    sent = pickle.loads(pickle.dumps(engine))  # noqa: S301
    expected = trained(engine, plan.trials)
    assert trained(sent, plan.trials) == expected == trained(replace(engine, layouts={}), plan.trials)
    assert engine.refuses(plan.cells[0]) is None
    assert "nothing else" in str(engine.refuses(plan.cells[0].replace(model="mylab.models:wide")))
    assert 0 < engine.memory_mb(Pack(plan.trials[:1])) < engine.memory_mb(Pack(plan.trials))
