"""Iterations to success of the trials that were solved: median and mean, with intervals.

The functions take any positive numbers: seconds of training as well as iterations.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, stats

from study.records import Interval
from study.statistics.checks import Values, finite, nearly_equal, normal_quantile, not_negative
from study.statistics.likelihood import digamma_rest, stirling_rest


def median(values: Values) -> float | None:
    """Take the median; the middle two's mean for an even count, None for no values.

    Raises:
        ValueError: if a value is NaN or infinite.

    Example:
        >>> median([14000, 12000, 19000])
        14000.0
    """
    x = finite(values)
    return float(np.median(x)) if x.size else None


def median_interval(values: Values, confidence: float = 0.95) -> Interval | None:
    """Bound the median of any law by two order statistics.

    From the r-th smallest to the r-th greatest value, with the greatest r for which P(B < r) <= (1 - confidence)/2,
    B binomial of n and 1/2: below the median lie B values, whatever the law. David & Nagaraja, Order Statistics
    (2003), 7.1.

    Args:
        values: shape [n].
        confidence: in (0, 1); that of the interval is at least so much.

    Returns:
        (low, high), both among the values. None where even the smallest and the greatest value are not enough: for
        95%, of fewer than 6 values.

    Raises:
        ValueError: if a value is NaN or infinite, or the confidence is out of range.

    Example:
        >>> median_interval([12, 13, 13, 14, 15, 19])
        (12.0, 19.0)
    """
    normal_quantile(confidence)
    x = np.sort(finite(values))
    if not x.size:
        return None
    # ppf gives the least r with P(B <= r) >= its argument, so that P(B < r) is below it, or equal by rounding alone
    rank = int(stats.binom.ppf((1 - confidence) / 2, x.size, 0.5))
    return (float(x[rank - 1]), float(x[x.size - rank])) if rank else None


def mean(values: Values) -> float | None:
    """Take the sample mean; None for no values.

    Raises:
        ValueError: if a value is NaN or infinite.

    Example:
        >>> mean([1.0, 2.0])
        1.5
    """
    x = finite(values)
    return float(np.mean(x)) if x.size else None


def gamma_mean_interval(values: Values, confidence: float = 0.95) -> Interval | None:
    """Bound the mean of a gamma law by profiling the likelihood over its shape.

    With shape k and mean m, l(m, k) = n (k log(k/m) - log Γ(k) - k x̄/m) + (k - 1) Σ log x. The estimate of m
    is the sample mean x̄ for every k; the interval is {m : 2 (max l - max_k l(m, k)) <= χ²₁}. l depends on m
    only through s(m) = log m + x̄/m - 1 - mean(log x), and the best k solves log k - ψ(k) = s(m), so that one
    shape, at the interval's ends, and the two m that have it are all there is to find. The law: Madsen &
    Johansen, ICLR 2020, appendix.

    Args:
        values: shape [n], positive; for example iterations at which trials were solved.
        confidence: in (0, 1).

    Returns:
        (low, high) around the sample mean. None for fewer than two values, equal values (to six digits), or a
        zero among them.

    Raises:
        ValueError: if a value is negative or not finite, or the confidence is out of range.

    Example:
        >>> low, high = gamma_mean_interval([1.0, 2.0, 3.0, 4.0])
        >>> round(low, 3), round(high, 3)
        (1.45, 4.861)
    """
    allowed = normal_quantile(confidence) ** 2
    x = not_negative(values, "gamma")
    if x.size < 2 or x.min() == 0 or nearly_equal(x):
        return None
    centre = float(x.mean())
    deviation = (x - centre) / centre
    # log1p keeps the digits of values near the mean, log those of values far below it
    logs = np.where(deviation > -0.5, np.log1p(np.maximum(deviation, -0.5)), np.log(x / centre))
    spread = float(np.mean(deviation - logs))
    best = _best_log_shape(spread)
    rise = -digamma_rest(math.exp(_lower_log_shape(best, allowed / (2 * x.size)))) - spread

    def gap(u: float) -> float:
        """Say how far s(m) - s(x̄) is from the rise at m = x̄ exp(u)."""
        return math.expm1(-u) + u - rise

    low = optimize.brentq(gap, -math.sqrt(2 * rise) - 1e-12, 0.0, xtol=1e-14)
    high = optimize.brentq(gap, 0.0, rise + math.sqrt(2 * rise) + 1e-12, xtol=1e-14)
    return (centre * math.exp(low), centre * math.exp(high))


def _best_log_shape(s: float) -> float:
    """Solve log k - ψ(k) = s for log k."""
    # 1/(2k) < log k - ψ(k) < 1/k brackets k
    low, high = math.log(0.49 / s), math.log(1.01 / s)
    return float(optimize.brentq(lambda log_k: -digamma_rest(math.exp(log_k)) - s, low, high, xtol=1e-14))


def _lower_log_shape(best: float, drop: float) -> float:
    """Find the smaller shape at which the profile likelihood's logarithm a value is less by so much."""

    def height(log_k: float) -> float:
        k = math.exp(log_k)
        return k * digamma_rest(k) - stirling_rest(k)

    goal = height(best) - drop
    # the height's slope in log k, k² ψ'(k) - k, falls from 1 to 1/2
    low, high = best - 2.02 * drop, best - 0.98 * drop
    return float(optimize.brentq(lambda log_k: height(log_k) - goal, low, high, xtol=1e-14))
