"""Success depends on metrics alone."""

from __future__ import annotations

import numpy as np
import pytest

from study.interface.criterion import Bound, first_success, is_success

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (Bound(at_least=1.0), [False, True, True, False, True]),
        (Bound(below=1.0), [True, False, False, False, False]),
        (Bound(at_most=1.0), [True, True, False, False, False]),
        (Bound(at_least=1.0, below=2.0), [False, True, False, False, False]),
    ],
)
def test_bounds_include_or_exclude_their_ends(bound, expected):
    """`at_least` and `at_most` include the bound, `below` excludes it, and NaN satisfies no bound."""
    values = np.array([0.5, 1.0, 2.0, NAN, INF])
    assert bound.holds(values).tolist() == expected
    assert [is_success({"m": value}, {"m": bound}) for value in values] == expected


def test_the_first_success_meets_all_bounds_at_once():
    """The first success is the first step at which every bound holds, even if later steps fail."""
    steps = np.array([0, 5, 9, 12])
    curves = {"loss": np.array([0.1, 0.5, 0.1, 0.9]), "accuracy": np.array([0.2, 0.9, 0.9, NAN])}
    criterion = {"loss": Bound(below=0.2), "accuracy": Bound(at_least=0.9)}
    assert first_success(steps, curves, criterion) == 9
    assert first_success(steps, curves, {"accuracy": Bound(at_least=0.9)}) == 5
    assert first_success(steps, curves, {"loss": Bound(below=0.1)}) is None
    assert first_success(steps[:0], {"loss": curves["loss"][:0]}, {"loss": Bound(below=9)}) is None


def test_a_missing_metric_is_an_error():
    """A criterion on an unreported metric raises an error; the trial isn't counted as unsolved."""
    with pytest.raises(KeyError):
        is_success({"loss": 0.1}, {"accuracy": Bound(below=1)})


@pytest.mark.parametrize("bounds", [{}, {"at_least": 2.0, "below": 2.0}, {"at_least": 1.0, "at_most": 0.0}])
def test_impossible_bounds_are_refused(bounds):
    """A criterion needs at least one bound, and its bounds must be satisfiable."""
    with pytest.raises(ValueError, match=r"at_least"):
        Bound(**bounds)
