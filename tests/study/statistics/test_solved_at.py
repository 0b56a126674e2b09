"""Median and mean of solved-at: their intervals beside plain ones, and where there are none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from study import statistics


def test_median_and_mean_of_nothing_are_none():
    """No values have no median and no mean; one value is its own."""
    assert statistics.median([]) is None
    assert statistics.mean([]) is None
    assert statistics.median([7]) == statistics.mean([7]) == 7.0
    assert statistics.median([4, 1, 2, 9]) == 3.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_no_observations_are_refused(bad):
    """NaN and infinity raise wherever they are given, rather than spread."""
    for estimate in (
        statistics.median,
        statistics.median_interval,
        statistics.mean,
        statistics.gamma_mean_interval,
        statistics.beta_mean_interval,
        lambda values: statistics.kaplan_meier(values, [True, False]),
        lambda values: statistics.restricted_mean(values, [True, False], 10),
        lambda values: statistics.log_rank([(values, [True, False])]),
        lambda values: statistics.cochran_armitage(values, [1, 2], [3, 3]),
        lambda values: statistics.logistic_regression([[v] for v in values], [1, 2], [3, 3]),
        lambda values: statistics.as_published(values, [0.1, 0.1], 3),
        lambda values: statistics.as_published([1, 2], values, 3),
    ):
        with pytest.raises(ValueError, match="finite"):
            estimate([0.1, bad])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=120), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_median_interval_agrees_with_scipy(values, confidence):
    """The order statistics, ties among them, are those of scipy's quantile test."""
    interval = statistics.median_interval(values, confidence)
    expected = stats.quantile_test(values, q=np.median(values), p=0.5).confidence_interval(confidence)
    if interval is None:
        assert math.isnan(expected.low) or math.isnan(expected.high)
        return
    assert interval == (expected.low, expected.high)
    assert interval[0] <= np.median(values) <= interval[1]


@pytest.mark.parametrize("n", [6, 7, 25, 100])
def test_median_interval_holds_as_often_as_it_says(n):
    """The binomial law gives 95% at least between its ends, and less one order statistic further in."""
    low, high = statistics.median_interval(range(1, n + 1))
    below = stats.binom(n, 0.5)
    assert low + high == n + 1
    assert 1 - 2 * below.cdf(low - 1) >= 0.95
    assert 1 - 2 * below.cdf(low) < 0.95


def test_median_interval_needs_six_values():
    """None to five values have no 95% interval; equal ones have one of no width, for it assumes no law."""
    for n in range(6):
        assert statistics.median_interval([14000.0] * n) is None
    assert statistics.median_interval([14000.0] * 6) == (14000.0, 14000.0)
    assert statistics.median_interval([3.0] * 5, 0.9) == (3.0, 3.0)


@pytest.mark.parametrize(("shape", "n"), [(0.3, 25), (3.0, 8), (40.0, 50), (20.0, 2)])
def test_gamma_interval_is_the_profile_likelihood_one(shape, n, deviance_bounds):
    """The interval's ends are where the profile log-likelihood, maximised numerically, is down by chi2/2."""
    x = np.random.default_rng(n).gamma(shape, 5e4, n)

    def profile(log_mean):
        def negative(log_k):
            k, m = math.exp(log_k), math.exp(log_mean)
            return -float(np.sum(stats.gamma.logpdf(x, k, scale=m / k)))

        return -optimize.minimize_scalar(
            negative, bounds=(-7, 16), method="bounded", options={"xatol": 1e-9}
        ).fun

    centre = math.log(x.mean())
    low, high = deviance_bounds(profile, centre - 3, centre + 12)
    assert statistics.gamma_mean_interval(x) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-5)


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=60), st.floats(1e-3, 1e6))
def test_gamma_interval_holds_the_mean_and_scales(values, scale):
    """The interval holds the sample mean, and a change of unit (seconds) changes it by the same factor."""
    interval = statistics.gamma_mean_interval(values)
    if len(set(values)) == 1:
        assert interval is None
        return
    assert interval[0] < np.mean(values) < interval[1]
    assert statistics.gamma_mean_interval(np.array(values) * scale) == pytest.approx(
        (interval[0] * scale, interval[1] * scale), rel=1e-6
    )


@pytest.mark.parametrize(
    "values", [[], [14000.0], [14000.0] * 5, [3.0, 3.0 + 1e-9], [0.0, 1.0, 2.0], [0.0] * 3]
)
def test_gamma_interval_of_degenerate_values_is_none(values):
    """No, one, equal or zero values have no gamma interval."""
    assert statistics.gamma_mean_interval(values) is None


def test_gamma_interval_survives_values_of_all_sizes():
    """Values twenty orders of magnitude apart leave a finite interval that holds the mean."""
    low, high = statistics.gamma_mean_interval([1e-20, 1.0, 3.0])
    assert 0 < low < 4 / 3 < high < math.inf


def test_negative_values_have_no_law():
    """A negative value contradicts the support of a gamma and of a beta law, and is no time."""
    with pytest.raises(ValueError, match="smallest is -1"):
        statistics.gamma_mean_interval([-1.0, 2.0])
    with pytest.raises(ValueError, match="smallest is -1"):
        statistics.beta_mean_interval([-1.0, 0.2])
    with pytest.raises(ValueError, match="smallest is -1"):
        statistics.kaplan_meier([-1.0, 0.2], [True, True])


@pytest.mark.parametrize("estimate", [statistics.gamma_mean_interval, statistics.beta_mean_interval])
@pytest.mark.parametrize("spread", [1e-3, 1e-4, 1e-5, 1e-6])
def test_intervals_of_tight_values_are_the_normal_ones(estimate, spread):
    """Where values hardly differ both laws are normal, whose profile interval has a closed form."""
    x = 0.3 * (1 + spread * np.array([0.0, 1.0, 2.0, 3.0, 5.0]))
    half = np.std(x) * math.sqrt(math.exp(stats.chi2.ppf(0.95, 1) / len(x)) - 1)
    low, high = estimate(x)
    assert (x.mean() - low, high - x.mean()) == pytest.approx((half, half), rel=20 * spread)
