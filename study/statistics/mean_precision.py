"""Means to a desired precision: seeds are added in batches until Student's interval is narrow enough.

The sequential rule of Chow & Robbins, Annals of Mathematical Statistics 36 (1965) 457-462, with Student's quantile in
place of the normal one, and a first look at which the variance is sufficiently known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, Values, check_confidence, finite
from study.statistics.fixed_width import looks

FIRST_LOOK = 40
"""The least number of seeds at the first look. With 20, the coverage is 82% instead of 90% for the mean of two values,
one of them in 10% of trials, and 87% instead of 92% for log-normal values (σ = 1)."""


@dataclass(frozen=True)
class MeanPrecision:
    """Sequential sampling of a mean until it is known precisely enough.

    Looks are at the first multiple of `batch` from `FIRST_LOOK` on, after every `batch` further seeds, and at `most`.
    Sampling ends if t s/√n <= half_width, with the standard deviation s of the n values and Student's quantile t, or if
    n = `most`. While all values are equal, sampling continues.

    Args:
        half_width: the desired precision, > 0, in the unit of the values.
        batch: the number of seeds between looks, >= 1.
        most: the greatest number of seeds, >= batch.
        confidence: in (0, 1).

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> sampling = MeanPrecision(half_width=0.5, batch=20, most=400)
        >>> sampling.looks[:3], sampling.is_narrow([0.0, 1.0] * 20), sampling.is_narrow([0.0, 9.0] * 20)
        ((40, 60, 80), True, False)
        >>> sampling.interval([0.0, 1.0] * 20)
        (0.0, 1.0)
    """

    half_width: float
    batch: int
    most: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.half_width < math.inf:
            raise ValueError(f"0 < half_width must hold, and it must be finite, but got {self.half_width}")
        if not 1 <= self.batch <= self.most:
            raise ValueError(f"1 <= batch <= most must hold, but got {self.batch} and {self.most}")
        check_confidence(self.confidence)

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of seeds at the looks."""
        return tuple(n for n in looks(self.batch, self.most) if n >= FIRST_LOOK or n == self.most)

    def is_narrow(self, values: Values) -> bool:
        """Return True if the half-width of Student's interval is at most `half_width`; False if there is no interval.

        Raises:
            ValueError: if a value is NaN or infinite.
        """
        reach = self._reach(values)
        return reach is not None and reach <= self.half_width

    def interval(self, values: Values) -> Interval | None:
        """Bound the mean at the end: by the greater of `half_width` and Student's t s/√n to either side.

        Returns:
            None for fewer than two values, and for equal ones.

        Raises:
            ValueError: if a value is NaN or infinite.
        """
        reach = self._reach(values)
        if reach is None:
            return None
        middle, reach = float(np.mean(values)), max(reach, self.half_width)
        return (middle - reach, middle + reach)

    def expected(self, values: Values) -> int:
        """Estimate the number of seeds at the end from the values so far; `most` for fewer than two, or equal ones.

        Raises:
            ValueError: if a value is NaN or infinite.
        """
        deviation = _deviation(finite(values))
        if deviation is None:
            return self.most
        needed = (special.ndtri((1 + self.confidence) / 2) * deviation / self.half_width) ** 2
        return next((n for n in self.looks if n >= needed), self.most)

    def _reach(self, values: Values) -> float | None:
        """Return the half-width of Student's interval, t s/√n; None for fewer than two values, or equal ones."""
        x = finite(values)
        deviation = _deviation(x)
        if deviation is None:
            return None
        quantile = special.stdtrit(x.size - 1, (1 + self.confidence) / 2)
        return float(quantile * deviation / math.sqrt(x.size))


def _deviation(x: Floats) -> float | None:
    """Return the standard deviation; None for fewer than two values, or equal ones."""
    return float(np.std(x, ddof=1)) if x.size > 1 and np.ptp(x) > 0 else None
