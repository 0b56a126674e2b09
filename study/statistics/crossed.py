"""Means of trials that share seeds of several sources of randomness, such as the initial weights."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from study.statistics.checks import Floats, check_confidence
from study.statistics.samples import Ints
from study.statistics.sign_flips import ROUNDING, sign_flip
from study.statistics.welch import Contrast

LEAST_LEVELS = 3
"""The fewest seeds of a crossed source with which a test is possible."""

Mask = npt.NDArray[np.bool_]

_LEAST_P_VALUE = 1e-15
_BISECTIONS = 42


def crossed_mean(differences: Floats, *, is_nested: bool = False, confidence: float = 0.95) -> Contrast | None:
    """Estimate the mean of trials that share seeds, with the independent seeds as the sampling unit.

    Nested, the means of the first source's seeds are independent, and the test is `sign_flip` of them. Crossed, the
    variance of the mean m is at most Σ_s v_s over the sources, with v_s = L/(L - 1) Σ_l (n_l/n)² (m_l - m)² over the L
    seeds of a source, which have n_l of the n trials and the mean m_l. The interaction is counted once for each source,
    so the test is conservative. The interval is m ± sqrt(Σ t_s² v_s), with Student's quantile t_s of L - 1 degrees of
    freedom. For normal numbers its coverage is at least the confidence.

    p is the level at which the interval ends at 0, but at least 2/4^L for the source with the fewest seeds. If that
    source alone decides on success, independent methods of equal rates can, with that probability, differ in the same
    direction in all trials. If p is greater than 1 - confidence for this reason, the interval is extended to 0.

    Source: variances of crossed clusters: Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29
    (2011) 238-249; the interval: Banerjee, Sankhyā 22 (1960) 357-358.

    Args:
        differences: first method minus second, of a metric, of success or of ranks; shape [seeds of the first source,
            seeds of the second, ...]; NaN where a trial is missing. Nested, a row holds the trials of one seed of the
            first source.
        is_nested: whether rows have seeds of their own, for example if each seed has several trials.
        confidence: in (0, 1).

    Returns:
        The mean; nested, that of the rows' means, whose interval is infinite for few seeds, as in `sign_flip`. None if
        nothing can be tested: all differences are 0 or missing; nested, fewer than two seeds or all rows' means 0;
        crossed, fewer than three seeds of a source.

    Raises:
        ValueError: if a number is infinite, the array has fewer than two axes, or the confidence is out of range.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> d = 1 + rng.normal(size=(8, 1)) + rng.normal(size=(1, 8)) + rng.normal(size=(8, 8))
        >>> test = crossed_mean(d)
        >>> round(test.estimate, 2), [round(end, 2) for end in test.interval], round(test.p_value, 3)
        (0.68, [-0.25, 1.62], 0.125)
        >>> test = crossed_mean(d, is_nested=True)  # as if each row had columns of its own
        >>> round(test.estimate, 2), [round(end, 2) for end in test.interval], round(test.p_value, 3)
        (0.68, [0.03, 1.36], 0.047)
    """
    check_confidence(confidence)
    d = np.asarray(differences, np.float64)
    if d.ndim < 2 or np.isinf(d).any():
        raise ValueError("differences must be finite or NaN, in an array with an axis for each source")
    is_known = ~np.isnan(d)
    greatest = float(np.abs(d[is_known]).max(initial=0.0))
    if not greatest:
        return None
    exponent = math.frexp(greatest)[1]  # scaled by a power of two against overflow and underflow
    d = np.ldexp(np.where(is_known, d, 0.0), -exponent)
    test = _nested(d, is_known, confidence) if is_nested else _crossed(d, is_known, confidence)
    if test is None:
        return None
    with np.errstate(over="ignore"):
        estimate, low, high = np.ldexp([test.estimate, *test.interval], exponent).tolist()
    return Contrast(estimate, (low, high), test.p_value)


def _nested(d: Floats, is_known: Mask, confidence: float) -> Contrast | None:
    """Test the means of the first source's seeds by sign flips; None for fewer than two seeds or only zeros."""
    means, _ = _level_means(d, is_known, 0)
    return sign_flip(means, confidence) if means.size > 1 and means.any() else None


def _crossed(d: Floats, is_known: Mask, confidence: float) -> Contrast | None:
    """Test the mean of crossed trials; None if a source has fewer than three seeds."""
    n = np.count_nonzero(is_known)
    estimate = float(d.sum() / n)
    levels = [_level_means(d, is_known, axis) for axis in range(d.ndim)]
    if min(means.size for means, _ in levels) < LEAST_LEVELS:
        return None
    variances = np.array(
        [means.size / (means.size - 1) * np.sum((counts / n * (means - estimate)) ** 2) for means, counts in levels]
    )
    freedoms = np.array([means.size - 1 for means, _ in levels])
    least = 2 * 0.25 ** (int(freedoms.min()) + 1)
    p_value = max(least, _p_value(estimate, variances, freedoms))
    reach = _reach(variances, freedoms, 1 - confidence)
    low, high = estimate - reach, estimate + reach
    if p_value > 1 - confidence:
        low, high = min(low, 0.0), max(high, 0.0)
    return Contrast(estimate, (low, high), p_value)


def _reach(variances: Floats, freedoms: Ints, level: float) -> float:
    """Return the half-width of the interval at an error level: sqrt(Σ t_s² v_s), with `freedoms` L - 1."""
    quantiles = special.stdtrit(freedoms, level / 2)
    return math.sqrt(float(np.sum(quantiles**2 * variances)))


def _p_value(estimate: float, variances: Floats, freedoms: Ints) -> float:
    """Find by bisection the level of the interval that ends at 0, at least 1e-15; arguments as for `_reach`."""
    low, high = math.log(_LEAST_P_VALUE), 0.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if _reach(variances, freedoms, math.exp(middle)) < abs(estimate) else (middle, high)
    return math.exp(high)


def _level_means(d: Floats, is_known: Mask, axis: int) -> tuple[Floats, Floats]:
    """Return the mean and the count of the trials of each seed on an axis, without seeds that have no trials.

    A mean is 0 if the sum is within rounding error of 0.
    """
    others = tuple(other for other in range(d.ndim) if other != axis)
    counts, sums, magnitudes = (np.sum(numbers, axis=others) for numbers in (is_known, d, np.abs(d)))
    sums[np.abs(sums) <= ROUNDING * magnitudes] = 0.0
    has_trials = counts > 0
    return sums[has_trials] / counts[has_trials], counts[has_trials]
