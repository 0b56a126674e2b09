"""The interquartile mean of a method over several cells, with an interval that resamples seeds."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from study.statistics.bootstrap import LEAST, RESAMPLES, interquartile_mean_intervals, interquartile_means, resamples
from study.statistics.checks import Floats, check_confidence
from study.statistics.seed_values import Block, MeanOverCells, SeedValues, blocks, student

_AT_ONCE = 2**15
"""How many counts are in memory at once, so that they fit into a core's cache."""

_BIAS = 2.0
"""How many of the bootstrap's biases the interval is extended by. The bias of a mean over many cells is that of one,
while its error is smaller; of few seeds the bootstrap sees about half of it."""


def interquartile_mean_over_cells(values: SeedValues, confidence: float = 0.95) -> MeanOverCells:
    """MeanOverCells the mean over cells of a method's interquartile means.

    Resamples are of seeds: a seed that is in several cells is in all of them as often, or in none, since it is the seed
    that was drawn; cells without a seed in common are resampled independently. With the estimate x̄, the bias b and the
    standard error s of the resamples, s by n/(n - 1) for few seeds, the interval is the smallest that holds that of the
    expanded percentile bootstrap (Hesterberg, The American Statistician 69 (2015) 371-386, 4.4) and x̄ ± t s, the latter
    also if moved by -2b, t the quantile of Student's distribution with the degrees of freedom of `student`. Of a single
    cell it is that of `interquartile_mean_intervals`.

    Args:
        values: of the method, finite, on one scale in all cells.
        confidence: in (0, 1).

    Returns:
        The mean of the cells' interquartile means. No interval if a cell has fewer than five seeds, or nothing varies.

    Raises:
        ValueError: if a value is infinite, or the confidence is out of range.

    Example:
        >>> values = SeedValues({task: {seed: seed**2 + task for seed in range(8)} for task in (0, 10)})
        >>> both = interquartile_mean_over_cells(values)
        >>> both.value, [round(end, 1) for end in both.interval]
        (18.5, [-4.3, 42.5])
    """
    check_confidence(confidence)
    samples = [list(sample.values()) for sample in values.samples]
    sizes = [len(sample) for sample in samples]
    centre = float(np.mean(interquartile_means(np.concatenate(samples), sizes)))
    if min(sizes) < LEAST or not any(max(sample) > min(sample) for sample in samples):
        return MeanOverCells(centre, None)
    if len(samples) == 1:
        low, high = interquartile_mean_intervals(np.sort(samples[0]), confidence=confidence)[0]
        return MeanOverCells(centre, None if math.isnan(low) else (float(low), float(high)))
    parts = blocks(values.samples)
    by_block = np.array([replicates_of(block, stream) for stream, block in enumerate(parts)]) / len(samples)
    by_block = by_block[:, np.isfinite(by_block).all(axis=0)]  # resamples that left a cell without a seed
    n = np.array([block.least for block in parts])
    variances = by_block.var(axis=1) * n / (n - 1)
    t = student(variances, n, confidence)
    tail = special.ndtr(-math.sqrt(n.min() / (n.min() - 1)) * t)
    replicates = by_block.sum(axis=0)
    low, high = np.quantile(replicates, [tail, 1 - tail])
    reach, moved = t * math.sqrt(variances.sum()), -_BIAS * (replicates.mean() - centre)
    low = min(low, centre - reach + min(moved, 0.0))
    high = max(high, centre + reach + max(moved, 0.0))
    return MeanOverCells(centre, (float(low), float(high)))


def replicates_of(block: Block, stream: int) -> Floats:
    """Return the sum of the cells' interquartile means in each resample; NaN where one has no seed.

    With the sorted values x and u_i, how many of a resample's values up to x_i are in its middle half or below, that is
    Σ x_i (u_i - u_{i-1}), summed by parts.
    """
    total, end = np.zeros(RESAMPLES), 0
    orders = [np.argsort(row, kind="stable")[: np.sum(~np.isnan(row))] for row in block.values]
    seeds = block.values.shape[1]
    for some in resamples(seeds, stream, max(1, _AT_ONCE // seeds)):
        counts = some.astype(np.float64)
        begin, end = end, end + counts.shape[1]
        for row, order in zip(block.values, orders, strict=True):
            x, until = row[order], counts[order]
            np.cumsum(until, axis=0, out=until)
            n = until[-1].copy()
            np.minimum(np.maximum(until, n / 4, out=until), 3 * n / 4, out=until)
            with np.errstate(invalid="ignore"):
                total[begin:end] += (3 * x[-1] - x[0]) / 2 - 2 * (np.diff(x) @ until[:-1]) / n
    return total
