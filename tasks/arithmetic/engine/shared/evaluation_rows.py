"""Validation and test rows: drawn once, and shared by all trials with the same source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.records import Range, Trial
from study.stream.stream import EVALUATION_SEED, Purpose
from study.stream.stream_simd import fill_inputs
from tasks.arithmetic import ArithmeticTask
from tasks.arithmetic.cell import ArithmeticCell
from tasks.arithmetic.distributions import Source, distribute
from units.kernels import contract

_UNIT: Range = ((0.0, 1.0),)

# Rows are always cut at the same places, since the bits of a product can depend on its width.
CHUNK_ROWS = 2000


def range_arrays(ranges: Sequence[Range]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Convert ranges for the stream: starts of their intervals, [ranges, 2], and the width of each, [ranges].

    Both are float32. A single interval has its start twice; two intervals have the width of the first.
    """
    low = np.array([[range_[0][0], range_[-1][0]] for range_ in ranges], np.float32)
    width = np.array([range_[0][1] - range_[0][0] for range_ in ranges], np.float32)
    return low, width


def evaluation_keys(trials: Sequence[Trial]) -> list[int]:
    """Return the key of each trial's evaluation rows: its evaluation seed, or by default the shared key."""
    seeds = [trial.sources.evaluation for trial in trials]
    return [EVALUATION_SEED if seed is None else seed for seed in seeds]


def draw_rows(
    sources: Sequence[Source], cell: ArithmeticCell, purpose: Purpose, keys: Sequence[int] | None = None
) -> npt.NDArray[np.float32]:
    """Draw the trials' evaluation rows, float32 [sources, features, rows].

    Args:
        sources: sources of the rows, as for `Draws`.
        cell: cell with the numbers of rows and features.
        purpose: validation or test.
        keys: key of each source; None for the rows that all trials share.

    Raises:
        ValueError: if a distribution isn't possible on its range; see `check_source`.
    """
    x = np.empty((len(sources), cell.input_size, cell.evaluation_rows), np.float32)
    of_sources = [EVALUATION_SEED] * len(sources) if keys is None else keys
    Draws(sources).fill(x, np.array(of_sources, np.uint64), 0, purpose)
    return x


class Draws:
    """Rows drawn repeatedly from sources.

    Args:
        sources: at least one; either all are uniform, or none is.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._places: dict[Source, list[int]] = {}
        if sources[0].distribution is None:
            self._ranges = range_arrays([source.range for source in sources])
            return
        self._ranges = range_arrays([_UNIT] * len(sources))
        for place, source in enumerate(sources):
            self._places.setdefault(source, []).append(place)

    def fill(self, x: npt.NDArray[np.float32], seeds: npt.NDArray[np.uint64], iteration: int, purpose: Purpose) -> None:
        """Draw the rows of an iteration.

        Args:
            x: float32 [sources, features, rows]; written.
            seeds: seed of each source, uint64 [sources].
            iteration: iteration of a training batch; 0 for evaluation rows.
            purpose: training, validation or test.

        Raises:
            ValueError: if a distribution isn't possible on its range; see `check_source`.
        """
        fill_inputs(x, seeds, *self._ranges, iteration, purpose)
        for source, places in self._places.items():
            x[places] = distribute(source, x[places])


class EvaluationRows:
    """The distinct sets of rows by source and key, and each trial's targets.

    Args:
        sources: each trial's source.
        cell: any cell of the pack.
        purpose: validation or test.
        task: the trials' task.
        masks: each trial's subsets, float32 [trials, subsets, features].
        keys: key of each trial's rows; None for the rows that all trials share.

    Raises:
        ValueError: if a distribution isn't possible on its range; see `check_source`.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cell: ArithmeticCell,
        purpose: Purpose,
        task: ArithmeticTask,
        masks: Tensor,
        keys: Sequence[int] | None = None,
    ) -> None:
        sets = list(zip(sources, [EVALUATION_SEED] * len(sources) if keys is None else keys, strict=True))
        distinct = list(dict.fromkeys(sets))
        drawn = draw_rows([source for source, _ in distinct], cell, purpose, [key for _, key in distinct])
        self._x = torch.from_numpy(drawn).to(masks.device)
        self._which = torch.tensor([distinct.index(row_set) for row_set in sets], device=masks.device)
        self._cuts = [
            (first, min(first + CHUNK_ROWS, cell.evaluation_rows))
            for first in range(0, cell.evaluation_rows, CHUNK_ROWS)
        ]
        self._target = torch.empty(len(sources), 1, cell.evaluation_rows, device=masks.device)
        for trial, mask in enumerate(masks):
            for first, last in self._cuts:
                rows = self._inputs(slice(trial, trial + 1), first, last)
                sums = contract(mask[None], rows.mT).mT
                self._target[trial, :, first:last] = task.target(sums)[0]

    def _inputs(self, part: slice, first: int, last: int) -> Tensor:
        if len(self._x) == 1:
            return self._x[:, :, first:last].expand(len(self._which[part]), -1, -1)
        return self._x[self._which[part], :, first:last]

    def chunks(self, part: slice) -> list[tuple[Tensor, Tensor]]:
        """Return inputs [trials, features, rows] and targets [trials, 1, rows] of a slice of the trials, by chunks."""
        return [(self._inputs(part, first, last), self._target[part, :, first:last]) for first, last in self._cuts]
