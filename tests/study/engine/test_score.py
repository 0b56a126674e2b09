"""Best step, solved-at and outcome by their published definitions, on synthetic evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from study.records import Outcome, Trial
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.engine.shared.training import ArithmeticScores
from tests.study.builders import small_cell

NAN, INF = float("nan"), float("inf")


def scored(cell, *evaluations, threshold=1.0, nan_at=None):
    """Score one trial with (validation, test) evaluations; from evaluation `nan_at` on, a weight is NaN."""
    scores = ArithmeticScores(typed_cell(cell), np.array([threshold]))
    for index, (validation, test) in enumerate(evaluations):
        if not scores.active.any():
            break
        numbers = {"validation_mse": validation, "test_mse": test, "sparsity_error": index / 10}
        scores.record(**{name: np.array([value], np.float32) for name, value in numbers.items()})
        if cell.value("stop") == "when_decided":
            scores.end_decided(np.array([nan_at is not None and index >= nan_at]))
    trial = Trial(cell, 0)
    (result,), (curve,) = (scores.results([trial], training_s=2.0, engine="e", device="cpu"), scores.curves([trial]))
    return result, curve


# iterations 40, every 10, window 3: evaluations 0..4, the window is the last three.
@pytest.mark.parametrize(
    ("evaluations", "best", "solved_at", "outcome"),
    [
        ([(9, 9), (8, 9), (3, 9), (2, 0.5), (4, 9)], 30, 30, Outcome.SOLVED),
        ([(0, 0.1), (0, 0.1), (3, 9), (2, 9), (4, 9)], 30, 0, Outcome.UNSOLVED),  # solved once, outside the window
        ([(9, 9), (9, 9), (2, 0.5), (2, 9), (2, 9)], 20, 20, Outcome.SOLVED),  # ties: the first
        ([(9, 9), (9, 9), (2, 0.5), (NAN, 9), (1, 9)], 40, 20, Outcome.UNSOLVED),  # NaN is skipped
        ([(9, 9), (9, 9), (2, 0.5), (NAN, NAN), (NAN, NAN)], 20, 20, Outcome.SOLVED),
        ([(9, 9), (9, 9), (2, 1.0), (NAN, NAN), (NAN, NAN)], 20, None, Outcome.DIVERGED),  # not below
        ([(1, 9)] * 4 + [(INF, INF)], 20, None, Outcome.DIVERGED),
        ([(NAN, NAN)] * 5, None, None, Outcome.DIVERGED),
        ([(2, NAN)] * 5, 20, None, Outcome.UNSOLVED),
    ],
)
def test_scores_follow_their_definitions(evaluations, best, solved_at, outcome):
    """The best step, solved-at and outcome follow their definitions in every edge case."""
    result, curve = scored(small_cell(), *evaluations)
    assert (result.best_iteration, result.solved_at_iteration, result.outcome) == (best, solved_at, outcome)
    assert (result.iterations, result.stopped_early, len(curve.iteration)) == (40, False, 5)
    if best is not None:
        assert result.metrics.get("sparsity_error") == pytest.approx(best / 100)


def test_nan_is_stored_as_none():
    """A metric without a number is None, never NaN."""
    result, _ = scored(small_cell(), *[(2, NAN)] * 5)
    assert result.metrics.get("test_mse") is None
    assert result.metrics.get("validation_mse") == 2


@pytest.mark.parametrize(
    ("evaluations", "nan_at", "stops_at"),
    [
        ([(9, 9), (9, 9), (2, 0.5), (NAN, NAN), (NAN, NAN)], 3, 30),  # NaN weights: it stays solved
        ([(9, 9), (NAN, NAN), (NAN, NAN), (NAN, NAN), (NAN, NAN)], 1, 10),
        ([(9, 9), (9, 9), (0, 0.5), (0, 9), (1, 9)], None, 20),  # can't be undercut
        ([(0, 0.5), (0, 0.5), (1, 0.5), (1, 9), (1, 9)], None, None),  # zero, but outside the window
        ([(9, 9), (9, 9), (0, 9), (1, 9), (NAN, NAN)], None, None),  # zero and not solved: may yet diverge
    ],
)
def test_stopping_does_not_change_outcomes(evaluations, nan_at, stops_at):
    """A trial ends once its outcome is decided, with the outcome and best step of a full run."""
    full, _ = scored(small_cell(), *evaluations)
    early, curve = scored(small_cell(stop="when_decided"), *evaluations, nan_at=nan_at)
    assert early.outcome == full.outcome
    assert early.best_iteration == full.best_iteration
    assert early.stopped_early == (stops_at is not None)
    assert early.iterations == (40 if stops_at is None else stops_at)
    assert curve.iteration[-1] == early.iterations


def test_state_is_restored():
    """Scores restored from a copied state continue like the original."""
    rng = np.random.default_rng(0)
    cell = typed_cell(small_cell(iterations=2000))
    undisturbed, half = (ArithmeticScores(cell, np.full(7, 0.5)) for _ in range(2))
    evaluations = [
        {name: rng.random(7).astype(np.float32) for name in ("validation_mse", "test_mse", "sparsity_error")}
        for _ in range(201)
    ]
    for index, numbers in enumerate(evaluations):
        undisturbed.record(**numbers)
        half.record(**numbers)
        if index == 100:
            state = half.state()
            half = ArithmeticScores(cell, np.full(7, 0.5))
            half.restore(state)
    expected, restored = undisturbed.state(), half.state()
    assert all(np.array_equal(expected[name], restored[name]) for name in expected)
