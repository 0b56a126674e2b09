"""Median and mean of solved-at: intervals compared with plain ones, and cases without interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from study import statistics


def test_median_and_mean_of_nothing_are_nan():
    """An empty sample has no median or mean; one value is both; values without sizes are one sample."""
    assert np.isnan([*statistics.medians([]), *statistics.means([])]).all()
    assert statistics.medians([7]).tolist() == statistics.means([7]).tolist() == [7.0]
    assert statistics.medians([4, 1, 2, 9]).tolist() == [3.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_and_infinity_are_refused(bad):
    """NaN and infinity raise everywhere instead of propagating."""
    for estimate in (
        statistics.medians,
        statistics.median_intervals,
        statistics.means,
        statistics.gamma_mean_intervals,
        statistics.beta_mean_intervals,
        statistics.interquartile_means,
        statistics.mean_intervals,
        statistics.interquartile_mean_intervals,
        lambda values: statistics.kaplan_meier(values, [True, False]),
        lambda values: statistics.restricted_means(values, [True, False], until=10),
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
    """The order statistics, with ties, equal those of scipy's quantile test."""
    [(low, high)] = statistics.median_intervals(values, confidence=confidence)
    expected = stats.quantile_test(values, q=np.median(values), p=0.5).confidence_interval(confidence)
    if math.isnan(low):
        assert math.isnan(expected.low) or math.isnan(expected.high)
        return
    assert (low, high) == (expected.low, expected.high)
    assert low <= np.median(values) <= high


@pytest.mark.parametrize("n", [6, 7, 25, 100])
def test_median_interval_has_its_coverage(n):
    """The binomial probability between its ends is at least 95%, and less one order statistic further in."""
    [(low, high)] = statistics.median_intervals(range(1, n + 1))
    below = stats.binom(n, 0.5)
    assert low + high == n + 1
    assert 1 - 2 * below.cdf(low - 1) >= 0.95
    assert 1 - 2 * below.cdf(low) < 0.95


def test_median_interval_needs_six_values():
    """Up to five values have no 95% interval; equal values have one of zero width, without an assumed distribution."""
    *few, six = statistics.median_intervals([14000.0] * sum(range(7)), range(7)).tolist()
    assert np.isnan(few).all()
    assert six == [14000.0, 14000.0]
    assert statistics.median_intervals([3.0] * 5, confidence=0.9).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize(("shape", "n"), [(0.3, 25), (3.0, 8), (40.0, 50), (20.0, 2)])
def test_gamma_interval_is_the_profile_likelihood_one(shape, n, deviance_bounds):
    """At the interval's ends the numerically maximised profile log-likelihood is down by chi2/2."""
    x = np.random.default_rng(n).gamma(shape, 5e4, n)

    def profile(log_mean):
        def negative(log_k):
            k, m = math.exp(log_k), math.exp(log_mean)
            return -float(np.sum(stats.gamma.logpdf(x, k, scale=m / k)))

        return -optimize.minimize_scalar(negative, bounds=(-7, 16), method="bounded", options={"xatol": 1e-9}).fun

    centre = math.log(x.mean())
    low, high = deviance_bounds(profile, centre - 3, centre + 12)
    expected = np.exp([[low, high]])
    assert statistics.gamma_mean_intervals(x) == pytest.approx(expected, rel=1e-5)


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=60), st.floats(1e-3, 1e6))
def test_gamma_interval_holds_the_mean_and_scales(values, scale):
    """The interval contains the sample mean, and scales with the unit (seconds)."""
    [(low, high)] = bounds = statistics.gamma_mean_intervals(values)
    if len(set(values)) == 1:
        assert np.isnan(bounds).all()
        return
    assert low < np.mean(values) < high
    assert statistics.gamma_mean_intervals(np.array(values) * scale) == pytest.approx(bounds * scale, rel=1e-6)


@pytest.mark.parametrize("values", [[], [14000.0], [14000.0] * 5, [3.0, 3.0 + 1e-9], [0.0, 1.0, 2.0], [0.0] * 3])
def test_gamma_interval_of_degenerate_values_is_nan(values):
    """For no value, one value, equal values or zeros, the gamma interval is NaN."""
    assert np.isnan(statistics.gamma_mean_intervals(values)).all()


def test_gamma_interval_survives_values_of_all_sizes():
    """Values twenty orders of magnitude apart have a finite interval that contains the mean."""
    [(low, high)] = statistics.gamma_mean_intervals([1e-20, 1.0, 3.0])
    assert 0 < low < 4 / 3 < high < math.inf


def test_negative_values_have_no_law():
    """A negative value is outside the support of gamma and beta distributions, and isn't a time."""
    with pytest.raises(ValueError, match="smallest is -1"):
        statistics.gamma_mean_intervals([-1.0, 2.0])
    with pytest.raises(ValueError, match="smallest is -1"):
        statistics.beta_mean_intervals([-1.0, 0.2])
    with pytest.raises(ValueError, match="smallest is -1"):
        statistics.kaplan_meier([-1.0, 0.2], [True, True])


@pytest.mark.parametrize("estimate", [statistics.gamma_mean_intervals, statistics.beta_mean_intervals])
@pytest.mark.parametrize("spread", [1e-3, 1e-4, 1e-5, 1e-6])
def test_intervals_of_tight_values_are_the_normal_ones(estimate, spread):
    """For nearly equal values both distributions are normal, whose profile interval has a closed form."""
    x = 0.3 * (1 + spread * np.array([0.0, 1.0, 2.0, 3.0, 5.0]))
    half = np.std(x) * math.sqrt(math.exp(stats.chi2.ppf(0.95, 1) / len(x)) - 1)
    [(low, high)] = estimate(x)
    assert (x.mean() - low, high - x.mean()) == pytest.approx((half, half), rel=20 * spread)
