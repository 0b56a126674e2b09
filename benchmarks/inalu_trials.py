"""The trials of iNALU's own experiment, side by side: three units, and the training that its authors programmed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.inalu_data import Key, Rows
from benchmarks.inalu_losses import Losses
from tasks.stream import Purpose, uniforms
from units.gradients import clip_by_value
from units.inalu import INALU, ORIGINAL_START, inalu
from units.inalu_training import ORIGINAL, INALUTraining
from units.initialize import Draw, Sizes, normal
from units.kernels import one_thread
from units.nac import nac_weight
from units.nalu import NALU, GatedUnit
from units.unit import Unit

RATE = 1e-2
DECAY = 0.9
EPSILON = 1e-10
"""The defaults of TensorFlow 1's RMSProp, whose mean square starts at 1: torch has 0.99, 1e-8 and 0."""
_TURN = 10
_WEIGHT_BATCHES = 8
"""Of ten batches in turn, the first eight move Ŵ and M̂, and the others ĝ."""
_LARGEST = 20.0
_EXACT_WEIGHTS = {"add": (1, 1), "sub": (1, -1), "mul": (1, 1), "div": (1, -1)}


class SharedINALU(GatedUnit):
    """Add or multiply as `INALU` does, with the same weights W = tanh(Ŵ) ⊙ σ(M̂) for both.

    Example:
        >>> SharedINALU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    weight_hat: nn.Parameter
    mask_hat: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        (weight,) = self.effective_weights()
        return inalu(x, weight, weight, self.gate)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        drawn = {"weight_hat": uniform(0), "mask_hat": uniform(1), "gate": uniform(2)[:, :1].mT}
        return {name: ORIGINAL_START[name][0] + normal(u, ORIGINAL_START[name][1]) for name, u in drawn.items()}

    def effective_weights(self) -> list[Tensor]:
        return [nac_weight(self.weight_hat, self.mask_hat)]


ARMS: dict[str, Callable[..., Unit]] = {"separate": INALU, "shared": SharedINALU, "NALU": NALU}
"""iNALU with separate and with shared weights, and the NALU. With one output, a gate vector is a gate matrix."""


class Trained(NamedTuple):
    """What trials came to.

    Args:
        mse: of the rows where extrapolation is tested, float64 [trials]; NaN for what has diverged.
        restarts: how often each trial started anew, int64 [trials].
    """

    mse: np.ndarray
    restarts: np.ndarray


class Trials:
    """Trains the trials of one arm and operation side by side.

    An update is one of TensorFlow 1's RMSProp, with gradients clipped to ± 0.1:

        s <- 0.9 s + 0.1 g²,   θ <- θ - 0.01 g / sqrt(s + 1e-10),   s = 1 at first

    Args:
        arm: an entry of `ARMS`.
        keys: of the trials.
        iterations: how many `step` will be called.
        training: what is clipped, when parameters are pushed outward and when trials start anew.

    Example:
        >>> from benchmarks.inalu_data import numbers_of, rows_of
        >>> trials = Trials("shared", [Key("U(-1, 1)", seed) for seed in range(3)], 1)
        >>> trials.step(0, *rows_of(numbers_of(trials.keys, rows=64), "add").batch(0))
        >>> trials.unit.weight_hat.shape
        torch.Size([3, 1, 2])
    """

    def __init__(self, arm: str, keys: Sequence[Key], iterations: int, training: INALUTraining = ORIGINAL) -> None:
        self.keys, self.training = keys, training
        # Its own start is replaced; the generator keeps torch's default one as it is.
        self.unit = ARMS[arm](2, 1, trials=len(keys), generator=torch.Generator())
        self.restarts = np.zeros(len(keys), np.int64)
        self._losses = Losses(len(keys), iterations, training)
        self._start()
        parameters = dict(self.unit.named_parameters())
        self.gates = [parameter for name, parameter in parameters.items() if name == "gate"]
        self.weights = [parameter for name, parameter in parameters.items() if name != "gate"]
        self._squares: dict[nn.Parameter, Tensor] = {each: torch.ones_like(each) for each in parameters.values()}

    def step(self, iteration: int, x: Tensor, y: Tensor) -> None:
        """Train with one batch: one update, and for trials below the limit two that push parameters outward.

        Args:
            iteration: counted from 0, one after another.
            x: shape [trials, batch, 2].
            y: shape [trials, batch, 1].
        """
        moved = self.weights if iteration % _TURN < _WEIGHT_BATCHES else self.gates
        loss = squared_error(self.unit, x, y)
        self._update(moved, torch.autograd.grad(loss.sum(), moved))
        loss = loss.detach()
        strengths = self.training.outward_strengths(iteration, loss)
        pushed = strengths > 0
        if pushed.any():
            self._push(self.weights, strengths)
            # The program stores the last loss that it has computed: in such batches, the one between the two.
            with torch.no_grad():
                loss = torch.where(pushed, squared_error(self.unit, x, y), loss)
            self._push(self.gates, strengths)
        for trial in self._losses.add(iteration, loss.double().numpy()):
            self._start_anew(trial, iteration)

    def _push(self, parameters: Sequence[nn.Parameter], strengths: Tensor) -> None:
        self._update(parameters, outward_gradients(parameters, strengths), (strengths > 0)[:, None, None])

    @torch.no_grad()
    def _update(
        self, parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor], only: Tensor | None = None
    ) -> None:
        """Make one update, of all trials or of those alone that `only`, [trials, 1, 1], says."""
        for parameter, gradient in zip(parameters, clip_by_value(gradients, self.training.clip_value), strict=True):
            # Operations of one rounding each: fused ones round an element by its place in memory.
            square = self._squares[parameter] * DECAY + gradient * gradient * (1 - DECAY)
            value = parameter - gradient * RATE / (square + EPSILON).sqrt()
            if only is not None:
                square = torch.where(only, square, self._squares[parameter])
                value = torch.where(only, value, parameter)
            self._squares[parameter] = square
            parameter.copy_(value)

    @torch.no_grad()
    def _start(self) -> None:
        """Draw all parameters as the authors' experiments do, in the NALU too: Ŵ, M̂ and ĝ are normal."""
        seeds = np.array([key.number() for key in self.keys], np.uint64)
        for index, (name, parameter) in enumerate(self.unit.named_parameters()):
            [(mean, std)] = [of for stem, of in ORIGINAL_START.items() if name.startswith(stem)]
            drawn = torch.from_numpy(uniforms(seeds, parameter[0].numel(), index, Purpose.INITIAL))
            parameter.copy_(mean + normal(drawn, std).reshape(parameter.shape))

    @torch.no_grad()
    def _start_anew(self, trial: int, iteration: int) -> None:
        """Draw a trial's parameters anew; the mean squares of its gradients stay, as in the program."""
        seed = np.array([self.keys[trial].number()], np.uint64)
        count = len(self._squares)

        def uniform(index: int, shape: tuple[int, ...]) -> Tensor:
            drawn = uniforms(seed, int(np.prod(shape)), iteration * count + index, Purpose.RESTART)
            return torch.from_numpy(drawn).reshape(shape)

        for name, value in self.training.new_values(self.unit, uniform).items():  # type: ignore[arg-type]
            self.unit.get_parameter(name)[trial].copy_(value)
        self.restarts[trial] += 1


