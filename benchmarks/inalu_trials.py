"""The trials of iNALU's own experiment, side by side, in the training that its authors programmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from benchmarks.inalu_data import Key, Rows
from benchmarks.inalu_losses import Losses
from benchmarks.inalu_units import ARMS, start_values
from benchmarks.inalu_updates import Group
from study.engine.device import one_thread
from study.stream.stream import Purpose, uniforms
from units.inalu_training import ORIGINAL, INALUTraining
from units.unit import Unit

_TURN = 10
_WEIGHT_BATCHES = 8
"""Of ten batches in turn, the first eight move Ŵ and M̂, and the others ĝ."""


class Trained(NamedTuple):
    """What trials came to.

    Args:
        mse: of the rows where extrapolation is tested, shape [trials]; NaN for what has diverged.
        restarts: how often each trial started anew, shape [trials].
    """

    mse: npt.NDArray[np.float64]
    restarts: npt.NDArray[np.int64]


class Trials:
    """Trains trials of one unit side by side.

    Args:
        arm: the unit, an entry of `ARMS`.
        keys: of the trials.
        iterations: how often `step` will be called.
        training: how far gradients are clipped, when parameters are pushed outward, and when trials start anew.

    Example:
        >>> from benchmarks.inalu_data import numbers_of, rows_of
        >>> trials = Trials("shared", [Key("U(-1, 1)", seed) for seed in range(3)], 1)
        >>> trials.step(0, *rows_of(numbers_of(trials.keys, rows=64), "add").batch(0))
        >>> trials.unit.weight_hat.shape
        torch.Size([3, 1, 2])
    """

    def __init__(self, arm: str, keys: Sequence[Key], iterations: int, training: INALUTraining = ORIGINAL) -> None:
        self.keys = keys
        # Its own start is replaced; with a generator of its own, it leaves torch's default one as it is.
        self.unit = ARMS[arm](2, 1, trials=len(keys), generator=torch.Generator())
        self.restarts = np.zeros(len(keys), np.int64)
        self._training = training
        self._losses = Losses(len(keys), iterations, training)
        parameters = dict(self.unit.named_parameters())
        self._gates = Group([parameters["gate"]], training.clip_value)
        self._weights = Group([each for name, each in parameters.items() if name != "gate"], training.clip_value)
        shapes = {name: tuple(each.shape[1:]) for name, each in parameters.items()}
        for trial in range(len(keys)):
            self._put(trial, start_values(shapes, self._uniform(trial, 0, Purpose.INITIAL)))

    def step(self, iteration: int, x: Tensor, y: Tensor) -> None:
        """Train with one batch: one update, and for trials with an MSE below 1 two that push parameters outward.

        Args:
            iteration: counted from 0, one after another.
            x: shape [trials, batch, 2].
            y: shape [trials, batch, 1].
        """
        group = self._weights if iteration % _TURN < _WEIGHT_BATCHES else self._gates
        loss = squared_error(self.unit, x, y)
        group.update(torch.autograd.grad(loss.sum(), group.parameters))
        loss = loss.detach()
        strengths = self._training.outward_strengths(iteration, loss)
        has_strength = strengths > 0
        if has_strength.any():
            self._weights.push(strengths)
            # The program stores the loss that it computed last, and it computes one with each update, before it.
            with torch.no_grad():
                loss = torch.where(has_strength, squared_error(self.unit, x, y), loss)
            self._gates.push(strengths)
        for trial in self._losses.add(iteration, loss.double().numpy()):
            # The mean squares of its gradients stay, as in the program.
            uniform = self._uniform(trial, iteration, Purpose.RESTART)
            self._put(trial, self._training.new_values(self.unit, uniform))  # type: ignore[arg-type]
            self.restarts[trial] += 1

    def _uniform(self, trial: int, iteration: int, purpose: Purpose) -> Callable[[int, tuple[int, ...]], Tensor]:
        """Make what draws a trial's parameters, by their index, as a function of its key and the iteration."""
        seed = np.array([self.keys[trial].number()], np.uint64)
        count = len(list(self.unit.parameters()))

        def uniform(index: int, shape: tuple[int, ...]) -> Tensor:
            drawn = uniforms(seed, int(np.prod(shape)), iteration * count + index, purpose)
            return torch.from_numpy(drawn).reshape(shape)

        return uniform

    @torch.no_grad()
    def _put(self, trial: int, values: dict[str, Tensor]) -> None:
        for name, value in values.items():
            self.unit.get_parameter(name)[trial].copy_(value)


def squared_error(unit: Unit, x: Tensor, y: Tensor) -> Tensor:
    """Compute the mean squared error of each trial.

    Args:
        unit: with trials.
        x: shape [trials, batch, in].
        y: shape [trials, batch, out].

    Returns:
        Shape [trials].

    Example:
        >>> from benchmarks.inalu_units import exact_unit
        >>> squared_error(exact_unit(["add"]), torch.ones(1, 5, 2), torch.zeros(1, 5, 1))
        tensor([4.], grad_fn=...)
    """
    error: Tensor = unit(x) - y
    return error.square().mean((-2, -1))


@torch.no_grad()
def mse_of_rows(unit: Unit, rows: Rows) -> npt.NDArray[np.float64]:
    """Compute the mean squared error of each trial over all batches, shape [trials].

    Example:
        >>> from benchmarks.inalu_data import numbers_of, rows_of
        >>> from benchmarks.inalu_units import exact_unit
        >>> rows = rows_of(numbers_of([Key("U(-1, 1)", 7)], is_test=True, rows=640), "mul")
        >>> bool(mse_of_rows(exact_unit(["mul"]), rows) < 1e-9)
        True
    """
    total = torch.zeros(rows.x.shape[1], dtype=torch.float64)
    for number in range(len(rows.x)):
        total += squared_error(unit, *rows.batch(number))
    mean: npt.NDArray[np.float64] = (total / len(rows.x)).numpy()
    return mean


def train(
    arm: str, keys: Sequence[Key], rows: Rows, test: Rows, iterations: int, progress: Callable[[int], None]
) -> Trained:
    """Train trials of one unit, and test how they extrapolate.

    Args:
        arm: the unit, an entry of `ARMS`.
        keys: of the trials.
        rows: that they are trained with, in the same order in each epoch.
        test: the rows where extrapolation is tested.
        iterations: batches, of which each makes one update and perhaps two more.
        progress: is called with the number of each iteration.

    Example:
        >>> from benchmarks.inalu_data import numbers_of, rows_of
        >>> keys = [Key("U(-1, 1)", 7)]
        >>> rows = rows_of(numbers_of(keys, rows=64), "add")
        >>> train("separate", keys, rows, rows, 3, lambda iteration: None).restarts
        array([0])
    """
    with one_thread():
        trials = Trials(arm, keys, iterations)
        for iteration in range(iterations):
            progress(iteration)
            trials.step(iteration, *rows.batch(iteration))
        return Trained(mse_of_rows(trials.unit, test), trials.restarts)
