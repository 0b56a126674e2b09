"""Restarts of iNALUs whose error is high and doesn't fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from study.stream.stream import Purpose, uniforms
from tasks.arithmetic.cell import ArithmeticCell
from tasks.arithmetic.engine.shared.initial_weights import PREFIX
from tasks.arithmetic.engine.torch.penalties import inalu_training
from tasks.arithmetic.networks import Network
from units.inalu import INALU

_SINCE = PREFIX + "since"


class Restarts:
    """Restarts of trials with newly drawn parameters; the optimiser's state stays.

    The losses that decide on a restart are the trial's validation MSE at each iteration, taken from the last
    evaluation.

    Args:
        cell: any of the trials' cells; the values used here are equal in all of them.
        network: the trials' network.
        seeds: seeds of the trials' initial weights, uint64 [trials].
        state: the result of `state` for these trials; None for a new pack.
    """

    def __init__(
        self,
        cell: ArithmeticCell,
        network: Network,
        seeds: npt.NDArray[np.uint64],
        state: Mapping[str, npt.NDArray[Any]] | None,
    ) -> None:
        self._every, self._training = cell.evaluate_every, inalu_training(cell)
        self._network, self._seeds = network, seeds
        self._since = np.zeros(len(seeds), np.int64) if state is None else state[_SINCE].copy()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy the iteration of each trial's last start, int64 [trials]."""
        return {_SINCE: self._since.copy()}

    def restart(self, iteration: int, losses: npt.NDArray[np.float32]) -> None:
        """Restart the trials that meet the criterion of `INALUTraining.restarts`, after an update.

        Args:
            iteration: number of updates made before this one.
            losses: each trial's validation MSE at every evaluation so far, float32 [trials, evaluations].
        """
        if iteration % (self._training.restart_every or 1):
            return
        has_trained = iteration + 1 - self._since > self._training.restart_memory
        # These include the later half of a trial's losses, whose mean must exceed the limit.
        later = losses[:, (iteration + 1) // 2 // self._every :]
        for trial in np.flatnonzero(has_trained & (later.max(axis=1) > self._training.restart_above)):
            counts = self._counts(int(self._since[trial]), iteration + 1)
            if self._training.restarts(iteration, losses[trial, -len(counts) :].tolist(), counts):
                self._draw(int(trial), iteration)
                self._since[trial] = iteration + 1

    def _counts(self, first: int, end: int) -> Sequence[int]:
        """Count the iterations first <= i < end for which each evaluation's loss is the last one."""
        edges = [first, *range((first // self._every + 1) * self._every, end, self._every), end]
        return [later - earlier for earlier, later in pairwise(edges)]

    @torch.no_grad()
    def _draw(self, trial: int, iteration: int) -> None:
        parameters = dict(self._network.named_parameters())
        for number, layer in enumerate(layer for layer in self._network.layers if isinstance(layer, INALU)):

            def uniform(index: int, shape: tuple[int, ...], number: int = number) -> torch.Tensor:
                counter = (iteration * len(self._network.layers) + number) * len(parameters) + index
                seed = self._seeds[trial : trial + 1]
                drawn = uniforms(seed, int(np.prod(shape)), counter, Purpose.RESTART)
                return torch.from_numpy(drawn).reshape(shape)

            for name, value in self._training.new_values(layer, uniform).items():
                layer.get_parameter(name)[trial].copy_(value)
