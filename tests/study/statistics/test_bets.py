"""Properties of bets on means: fairness, exchangeability, and intervals valid at every look."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from study.statistics import anytime_mean, evidence, log_evidence

numbers = st.lists(st.floats(0, 1), max_size=30)
bounds = st.floats(0.01, 0.99)


@pytest.mark.parametrize("bound", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 5, 12])
def test_bets_are_fair_if_the_mean_is_the_bound(bound: float, n: int) -> None:
    """Over all results of n seeds with the bound as their rate, each bet's expectation is exactly 1."""
    k = np.arange(n + 1)
    gains = log_evidence(np.array([0.0, 1.0]), np.stack([n - k, k], axis=1).astype(float), bound)
    for log in gains:
        assert np.sum(stats.binom.pmf(k, n, bound) * np.exp(log)) == pytest.approx(1)


def test_bets_are_fair_for_any_numbers() -> None:
    """Over all sequences of three values whose mean is the bound, each bet's expectation is exactly 1."""
    values, chances = np.array([0.1, 0.4, 1.0]), np.array([0.5, 0.3, 0.2])
    bound, above = float(values @ chances), 0.0
    for places in itertools.product(range(3), repeat=4):
        above += float(np.prod(chances[list(places)])) * evidence(values[list(places)], bound).above
    assert above == pytest.approx(1)


@given(values=numbers, bound=bounds, order=st.randoms(use_true_random=False))
def test_the_order_of_seeds_has_no_effect(values: list[float], bound: float, order) -> None:
    """The order of the numbers doesn't change the evidence."""
    shuffled = order.sample(values, len(values))
    assert evidence(values, bound) == evidence(shuffled, bound)


@given(values=numbers, bound=bounds)
def test_bets_below_mirror_bets_above(values: list[float], bound: float) -> None:
    """A mean below m corresponds to a mean of the complements above 1 - m."""
    mirrored = [1 - value for value in values]
    assert evidence(values, bound).below == pytest.approx(evidence(mirrored, 1 - bound).above, rel=1e-6)


def test_evidence_grows_as_it_can() -> None:
    """If all seeds agree, evidence grows almost as fast as for a bettor who knows the result."""
    assert 2**100 / 100 < evidence([1] * 100, 0.5).above < 2**100
    assert evidence([1] * 100_000, 0.5).above > 1e290  # and doesn't overflow
    assert evidence([], 0.5).above == evidence([], 0.5).below == 1


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_an_interval_ends_at_the_evidence_of_40(values: list[float]) -> None:
    """The interval contains the sample mean, and beyond its ends bets have won 40 times their stake."""
    low, high = anytime_mean(values)
    assert 0 <= low <= np.mean(values) + 1e-9
    assert np.mean(values) - 1e-9 <= high <= 1
    for end, outside in ((low, low - 1e-3), (high, high + 1e-3)):
        if 0 < outside < 1:
            bets = evidence(values, outside)
            assert (bets.above if end == low else bets.below) >= 40 * (1 - 1e-6)


def test_intervals_hold_at_all_looks_together() -> None:
    """Of 400 studies with a look at every fifth of 100 seeds, at most 5% and three deviations ever miss the mean.

    A miss is detected as evidence of 40, which is faster than computing the interval's ends.
    """
    rng, missed = np.random.default_rng(1), 0
    for _ in range(400):
        drawn = rng.beta(0.5, 1.5, size=100)
        looks = [evidence(drawn[:n], 0.25) for n in range(5, 101, 5)]
        missed += any(max(bets.above, bets.below) >= 40 for bets in looks)
    assert missed <= 400 * 0.05 + 3 * math.sqrt(400 * 0.05 * 0.95)


def test_values_out_of_range_are_refused() -> None:
    """Numbers beyond [0, 1], NaN, and bounds at a limit are refused."""
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], but got 0.5 to 1.5"):
        evidence([0.5, 1.5], 0.5)
    with pytest.raises(ValueError, match="NaN"):
        evidence([math.nan], 0.5)
    with pytest.raises(ValueError, match=r"must be in \(0, 1\), but got 1"):
        evidence([0.5], 1.0)
    with pytest.raises(ValueError, match="confidence"):
        anytime_mean([0.5], 1.5)
