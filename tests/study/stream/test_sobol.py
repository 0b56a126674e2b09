"""Sobol points equal those of torch's engine, from any start."""

from __future__ import annotations

import pytest
import torch
from torch.quasirandom import SobolEngine

from study.stream.sobol import BITS, sobol_points


@pytest.mark.parametrize(("start", "points"), [(0, 1), (0, 5000), (4095, 2), (4096, 4096), (12_345, 9000), (2**18, 3)])
def test_points_are_those_of_the_engine(start: int, points: int) -> None:
    """Points computed by index equal those of torch's engine in all 24 kept bits."""
    engine = SobolEngine(100)
    engine.fast_forward(start)
    expected = (engine.draw(points, dtype=torch.float64) * 2**BITS).floor()
    assert torch.equal(sobol_points(start, points, 100).double(), expected)


def test_points_beyond_the_sequence_are_refused() -> None:
    """The sequence has 2^30 points, counted from 0; later ones are refused."""
    for start, points in ((-1, 2), (2**30, 1), (0, -1)):
        with pytest.raises(ValueError, match="must hold, but got start"):
            sobol_points(start, points, 2)
