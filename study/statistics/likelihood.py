"""Profile-likelihood intervals: a search for their ends, and ψ and log Γ without cancellation.

Venzon & Moolgavkar, Applied Statistics 37 (1988) 87-94; the series: Abramowitz & Stegun (1964), 6.1.41, 6.3.18, 6.4.12.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats

Log = Callable[[float], float]
"""A log-likelihood as a function of one parameter, maximised over the others."""

Growing = Callable[[Floats], tuple[Floats, Floats]]
"""Elementwise increasing functions: return their values and slopes."""

_LARGE = 16.0
"""From here on, the truncated series below are exact to the last bit."""

_NEAR = 1e-8
"""The length of a Newton step that ends the search: the next would be about its square."""

_STEPS = 100
"""An upper limit of the number of steps, far more than any search takes."""


def likelihood_interval(log_likelihood: Log, best: float, step: float, z: float) -> Interval:
    """Find both ends of {t : 2 (l(best) - l(t)) <= z²}.

    The square root of the deviance is nearly linear in t, so a bracketing search needs few evaluations.

    Args:
        log_likelihood: l; it must fall below the interval's level on either side of `best`.
        best: the argument of its maximum.
        step: the approximate distance from `best` to an end.
        z: the quantile of the normal distribution.

    Example:
        >>> low, high = likelihood_interval(lambda t: -((t - 3) ** 2) / 2, 3.0, 1.0, 1.96)
        >>> round(low, 6), round(high, 6)
        (1.04, 4.96)
    """
    top = log_likelihood(best)

    def beyond(t: float) -> float:
        return math.sqrt(max(0.0, 2 * (top - log_likelihood(t)))) - z

    return _end(beyond, best, -step), _end(beyond, best, step)


def _end(beyond: Log, best: float, step: float) -> float:
    """Find the zero of `beyond`, < 0 at `best`: the one below `best` for a negative step, else the one above it."""
    # imported here: it takes as long as all other imports, and tables of rates and means don't need it
    from scipy import optimize

    near, far = best, best + step
    while beyond(far) < 0:
        step *= 2
        near, far = far, far + step
    return float(optimize.brentq(beyond, near, far, xtol=1e-11 * max(1e-3, abs(far))))


def root(growing: Growing, x: Floats, low: float = -math.inf) -> Floats:
    """Find the zero of each of many increasing functions by Newton's method, or by bisection where it leaves a bracket.

    An element's steps don't depend on its neighbours: an element stays in place once its zero is found.

    Args:
        growing: the functions.
        x: starting points, preferably within about 1 of the zeros: the first step is at most 1, and the limit doubles
            with each step.
        low: a point at which the functions are below zero.

    Returns:
        The zeros; NaN where a function is NaN.

    Example:
        >>> root(lambda x: (x**3 - [8.0, 27.0], 3 * x**2), np.array([1.0, 9.0])).tolist()
        [2.0, 3.0]
    """
    below, above = np.full(x.shape, low), np.full(x.shape, math.inf)
    is_done = np.zeros(x.shape, dtype=bool)
    with np.errstate(all="ignore"):  # NaN ends an element's search
        for steps in range(_STEPS):
            value, slope = growing(x)
            below, above = np.where(value < 0, x, below), np.where(value > 0, x, above)
            step = np.where(value == 0, 0.0, -value / np.maximum(slope, 0.0))
            there = x + np.maximum(np.minimum(step, 2.0**steps), -(2.0**steps))
            is_outside = (there < below) | (there > above) | (there <= low)
            there = np.where(is_outside, (below + above) / 2, there)
            there = np.where(is_done, x, there)
            is_done |= ~(np.abs(there - x) > _NEAR)
            x = there
            if is_done.all():
                break
    return x


def digamma_rest(x: Floats) -> Floats:
    """Return ψ(x) - log x, x > 0, without cancellation for large x.

    Example:
        >>> float(digamma_rest(np.array(1e9)))
        -5.00000000083...e-10
    """
    y = 1 / np.maximum(x, _LARGE)
    y2 = y * y
    series = 1 / 12 - y2 * (1 / 120 - y2 * (1 / 252 - y2 * (1 / 240 - y2 * (1 / 132 - y2 * (691 / 32760)))))
    return np.where(x < _LARGE, special.digamma(x) - np.log(x), -y / 2 - y2 * series)


def trigamma_rest(x: Floats) -> Floats:
    """Return x² ψ'(x) - x, x > 0: the slope of `digamma_rest` times x², falling from 1 to 1/2.

    Example:
        >>> float(trigamma_rest(np.array(1e9)))
        0.500000000166...
    """
    y = 1 / np.maximum(x, _LARGE)
    y2 = y * y
    series = 1 / 6 - y2 * (1 / 30 - y2 * (1 / 42 - y2 * (1 / 30 - y2 * (5 / 66))))
    small = np.minimum(x, _LARGE)  # ψ'(x) = 1/x² + ψ'(1 + x) avoids overflow
    return np.where(x < _LARGE, 1 + small * small * special.zeta(2.0, 1 + small) - small, 0.5 + y * series)


def stirling_rest(x: Floats) -> Floats:
    """Return log Γ(x) - (x log x - x), x > 0, without cancellation for large x.

    Example:
        >>> float(stirling_rest(np.array(1.0)))
        1.0
    """
    y = 1 / np.maximum(x, _LARGE)
    y2 = y * y
    series = 1 / 12 - y2 * (1 / 360 - y2 * (1 / 1260 - y2 * (1 / 1680 - y2 * (1 / 1188 - y2 * (691 / 360360)))))
    small = special.gammaln(x) - x * (np.log(x) - 1)
    return np.where(x < _LARGE, small, 0.5 * np.log(2 * math.pi / np.maximum(x, _LARGE)) + y * series)
