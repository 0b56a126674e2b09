"""Evidence on the means of bounded numbers by betting, valid at any stopping time.

Numbers X_1, X_2, ... of seeds lie in [0, 1] and have the mean μ. A bet stakes the share λ m of its wealth on each seed,
at odds that are fair if μ equals the bound m. After n seeds, the wealth has grown by the factor Π (1 + λ (X_i - m)). If
μ <= m, the expectation of this factor is at most 1. By Ville's inequality, the probability that it ever reaches 1/α is
then at most α, for any distribution, any number of looks and any stopping rule. The best λ is unknown, so the stake is
divided equally among

    λ_j = (j - 1/2) / (64 m),  j = 1, ..., 64,

and the evidence that μ > m is the mean of the 64 factors. The evidence that μ < m is that of 1 - X_i and 1 - m.

Source: Waudby-Smith & Ramdas, JRSS B 86 (2024) 1-27; divided stakes: Orabona & Jun, IEEE Transactions on Information
Theory 70 (2024) 436-455.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, Values, check_confidence, finite

_STAKES = (np.arange(64) + 0.5) / 64
_BISECTIONS = 45
_MOST = 690.0
"""The greatest logarithm of evidence that is returned: a number of 300 digits."""


@dataclass(frozen=True)
class BetGains:
    """Evidence of two opposite bets: their wealth divided by their stake.

    Args:
        above: the evidence that the mean is above the bound.
        below: the evidence that the mean is below the bound.
    """

    above: float = 1.0
    below: float = 1.0


def evidence(values: Values, bound: float) -> BetGains:
    """Compute the evidence that the mean of numbers in [0, 1] is above a bound, and that it is below.

    Args:
        values: one for each seed, in any order.
        bound: m, 0 < m < 1.

    Returns:
        The evidence of both bets, at most exp(690) each; 1 without values.

    Raises:
        ValueError: if a value is not in [0, 1], or the bound not in (0, 1).

    Example:
        >>> both = evidence([1] * 18 + [0] * 2, 0.5)
        >>> round(both.above), round(both.below, 3)
        (526, 0.058)
    """
    numbers, counts = _counted(values)
    above, below = log_evidence(numbers, counts, bound)
    return BetGains(*np.exp(np.minimum([above, below], _MOST)).tolist())


def log_evidence(numbers: Floats, counts: Floats, bound: float) -> tuple[Floats, Floats]:
    """Compute the logarithms of the evidence of many samples that have the same distinct numbers.

    Args:
        numbers: the distinct numbers, shape [numbers], in [0, 1].
        counts: the count of each number in each sample, shape [..., numbers].
        bound: m, 0 < m < 1.

    Returns:
        The logarithms for means above the bound, and for means below it; each of shape [...].

    Raises:
        ValueError: if the bound is out of range.

    Example:
        >>> above, _ = log_evidence(np.array([0.0, 1.0]), np.array([[2, 18], [10, 10]]), 0.5)
        >>> np.exp(above).round(2).tolist()
        [525.55, 0.27]
    """
    if not 0 < bound < 1:
        raise ValueError(f"the bound must be in (0, 1), but got {bound:g}")
    return _log_gain(numbers, counts, bound), _log_gain(1 - numbers, counts, 1 - bound)


def _log_gain(numbers: Floats, counts: Floats, bound: float) -> Floats:
    """Return the logarithm of the evidence that μ > m, the mean of 64 factors; shapes as in `log_evidence`."""
    of_stakes = np.log1p(_STAKES[:, None] * (numbers / bound - 1))
    return np.asarray(special.logsumexp(counts @ of_stakes.T, axis=-1) - math.log(_STAKES.size))


def anytime_mean(values: Values, confidence: float = 0.95) -> Interval:
    """Bound the mean of numbers in [0, 1] so that all intervals of a growing sample contain it simultaneously.

    The interval holds the bounds m for which the evidence against either side is below 2/α, α = 1 - confidence. The
    probability that the intervals of all sample sizes contain the mean is at least the confidence.

    Args:
        values: one for each seed; without any, the interval is (0, 1).
        confidence: in (0, 1).

    Raises:
        ValueError: if a value is not in [0, 1], or the confidence not in (0, 1).

    Example:
        >>> low, high = anytime_mean([0.2, 0.3, 0.25, 0.2, 0.3] * 6)
        >>> round(low, 3), round(high, 3)
        (0.207, 0.373)
    """
    check_confidence(confidence)
    numbers, counts = _counted(values)
    level = math.log(2 / (1 - confidence))
    if not numbers.size:
        return (0.0, 1.0)
    return _least(numbers, counts, level), 1 - _least(1 - numbers, counts, level)


def _least(numbers: Floats, counts: Floats, level: float) -> float:
    """Find by bisection the greatest bound m with evidence for μ > m of at least exp(level); 0 if there is none."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_gain(numbers, counts, middle) >= level else (low, middle)
    return low


def _counted(values: Values) -> tuple[Floats, Floats]:
    """Return the distinct values, ascending, and the count of each; raise ValueError if one is not in [0, 1]."""
    numbers = finite(values)
    if numbers.size and (numbers.min() < 0 or numbers.max() > 1):
        raise ValueError(f"numbers must be in [0, 1], but got {numbers.min():g} to {numbers.max():g}")
    different, counts = np.unique(numbers, return_counts=True)
    return different, counts.astype(np.float64)
