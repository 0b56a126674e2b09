"""Validation and test rows: drawn once, shared by all trials of a range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.records import Range
from tasks import ArithmeticTask
from tasks.arithmetic_cell import ArithmeticCell
from tasks.stream import EVALUATION_SEED, Purpose
from tasks.stream_simd import fill_inputs
from units.kernels import contract

# Rows are cut at the same places whatever the pack and the device: the bits of a product can depend on its width.
CHUNK_ROWS = 2000


def range_arrays(ranges: Sequence[Range]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Lay ranges out for the stream: where their intervals start, [ranges, 2], and their widths, [ranges]."""
    low = np.array([[range_[0][0], range_[-1][0]] for range_ in ranges], np.float32)
    width = np.array([range_[0][1] - range_[0][0] for range_ in ranges], np.float32)
    return low, width


def draw_rows(ranges: Sequence[Range], cell: ArithmeticCell, purpose: Purpose) -> npt.NDArray[np.float32]:
    """Draw the rows that every trial is evaluated on, float32 [ranges, features, rows].

    Args:
        ranges: to draw from.
        cell: whose number of rows and features it is.
        purpose: validation or test.
    """
    x = np.empty((len(ranges), cell.input_size, cell.evaluation_rows), np.float32)
    fill_inputs(x, np.full(len(ranges), EVALUATION_SEED, np.uint64), *range_arrays(ranges), 0, purpose)
    return x


class EvaluationRows:
    """One set of rows for each range that occurs, and each trial's targets.

    Args:
        ranges: of each trial.
        cell: any cell of the pack.
        purpose: validation or test.
        task: of the trials.
        masks: each trial's subsets, float32 [trials, subsets, features].
    """

    def __init__(
        self, ranges: Sequence[Range], cell: ArithmeticCell, purpose: Purpose, task: ArithmeticTask, masks: Tensor
    ) -> None:
        distinct = list(dict.fromkeys(ranges))
        self._x = torch.from_numpy(draw_rows(distinct, cell, purpose)).to(masks.device)
        self._which = torch.tensor([distinct.index(range_) for range_ in ranges], device=masks.device)
        self._cuts = [
            (first, min(first + CHUNK_ROWS, cell.evaluation_rows))
            for first in range(0, cell.evaluation_rows, CHUNK_ROWS)
        ]
        self._target = torch.empty(len(ranges), 1, cell.evaluation_rows, device=masks.device)
        for trial, mask in enumerate(masks):
            for first, last in self._cuts:
                rows = self._inputs(slice(trial, trial + 1), first, last)
                sums = contract(mask[None], rows.mT).mT
                self._target[trial, :, first:last] = task.target(sums)[0]

    def _inputs(self, some: slice, first: int, last: int) -> Tensor:
        if len(self._x) == 1:
            return self._x[:, :, first:last].expand(len(self._which[some]), -1, -1)
        return self._x[self._which[some], :, first:last]

    def chunks(self, some: slice) -> list[tuple[Tensor, Tensor]]:
        """List inputs [trials, features, rows] and targets [trials, 1, rows] of some trials, chunk by chunk."""
        return [(self._inputs(some, first, last), self._target[some, :, first:last]) for first, last in self._cuts]
