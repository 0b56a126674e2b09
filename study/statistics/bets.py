"""Means of bounded numbers, judged while seeds are added: how much bets against a bound have won.

Numbers X_1, X_2, ... of seeds lie in [0, 1] and have the mean μ. Whoever bets the share λ m of what they have on each
seed, at odds that are fair if μ is the bound m, has after n seeds Π (1 + λ (X_i - m)) times as much as before. If
μ <= m, that isn't expected to be more than 1, and by Ville's inequality it ever reaches 1/α with a probability of at
most α, whatever the distribution is, however often one looks, and whenever one stops. Since nobody knows which λ wins
most, the stake is divided equally among

    λ_j = (j - 1/2) / (64 m),  j = 1, ..., 64,

and the evidence that μ > m is the mean of what they win. That μ < m is bet on in the same way with 1 - X_i and 1 - m.

Waudby-Smith & Ramdas, JRSS B 86 (2024) 1-27; that stakes are divided: Orabona & Jun, IEEE Transactions on Information
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
"""The logarithm of the most evidence that is told apart: a number of 300 digits."""


@dataclass(frozen=True)
class BetGains:
    """How many times as much bets have in the end as they had before the first seed.

    Args:
        above: those that the mean is above the bound.
        below: those that it is below.
    """

    above: float = 1.0
    below: float = 1.0


def evidence(values: Values, bound: float) -> BetGains:
    """Bet that the mean of numbers in [0, 1] is above a bound, and that it is below.

    Args:
        values: one a seed, in any order.
        bound: m, 0 < m < 1.

    Raises:
        ValueError: if a number or the bound is out of range.

    Example:
        >>> both = evidence([1] * 18 + [0] * 2, 0.5)
        >>> round(both.above), round(both.below, 3)
        (526, 0.058)
    """
    numbers, counts = _counted(values)
    above, below = log_evidence(numbers, counts, bound)
    return BetGains(*np.exp(np.minimum([above, below], _MOST)).tolist())


def log_evidence(numbers: Floats, counts: Floats, bound: float) -> tuple[Floats, Floats]:
    """Compute the logarithms of the evidence of many samples of the same few numbers.

    Args:
        numbers: shape [numbers], in [0, 1].
        counts: how often each sample has each of them, shape [..., numbers].
        bound: m, 0 < m < 1.

    Returns:
        Those for means above the bound, and below, shape [...].

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
    of_stakes = np.log1p(_STAKES[:, None] * (numbers / bound - 1))
    return np.asarray(special.logsumexp(counts @ of_stakes.T, axis=-1) - math.log(_STAKES.size))


def anytime_mean(values: Values, confidence: float = 0.95) -> Interval:
    """Bound the mean of numbers in [0, 1] so that all intervals of a growing sample contain it simultaneously.

    The bounds m against which neither bet has won 2/α, α = 1 - confidence.

    Args:
        values: one a seed; without any, the interval is (0, 1).
        confidence: in (0, 1).

    Raises:
        ValueError: if a number or the confidence is out of range.

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
    """Return the greatest bound that bets on greater means win the level against: fewer win against a greater one."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_gain(numbers, counts, middle) >= level else (low, middle)
    return low


def _counted(values: Values) -> tuple[Floats, Floats]:
    numbers = finite(values)
    if numbers.size and (numbers.min() < 0 or numbers.max() > 1):
        raise ValueError(f"numbers must be in [0, 1], but got {numbers.min():g} to {numbers.max():g}")
    different, counts = np.unique(numbers, return_counts=True)
    return different, counts.astype(np.float64)
