"""An upper bound of a mean cost that is always defined, and monotone in the trials."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.statistics import upper_mean, wilson

COSTS = st.lists(st.floats(0, 20), max_size=30)
FAILED = st.integers(0, 30)


@given(COSTS, FAILED)
def test_every_sample_has_a_bound_between_its_mean_and_the_most(costs, failed):
    """The bound is finite, at most the maximum, and at least the mean with failures at the maximum."""
    n = len(costs) + failed
    bound = upper_mean(costs, n, 20.0)
    mean = (sum(costs) + 20.0 * failed) / n if n else 20.0
    assert mean <= bound * (1 + 1e-12) + 1e-12
    assert bound <= 20.0


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_bound_of_extreme_costs_is_wilsons(solved, failed):
    """Costs of zero or the maximum are a rate: the bound is one minus Wilson's lower end."""
    n = solved + failed
    assert upper_mean([0.0] * solved, n, 3.0) == pytest.approx(3.0 * (1 - wilson(solved, n)[0]))


@given(COSTS, FAILED, st.permutations(range(30)))
def test_the_order_of_trials_changes_no_bit(costs, failed, order):
    """A permutation of the sample gives equal bits."""
    mixed = [costs[i] for i in order if i < len(costs)]
    n = len(costs) + failed
    assert upper_mean(mixed, n, 20.0) == upper_mean(costs, n, 20.0)


DISTRIBUTIONS = {
    "one moment": lambda random, n: np.full(n, 0.35),
    "even": lambda random, n: random.random(n),
    "two moments": lambda random, n: np.where(random.random(n) < 0.5, 0.05, 0.95),
    "skewed, a fifth fails": lambda random, n: np.where(random.random(n) < 0.8, random.gamma(3, 0.1, n), np.inf),
    "late": lambda random, n: np.where(random.random(n) < 0.9, 0.98 + 0.02 * random.random(n), np.inf),
    "a coin": lambda random, n: np.where(random.random(n) < 0.5, 0.0, np.inf),
}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [5, 40])
def test_the_bound_of_the_mean_has_its_coverage(distribution, n):
    """The bound is below the mean in at most 7% of 400 samples: nominal is 2.5%, Wilson's has up to 4%."""
    random = np.random.default_rng(7)
    mean = np.minimum(DISTRIBUTIONS[distribution](random, 200_000), 1.0).mean()
    samples = (DISTRIBUTIONS[distribution](random, n) for _ in range(400))
    below = sum(upper_mean(x[x < 1], n, 1.0) < mean - 1e-9 for x in samples)
    assert below <= 0.07 * 400


def test_costs_above_the_maximum_are_clipped():
    """A cost above the maximum is clipped to it."""
    assert upper_mean([1.0, 30.0], 2, 20.0) == upper_mean([1.0, 20.0], 2, 20.0)


@pytest.mark.parametrize(
    ("costs", "n", "most", "message"),
    [
        ([1.0, 2.0], 1, 3.0, "0 <= successes <= n must hold"),
        ([math.nan], 1, 3.0, "must be finite"),
        ([1.0], 1, math.inf, "must be finite"),
    ],
)
def test_invalid_samples_are_refused(costs, n, most, message):
    """More costs than trials, and invalid costs, raise."""
    with pytest.raises(ValueError, match=message):
        upper_mean(costs, n, most)
