"""How inputs are distributed on a range: pure functions of numbers that are uniform on [0, 1).

    halves    the first half of a row's numbers from the first interval, the others from the second
    normal    a normal distribution, cut to the range
    benford   whole numbers of as many digits: the first by Benford's law, log10(1 + 1/d), the others uniform

Where none of them is asked for, each number is uniform on the range, and of two intervals takes either with
probability 1/2: that is part of `study.stream.stream`.

Source: Mistry, Farrahi & Hare, "Learning Division with Neural Arithmetic Logic Modules", 2021.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tasks.arithmetic.threshold import Range

DISTRIBUTIONS = ("halves", "normal", "benford")
"""What inputs can be drawn from, besides a range itself."""

Numbers = npt.NDArray[np.float32]


class Source(NamedTuple):
    """Where inputs come from.

    Args:
        range: two intervals for ``halves``; one for ``normal``; for ``benford`` one of all numbers of as many digits.
        distribution: one of `DISTRIBUTIONS`; None for a uniform one.
        mean: of a normal distribution before it is cut; None for others.
        deviation: its standard deviation, > 0; None for others.
    """

    range: Range
    distribution: str | None = None
    mean: float | None = None
    deviation: float | None = None


def uniform_mean(range_: Range) -> float:
    """Return the mean of numbers that are uniform on one interval, or on two of equal width.

    Example:
        >>> uniform_mean(((1.0, 2.0),)), uniform_mean(((-2.0, -1.0), (1.0, 2.0)))
        (1.5, 0.0)
    """
    ends = [end for interval in range_ for end in interval]
    return sum(ends) / len(ends)


def distribute(source: Source, uniform: Numbers) -> Numbers:
    """Make numbers of a distribution from uniform ones.

    Args:
        source: with a distribution.
        uniform: on [0, 1), float32 [..., features, rows].

    Returns:
        Float32 of the same shape, within the range; each number depends on nothing but its own uniform one.

    Raises:
        ValueError: if the range doesn't suit, or a number that the distribution needs isn't given.

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
    """Check that a distribution exists on its range.

    Raises:
        ValueError: if it doesn't.
    """
    range_, name, mean, deviation = source
    if name not in DISTRIBUTIONS:
        raise ValueError(f"distribution must be one of {', '.join(DISTRIBUTIONS)}, but got {name!r}")
    intervals = 2 if name == "halves" else 1
    if len(range_) != intervals:
        words = "two intervals" if intervals == 2 else "one interval"
        raise ValueError(f"distribution {name!r} needs ranges of {words}, but got {_shown(range_)}")
    if name == "benford" and range_[0] != _all_of(range_[0][0]):
        raise ValueError(
            "distribution 'benford' needs all numbers of as many digits, such as [10, 99] or [100, 999], but got "
            f"[{range_[0][0]:g}, {range_[0][1]:g}]"
        )
    if name == "normal" and (mean is None or deviation is None or deviation <= 0):
        raise ValueError(
            "distribution 'normal' needs interpolation_mean, extrapolation_mean and a deviation > 0, but got "
            f"mean {mean} and deviation {deviation}"
        )


def _shown(range_: Range) -> str:
    intervals = ", ".join(f"[{low:g}, {high:g}]" for low, high in range_)
    return intervals if len(range_) == 1 else f"[{intervals}]"


def _all_of(low: float) -> tuple[float, float]:
    """Return the range of all whole numbers that have as many digits as one of at least 1."""
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
    from scipy import special  # only here: a study file is read without it

    ((low, high),) = range_
    at_low, at_high = (special.ndtr((end - mean) / deviation) for end in (low, high))
    share = at_low + (at_high - at_low) * uniform.astype(np.float64)
    numbers: Numbers = (mean + deviation * special.ndtri(share)).clip(low, high).astype(np.float32)
    return numbers


def _benford(uniform: Numbers, range_: Range) -> Numbers:
    power = range_[0][0]
    edges = np.log10(np.arange(1, 11))  # the probability that the first digit is below 1, 2, ..., 10
    share = uniform.astype(np.float64)
    digit = np.searchsorted(edges[1:-1], share, side="right") + 1
    others = np.floor((share - edges[digit - 1]) / (edges[digit] - edges[digit - 1]) * power)
    numbers: Numbers = (digit * power + others.clip(0, power - 1)).astype(np.float32)
    return numbers
