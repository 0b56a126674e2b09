"""The published estimators reproduce the published rows from the published seeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import statistics
from tasks.arithmetic.published.rows import rows
from tasks.arithmetic.symbols import SYMBOLS

PRINTED = {(row["operation"], row["model"]): row for row in rows("static_summary")}
ENOUGH = [key for key, row in PRINTED.items() if float(row["success_rate_mean"]) >= 0.1]

UNMATCHED = {
    ("mul", "NAC•"): {"sparsity_error_mean": -0.048},
    ("mul", "NAC•,σ"): {"sparsity_error_mean": -0.012, "sparsity_error_upper": 0.018},
}
"""Irreproducible values with their relative deviation; docs/explanation/statistics.md explains them."""


def repeated(operation: str, model: str) -> dict[str, float | None]:
    """Estimate a row from its seeds, under the names of the published columns."""
    seeds = [row for row in rows("static_seeds") if (row["operation"], row["model"]) == (operation, model)]
    solved = [row for row in seeds if row["solved"] == "True"]
    estimates = statistics.as_published(
        [float(row["solved_at"]) for row in solved], [float(row["sparsity_error"]) for row in solved], len(seeds)
    )
    row: dict[str, float | None] = {"success_rate_mean": estimates.success_rate}
    row["success_rate_lower"], row["success_rate_upper"] = estimates.success_rate_interval
    row["solved_at_median"], row["solved_at_mean"] = estimates.solved_at_median, estimates.solved_at_mean
    row["solved_at_lower"], row["solved_at_upper"] = estimates.solved_at_interval or (None, None)
    row["sparsity_error_mean"] = estimates.error_mean
    row["sparsity_error_lower"], row["sparsity_error_upper"] = estimates.error_interval or (None, None)
    return row


@pytest.mark.parametrize(("operation", "model"), PRINTED)
def test_success_rates_and_medians_are_the_published_ones(operation, model):
    """Rate, Wilson interval and median of all twenty rows are reproduced to 1e-9; unprinted values are None."""
    estimates, printed = repeated(operation, model), PRINTED[operation, model]
    for name in ("success_rate_mean", "success_rate_lower", "success_rate_upper"):
        assert estimates[name] == pytest.approx(float(printed[name]), abs=1e-9)
    assert {name for name, value in estimates.items() if value is None} == {
        name for name in estimates if not printed[name]
    }
    if printed["solved_at_median"]:
        assert estimates["solved_at_median"] == float(printed["solved_at_median"])


@pytest.mark.parametrize(("operation", "model"), ENOUGH)
def test_means_and_intervals_are_the_published_ones(operation, model):
    """Solved-at and sparsity error of every row with ten or more solved seeds match the printed ones within 1%."""
    estimates, printed = repeated(operation, model), PRINTED[operation, model]
    assert model in SYMBOLS.model_names
    for name in estimates:
        off = UNMATCHED.get((operation, model), {}).get(name)
        if off is None:
            assert estimates[name] == pytest.approx(float(printed[name]), rel=0.01), name
        else:
            assert estimates[name] / float(printed[name]) - 1 == pytest.approx(off, abs=1e-3), name


@pytest.mark.parametrize(("operation", "model"), ENOUGH)
def test_published_solved_at_means_are_repeated_to_all_their_digits(operation, model):
    """The published search's steps are repeated, so the mean is equal, including the doubled one."""
    estimates, printed = repeated(operation, model), PRINTED[operation, model]
    assert estimates["solved_at_mean"] == pytest.approx(float(printed["solved_at_mean"]), rel=1e-7)


def test_nine_rows_have_ten_or_more_solved_seeds():
    """Nine of twenty rows are reproduced, and two of them have an impossible number."""
    assert len(PRINTED) == 20
    assert len(ENOUGH) == 9
    assert set(ENOUGH) >= set(UNMATCHED)


@pytest.mark.parametrize(
    ("solved_at", "error"), [([], []), ([9.0], [0.1]), ([9.0] * 4, [0.1] * 4), ([0.0, 5.0], [0.0, 0.0])]
)
def test_degenerate_rows_have_no_published_intervals(solved_at, error):
    """For no, one, equal or zero values, intervals are None, and the mean is the sample's, or None."""
    estimates = statistics.as_published(solved_at, error, 10)
    assert (estimates.solved_at_interval, estimates.error_interval) == (None, None)
    assert estimates.solved_at_mean == (sum(solved_at) / len(solved_at) if solved_at else None)
    assert estimates.success_rate_interval == statistics.wilson(len(solved_at), 10)


@given(st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 1)), max_size=20))
def test_every_row_has_a_published_answer(seeds):
    """All outcomes give a row, and its intervals contain its means."""
    estimates = statistics.as_published([1000 * at for at, _ in seeds], [error for _, error in seeds], 20)
    for middle, interval in (
        (estimates.solved_at_mean, estimates.solved_at_interval),
        (estimates.error_mean, estimates.error_interval),
    ):
        assert (middle is None) == (not seeds)
        if interval is not None:
            assert 0 <= interval[0] <= middle <= interval[1] < float("inf")


def test_impossible_rows_are_refused():
    """More solved than seeds, and lists of different lengths, are errors; without seeds the rate is None."""
    with pytest.raises(ValueError, match="successes=2, n=1"):
        statistics.as_published([1, 2], [0, 0], 1)
    with pytest.raises(ValueError, match="each solved seed needs one sparsity error"):
        statistics.as_published([1, 2], [0], 3)
    assert statistics.as_published([], [], 0).success_rate is None
