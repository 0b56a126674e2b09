"""Common parts of profile-likelihood intervals: known values, and convergence of the root search."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from study import statistics
from study.statistics.likelihood import digamma_rest, root, stirling_rest, trigamma_rest

# x, ψ(x) - log x, x² ψ'(x) - x, log Γ(x) - x log x + x: computed with 60 digits
KNOWN = [
    (0.001, -993.66781665282814, 0.99900164253319587, 6.9150866406628358),
    (0.5, -1.2703628454614782, 0.73370055013616983, 1.4189385332046727),
    (15.5, -0.032604781334835504, 0.51074376338205194, -0.44610587972500089),
    (16.0, -0.031575393912320869, 0.51040855122927662, -0.46214817199560824),
    (100.0, -0.0050083332500039678, 0.50166663333571395, -1.382813229233738),
    (1e6, -5.0000008333333333e-7, 0.50000016666666667, -5.988816662444131),
    (1e15, -5.0000000000000008e-16, 0.50000000000000017, -16.35044966425067),
]


@pytest.mark.parametrize(("x", "digamma", "trigamma", "stirling"), KNOWN)
def test_rests_have_their_known_values(x, digamma, trigamma, stirling):
    """No digits cancel, for small numbers and for large ones."""
    at = np.array(x)
    assert digamma_rest(at) == pytest.approx(digamma, rel=1e-13)
    assert trigamma_rest(at) == pytest.approx(trigamma, rel=1e-13)
    assert stirling_rest(at) == pytest.approx(stirling, rel=1e-13)


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 20)), min_size=1, max_size=8))
def test_root_finds_each_zero(lines):
    """Roots are found even if Newton's method overshoots, as for arctan far from its zero."""
    zero, width = np.array(lines).T
    solution = root(lambda x: (np.arctan((x - zero) / width), width / (width**2 + (x - zero) ** 2)), zero + 10)
    assert solution == pytest.approx(zero, abs=1e-12)


def test_root_stays_above_its_end():
    """A first step below the end, where the function has no slope, is halved instead."""
    solution = root(lambda x: (x**0.1 - 0.5**0.1, 0.01 * x**-0.9), np.array([1.0]), 0.0)
    assert solution == pytest.approx([0.5], rel=1e-9)


def test_root_of_an_uncomputable_function_is_nan():
    """A NaN function ends its own search, and its neighbour's zero is still found."""
    solution = root(lambda x: (np.log(x) * [1.0, np.nan], 1 / x), np.array([2.0, 2.0]))
    assert solution[0] == pytest.approx(1.0)
    assert math.isnan(solution[1])


@pytest.mark.parametrize("seed", range(6))
def test_gamma_interval_solves_its_equations(seed):
    """At both ends, with the best shape there, the deviance is the χ² quantile to nine digits."""
    x = np.random.default_rng(seed).gamma(10.0 ** (seed / 2 - 1), 5e4, 20)
    allowed = stats.chi2.ppf(0.95, 1)

    def profile(mean):
        spread = math.log(mean) + x.mean() / mean - 1 - np.mean(np.log(x))
        k = optimize.brentq(lambda k: -float(digamma_rest(np.array(k))) - spread, 1e-6, 1e9, xtol=1e-12)
        return len(x) * (-float(stirling_rest(np.array(k))) - k * spread)

    for end in statistics.gamma_mean_intervals(x)[0]:
        assert 2 * (profile(x.mean()) - profile(end)) == pytest.approx(allowed, rel=1e-9)