def squared_error(unit: Unit, x: Tensor, y: Tensor) -> Tensor:
    """Compute the mean squared error of each trial.

    Args:
        unit: with trials.
        x: shape [trials, batch, in].
        y: shape [trials, batch, out].

    Returns:
        Shape [trials].
    """
    error: Tensor = unit(x) - y
    return error.square().mean((-2, -1))


@torch.no_grad()
def outward_gradients(parameters: Iterable[Tensor], strengths: Tensor) -> list[Tensor]:
    """Compute the gradients of a strength times `units.inalu_training.outward`: -λ sgn(θ) / n where |θ| < 20, else 0.

    Args:
        parameters: each of shape [trials, rows, columns].
        strengths: λ, shape [trials].

    Example:
        >>> outward_gradients([torch.tensor([[[1.0, -3.0]], [[30.0, 2.0]]])], torch.tensor([0.5, 1.0]))
        [tensor([[[-0.2500,  0.2500]],
        <BLANKLINE>
                [[-0.0000, -0.5000]]])]
    """
    return [
        -strengths[:, None, None] * parameter.sign() * (parameter.abs() < _LARGEST) / parameter[0].numel()
        for parameter in parameters
    ]


@torch.no_grad()
def mse_of_rows(unit: Unit, rows: Rows) -> np.ndarray:
    """Compute the mean squared error of each trial over all batches, float64 [trials]."""
    total = torch.zeros(rows.x.shape[1], dtype=torch.float64)
    for number in range(len(rows.x)):
        x, y = rows.batch(number)
        total += squared_error(unit, x, y)
    return (total / len(rows.x)).numpy()


def exact_unit(operation: str, trials: int) -> INALU:
    """Make an iNALU whose weights are exactly -1 and 1, and whose gate is exactly open or closed.

    Example:
        >>> exact_unit("sub", 1)(torch.tensor([[[5.0, 7.0]]]))
        tensor([[[-2.]]], grad_fn=...)
    """
    unit = INALU(2, 1, trials=trials, generator=torch.Generator())
    gate = 200.0 if operation in ("add", "sub") else -200.0  # e^200 is infinite, so that σ is 0 and not nearly 0
    with torch.no_grad():
        for name, parameter in unit.named_parameters():
            values = {"weight_hat": torch.tensor(_EXACT_WEIGHTS[operation]) * 200.0, "mask_hat": torch.tensor(200.0)}
            parameter.copy_(values.get(name.rsplit("_", 1)[0], torch.tensor(gate)))
    return unit


def train(
    arm: str, keys: Sequence[Key], rows: Rows, test: Rows, iterations: int, progress: Callable[[int], None]
) -> Trained:
    """Train trials of one arm and operation, and test how they extrapolate.

    Args:
        arm: an entry of `ARMS`.
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
