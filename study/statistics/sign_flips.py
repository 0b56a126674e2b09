"""Sign-flip tests of means of paired differences, one for each seed."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from study.statistics.checks import Floats, Values, check_confidence, finite
from study.statistics.welch import Contrast

ROUNDING = 1e-12
"""The relative error of sums and differences; a smaller number counts as a tie."""

_SUBSETS = 2**15 - 1
"""The number of subsets of seeds: all for up to 15 seeds, a random sample of this size for more."""

_NUMBERS = 2**23
"""The greatest number of array elements for the subsets; with very many seeds, fewer subsets are drawn."""

_BLOCKS = 2**11
"""The greatest number of signs that are flipped; with more seeds, neighbours are flipped together."""

_TILT_STEP = 1.25
_LEAST_TILT, _GREATEST_TILT = 0.02, 40.0
"""The least tilt in Chernoff's bound, divided by the greatest difference, and the greatest tilt, divided by the
least."""


def paired_differences(first: Values, second: Values) -> Floats:
    """Subtract the values of two methods seed by seed; a difference within rounding error of the values is 0.

    Args:
        first: the first method's values, shape [seeds].
        second: the second method's values, shape [seeds].

    Raises:
        ValueError: if a value is NaN or infinite, or lengths differ.

    Example:
        >>> paired_differences([0.1 + 0.2, 2e-9], [0.3, 1e-9]).tolist()
        [0.0, 1e-09]
    """
    a, b = finite(first), finite(second)
    if a.shape != b.shape:
        raise ValueError(f"both methods must have a value of each seed, but have {a.size} and {b.size}")
    differences = a - b
    differences[np.abs(differences) <= ROUNDING * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return differences


def sign_flip(differences: Values, confidence: float = 0.95) -> Contrast | None:
    """Estimate the mean of differences that are symmetric about it, by flipping their signs.

    Under the hypothesis that the mean is m, each d - m is as likely as m - d. So p = 2 (1 + k)/(1 + s) for s subsets of
    the seeds. k of these have a mean difference that equals m, or that is on the other side of m than the estimate. For
    up to 15 seeds, all subsets are used; for more, up to 32,767 random ones, always the same. Sums within rounding
    error of 0 are ties, whatever the magnitudes of the differences. If k is 0 among random subsets, p is at most twice
    Chernoff's bound, 2 min over t >= 0 of Π (1 + exp(-2 t d))/2, which is 2^(1 - n) if all n differences have one sign.
    With more than 2,048 seeds, neighbours are flipped together.

    The interval holds the m that are not rejected. Its ends are quantiles of the subsets' means. It is infinite if
    2/(1 + s) > 1 - confidence, as with fewer than six seeds at 95%. A finite interval excludes 0 exactly where
    p <= 1 - confidence.

    Source: Fisher, The Design of Experiments (1935), 21; the interval: Hartigan, JASA 64 (1969) 1303-1317.

    Args:
        differences: one for each seed, first method minus second; zeros count in the estimate and the interval.
        confidence: in (0, 1).

    Returns:
        The estimate, its interval and the p-value; None without differences.

    Raises:
        ValueError: if a difference is NaN or infinite or, with any differences, the confidence is out of range.

    Example:
        >>> both = sign_flip([0.5, 1.0, 0.5, 2.0, -0.1, 0.7, 0.9, 1.1])
        >>> round(both.estimate, 3), [round(end, 3) for end in both.interval], both.p_value
        (0.825, [0.367, 1.35], 0.015625)
    """
    d = finite(differences)
    if not d.size:
        return None
    estimates, bounds, p_values = sign_flips(d[None], confidence)
    return Contrast(float(estimates[0]), (float(bounds[0, 0]), float(bounds[0, 1])), float(p_values[0]))


def sign_flips(differences: Floats, confidence: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Estimate the means of many samples of differences with equal numbers of seeds, each as by `sign_flip`.

    Args:
        differences: shape [samples, seeds], finite, with at least one seed.
        confidence: in (0, 1).

    Returns:
        The estimates, shape [samples]; the intervals, shape [samples, 2]; and the p-values, shape [samples].

    Raises:
        ValueError: if the confidence is out of range.

    Example:
        >>> estimates, bounds, p_values = sign_flips(np.array([[1.0, 1, 1, 1, 1, 1], [1, -1, 1, -1, 1, -1]]))
        >>> estimates.tolist(), bounds.tolist(), p_values.tolist()
        ([1.0, 0.0], [[1.0, 1.0], [-1.0, 1.0]], [0.03125, 1.0])
    """
    check_confidence(confidence)
    sums, sizes = _blocks(differences)
    subsets = _subsets(sizes.size)
    means = _subset_means(subsets, sums, sizes)
    estimates = np.array([exact_mean(row) for row in differences.tolist()])
    beyond = np.count_nonzero(np.where(estimates > 0, means, -means) <= 0, axis=0)
    possible = np.minimum(1.0, 2 * np.arange(1, len(subsets) + 2) / (1 + len(subsets)))
    p_values = possible[beyond]
    if 2**sizes.size - 1 > len(subsets):
        for place in np.flatnonzero(beyond == 0):
            p_values[place] = min(p_values[place], 2 * _tail_bound(sums[place] * np.sign(estimates[place])))
    reach = int(np.searchsorted(possible, 1 - confidence, side="right"))
    if not reach:
        return estimates, np.tile([-math.inf, math.inf], (len(differences), 1)), p_values
    ends = [reach - 1, len(subsets) - reach]
    return estimates, np.partition(means, ends, axis=0)[ends].T, p_values


