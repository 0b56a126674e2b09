"""Variance of initial weights as a function of their range, and its inverse.

It doesn't need torch, since study files are checked with it before torch is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

LARGEST_NAU_VARIANCE = 1 / 3
"""The largest variance of weights in [-1, 1]: that of U[-1, 1]."""
LARGEST_NMU_VARIANCE = 1 / 12
"""The largest variance of weights in [0, 1]: that of U[0, 1]."""

_LARGEST_NAC_RANGE = 1000.0
_LARGEST_SIGMOID_STD = 1000.0


def require_variance(unit: str, variance: float, largest: float) -> None:
    """Check that a unit's initial weights can have a variance.

    Args:
        unit: the unit's name, for the message.
        variance: the variance to check.
        largest: the largest possible variance; infinity for unbounded weights.

    Raises:
        ValueError: unless 0 < variance <= largest and variance is finite.
    """
    if not (0 < variance <= largest and variance < math.inf):
        limit = f"<= {largest:.6g}, the largest possible for its weights," if largest < math.inf else "< infinity"
        raise ValueError(
            f"init_variance={variance:g} was given for {unit}, but 0 < init_variance {limit} must hold: "
            "choose one in that range, or leave it out for the unit's own default"
        )


def nac_variance(reach: float) -> float:
    """Compute the variance of W = tanh(Ŵ) ⊙ σ(M̂) for Ŵ, M̂ ~ U[-r, r].

        Var(r) = (1 - tanh(r) / r) (r - tanh(r / 2)) / (2r)

    Source: Madsen & Johansen, "Neural Arithmetic Units", 2020, appendix.

    Args:
        reach: r > 0.

    Example:
        >>> round(nac_variance(1.0), 6)
        0.064117
    """
    if reach < 1e-3:
        return reach**2 / 12  # the formula's leading term; the formula itself loses its digits here
    return (1 - math.tanh(reach) / reach) * (reach - math.tanh(reach / 2)) / (2 * reach)


def largest_nac_variance() -> float:
    """Compute the largest variance that is allowed for a NAC's weights: that of r = 1000.

    The limit for r -> infinity is 1/2, where all weights are saturated and can't be trained.

    Example:
        >>> round(largest_nac_variance(), 6)
        0.499001
    """
    return nac_variance(_LARGEST_NAC_RANGE)


@lru_cache(maxsize=256)
def nac_reach(variance: float) -> float:
    """Solve `nac_variance` for r by bisection.

    Args:
        variance: 0 < variance <= `largest_nac_variance`; for larger ones the result is 1000.

    Example:
        >>> round(nac_reach(nac_variance(1.7)), 9)
        1.7
    """
    return bisect(nac_variance, variance, _LARGEST_NAC_RANGE)


def sigmoid_variance(std: float) -> float:
    """Compute the variance of σ(Ŵ) for a normal Ŵ of mean 0.

        Var = E[tanh²(std z / 2)] / 4,  z ~ N(0, 1)

    It has no closed form. The trapezoid rule converges exponentially on such smooth integrands if the grid resolves the
    narrower factor: the density for a small std, the slope of the sigmoid for a large one.

    Args:
        std: standard deviation of Ŵ, > 0.

    Example:
        >>> round(sigmoid_variance(1e-3) / 1e-6, 6), round(sigmoid_variance(1e6), 6)
        (0.0625, 0.25)
    """
    z = np.linspace(-10.0, 10.0, 2001)
    if std < 2:
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        return float(np.sum(density * np.tanh(std * z / 2) ** 2) * (z[1] - z[0]) / 4)
    t = 2 * z  # t = std z / 2: sech² is over within 20
    density = np.exp(-0.5 * (2 * t / std) ** 2) / math.sqrt(2 * math.pi)
    return float(1 - np.sum(density / np.cosh(t) ** 2) * (t[1] - t[0]) * 2 / std) / 4


def largest_sigmoid_variance() -> float:
    """Compute the largest variance that is allowed for σ(Ŵ): at std = 1000, just below the limit 1/4.

    Example:
        >>> round(largest_sigmoid_variance(), 4)
        0.2496
    """
    return sigmoid_variance(_LARGEST_SIGMOID_STD)


@lru_cache(maxsize=256)
def sigmoid_std(variance: float) -> float:
    """Solve `sigmoid_variance` for the standard deviation of Ŵ by bisection.

    Args:
        variance: 0 < variance <= `largest_sigmoid_variance`; for larger ones the result is 1000.

    Example:
        >>> round(sigmoid_std(sigmoid_variance(1.7)), 9)
        1.7
    """
    return bisect(sigmoid_variance, variance, _LARGEST_SIGMOID_STD)


def bisect(increasing: Callable[[float], float], value: float, high: float) -> float:
    """Solve increasing(x) = value on (0, high) by bisection, down to neighbouring floats.

    Args:
        increasing: a function that increases on (0, high).
        value: the value to reach.
        high: the upper end; returned if the value isn't reached.

    Returns:
        The smallest float x > 0 with increasing(x) >= value.

    Example:
        >>> bisect(math.log, 0.0, 8.0)
        1.0
    """
    low = 0.0
    while low < (middle := (low + high) / 2) < high:
        if increasing(middle) < value:
            low = middle
        else:
            high = middle
    return high
