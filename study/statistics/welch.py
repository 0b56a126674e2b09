"""Weighted sums of the means of independent samples with different variances: Welch's method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics import samples
from study.statistics.checks import Floats, Values, check_confidence, finite
from study.statistics.samples import Sizes


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of means.

    Args:
        estimate: the sum.
        interval: its interval.
        p_value: two-sided, of the hypothesis that the sum is 0.
    """

    estimate: float
    interval: Interval
    p_value: float


def deviations(values: Values, sizes: Sizes | None = None) -> Floats:
    """Return the standard deviation of each sample, with n - 1 in the denominator; NaN for fewer than two values.

    Args:
        values: the values of all samples, one sample after another.
        sizes: the number of values of each sample; None for a single sample.

    Raises:
        ValueError: if a value is NaN or infinite, values or sizes have several axes, or sizes are negative or don't add
            up to the number of values.

    Example:
        >>> deviations([1.0, 3.0, 7.0], sizes=[2, 1]).round(3).tolist()
        [1.414, nan]
    """
    x = finite(values)
    n = samples.checked_sizes(x, sizes)
    # scaled by a power of two, which is exact, against overflow and underflow of squares
    exponents = np.frexp(samples.greatest(np.abs(x), n))[1]
    x = np.ldexp(x, -np.repeat(exponents, n))
    squares = samples.sums((x - np.repeat(samples.means(x, n), n)) ** 2, n)
    variances = np.divide(squares, n - 1, out=np.full(n.size, math.nan), where=n > 1)
    return np.asarray(np.ldexp(np.sqrt(variances), exponents))


def contrast(
    weights: Sequence[float],
    means: Sequence[float],
    deviations: Sequence[float],
    sizes: Sequence[int],
    confidence: float = 0.95,
) -> Contrast | None:
    """Estimate Σ w m, a weighted sum of the means of independent samples, without assuming equal variances.

    With v = w² s²/n of each sample and V = Σ v, the interval is Σ w m ± t √V, with the quantile t of Student's
    distribution with V² / Σ v²/(n - 1) degrees of freedom. The means are taken as normal: for few values of a very
    skewed distribution, the coverage is below the confidence.

    Source: Welch, Biometrika 34 (1947) 28-35; the degrees of freedom: Satterthwaite, Biometrics Bulletin 2 (1946)
    110-114.

    Args:
        weights: w; 1 and -1 for the difference of two means.
        means: m, the means of the samples.
        deviations: s, the standard deviations, >= 0.
        sizes: n, the number of values of each sample.
        confidence: in (0, 1).

    Returns:
        The estimate; None without samples, if a sample has fewer than two values, or if V is 0, as for samples of equal
        values.

    Raises:
        ValueError: if the confidence is out of range.

    Example:
        >>> difference = contrast([1, -1], [0.94, 0.90], [0.02, 0.04], [20, 30])
        >>> round(difference.estimate, 3), [round(end, 3) for end in difference.interval], round(difference.p_value, 6)
        (0.04, [0.023, 0.057], 2.7e-05)
    """
    check_confidence(confidence)
    w, s, n = (np.asarray(numbers, dtype=np.float64) for numbers in (weights, deviations, sizes))
    if n.size == 0 or n.min() < 2:
        return None
    # scaled by powers of two, which are exact, against underflow of squares and overflow of sums
    exponent = int(np.frexp(np.abs(w * s).max())[1])
    variances = np.ldexp(w * s, -exponent) ** 2 / n
    total = variances.sum()
    if not total > 0:
        return None
    freedom = 1 / np.sum((variances / total) ** 2 / (n - 1))
    terms = w * np.asarray(means, dtype=np.float64)
    scale = 0.5 ** (n.size.bit_length() if np.abs(terms).max() > np.finfo(np.float64).max / n.size else 0)
    error, estimate = scale * math.ldexp(math.sqrt(total), exponent), float((scale * terms).sum())
    reach = special.stdtrit(freedom, (1 + confidence) / 2) * error
    p_value = 2 * special.stdtr(freedom, -abs(estimate) / error)
    with np.errstate(over="ignore"):
        low, middle, high = (np.array([estimate - reach, estimate, estimate + reach]) / scale).tolist()
    return Contrast(middle, (low, high), float(p_value))
