"""Common helpers for tests of statistics."""

from __future__ import annotations

import pytest
from scipy import optimize, stats


@pytest.fixture
def deviance_bounds():
    """Return a function that finds plainly where a profile log-likelihood is chi-squared/2 below its maximum."""

    def bounds(log_likelihood, low, high, level=0.95):
        best = optimize.minimize_scalar(lambda t: -log_likelihood(t), bounds=(low, high), method="bounded")
        top, drop = -best.fun, stats.chi2.ppf(level, 1) / 2

        def gap(t):
            return top - log_likelihood(t) - drop

        return optimize.brentq(gap, low, best.x), optimize.brentq(gap, best.x, high)

    return bounds
