"""What a person should know of cells of the arithmetic family before they are trained."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tasks.arithmetic import SINGLE_MODULE
from tasks.arithmetic.cell import ArithmeticCell

_DRAWN = 2**24
"""The numbers that a uniform input has between the ends of its interval."""


def zero_divisors(cells: Sequence[ArithmeticCell]) -> list[str]:
    """Say of cells that divide by an input of either sign how many of their trials meet a divisor of exactly 0.

    Args:
        cells: those that are to be trained.

    Returns:
        A sentence for the cells whose trials meet one most often; none where no cell's trials can.
    """
    shares = [1 - math.exp(-cell.batch_size * cell.iterations / _DRAWN) for cell in cells if _divides_around_zero(cell)]
    if not shares:
        return []
    some = "" if len(shares) == len(cells) else f" in {len(shares)} of {len(cells)} cells"
    return [
        f"Numbers of both signs are divisors{some}: one row in about 17 million has a divisor of exactly 0 and no "
        f"quotient, and a trial that meets it before it is solved diverges. Up to {max(shares):.0%} of the trials meet "
        "one. With an end of interpolation_range moved by 0.0001, no such number is drawn."
    ]


def _divides_around_zero(cell: ArithmeticCell) -> bool:
    is_by_one_input = cell.task == SINGLE_MODULE and cell.operation in ("div", "reciprocal")
    return is_by_one_input and cell.distribution is None and any(_has_zero(*one) for one in cell.interpolation_range)


def _has_zero(low: float, high: float) -> bool:
    """Return whether 0 is among the numbers that are drawn between two ends, as `study.stream.stream` computes them."""
    if not low < 0 < high:
        return False
    start, width = np.float32(low), np.float32(high) - np.float32(low)
    place = round(-low / (high - low) * _DRAWN)
    steps = np.arange(place - 2, place + 3, dtype=np.float32) * np.float32(1 / _DRAWN)
    return bool(np.any(start + width * steps == 0))
