"""Many samples at once: their values, one sample after another, and the number of values of each sample.

A table of ten thousand groups would take seconds with a call for each group. The result of a sample is bitwise
independent of the other samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from study.records import Interval
from study.statistics.checks import Floats

Sizes = Sequence[int] | npt.NDArray[np.integer]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]


def checked_sizes(values: npt.NDArray[np.generic], sizes: Sizes | None) -> Ints:
    """Return sizes as an array; None stands for a single sample.

    Raises:
        ValueError: if a size is negative, sizes don't add up to the number of values, or values or sizes have several
            axes.
    """
    n = np.asarray([values.size] if sizes is None else sizes, dtype=np.int64)
    if values.ndim != 1 or n.ndim != 1:
        raise ValueError(f"values and sizes must have one axis, but have the shapes {values.shape} and {n.shape}")
    if n.size and n.min() < 0:
        raise ValueError(f"sizes must be >= 0, but the smallest is {n.min()}")
    if n.sum() != values.size:
        raise ValueError(f"sizes must add up to the number of values, {values.size}, but add up to {n.sum()}")
    return n


def sums(values: Floats, sizes: Ints) -> Floats:
    """Return the sum of each sample; zero for a sample without values.

    Example:
        >>> sums(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1])).tolist()
        [3.0, 0.0, 3.0]
    """
    return _reduced(np.add, values, sizes, 0.0)


def means(values: Floats, sizes: Ints) -> Floats:
    """Return the mean of each sample; NaN for a sample without values.

    Example:
        >>> means(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1])).tolist()
        [1.5, nan, 3.0]
    """
    total = sums(values, sizes)
    return np.asarray(np.divide(total, sizes, out=np.full(sizes.size, np.nan), where=sizes > 0))


def least(values: Floats, sizes: Ints) -> Floats:
    """Return the least value of each sample; infinity for a sample without values."""
    return _reduced(np.minimum, values, sizes, np.inf)


def greatest(values: Floats, sizes: Ints) -> Floats:
    """Return the greatest value of each sample; minus infinity for a sample without values."""
    return _reduced(np.maximum, values, sizes, -np.inf)


def _reduced(reduce: np.ufunc, values: Floats, sizes: Ints, default: float) -> Floats:
    """Reduce each sample by a ufunc; `default` for a sample without values."""
    reduced = np.full(sizes.size, default)
    is_filled = sizes > 0
    if is_filled.any():
        reduced[is_filled] = reduce.reduceat(values, (np.cumsum(sizes) - sizes)[is_filled])
    return reduced


def padded(values: Numbers, sizes: Ints, fill: float) -> Iterator[tuple[Ints, Numbers]]:
    """Arrange samples as rows of matrices, samples of similar sizes together.

    Args:
        values: the values of all samples, one sample after another.
        sizes: the number of values of each sample.
        fill: the padding value.

    Yields:
        The ascending indices of samples, and a matrix with a row for each, at most half of it padding. Samples without
        values are left out.

    Example:
        >>> [(places.tolist(), rows.tolist()) for places, rows in padded(np.arange(6.0), np.array([3, 0, 1, 2]), 9.0)]
        [([2], [[3.0]]), ([0, 3], [[0.0, 1.0, 2.0], [4.0, 5.0, 9.0]])]
    """
    starts = np.cumsum(sizes) - sizes
    magnitudes = np.frexp(sizes)[1]  # one magnitude for the sizes 1; 2, 3; 4 ... 7; ...
    for magnitude in np.unique(magnitudes[sizes > 0]):
        places = np.flatnonzero(magnitudes == magnitude)
        column = np.arange(sizes[places].max())
        inside = column < sizes[places, None]
        rows = np.full(inside.shape, fill, values.dtype)
        rows[inside] = values[(starts[places, None] + column)[inside]]
        yield places, rows


def log_gaps(values: Floats, sizes: Ints, centres: Floats, floors: Floats | None = None) -> Floats:
    """Return the logarithm of each sample's mean minus the mean of its logarithms.

    Args:
        values: the values of all samples: positive, or >= 0 with floors.
        sizes: the number of values of each sample, > 0.
        centres: the means of the samples.
        floors: for each sample, a positive number up to half its mean, which replaces lesser values in the logarithm.

    Example:
        >>> log_gaps(np.array([1.0, 4.0]), np.array([2]), np.array([2.5])).round(6).tolist()
        [0.223144]
    """
    centre = np.repeat(centres, sizes)
    deviation = (values - centre) / centre
    inside = values if floors is None else np.maximum(values, np.repeat(floors, sizes))
    # log1p is precise for values near the mean, log for values far below it
    logs = np.where(deviation > -0.5, np.log1p(np.maximum(deviation, -0.5)), np.log(inside) - np.log(centre))
    return means(deviation - logs, sizes)


def numbers(estimates: Floats) -> list[float | None]:
    """Return numbers as a list, with None in place of NaN."""
    return [None if number != number else number for number in estimates.tolist()]


def intervals(bounds: Floats) -> list[Interval | None]:
    """Return intervals, shape [samples, 2], as a list, with None in place of NaN.

    Example:
        >>> intervals(np.array([[0.5, 1.0], [np.nan, np.nan]]))
        [(0.5, 1.0), None]
    """
    return [None if low != low else (low, high) for low, high in bounds.tolist()]
