"""The sparsity regulariser's strength over a trial's iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from study.records import Cell

_EXPONENTIAL_RATE = 1e-5


class Schedules:
    """λ(t) of each trial's sparsity regulariser.

    linear: λ̂ clip((t - start) / (end - start), 0, 1); exponential: λ̂ (1 - exp(-1e-5 t)).
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        on = [bool(cell.sparsity_strength) for cell in cells]
        self._strength = np.array([cell.sparsity_strength or 0.0 for cell in cells])
        self._exponential = np.array([cell.sparsity_scaling == "exponential" for cell in cells])
        self._start = np.array([cell.sparsity_start or 0 for cell in cells], np.float64)
        end = np.array([cell.sparsity_end or 1 for cell in cells], np.float64)
        self._length = np.maximum(end - self._start, 1)
        starts = [0 if e else s for o, e, s in zip(on, self._exponential, self._start, strict=True) if o]
        self._first = min(starts, default=np.inf)
        self._off = np.zeros(len(cells), np.float32)

    def strength(self, iteration: int) -> npt.NDArray[np.float32]:
        """Give λ now, float32 [trials]."""
        if iteration <= self._first:
            return self._off
        ramp = np.clip((iteration - self._start) / self._length, 0, 1)
        if self._exponential.any():
            ramp = np.where(self._exponential, -np.expm1(-_EXPONENTIAL_RATE * iteration), ramp)
        return (self._strength * ramp).astype(np.float32)
