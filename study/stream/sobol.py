"""Sobol points: they fill a cube more evenly than random ones, and each is computed from its number alone."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from study.stream.device import use_device

BITS = 24
"""Bits of a coordinate, as of a float32 in [0, 1)."""

MOST_POINTS = 2**30
"""Length of the sequence."""

# Points that are cached; all others are shifts of these.
_BLOCK = 2**12


def sobol_points(start: int, points: int, dimensions: int) -> Tensor:
    """Compute points of the Sobol sequence as integers: x_n is the xor of x_(2^bit) over the bits of n that are 1.

    The sequence is that of `torch.quasirandom.SobolEngine`: it starts at 0 and follows the Gray code. If `start` is a
    multiple of 2^k, k <= 24, the next 2^k points have, in each coordinate, one point in each of 2^k equal intervals.

    Source: Sobol, "On the distribution of points in a cube and the approximate evaluation of integrals", 1967;
    Antonov & Saleev, "An economic method of computing LPτ-sequences", 1979, for the order; Joe & Kuo, "Constructing
    Sobol sequences with better two-dimensional projections", 2008, for the directions.

    Args:
        start: number of the first point, >= 0.
        points: number of points, >= 0.
        dimensions: coordinates of a point, 1 ... 21,201.

    Returns:
        int32 [points, dimensions] on the CPU, each 0 <= x < 2^24.

    Raises:
        ValueError: if `start` or `points` is negative, the sequence ends earlier, or there are points and `dimensions`
            is out of range.
        RuntimeError: if `dimensions` is negative.

    Example:
        >>> (sobol_points(0, 4, 2) / 2**24).tolist()
        [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """
    if not (start >= 0 and points >= 0 and start + points <= MOST_POINTS):
        raise ValueError(
            f"0 <= start, 0 <= points and start + points <= 2**30 must hold, but got start {start:,} and {points:,} "
            "points: the sequence has no more"
        )
    end = start + points
    with use_device("cpu"):
        parts = [torch.empty(0, dimensions, dtype=torch.int32)]
        while start < end:
            block, place = divmod(start, _BLOCK)
            stop = min(_BLOCK, place + end - start)
            parts.append(_first_points(dimensions)[place:stop] ^ _first_of_block(block, dimensions))
            start += stop - place
        return torch.cat(parts)


@lru_cache(maxsize=4)
def _first_points(dimensions: int) -> Tensor:
    return _drawn(dimensions, 0, _BLOCK)


@lru_cache(maxsize=16)
def _first_of_block(block: int, dimensions: int) -> Tensor:
    point = torch.zeros(dimensions, dtype=torch.int32)
    for bit in range(block.bit_length()):
        if block >> bit & 1:
            point ^= _point(_BLOCK * 2**bit, dimensions)
    return point


@lru_cache(maxsize=128)
def _point(number: int, dimensions: int) -> Tensor:
    """Compute one point by stepping through the sequence; the 2^24th with 100 coordinates takes about a second."""
    return _drawn(dimensions, number, 1)[0]


def _drawn(dimensions: int, start: int, points: int) -> Tensor:
    engine = SobolEngine(dimensions)  # type: ignore[no-untyped-call]
    engine.fast_forward(start)  # type: ignore[no-untyped-call]
    drawn = engine.draw(points, dtype=torch.float64)
    return torch.floor(drawn * 2**BITS).to(torch.int32)
