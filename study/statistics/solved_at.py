"""Iterations to success of the solved trials: median and mean, with intervals.

The functions take any positive numbers, such as seconds of training, and many samples at once.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from study.statistics import samples
from study.statistics.checks import Floats, Values, finite, normal_quantile, not_negative, too_close
from study.statistics.likelihood import digamma_rest, root, stirling_rest, trigamma_rest
from study.statistics.samples import Sizes


def medians(values: Values, sizes: Sizes | None = None) -> Floats:
    """Return the median of each sample, the mean of the middle two for an even size; NaN for a sample without values.

    Args:
        values: the values of all samples, one sample after another.
        sizes: the number of values of each sample; None for a single sample.

    Raises:
        ValueError: if a value is NaN or infinite, values or sizes have several axes, or sizes are negative or don't add
            up to the number of values.

    Example:
        >>> medians([14000, 12000, 19000, 5000, 7000], sizes=[3, 2]).tolist()
        [14000.0, 6000.0]
    """
    x = finite(values)
    n = samples.checked_sizes(x, sizes)
    middle = np.full(n.size, math.nan)
    for places, rows in samples.padded(x, n, math.inf):
        rows.sort(axis=1)
        row, size = np.arange(places.size), n[places]
        middle[places] = (rows[row, (size - 1) // 2] + rows[row, size // 2]) / 2
    return middle


def median_intervals(values: Values, sizes: Sizes | None = None, confidence: float = 0.95) -> Floats:
    """Bound the median of any distribution by two order statistics, for each sample.

    The interval is from the r-th smallest to the r-th greatest value, with the greatest r for which
    P(B < r) < (1 - confidence)/2. B is binomial with n and 1/2, as the number of values below the median of a
    continuous distribution. The interval is conservative, increasingly so with ties. David & Nagaraja, Order Statistics
    (2003), 7.1.

    Args:
        values: the values of all samples, one sample after another.
        sizes: the number of values of each sample; None for a single sample.
        confidence: in (0, 1): the least coverage.

    Returns:
        Shape [samples, 2], low and high, both among the values. NaN where even the smallest and the greatest value are
        not enough: for 95%, with fewer than 6 values.

    Raises:
        ValueError: if a value is NaN or infinite, the confidence is out of range, values or sizes have
            several axes, or sizes are negative or don't add up to the number of values.

    Example:
        >>> median_intervals([12, 13, 13, 14, 15, 19, 5], sizes=[6, 1]).tolist()
        [[12.0, 19.0], [nan, nan]]
    """
    normal_quantile(confidence)
    x = finite(values)
    n = samples.checked_sizes(x, sizes)
    bounds = np.full((n.size, 2), math.nan)
    ranks = {int(size): median_rank(int(size), confidence) for size in np.unique(n)}
    for places, rows in samples.padded(x, n, math.inf):
        rows.sort(axis=1)
        rank = np.array([ranks[int(size)] for size in n[places]])
        bounded = np.flatnonzero(rank)
        low, high = rank[bounded] - 1, n[places][bounded] - rank[bounded]
        bounds[places[bounded]] = np.column_stack([rows[bounded, low], rows[bounded, high]])
    return bounds


def median_rank(n: int, confidence: float) -> int:
    """Return the greatest r with P(B < r) < (1 - confidence)/2, B binomial with n and 1/2; 0 if r = 1 is too great."""
    below = special.bdtr(np.arange(n + 1), n, 0.5)
    return int(np.searchsorted(below, (1 - confidence) / 2))


def means(values: Values, sizes: Sizes | None = None) -> Floats:
    """Return the mean of each sample; NaN for a sample without values.

    Args:
        values: the values of all samples, one sample after another.
        sizes: the number of values of each sample; None for a single sample.

    Raises:
        ValueError: if a value is NaN or infinite, values or sizes have several axes, or sizes are negative or don't add
            up to the number of values.

    Example:
        >>> means([1.0, 2.0, 5.0], sizes=[2, 1]).tolist()
        [1.5, 5.0]
    """
    x = finite(values)
    return samples.means(x, samples.checked_sizes(x, sizes))


def gamma_mean_intervals(values: Values, sizes: Sizes | None = None, confidence: float = 0.95) -> Floats:
    """Bound the mean of a gamma distribution, for each sample, by profile likelihood over its shape.

    With shape k and mean m, the interval is {m : 2 (max l - max_k l(m, k)) <= χ²₁} for

        l(m, k) = n (k log(k/m) - log Γ(k) - k x̄/m) + (k - 1) Σ log x.

    The estimate of m is the sample mean x̄ for every k. l depends on m only through s(m) = log m + x̄/m - 1 - mean(log
    x), and the best k solves log k - ψ(k) = s(m). So only the shape at the interval's ends and the two m with that
    shape are computed. The distribution: Madsen & Johansen, ICLR 2020, appendix.

    Args:
        values: the values of all samples, one sample after another; >= 0, such as iterations until trials were solved.
        sizes: the number of values of each sample; None for a single sample.
        confidence: in (0, 1).

    Returns:
        Shape [samples, 2], low and high around the sample mean. NaN for fewer than two values, equal values (to six
        digits), or a zero among them.

    Raises:
        ValueError: if a value is negative or not finite, the confidence is out of range, values or sizes have
            several axes, or sizes are negative or don't add up to the number of values.

    Example:
        >>> gamma_mean_intervals([1.0, 2.0, 3.0, 4.0, 7.0], sizes=[4, 1]).round(3).tolist()
        [[1.45, 4.861], [nan, nan]]
    """
    allowed = normal_quantile(confidence) ** 2
    x = not_negative(values, "gamma")
    n = samples.checked_sizes(x, sizes)
    bounds = np.full((n.size, 2), math.nan)
    smallest = samples.least(x, n)
    has_interval = (n >= 2) & (smallest > 0) & ~too_close(smallest, samples.greatest(x, n))
    x, n = x[np.repeat(has_interval, n)], n[has_interval]
    centre = samples.means(x, n)
    spread = samples.log_gaps(x, n, centre)
    rise = -digamma_rest(_lower_shape(_best_log_shape(spread), allowed / (2 * n))) - spread
    bounds[has_interval] = (centre * np.exp(_log_ratios(rise))).T
    return bounds


def _best_log_shape(s: Floats) -> Floats:
    """Solve log k - ψ(k) = s for log k."""
    # a parabola joins the limits 1/(2k) + 1/(12 k²) and 1/k, and gives k to 1.5% for every s
    log_k = np.log((3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s))
    for _ in range(3):  # Newton steps for log s over log k: to 4e-6, 3e-13 and the last bit
        k = np.exp(log_k)
        remainder = -digamma_rest(k)
        log_k = log_k + np.log(remainder / s) * k * remainder / trigamma_rest(k)
    return np.asarray(log_k)


def _lower_shape(best: Floats, drop: Floats) -> Floats:
    """Find the smaller shape whose profile log-likelihood per value is `drop` below the maximum."""

    def height(log_k: Floats) -> Floats:
        """Compute the profile log-likelihood per value, up to a constant."""
        k = np.exp(log_k)
        return np.asarray(k * digamma_rest(k) - stirling_rest(k))

    top = height(best)

    def above(fall: Floats) -> tuple[Floats, Floats]:
        """Return the fall of the height minus the drop, and its slope, from 1/2 to 1."""
        log_k = best - fall
        return top - height(log_k) - drop, trigamma_rest(np.exp(log_k))

    return np.exp(best - root(above, 1.5 * drop, 0.0))


def _log_ratios(rise: Floats) -> Floats:
    """Solve s(m) - s(x̄) = rise for log m/x̄, below and above zero, s of `gamma_mean_intervals`; shape [2, samples]."""
    about = np.array([[-1.0], [1.0]]) * np.sqrt(2 * rise)  # for a small rise, where s is a parabola

    def gap(times: Floats) -> tuple[Floats, Floats]:
        """Return the difference from the rise, as its share, and the slope, at multiples of the first guess."""
        fall = np.expm1(-about * times)
        return (fall + about * times) / rise - 1, -about * fall / rise

    return np.asarray(about * root(gap, np.ones_like(about), 0.0))
