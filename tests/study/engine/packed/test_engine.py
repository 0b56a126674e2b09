"""Laws of the engine of tasks and models of one's own: those of all engines, on a user's own code."""

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
    """Plan a study of one shape, whose trials differ in seed, rate and schedule, and prove how it trains."""
    spec = packed_study(folder, **({"models": [MLP], "grid": GRID, "fixed": None} | changed))
    plan = make_plan(spec)
    engine = proven(own_engine(spec), plan, root)
    assert isinstance(engine, PackedEngine)
    return engine, plan


def comparable(finished: Any) -> list[tuple[Any, ...]]:
    """Return what must not depend on where and how trials were trained, bit for bit."""
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
def test_a_result_is_that_of_the_trial_alone(packed_lab: Path, tmp_path: Path, models: str) -> None:
    """Neither pack, place nor slices change a bit, whether trials train side by side or one after another."""
    engine, plan = planned(packed_lab, tmp_path, models=[models])
    trials = plan.trials
    assert len({shape_key(trial.cell) for trial in trials}) == 1
    assert bool(training_notices(plan.cells, engine)) == (models != MLP)
    whole = trained(engine, trials)
    assert trained(engine, trials[::-1]) == whole[::-1]
    assert trained(engine, trials, for_s=0.0) == whole
    for place in (0, 5, len(trials) - 1):
        assert trained(engine, (trials[place],)) == [whole[place]]
    assert len({str(row[3]) for row in whole}) == len(trials)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
def test_a_pack_goes_on_where_it_was(packed_lab: Path, tmp_path: Path, optimizer: str) -> None:
    """From a checkpoint after any slice, a fresh training ends with the same bits, whatever the live files say."""
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


def test_nan_touches_no_other_trial(packed_lab: Path, tmp_path: Path) -> None:
    """A rate that blows trials up makes them diverged, accuracy and all, and leaves their neighbours' bits alone."""
    grid = {"learning_rate": [0.01, 1e38]}
    protocol = {"iterations": 40, "evaluate_every": 10}
    engine, plan = planned(packed_lab, tmp_path, grid=grid, fixed={"optimizer": "momentum"}, protocol=protocol)
    whole = trained(engine, plan.trials)
    wild = [trial.cell.value("learning_rate") > 1 for trial in plan.trials]
    assert [row[0].outcome is Outcome.DIVERGED for row in whole] == wild
    for trial, row, is_wild in zip(plan.trials, whole, wild, strict=True):
        accuracy = np.frombuffer(row[2]["test_accuracy"])
        assert np.isnan(accuracy[-1]) == is_wild
        assert trained(engine, (trial,)) == [row]


def test_every_number_of_a_result(packed_lab: Path, tmp_path: Path) -> None:
    """The best step is the best of the first metric in the window; the criterion is judged there, and at first."""
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


def test_what_cannot_train_is_said_before_a_study_starts(packed_lab: Path, tmp_path: Path) -> None:
    """With the user's own line, and without the place of the copy."""
    models = packed_lab / "mylab" / "models.py"
    models.write_text(models.read_text().replace("nn.Linear(2, hidden)", "nn.Linear(3, hidden)"))
    with pytest.raises(InputError, match=r"mylab.models:mlp can't be trained on mylab.tasks:Spirals: ") as caught:
        planned(packed_lab, tmp_path)
    assert "cache" not in str(caught.value)


def test_a_panic_is_said_before_a_study_starts(packed_lab: Path, tmp_path: Path) -> None:
    """What a model raises need not be an Exception, such as a panic in Rust."""
    models = packed_lab / "mylab" / "models.py"
    panicking = "class Panic(BaseException):\n    pass\n\n\ndef net(hidden, *middle):\n    raise Panic('unwrap')\n"
    models.write_text(models.read_text().replace("def net(hidden, *middle):\n", panicking))
    with pytest.raises(InputError, match=r"(?s)can't be trained on .*models.py, line .*\nPanic: unwrap$"):
        planned(packed_lab, tmp_path)


def test_an_engine_is_data(packed_lab: Path, tmp_path: Path) -> None:
    """What workers are sent trains the same, and says which cells it refuses; a recipe without a proof is proven."""
    engine, plan = planned(packed_lab, tmp_path)
    sent = pickle.loads(pickle.dumps(engine))  # noqa: S301
    expected = trained(engine, plan.trials)
    assert trained(sent, plan.trials) == expected == trained(replace(engine, layouts={}), plan.trials)
    assert engine.refuses(plan.cells[0]) is None
    assert "nothing else" in str(engine.refuses(plan.cells[0].replace(model="mylab.models:wide")))
    assert 0 < engine.memory_mb(Pack(plan.trials[:1])) < engine.memory_mb(Pack(plan.trials))
