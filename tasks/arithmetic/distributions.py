"""Distributions of inputs on a range: pure functions of uniform numbers in [0, 1).

    halves    the first half of a row's numbers from the first interval, the others from the second
    normal    a normal distribution, truncated to the range
    benford   integers with a fixed number of digits: the first by Benford's law, log10(1 + 1/d), the others uniform

Without a distribution, each number is uniform on the range, or on either of two intervals with probability 1/2;
`study.stream.stream` draws these.

Source: Mistry, Farrahi & Hare, "Learning Division with Neural Arithmetic Logic Modules", 2021.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.arithmetic.threshold import Range

DISTRIBUTIONS = ("halves", "normal", "benford")
"""The distributions of inputs, besides uniform ones."""

Numbers = npt.NDArray[np.float32]


class Source(NamedTuple):
    """The range and distribution of inputs.

    Args:
        range: one interval, or two of equal width, for uniform; two of equal width for ``halves``; one for ``normal``;
            for ``benford`` one that holds all integers with the same number of digits, such as 10 to 99.
        distribution: one of `DISTRIBUTIONS`; None for uniform.
        mean: mean of a normal distribution before truncation; None for others.
        deviation: its standard deviation, > 0; None for others.
    """

    range: Range
    distribution: str | None = None
    mean: float | None = None
    deviation: float | None = None


def uniform_mean(range_: Range) -> float:
    """Return the mean of numbers uniform on one interval, or on two of equal width.

    Example:
        >>> uniform_mean(((1.0, 2.0),)), uniform_mean(((-2.0, -1.0), (1.0, 2.0)))
        (1.5, 0.0)
    """
    ends = [end for interval in range_ for end in interval]
    return sum(ends) / len(ends)


def distribute(source: Source, uniform: Numbers) -> Numbers:
    """Transform uniform numbers to a distribution.

    Args:
        source: a source with a distribution.
        uniform: on [0, 1), float32 [..., features, rows].

    Returns:
        Float32 of the same shape, within the range up to rounding to float32; each number depends only on its own
        uniform number and, for ``halves``, its feature.

    Raises:
        ValueError: as `check_source` raises.

    Example:
        >>> uniform = np.array([[0.0, 0.5, 0.999], [0.0, 0.5, 0.999]], np.float32)
        >>> distribute(Source(((-2.0, -1.0), (1.0, 2.0)), "halves"), uniform).round(2).tolist()
        [[-2.0, -1.5, -1.0], [1.0, 1.5, 2.0]]
        >>> distribute(Source(((10.0, 99.0),), "benford"), uniform[:1]).tolist()
        [[10.0, 31.0, 99.0]]
        >>> print(distribute(Source(((-4.0, 6.0),), "normal", mean=1.0, deviation=1.0), uniform[:1]).round(1))
        [[-4.   1.   4.1]]
    """
    check_source(source)
    if source.distribution == "halves":
        return _halves(uniform, source.range)
    if source.distribution == "benford":
        return _benford(uniform, source.range)
    return _normal(uniform, source.range, float(source.mean or 0.0), float(source.deviation or 0.0))


def check_source(source: Source) -> None:
    """Check that a distribution is possible on its range; the widths of two intervals aren't compared.

    Raises:
        ValueError: if the distribution is unknown or None, the range has the wrong number of intervals or isn't one of
            ``benford``, or a normal distribution lacks its mean or a deviation > 0.
    """
    range_, name, mean, deviation = source
    if name not in DISTRIBUTIONS:
        raise ValueError(f"distribution must be one of {', '.join(DISTRIBUTIONS)}, but got {name!r}")
    intervals = 2 if name == "halves" else 1
    if len(range_) != intervals:
        words = "two intervals" if intervals == 2 else "one interval"
        raise ValueError(f"distribution {name!r} needs ranges of {words}, but got {_format_range(range_)}")
    if name == "benford" and range_[0] != _digits_range(range_[0][0]):
        raise ValueError(
            "distribution 'benford' needs all numbers of a fixed digit count, such as [10, 99] or [100, 999], but got "
            f"[{range_[0][0]:g}, {range_[0][1]:g}]"
        )
    if name == "normal" and (mean is None or deviation is None or deviation <= 0):
        raise ValueError(
            "distribution 'normal' needs interpolation_mean, extrapolation_mean and a deviation > 0, but got "
            f"mean {mean} and deviation {deviation}"
        )


def _format_range(range_: Range) -> str:
    intervals = ", ".join(f"[{low:g}, {high:g}]" for low, high in range_)
    return intervals if len(range_) == 1 else f"[{intervals}]"


def _digits_range(low: float) -> tuple[float, float]:
    """Return the range of the integers with as many digits as a number >= 1."""
    power = 10.0 ** math.floor(math.log10(max(low, 1.0)) + 1e-12)
    return power, 10 * power - 1


def _halves(uniform: Numbers, range_: Range) -> Numbers:
    (low, high), (other, _) = range_
    features = uniform.shape[-2]
    is_first = np.arange(features)[:, None] < (features + 1) // 2
    start = np.where(is_first, np.float32(low), np.float32(other))
    numbers: Numbers = start + np.float32(high - low) * uniform
    return numbers


def _normal(uniform: Numbers, range_: Range, mean: float, deviation: float) -> Numbers:
    from scipy import special  # imported late: reading a study file doesn't need it

    ((low, high),) = range_
    at_low, at_high = (special.ndtr((end - mean) / deviation) for end in (low, high))
    share = at_low + (at_high - at_low) * uniform.astype(np.float64)
    numbers: Numbers = (mean + deviation * special.ndtri(share)).clip(low, high).astype(np.float32)
    return numbers


def _benford(uniform: Numbers, range_: Range) -> Numbers:
    power = range_[0][0]
    edges = np.log10(np.arange(1, 11))  # the probabilities of a first digit below 1, 2, ..., 10
    share = uniform.astype(np.float64)
    digit = np.searchsorted(edges[1:-1], share, side="right") + 1
    others = np.floor((share - edges[digit - 1]) / (edges[digit] - edges[digit - 1]) * power)
    numbers: Numbers = (digit * power + others.clip(0, power - 1)).astype(np.float32)
    return numbers
