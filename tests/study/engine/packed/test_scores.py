"""Best step and outcome by declared metrics and a criterion, on synthetic evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from study.engine.packed.training import CriterionScores
from study.interface.criterion import Bound
from study.interface.declarations import Metric
from study.records import Cell, Outcome, Result, Trial

NAN, INF = float("nan"), float("inf")
TRIAL = Trial(Cell("lab:Task", "lab:mlp", {"iterations": 40}), 0)
SOLVED, UNSOLVED, DIVERGED, FINISHED = Outcome.SOLVED, Outcome.UNSOLVED, Outcome.DIVERGED, Outcome.FINISHED


def scored(evaluations: Sequence[tuple[float, float]], criterion: dict[str, Bound]) -> Result:
    """Score one trial with (accuracy, loss) evaluations at 0, 10, ..., 40; the last three are the window."""
    protocol = SimpleNamespace(iterations=40, evaluate_every=10, best_step_window=3)
    metrics = {"accuracy": Metric(higher_is_better=True), "loss": Metric()}
    scores = CriterionScores(protocol, 1, metrics, criterion)
    for accuracy, loss in evaluations:
        scores.record(accuracy=np.array([accuracy]), loss=np.array([loss]))
    (result,) = scores.results([TRIAL], training_s=1.0, engine="packed", device="cpu")
    return result


@pytest.mark.parametrize(
    ("evaluations", "best", "solved_at", "outcome"),
    [
        ([(0.9, 1), (0.9, 1), (0.5, 1), (0.8, 1), (0.6, 1)], 30, 0, SOLVED),  # the greatest in the window
        ([(0.9, 1), (0.9, 1), (0.5, 1), (0.7, 1), (0.7, 1)], 30, None, UNSOLVED),  # solved earlier; ties: first
        ([(0.1, 1), (0.1, 1), (0.8, 3), (0.9, 2), (0.8, 1)], 30, None, UNSOLVED),  # both bounds must hold at once
        ([(0.1, 1), (0.1, 1), (0.8, 1), (0.9, NAN), (0.7, 1)], 20, 20, SOLVED),  # values that aren't finite are skipped
        ([(0.1, 1), (0.1, 1), (0.8, 1), (0.9, 1), (0.9, INF)], 30, None, DIVERGED),
        ([(0.1, 1), (0.1, 1), (0.7, 1), (0.7, 1), (0.9, INF)], 20, None, DIVERGED),
        ([(NAN, NAN)] * 5, None, None, DIVERGED),
    ],
)
def test_scores_follow_their_definitions(
    evaluations: Sequence[tuple[float, float]], best: int | None, solved_at: int | None, outcome: Outcome
) -> None:
    """Best step, solved-at and outcome follow their definitions; without a criterion, trials are finished."""
    bounds = {"accuracy": Bound(at_least=0.8), "loss": Bound(below=2)}
    result = scored(evaluations, bounds)
    assert (result.best_iteration, result.solved_at_iteration, result.outcome) == (best, solved_at, outcome)
    assert result.criterion == "accuracy >= 0.8 and loss < 2"
    free = scored(evaluations, {})
    assert (free.best_iteration, free.solved_at_iteration, free.criterion) == (best, None, None)
    assert free.outcome is (FINISHED if np.isfinite(evaluations[-1]).all() else DIVERGED)
