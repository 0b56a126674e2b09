"""Permutation test of the scores of two methods on partly shared seeds.

If both methods have the same distribution, the trials of a seed are exchangeable, and so are the trials of seeds that
only one method has. Given the scores, the test is exact, however correlated the trials of a seed are. It is the
sign-flip test if all trials are paired, and the two-sample permutation test if none are.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy import special

from study.statistics.checks import Floats, check_confidence, finite
from study.statistics.sign_flips import ROUNDING, sign_flip
from study.statistics.welch import Contrast

_EXCHANGES = 2**15 - 1
"""The number of exchanges: all if there are no more, else a random sample of this size."""

_LEAST_EXCHANGES = 2**12 - 1
_NUMBERS = 2**21
"""The greatest number of array elements for the exchanges; with very many trials, fewer exchanges are drawn."""

_MOST_TRIALS = 2**11
"""The greatest number of trials that are exchanged; with more, a normal approximation is used."""

_BISECTIONS = 50
_TILTS = np.geomspace(0.01, 1e4, 64)
"""Tilts in Chernoff's bound, to be divided by the greatest score."""


def unpaired_share(pairs: int, first: int, second: int) -> float:
    """Return the weight of the difference between u₁ and u₂ unpaired trials, given p pairs: h/(p + h).

    h is 2 u₁ u₂/(u₁ + u₂), and the weight is 0 if u₁ or u₂ is. With this weight, the estimate compares the first
    method's total with its expectation under exchange of trials.

    Example:
        >>> unpaired_share(10, 10, 10), unpaired_share(10, 5, 0), unpaired_share(0, 3, 4)
        (0.5, 0.0, 1.0)
    """
    alone = 2 * first * second / (first + second) if first and second else 0.0
    return alone / (pairs + alone) if alone else 0.0


def exchange_test(differences: Floats, first: Floats, second: Floats, confidence: float = 0.95) -> Contrast | None:
    """Estimate the difference of the mean scores of two methods, first minus second, by a permutation test.

    The estimate is (1 - v) D + v (M₁ - M₂), with the mean difference D of the pairs, the mean scores M of the unpaired
    trials, and v of `unpaired_share`. An exchange flips the signs of some pairs, and redistributes the unpaired trials
    between the methods. If the first method's scores are lowered by m, an exchange's total is at least the observed one
    if s <= m. Here s = (Σ flipped differences + Σ first scores that leave - Σ second scores that enter)/(number of
    flipped and leaving ones). The numbers s give p and the interval, as the means of subsets do in `sign_flip`. The
    interval excludes 0 exactly where p <= 1 - confidence, unless it is infinite.

    All exchanges are used, or up to 32,767 random ones, always the same. If none of the random ones is as extreme as
    the observation, p is at most twice Chernoff's bound. With more than 2,048 pairs and unpaired trials together, the
    estimate is taken as normal, except for pairs alone (see `sign_flip`).

    Source: the interval: Hartigan, JASA 64 (1969) 1303-1317.

    Args:
        differences: shape [pairs]: the differences of the scores, first minus second; finite, like all scores.
        first: shape [u₁]: the scores of trials that only the first method has.
        second: shape [u₂]: the scores of trials that only the second has. If either is empty, the pairs alone are
            tested.
        confidence: in (0, 1).

    Returns:
        The estimate; its interval is infinite if there are too few exchanges for the confidence. None if nothing can be
        tested: there are neither pairs nor unpaired trials of both methods, or no pair and no unpaired scores differ.

    Raises:
        ValueError: if a difference or a score is NaN or infinite, or the confidence is out of range.

    Example:
        >>> test = exchange_test(np.array([2.0, 3, 1, 2]), np.array([4.0, 5]), np.array([1.0, 2, 3]))
        >>> round(test.estimate, 3), [round(end, 2) for end in test.interval], round(test.p_value, 4)
        (2.188, [1.33, 3.0], 0.0125)
    """
    check_confidence(confidence)
    differences, first, second = finite(differences), finite(first), finite(second)
    if not (first.size and second.size):
        return sign_flip(differences, confidence) if differences.any() else None
    scores = np.concatenate([first, second])
    if not differences.any() and np.ptp(scores) == 0:
        return None
    share = unpaired_share(differences.size, first.size, second.size)
    estimate = share * float(first.mean() - second.mean())
    if differences.size:
        estimate += (1 - share) * float(differences.mean())
    if differences.size + scores.size > _MOST_TRIALS:
        return _normal(estimate, differences, scores, first.size, confidence)
    flips, are_first = _exchanges(differences.size, first.size, second.size)
    sums = flips @ differences + (first.sum() - are_first @ scores)
    sums[np.abs(sums) <= ROUNDING * (np.abs(differences).sum() + np.abs(scores).sum())] = 0.0
    shifts = sums / (flips.sum(axis=1) + first.size - are_first[:, : first.size].sum(axis=1))
    possible = np.minimum(1.0, 2 * np.arange(1, shifts.size + 2) / (1 + shifts.size))
    sign = 1 if estimate > 0 else -1
    beyond = int(np.count_nonzero(sign * shifts <= 0))
    p_value = float(possible[beyond])
    if not beyond and _count(differences.size, first.size, second.size) > _EXCHANGES + 1:
        p_value = min(p_value, 2 * _tail_bound(sign * differences, sign * scores, first.size))
    reach = int(np.searchsorted(possible, 1 - confidence, side="right"))
    if not reach:
        return Contrast(estimate, (-math.inf, math.inf), p_value)
    ends = [reach - 1, shifts.size - reach]
    low, high = np.partition(shifts, ends)[ends].tolist()
    return Contrast(estimate, (low, high), p_value)


