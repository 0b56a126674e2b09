"""The batches of the torch engine, drawn once for all trials of a pack with equal seed and range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.stream.stream import Purpose, inputs
from tasks.arithmetic import ArithmeticTask
from tasks.arithmetic.cell import ArithmeticCell
from tasks.arithmetic.engine.shared.evaluation_rows import Draws, range_arrays
from units.kernels import contract


class Batches:
    """The training batches of a pack's trials.

    Trials of equal seed and range see the same rows and targets. On the CPU, if sharing saves at least half of the
    draws, distinct batches are drawn once and copied to their trials. Otherwise each trial draws its own, since a copy
    takes up to half as long as a draw. On a GPU each trial always draws its own, because the choice of a kernel there
    depends on the number of products.

    Args:
        cells: the trials' cells, of equal tensor shape.
        seeds: the trials' seeds, uint64 [trials].
        masks: masks of the trials' subsets, float32 [trials, subsets, features], on the device to draw on.
        task: the trials' task.
    """

    def __init__(
        self, cells: Sequence[ArithmeticCell], seeds: npt.NDArray[np.uint64], masks: Tensor, task: ArithmeticTask
    ) -> None:
        self._task, self._cell = task, cells[0]
        seen = [(int(seed), cell.trained_on) for seed, cell in zip(seeds, cells, strict=True)]
        distinct = list(dict.fromkeys(seen))
        self._on_cpu = masks.device.type == "cpu"
        shares = self._on_cpu and 2 * len(distinct) <= len(seen)
        drawn = [seen.index(pair) for pair in distinct] if shares else list(range(len(seen)))
        self._masks = masks[drawn]
        self._seeds = seeds[drawn]
        sources = [cells[k].trained_on for k in drawn]
        self._draws_on_cpu = self._on_cpu or self._cell.distribution is not None
        features, rows = self._cell.input_size, self._cell.batch_size
        if self._draws_on_cpu:
            self._array = np.empty((len(drawn), features, rows), np.float32)
            self._draws = Draws(sources)
        else:
            self._device_seeds = torch.from_numpy(self._seeds.astype(np.int64)).to(masks.device)
            self._device_low, self._device_width = (
                torch.from_numpy(array).to(masks.device) for array in range_arrays([source.range for source in sources])
            )
        self._of_trial: Tensor | None = None
        if shares:
            self._of_trial = torch.tensor([distinct.index(pair) for pair in seen])
            self._x = torch.empty((len(seen), features, rows))

    def inputs(self, iteration: int) -> Tensor:
        """Draw an iteration's inputs, [trials, features, batch]; the next draw may overwrite them.

        Raises:
            ValueError: if a distribution isn't possible on its range; see `check_source`.
        """
        self._drawn = self._draw(iteration)
        if self._of_trial is None:
            return self._drawn
        return torch.index_select(self._drawn, 0, self._of_trial, out=self._x)

    def targets(self) -> Tensor:
        """Compute the targets of the last drawn inputs, [trials, batch, 1]."""
        target = self._task.target(contract(self._masks, self._drawn.mT).mT)
        return target.mT if self._of_trial is None else target.index_select(0, self._of_trial).mT

    def _draw(self, iteration: int) -> Tensor:
        if self._draws_on_cpu:
            self._draws.fill(self._array, self._seeds, iteration, Purpose.TRAIN)
            return torch.from_numpy(self._array).to(self._masks.device)
        features, rows = self._cell.input_size, self._cell.batch_size
        return inputs(
            self._device_seeds, self._device_low, self._device_width, features, rows, iteration, Purpose.TRAIN
        )
