"""Success rates: intervals for a rate and for a difference, Fisher's exact test, and Holm's adjustment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, check_count, normal_quantile

Counts = Sequence[int] | Sequence[float] | npt.NDArray[np.integer]

TIE = 1e-7
"""Probabilities whose logarithms differ by less count as equal: with a million trials they are known to 1e-8."""


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Bound a success rate by Wilson's score interval.

    The interval holds the rates p with abs(k/n - p) <= z sqrt(p (1 - p) / n), z the normal quantile. Wilson, JASA 22
    (1927) 209-212.

    Args:
        successes: k, 0 <= k <= n.
        n: the number of trials; without any, the interval is (0, 1).
        confidence: in (0, 1).

    Raises:
        ValueError: if k or the confidence is out of range.

    Example:
        >>> low, high = wilson(98, 100)
        >>> round(low, 4), round(high, 4)
        (0.93, 0.9945)
    """
    [(low, high)] = wilsons([successes], [n], confidence).tolist()
    return (low, high)


def wilsons(successes: Counts, n: Counts, confidence: float = 0.95) -> Floats:
    """Bound many success rates by Wilson's score interval.

    The ends are the roots of the quadratic in p: (2k + z² ± z sqrt(4k (n - k)/n + z²)) / (2 (n + z²)),
    z the normal quantile.

    Args:
        successes: k, shape [rates], 0 <= k <= n; fractional if n is an effective number of dependent trials.
        n: the numbers of trials, shape [rates], >= 0; without any, an interval is (0, 1).
        confidence: in (0, 1).

    Returns:
        Shape [rates, 2], low and high.

    Raises:
        ValueError: if a count or the confidence is out of range, or lengths differ.

    Example:
        >>> wilsons([98, 0], [100, 0]).round(4).tolist()
        [[0.93, 0.9945], [0.0, 1.0]]
    """
    z = normal_quantile(confidence)
    for k, total in zip(successes, n, strict=True):
        check_count(k, total)
    k, total = np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    p = np.divide(k, total, out=np.zeros_like(k), where=total > 0)
    scale = 2 * (total + z * z)
    centre = (2 * total * p + z * z) / scale
    reach = z / scale * np.sqrt(4 * total * p * (1 - p) + z * z)
    # for k = 0 or k = n, rounding would move an end away from zero or one
    low, high = np.where(k == 0, 0.0, centre - reach), np.where(k == total, 1.0, centre + reach)
    return np.column_stack([low, high])


def newcombe(successes_1: int, n_1: int, successes_2: int, n_2: int, confidence: float = 0.95) -> Interval:
    """Bound the difference of two success rates, first minus second, by Newcombe's hybrid score interval.

    With d = p₁ - p₂ and Wilson's intervals (l₁, u₁), (l₂, u₂): from d - sqrt((p₁ - l₁)² + (u₂ - p₂)²) to
    d + sqrt((u₁ - p₁)² + (p₂ - l₂)²). Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10.

    Args:
        successes_1: of the first sample, 0 to n_1.
        n_1: the size of the first sample.
        successes_2: of the second sample, 0 to n_2.
        n_2: the size of the second sample.
        confidence: in (0, 1).

    Returns:
        (low, high) in [-1, 1]; (-1, 1) if a sample is empty.

    Raises:
        ValueError: if a count or the confidence is out of range.

    Example:
        >>> low, high = newcombe(94, 100, 13, 100)
        >>> round(low, 3), round(high, 3)
        (0.707, 0.872)
    """
    low_1, high_1 = wilson(successes_1, n_1, confidence)
    low_2, high_2 = wilson(successes_2, n_2, confidence)
    if n_1 == 0 or n_2 == 0:
        return (-1.0, 1.0)
    return difference_interval(successes_1 / n_1, (low_1, high_1), successes_2 / n_2, (low_2, high_2))


def difference_interval(p_1: float, ends_1: Interval, p_2: float, ends_2: Interval) -> Interval:
    """Bound the difference of two independent rates, first minus second, from the interval of each rate.

        p₁ - p₂ - sqrt((p₁ - l₁)² + (u₂ - p₂)²)  to  p₁ - p₂ + sqrt((u₁ - p₁)² + (p₂ - l₂)²)

    Zou & Donner, Statistics in Medicine 27 (2008) 1693-1702.

    Args:
        p_1: the first rate.
        ends_1: its interval, (l₁, u₁).
        p_2: the second rate.
        ends_2: its interval, (l₂, u₂).

    Example:
        >>> difference_interval(0.5, (0.25, 0.75), 0.5, (0.5, 0.5))
        (-0.25, 0.25)
    """
    (low_1, high_1), (low_2, high_2) = ends_1, ends_2
    return (p_1 - p_2 - math.hypot(p_1 - low_1, high_2 - p_2), p_1 - p_2 + math.hypot(high_1 - p_1, p_2 - low_2))


def fisher_exact(successes_1: int, n_1: int, successes_2: int, n_2: int) -> float:
    """Return the two-sided p-value of Fisher's exact test that two success rates are equal.

    p is the sum of the hypergeometric probabilities, given both margins, that don't exceed that of the observation;
    Fisher (1935). The probability of i successes in the first sample is proportional to 1 / (i! (n₁ - i)! (k - i)!
    (n₂ - k + i)!), k = k₁ + k₂. If a sample is empty, p is 1.

    Args:
        successes_1: of the first sample, 0 to n_1.
        n_1: the size of the first sample.
        successes_2: of the second sample, 0 to n_2.
        n_2: the size of the second sample.

    Raises:
        ValueError: if a count is out of range.

    Example:
        >>> round(fisher_exact(94, 100, 13, 100), 4)
        0.0
    """
    check_count(successes_1, n_1)
    check_count(successes_2, n_2)
    # computed here: importing scipy.stats takes longer than all else that printing a table imports
    k = successes_1 + successes_2
    i = np.arange(max(0, k - n_2), min(k, n_1) + 1)
    log_weight = -sum(special.gammaln(count + 1.0) for count in (i, n_1 - i, k - i, n_2 - k + i))
    weight = np.exp(log_weight - log_weight.max())
    counted = log_weight <= log_weight[successes_1 - i[0]] + TIE
    return min(1.0, float(weight[counted].sum() / weight.sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of a family of tests by Holm's method.

    If hypotheses with an adjusted p-value of at most a level are rejected, the probability of any false rejection is at
    most that level. In ascending order p'_(i) = max over j <= i of min(1, (m - j + 1) p_(j)). Holm, Scandinavian
    Journal of Statistics 6 (1979) 65-70.

    Args:
        p_values: of the m tests of the family, each in [0, 1].

    Returns:
        The adjusted p-values, in the same order.

    Raises:
        ValueError: if a p-value is out of range.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"p-values must lie in [0, 1], but got {list(p_values)}")
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(1.0, p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(stepped)
    return [float(value) for value in adjusted]