def _blocks(differences: Floats) -> tuple[Floats, Floats]:
    """Sum differences whose signs are flipped together, [samples, blocks], and count them, [blocks]."""
    seeds = differences.shape[1]
    if seeds <= _BLOCKS:
        return differences, np.ones(seeds)
    starts = np.linspace(0, seeds, _BLOCKS, endpoint=False).astype(np.int64)
    overflows = np.abs(differences).max() > np.finfo(np.float64).max / seeds
    scale = 0.5 ** seeds.bit_length() if overflows else 1.0  # of sums and counts alike
    sums, magnitudes = (np.add.reduceat(d * scale, starts, axis=1) for d in (differences, np.abs(differences)))
    sums[np.abs(sums) <= ROUNDING * magnitudes] = 0.0
    return sums, np.diff(starts, append=seeds) * scale


def _subset_means(subsets: Floats, sums: Floats, sizes: Floats) -> Floats:
    """Compute the mean of each subset of each sample, shape [subsets, samples]; 0 for a sum within rounding error."""
    with np.errstate(over="ignore", invalid="ignore"):
        totals, magnitudes = subsets @ sums.T, subsets @ np.abs(sums.T)
        totals[np.abs(totals) <= ROUNDING * magnitudes] = 0.0
    counts = (subsets @ sizes)[:, None]
    overflows = ~np.isfinite(magnitudes)
    if not overflows.any():
        return np.asarray(np.divide(totals, counts, out=totals))
    scale = 0.5 ** sizes.size.bit_length()
    return np.asarray(np.where(overflows, _subset_means(subsets, sums * scale, sizes) / scale, totals / counts))


def exact_mean(values: list[float]) -> float:
    """Compute the mean of one or more values from an exact sum, even beyond the range of floats.

    Example:
        >>> exact_mean([1e308, 1e308, 1.0, -1e308, -1e308])
        0.2
    """
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        scale = 0.5 ** len(values).bit_length()
        return math.fsum(value * scale for value in values) / len(values) / scale


def _tail_bound(differences: Floats) -> float:
    """Bound by Chernoff's inequality the probability that sign flips give a sum as great as the observed one."""
    d = differences[differences != 0]
    if not d.size:
        return 1.0
    magnitudes = np.log(np.abs(d))
    ends = math.log(_LEAST_TILT) - magnitudes.max(), math.log(_GREATEST_TILT) - magnitudes.min()
    tilts = np.arange(ends[0], ends[1] + math.log(_TILT_STEP), math.log(_TILT_STEP))
    with np.errstate(over="ignore"):
        exponents = -2 / math.log(2) * np.sign(d) * np.exp(tilts[:, None] + magnitudes)
    return min(1.0, float(np.exp2(np.logaddexp2(0.0, exponents).sum(axis=1).min() - d.size)))


@lru_cache(maxsize=1)
def _subsets(n: int) -> Floats:
    """Return non-empty subsets of n seeds, one for each row: all, or a random sample with n as the seed."""
    if 2**n - 1 <= _SUBSETS:
        return (np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)
    count = min(_SUBSETS, _NUMBERS // n)
    drawn = np.random.default_rng(n).integers(0, 2, size=(count, n), dtype=np.int8)
    drawn[~drawn.any(axis=1)] = 1  # practically never
    return drawn.astype(np.float64)
