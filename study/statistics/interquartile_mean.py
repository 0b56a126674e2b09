"""The interquartile mean of a method over several cells, by a bootstrap with the seed as the resampling unit."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from study.statistics.bootstrap import LEAST, RESAMPLES, interquartile_mean_intervals, interquartile_means, resamples
from study.statistics.checks import Floats, check_confidence
from study.statistics.seed_values import Block, MeanOverCells, SeedValues, blocks, student

_AT_ONCE = 2**15
"""The number of counts in memory at once, so that they fit into a core's cache."""

_BIAS = 2.0
"""The multiple of the bootstrap's bias by which the interval is extended. A mean over many cells has the bias of a
single cell but a smaller error, and with few seeds the bootstrap estimates about half of the bias."""


def interquartile_mean_over_cells(values: SeedValues, confidence: float = 0.95) -> MeanOverCells:
    """Estimate the mean over cells of a method's interquartile means.

    Seeds are resampled: a seed that is in several cells appears equally often in all of them. Cells without a seed in
    common are resampled independently. Let x̄ be the estimate, b the bias of the resamples, and s their standard error,
    with s² multiplied by n/(n - 1) for few seeds, n of the smallest of the cells that share seeds. t is the quantile of
    `student`. The interval is the smallest one that contains x̄ ± t s, x̄ - 2b ± t s, and that of the expanded
    percentile bootstrap (Hesterberg, The American Statistician 69 (2015) 371-386, 4.4). For a single cell it is that of
    `interquartile_mean_intervals`.

    Args:
        values: the values of the method, finite, on one scale in all cells.
        confidence: in (0, 1).

    Returns:
        The mean of the cells' interquartile means. Its interval is None if a cell has fewer than five seeds, or each
        cell's values are equal (of a single cell, to about 14 digits).

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
    by_block = by_block[:, np.isfinite(by_block).all(axis=0)]  # without resamples in which a cell has no seed
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
    """Return the sum of the cells' interquartile means in each resample; NaN where a cell has no seed.

    Of a resample of n values, u_i is the number of those up to the i-th sorted value x_i of the cell, clipped to
    [n/4, 3n/4], with u_0 = n/4. The interquartile mean is 2/n Σ x_i (u_i - u_{i-1}), which is summed by parts.

    Args:
        block: the cells, with their shared seeds.
        stream: blocks with different streams are resampled independently.
    """
    total, end = np.zeros(RESAMPLES), 0
    orders = [np.argsort(row, kind="stable")[: np.sum(~np.isnan(row))] for row in block.values]
    seeds = block.values.shape[1]
    for chunk in resamples(seeds, stream, max(1, _AT_ONCE // seeds)):
        counts = chunk.astype(np.float64)
        begin, end = end, end + counts.shape[1]
        for row, order in zip(block.values, orders, strict=True):
            x, until = row[order], counts[order]
            np.cumsum(until, axis=0, out=until)
            n = until[-1].copy()
            np.minimum(np.maximum(until, n / 4, out=until), 3 * n / 4, out=until)
            with np.errstate(invalid="ignore"):
                total[begin:end] += (3 * x[-1] - x[0]) / 2 - 2 * (np.diff(x) @ until[:-1]) / n
    return total
