"""Sparsity error: the beta interval compared with a plain one, at zeros, at ends, and cases without interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import betaln

from study import statistics
from tasks.arithmetic.published.rows import published, rows


@pytest.mark.parametrize(("mu", "phi", "n"), [(0.3, 5.0, 12), (0.9, 4.0, 60), (0.01, 40.0, 50), (0.5, 800.0, 5)])
def test_beta_interval_is_the_profile_likelihood_one(mu, phi, n, deviance_bounds):
    """At the interval's ends the numerically maximised profile log-likelihood is down by chi2/2."""
    y = np.random.default_rng(n).beta(mu * phi, (1 - mu) * phi, n)
    log_y, log_rest = np.log(y).sum(), np.log1p(-y).sum()

    def profile(logit):
        m = 1 / (1 + math.exp(-logit))

        def negative(log_phi):
            a, b = m * math.exp(log_phi), (1 - m) * math.exp(log_phi)
            return n * betaln(a, b) - (a - 1) * log_y - (b - 1) * log_rest

        return -optimize.minimize_scalar(negative, bounds=(-5, 12), method="bounded", options={"xatol": 1e-10}).fun

    centre = math.log(y.mean() / (1 - y.mean()))
    low, high = deviance_bounds(profile, centre - 4, centre + 4)
    expected = (0.5 / (1 + math.exp(-low)), 0.5 / (1 + math.exp(-high)))
    assert statistics.beta_mean_intervals(y / 2)[0] == pytest.approx(expected, rel=1e-4)


def test_beta_interval_of_small_values_is_the_gamma_interval():
    """Far below the upper end the beta and gamma distributions agree, as do the intervals, at any scale."""
    values = np.array([1.0, 2.0, 3.0, 4.0, 9.0])
    bounds = statistics.gamma_mean_intervals(values)
    for scale in (1e-6, 1e-9, 1e-14, 1e-200):
        assert statistics.beta_mean_intervals(values * scale) == pytest.approx(bounds * scale, rel=1e-3)


@given(st.lists(st.floats(0.001, 0.499), min_size=2, max_size=30))
def test_beta_interval_is_symmetric(values):
    """Measuring from the upper end mirrors the interval."""
    x = np.array(values)
    interval, mirrored = statistics.beta_mean_intervals([*x, *(0.5 - x)], [len(x)] * 2)
    if np.isnan([*interval, *mirrored]).any():
        assert np.ptp(x) < 1e-5 or np.isnan([*interval, *mirrored]).all()
        return
    assert 0.5 - mirrored[::-1] == pytest.approx(interval, rel=1e-3, abs=1e-9)


@given(st.lists(st.one_of(st.just(0.0), st.just(0.5), st.floats(0, 0.5)), max_size=30))
def test_beta_interval_is_an_interval_or_none(values):
    """For any values in [0, 1/2], zeros and tiny floats included, the interval contains the mean, or is NaN."""
    [(low, high)] = statistics.beta_mean_intervals(values)
    if not math.isnan(low):
        assert 0 <= low <= np.mean(values) <= high <= 0.5


def test_beta_interval_is_twice_the_published_halves():
    """Published beta intervals of unscaled values are half as wide: NAC+, +, is 0.45, not 0.23."""
    row = next(r for r in rows("static_summary") if (r["operation"], r["model"]) == ("add", "NAC+"))
    ours = next(r for r in published() if (r.operation, r.model) == ("add", "NAC-add"))
    doubled = (2 * float(row["sparsity_error_lower"]), 2 * float(row["sparsity_error_upper"]))
    assert ours.sparsity_error_interval == pytest.approx(doubled, rel=0.01)


@pytest.mark.parametrize("values", [[], [0.1], [0.1] * 4, [0.0] * 9, [0.2, 0.7], [0.0] * 100 + [1e-9], [0.0, 5e-324]])
def test_beta_interval_of_degenerate_values_is_nan(values):
    """For no, one or equal values, nearly only zeros, or values above the support, the beta interval is NaN."""
    assert np.isnan(statistics.beta_mean_intervals(values)).all()


def test_beta_interval_survives_zeros_and_ones():
    """Values at the ends of the support have a finite interval that contains the mean."""
    values = [0.0] * 20 + [1e-4, 3e-3, 2e-5, 1e-3]
    [(low, high)] = statistics.beta_mean_intervals(values)
    assert 0 < low < np.mean(values) < high < 0.5
    [(low, high)] = statistics.beta_mean_intervals([0.5, 0.3, 0.4])
    assert 0 < low < 0.4 < high <= 0.5


def test_beta_interval_holds_the_mean_of_rounded_weights():
    """Of 300 studies of float32 weights, half of them rounded to 1, the interval covers the mean in about 95%."""
    step = 2.0**-24
    x = np.round(np.random.default_rng(5).exponential(4e-8, (300, 25)) / step) * step
    mean = step * np.exp(-(np.arange(100) + 0.5) * step / 4e-8).sum()
    assert 0.5 < np.mean(x == 0) < 0.55
    low, high = statistics.beta_mean_intervals(x.ravel(), [25] * 300).T
    assert 270 <= np.sum((low <= mean) & (mean <= high)) <= 297


@pytest.mark.parametrize("estimate", [statistics.gamma_mean_intervals, statistics.beta_mean_intervals])
def test_intervals_cover_at_their_level(estimate):
    """Of 300 studies of 25 seeds the interval covers the true mean in about 95%."""
    rng = np.random.default_rng(8)
    is_gamma = estimate is statistics.gamma_mean_intervals
    samples = rng.gamma(5, 2, (300, 25)) if is_gamma else rng.beta(2, 8, (300, 25)) / 2
    mean = 10.0 if is_gamma else 0.1
    low, high = estimate(samples.ravel(), [25] * 300).T
    assert 270 <= np.sum((low <= mean) & (mean <= high)) <= 297
