"""Performance profiles: the share of a method's trials that are better than a threshold, with a simultaneous band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from study.statistics.bootstrap import LEAST, resamples
from study.statistics.checks import Floats, Values, check_confidence
from study.statistics.seed_values import Block, SeedValues, blocks

_AT_ONCE = 2**16
"""The number of steps in memory at once, so that they fit into a core's cache."""

_MOST_VALUES = 2**16
"""The greatest number of values with a resampled band; with more, the band is that of a single cell."""


@dataclass(frozen=True)
class PerformanceProfile:
    """A performance profile: a step function of the threshold.

    Args:
        thresholds: the distinct finite values, ascending, shape [m].
        shares: the mean over cells of the share of seeds with a better value, for each stretch of thresholds from below
            the first to above the last, shape [m + 1].
        reach: the half-width of the band.
        higher_is_better: whether a higher value is better.
    """

    thresholds: Floats
    shares: Floats
    reach: float
    higher_is_better: bool

    @property
    def low(self) -> Floats:
        """The lower edge of the band, within [0, 1]."""
        return np.maximum(self.shares - self.reach, 0)

    @property
    def high(self) -> Floats:
        """The upper edge of the band, within [0, 1]."""
        return np.minimum(self.shares + self.reach, 1)

    def at(self, thresholds: Values) -> Floats:
        """Return the share of values that are better than each finite threshold; equal ones aren't.

        The share is the mean over cells. The method's infinite values count as better, or worse, than any threshold.
        """
        side: Literal["left", "right"] = "right" if self.higher_is_better else "left"
        return np.asarray(self.shares[np.searchsorted(self.thresholds, np.asarray(thresholds), side=side)])


def performance_profile(values: SeedValues, *, higher_is_better: bool, confidence: float = 0.95) -> PerformanceProfile:
    """Compute a performance profile with a band that covers the true profile at all thresholds simultaneously.

    The profile is the mean over cells of the share of seeds whose value is better than the threshold. For one cell, the
    half-width of the band is d, the quantile of Kolmogorov's statistic for n seeds. It is exact for continuous
    distributions and conservative for others, for any n. For several cells, D is the greatest distance at any threshold
    between a resample's profile and the sample's. Seeds are resampled as for the interquartile mean, and equal values
    are ordered by their seeds, so that ties don't make the band narrow. The half-width is min(d, d q/q₁), where q is
    the quantile of D, and q₁ that of D for a single cell. n is the number of seeds of the smallest cell. With n
    below five or more than 65,536 values, the half-width is d.

    Source: profiles: Dolan & Moré, Mathematical Programming 91 (2002) 201-213; of seeds: Agarwal et al., NeurIPS 2021;
    d: Massey, JASA 46 (1951) 68-78; bootstrap of D: Bickel & Freedman, Annals of Statistics 9 (1981) 1196-1217.

    Args:
        values: the values of the method; an infinite one is better, or worse, than any threshold.
        higher_is_better: whether a higher value is better.
        confidence: in (0, 1).

    Raises:
        ValueError: if the confidence is out of range.

    Example:
        >>> values = SeedValues({"a": {0: 1.0, 1: 3.0, 2: 3.0}, "b": {0: 2.0, 1: 4.0}})
        >>> profile = performance_profile(values, higher_is_better=True)
        >>> profile.at([0, 2, 3]).round(3).tolist(), round(profile.reach, 3)
        ([1.0, 0.583, 0.25], 0.842)
    """
    check_confidence(confidence)
    samples = [np.sort(list(sample.values())) for sample in values.samples]
    thresholds = np.unique(np.concatenate(samples))
    thresholds = thresholds[np.isfinite(thresholds)]
    edges = np.append(-np.inf, thresholds)
    up_to = np.mean([np.searchsorted(sample, edges, side="right") / sample.size for sample in samples], axis=0)
    shares = 1 - up_to if higher_is_better else up_to
    return PerformanceProfile(thresholds, shares, _reach(values, confidence), higher_is_better)


def _reach(values: SeedValues, confidence: float) -> float:
    """Return the half-width of the band of `performance_profile`."""
    samples = values.samples
    n, total = min(map(len, samples)), sum(map(len, samples))
    exact = _kolmogorov(n, confidence)
    if len(samples) == 1 or n < LEAST or total > _MOST_VALUES:
        return exact
    parts = blocks(samples)
    distances = distances_of(parts, n, len(samples))
    return min(exact, exact * float(np.quantile(distances, confidence)) / _of_one_cell(n, confidence))


@lru_cache(maxsize=256)
def _kolmogorov(n: int, confidence: float) -> float:
    """Return the quantile of the greatest distance between an empirical distribution of n values and the true one."""
    from scipy import stats  # imported here: it takes longer than all else that printing a table imports

    return float(stats.kstwo.ppf(confidence, n))


@lru_cache(maxsize=256)
def _of_one_cell(n: int, confidence: float) -> float:
    """Return the quantile of D for n distinct values of one cell."""
    return float(np.quantile(distances_of([Block((0,), np.arange(n, dtype=np.float64)[None])], n, 1), confidence))


def distances_of(parts: Sequence[Block], n: int, cells: int) -> Floats:
    """Return the greatest distance D of each resample's profile from the sample's (`performance_profile`).

    Each distance is lowered by a part of the step between possible distances, for smooth quantiles. Resamples in which
    a cell has no seed are left out.

    Args:
        parts: the cells, in blocks that share seeds.
        n: the number of seeds of the smallest cell.
        cells: the number of cells.
    """
    rows = [(part, row) for part, block in enumerate(parts) for row in block.values]
    seeds = [np.flatnonzero(~np.isnan(row)) for _, row in rows]
    first_of = np.cumsum([0, *(block.values.shape[1] for block in parts)])
    drawn = np.concatenate([first_of[part] + index for (part, _), index in zip(rows, seeds, strict=True)])
    order = np.lexsort(
        (np.concatenate(seeds), np.concatenate([row[index] for (_, row), index in zip(rows, seeds, strict=True)]))
    )
    cell_of = np.repeat(np.arange(len(rows)), [index.size for index in seeds])
    own = np.array([1 / index.size / cells for index in seeds], np.float32)[cell_of[order], None]
    at_once = max(1, _AT_ONCE // order.size)
    streams = [resamples(block.values.shape[1], stream, at_once) for stream, block in enumerate(parts)]
    distances: list[npt.NDArray[np.float32]] = []
    for of_parts in zip(*streams, strict=True):
        counts = np.concatenate(of_parts).astype(np.float32)
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = 1 / cells / np.add.reduceat(counts[drawn], np.cumsum([0, *(index.size for index in seeds[:-1])]))
            steps = counts[drawn[order]]
            steps *= weights[cell_of[order]]
        steps -= own
        np.cumsum(steps, axis=0, out=steps)
        distances.append(np.abs(steps, out=steps).max(axis=0))
    greatest = np.concatenate(distances).astype(np.float64)
    spread = (np.arange(greatest.size) * (math.sqrt(5) - 1) / 2) % 1  # multiples of the golden ratio fill [0, 1) evenly
    return np.asarray((greatest - spread / (n * cells))[np.isfinite(greatest)])
