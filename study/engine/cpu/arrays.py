"""The arrays of the fused engine: what its compiled loops read and write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from study.engine.arithmetic.evaluation_rows import draw_rows
from study.engine.compiled.pack import Arrays, PackArrays
from study.engine.cpu import loop
from study.records import Range, Trial
from tasks.arithmetic_cell import ArithmeticCell
from tasks.stream import Purpose
from tasks.stream_simd import LANES, padded

# Bytes of inputs and hidden values processed at a time: most of a first-level cache, and a good part of a second.
_BLOCK_BYTES = 40 * 1024
_CHUNK_BYTES = 128 * 1024
_MOST_CHUNK_ROWS = 1024


def block_rows(cell: ArithmeticCell, most_bytes: int, rows: int) -> int:
    """Choose how many rows to process at a time: equal blocks, each of whole vectors.

    It depends on the cell's shape alone, for the order of sums depends on it.
    """
    row_bytes = 4 * (padded(cell.input_size, 4) + 4 * cell.hidden_size + 8)
    most = max(2 * LANES, most_bytes // row_bytes // LANES * LANES)
    return padded(math.ceil(rows / math.ceil(rows / most)), LANES)


class CpuArrays(PackArrays):
    """A pack's trials, with what the loops work on and in.

    Args:
        trials: of equal tensor shape.
        state: what `state` gave of these trials; None to draw initial weights.
    """

    def __init__(self, trials: Sequence[Trial], state: Arrays | None = None) -> None:
        super().__init__(trials, state)
        cell = self._cell
        self._block = block_rows(cell, _BLOCK_BYTES, cell.batch_size)
        self._validation = self._rows([c.interpolation_range for c in self._cells], Purpose.VALIDATION)
        self._test = self._rows([c.extrapolation_range for c in self._cells], Purpose.TEST)

    def _rows(self, ranges: Sequence[Range], purpose: Purpose) -> tuple[Any, npt.NDArray[np.int64]]:
        """Draw rows for each range that occurs, cut into blocks, and list which range is which trial's."""
        cell, distinct = self._cell, list(dict.fromkeys(ranges))
        count = cell.evaluation_rows
        rows = block_rows(cell, _CHUNK_BYTES, min(count, _MOST_CHUNK_ROWS))
        blocks = math.ceil(count / rows)
        # The last block is filled up with copies of its first row, which overflow only where that does.
        places = np.where(np.arange(blocks * rows) < count, np.arange(blocks * rows), (blocks - 1) * rows)
        x = draw_rows(distinct, cell, purpose)[:, :, places]
        x = x.reshape(len(distinct), cell.input_size, blocks, rows).transpose(0, 2, 1, 3)
        return np.ascontiguousarray(x), np.array([distinct.index(range_) for range_ in ranges])

    def update(self, which: npt.NDArray[np.int64], iteration: int, count: int) -> None:
        """Make `count` updates of the trials at some places, from `iteration` on."""
        loop.train(
            self._network, self._target, self._source, self._rule, self._cell.batch_size, which,
            *self._arrays.values(), iteration, count, self._new_scratch(self._block), self._corrections,
        )  # fmt: skip

    def evaluate(self, which: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float32]]:
        """Compute validation MSE, test MSE and sparsity error of the trials at some places, float32 [which]."""
        weight, rows = self._arrays["weight"], self._cell.evaluation_rows
        scratch = self._new_scratch(self._validation[0].shape[-1])
        metrics = {}
        for name, (x, of_range) in (("validation_mse", self._validation), ("test_mse", self._test)):
            total, part = np.zeros(len(which)), np.zeros((1, 1), np.float32)
            loop.add_squared_errors(self._network, self._target, x, of_range, rows, which, weight, scratch, part, total)
            metrics[name] = (total / rows).astype(np.float32)
        metrics["sparsity_error"] = np.empty(len(which), np.float32)
        loop.sparsity_errors(self._network, which, weight, scratch, metrics["sparsity_error"])
        return metrics

    def _new_scratch(self, rows: int) -> loop.Scratch:
        return loop.new_scratch(self._network, self._target.starts.shape[1], rows, self._count())

    def has_nan(self, which: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Tell of the trials at some places whether a weight is NaN, bool [which]."""
        return np.asarray(np.isnan(self._arrays["weight"][which]).any(1))