def _count(pairs: int, first: int, second: int) -> int:
    return int(2**pairs * math.comb(first + second, first))


@lru_cache(maxsize=2)
def _exchanges(pairs: int, first: int, second: int) -> tuple[Floats, Floats]:
    """Return all exchanges but the identity, or a random sample of them.

    Returns:
        Masks of the flipped pairs, [exchanges, pairs], and of the first method's trials, [exchanges, trials].
    """
    trials = first + second
    if _count(pairs, first, second) <= _EXCHANGES + 1:
        bits = (np.arange(2**pairs)[:, None] >> np.arange(pairs) & 1).astype(np.float64)
        chosen = np.array(list(combinations(range(trials), first)))
        divisions = np.zeros((len(chosen), trials))
        np.put_along_axis(divisions, chosen, 1.0, axis=1)
        flips, are_first = np.repeat(bits, len(divisions), axis=0), np.tile(divisions, (len(bits), 1))
    else:
        count = max(_LEAST_EXCHANGES, min(_EXCHANGES, _NUMBERS // (pairs + trials)))
        rng = np.random.default_rng([pairs, first, second])
        flips = rng.integers(0, 2, size=(count, pairs), dtype=np.int8).astype(np.float64)
        keys = rng.random((count, trials))
        are_first = (keys <= np.partition(keys, first - 1, axis=1)[:, first - 1 : first]).astype(np.float64)
    changes = flips.any(axis=1) | ~are_first[:, :first].all(axis=1)
    return flips[changes], are_first[changes]


def _normal(estimate: float, differences: Floats, scores: Floats, first: int, confidence: float) -> Contrast:
    """Test with a normal distribution of the estimate, with its variance over all exchanges.

    `scores` are those of the unpaired trials; the first `first` of them are the first method's.
    """
    n = scores.size
    alone = 2 * first * (n - first) / n
    # twice the first method's total, over p + h, is the estimate
    variance = np.sum(differences**2) + 4 * first * (n - first) / n * np.var(scores, ddof=1)
    error = math.sqrt(variance) / (differences.size + alone)
    reach = float(special.ndtri((1 + confidence) / 2)) * error
    return Contrast(estimate, (estimate - reach, estimate + reach), 2 * float(special.ndtr(-abs(estimate) / error)))


def _tail_bound(differences: Floats, scores: Floats, first: int) -> float:
    """Bound the probability that exchanged trials give the first method at least the observed total.

    Chernoff's bound, the least over a grid of tilts t > 0: exp(-t x) Π cosh(t d/2) e(exp(t a))/C(N, u). x is the
    observed total minus the pairs' expectation, d are the pairs' `differences`, and a the N `scores` of unpaired
    trials, of which the first u = `first` are the first method's. e is the elementary symmetric polynomial of degree
    u, which is at most s^-u Π (1 + s exp(t a)) for any s > 0.
    """
    observed = differences.sum() / 2 + scores[:first].sum()
    centred = scores - scores.mean()
    tilts = _TILTS[:, None] / max(np.abs(differences).max(initial=0.0), np.abs(centred).max())
    tilted = tilts * centred
    low, high = (
        -sign * np.abs(tilted).max(axis=1, keepdims=True) - sign * 2 * math.log(scores.size) for sign in (1, -1)
    )
    for _ in range(_BISECTIONS):  # the s with the least bound
        middle = (low + high) / 2
        is_less = special.expit(middle + tilted).sum(axis=1, keepdims=True) < first
        low, high = np.where(is_less, middle, low), np.where(is_less, high, middle)
    halves = tilts * differences / 2
    logs = np.logaddexp(halves, -halves).sum(axis=1) - differences.size * math.log(2)
    logs += np.logaddexp(0.0, low + tilted).sum(axis=1) - first * low[:, 0]
    logs -= -special.betaln(first + 1, scores.size - first + 1) - math.log(scores.size + 1)
    return min(1.0, float(np.exp((logs - tilts[:, 0] * (observed - first * scores.mean())).min())))
