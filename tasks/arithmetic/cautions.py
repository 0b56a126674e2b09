"""Warnings about cells of the arithmetic family, for users to read before training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tasks.arithmetic import SINGLE_MODULE
from tasks.arithmetic.cell import ArithmeticCell

_DRAWN = 2**24
"""The number of steps from one end of a uniform input's interval to the other, which isn't drawn itself."""


def zero_divisors(cells: Sequence[ArithmeticCell]) -> list[str]:
    """Warn about single-module cells whose uniform divisor can be exactly 0 in training rows.

    Args:
        cells: the cells to be trained.

    Returns:
        One text, with the largest share of trials that draw such a divisor; empty if no cell can draw one.
    """
    shares = [1 - math.exp(-cell.batch_size * cell.iterations / _DRAWN) for cell in cells if _divides_around_zero(cell)]
    if not shares:
        return []
    affected = "" if len(shares) == len(cells) else f" in {len(shares)} of {len(cells)} cells"
    return [
        f"The divisor can be exactly 0{affected}, in about one row of 17 million; a trial that draws such a row before "
        f"it is solved diverges. Up to {max(shares):.0%} of the trials draw one. To exclude 0, move an end of "
        "interpolation_range by 0.0001."
    ]


def _divides_around_zero(cell: ArithmeticCell) -> bool:
    is_by_one_input = cell.task == SINGLE_MODULE and cell.operation in ("div", "reciprocal")
    return is_by_one_input and cell.distribution is None and any(_has_zero(*ends) for ends in cell.interpolation_range)


def _has_zero(low: float, high: float) -> bool:
    """Return True if 0 can be drawn from uniform [low, high), with the rounding of `study.stream.stream`."""
    if not low <= 0 <= high:
        return False
    start, width = np.float32(low), np.float32(high) - np.float32(low)
    place = round(-low / (high - low) * _DRAWN)
    steps = np.arange(max(place - 2, 0), min(place + 3, _DRAWN), dtype=np.float32) * np.float32(1 / _DRAWN)
    return bool(np.any(start + width * steps == 0))
