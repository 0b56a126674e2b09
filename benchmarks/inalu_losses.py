"""The losses that decide whether a trial of iNALU's own experiment starts anew, by sums over blocks of them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from units.inalu_training import INALUTraining

Floats = npt.NDArray[np.float64]

_BLOCK = 500


class Losses:
    """Keeps the losses of trials side by side, and says which trials must start anew.

    It decides as `INALUTraining.restarts` does, which reads all losses of a trial at each call. Here the mean and the
    sum of squared deviations of each block of 500 losses are computed once. Nothing is subtracted from a sum, since
    one huge loss would swallow the digits of all others.

    Args:
        trials: how many.
        iterations: how many losses each will have.
        training: says when a trial starts anew.

    Example:
        >>> from dataclasses import replace
        >>> from units.inalu_training import ORIGINAL
        >>> losses = Losses(2, 30, replace(ORIGINAL, restart_every=10, restart_window=5, restart_memory=10))
        >>> [losses.add(iteration, np.array([9.0, 0.5])) for iteration in range(11)][-1]
        [0]
        >>> losses.since.tolist()
        [11, 0]
    """

    def __init__(self, trials: int, iterations: int, training: INALUTraining) -> None:
        self._training = training
        self._values = np.zeros((trials, iterations))
        self._means = np.zeros((trials, iterations // _BLOCK))
        self._squares = np.zeros((trials, iterations // _BLOCK))
        self.since = np.zeros(trials, np.int64)
        """The iteration of each trial's last start."""

    def add(self, iteration: int, losses: Floats) -> list[int]:
        """Store the losses of an iteration, and return which trials start anew after it.

        Args:
            iteration: counted from 0, one after another.
            losses: one a trial, shape [trials].
        """
        self._values[:, iteration] = losses
        end = iteration + 1
        if end % _BLOCK == 0:
            self._close(end // _BLOCK - 1)
        every = self._training.restart_every
        if every is None or iteration < every or iteration % every >= self._training.restart_window:
            return []
        old = np.flatnonzero(end - self.since > self._training.restart_memory).tolist()
        new = [trial for trial in old if self._starts_anew(trial, end)]
        self.since[new] = end
        return new

    def _close(self, block: int) -> None:
        values = self._values[:, block * _BLOCK : (block + 1) * _BLOCK]
        self._means[:, block] = values.mean(1)
        self._squares[:, block] = ((values - self._means[:, block, None]) ** 2).sum(1)

    def _starts_anew(self, trial: int, end: int) -> bool:
        start = int(self.since[trial])
        middle = start + (end - start) // 2
        late, deviation = self._moments(trial, middle, end)
        # The cheap question first: most trials have learned, and have no high loss. NaN answers both with no.
        return late > self._training.restart_above and self._moments(trial, start, middle)[0] <= late + deviation

    def _moments(self, trial: int, start: int, end: int) -> tuple[float, float]:
        """Compute mean and standard deviation of a trial's losses from one iteration up to another."""
        values = self._values[trial]
        first, last = -(-start // _BLOCK), end // _BLOCK
        if first >= last:
            return float(values[start:end].mean()), float(values[start:end].std())
        single = np.concatenate([values[start : first * _BLOCK], values[last * _BLOCK : end]])
        means, squares = self._means[trial, first:last], self._squares[trial, first:last]
        mean = float(single.sum() + _BLOCK * means.sum()) / (end - start)
        square = ((single - mean) ** 2).sum() + squares.sum() + _BLOCK * ((means - mean) ** 2).sum()
        return mean, math.sqrt(float(square) / (end - start))
