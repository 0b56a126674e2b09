"""The upper bound of a median cost: its order statistic, and its coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import statistics

COSTS = st.lists(st.integers(-5, 5).map(float), max_size=40)


@pytest.mark.parametrize("n", [6, 7, 17, 40, 101])
def test_the_bound_is_the_upper_end_of_the_medians_interval(n: int) -> None:
    """With enough seeds for an interval, it is the interval's upper end."""
    costs = np.random.default_rng(n).normal(size=n)
    assert statistics.upper_median(costs, n) == statistics.median_intervals(costs)[0, 1]


@given(COSTS, st.integers(0, 40), st.integers(2, 6))
def test_repeated_trials_never_raise_it(costs: list[float], failed: int, times: int) -> None:
    n = len(costs) + failed
    assert statistics.upper_median(costs * times, n * times) <= statistics.upper_median(costs, n)


@given(COSTS, st.integers(0, 40), st.integers(-6, 5))
def test_a_trial_that_costs_no_more_never_raises_it(costs: list[float], failed: int, cost: int) -> None:
    """Another trial that costs at most the bound, or a failed trial that gets a cost, never raises it."""
    n = len(costs) + failed
    before = statistics.upper_median(costs, n)
    if cost <= before:
        assert statistics.upper_median([*costs, cost], n + 1) <= before
    if failed:
        assert statistics.upper_median([*costs, cost], n) <= before


def test_the_bound_of_few_trials_is_the_worst_cost() -> None:
    assert [statistics.upper_median([1.0, 3.0, 2.0], n) for n in (3, 4)] == [3.0, math.inf]
    assert statistics.upper_median([], 0) == math.inf


@pytest.mark.parametrize("n", [6, 12, 25, 60])
def test_the_bound_is_below_the_median_in_few_samples(n: int) -> None:
    """Of 4,000 samples of a skewed distribution, at most 2.5% plus chance have it below the median."""
    draws = np.random.default_rng(1).lognormal(size=(4000, n))
    below = np.mean([statistics.upper_median(draw, n) < 1.0 for draw in draws])
    assert below <= 0.025 + 3 * math.sqrt(0.025 / 4000)


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="successes <= n"):
        statistics.upper_median([1.0, 2.0], 1)
    with pytest.raises(ValueError, match="finite"):
        statistics.upper_median([math.inf], 1)
