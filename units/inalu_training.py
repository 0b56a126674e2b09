"""Training options of the iNALU: clipped gradients, an outward regulariser, and restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from units.inalu import INALU
from units.initialize import Uniform, within

_OUTWARD_TO = 20.0


def outward(parameter: Tensor) -> Tensor:
    """Measure the distance of parameters from saturation: mean max(20 - |θ|, 0).

    At ±20, tanh and σ are -1, 0 or 1 up to rounding.

    Source: Schlör, Ring & Hotho, "iNALU: Improved Neural Arithmetic Logic Unit", Frontiers in AI, 2020.

    Args:
        parameter: Ŵ, M̂ or ĝ, shape [..., rows, columns].

    Returns:
        Shape [...]: one value per trial, >= 0.

    Example:
        >>> outward(torch.tensor([[15.0, -30.0]]))
        tensor(2.5000)
    """
    return torch.relu(_OUTWARD_TO - parameter.abs()).mean((-2, -1))


def outward_sum(unit: INALU) -> Tensor:
    """Sum `outward` over all parameters of a unit, gates included; not multiplied by a strength.

    Args:
        unit: with or without trials.

    Returns:
        Shape [...]: one value per trial.

    Example:
        >>> unit = INALU(3, 2, trials=4)
        >>> outward_sum(unit).shape
        torch.Size([4])
    """
    first, *others = (outward(parameter) for parameter in unit.parameters())
    return sum(others, first)


@dataclass(frozen=True, kw_only=True)
class INALUTraining:
    """Options of an iNALU's training; iterations count updates from 0.

    `ORIGINAL` and `PRIMER` are the published settings.

    Args:
        clip_value: gradients are clipped to ± this by `units.gradients.clip_by_value`; > 0.
        outward_strength: strength of the regulariser `outward_sum`; 0 for none.
        outward_from: first iteration with the regulariser.
        outward_below: only trials with an MSE below this have the regulariser.
        outward_apart: True for separate updates, first of Ŵ and M̂ and then of ĝ; False to add it to the loss.
        restart_every: a trial may restart at this iteration and its multiples; None for never.
        restart_window: number of iterations, from each of those on, in which it may restart; >= 1.
        restart_memory: number of losses since its last start that must be exceeded before it restarts; >= 1.
        restart_above: it restarts only if the mean of the later half of the losses is above this.
        restart_reach: new parameters are U[-r, r]; None for the unit's own start.

    Example:
        >>> PRIMER.outward_strengths(20_000, torch.tensor([0.5, 2.0]))
        tensor([0.0500, 0.0000])
    """

    clip_value: float = 0.1
    outward_strength: float = 0.05
    outward_from: int
    outward_below: float = 1.0
    outward_apart: bool
    restart_every: int | None
    restart_window: int
    restart_memory: int
    restart_above: float = 1.0
    restart_reach: float | None

    def outward_strengths(self, iteration: int, mse: Tensor) -> Tensor:
        """Compute each trial's strength of the outward regulariser in this iteration.

        Args:
            iteration: updates made so far.
            mse: MSE of each trial, shape [...]: of the batch in `ORIGINAL`, of the last evaluation in `PRIMER`.

        Returns:
            Shape [...]; 0 where the MSE is NaN.
        """
        is_on = (mse < self.outward_below) & (iteration >= self.outward_from)
        return torch.where(is_on, self.outward_strength, 0.0).to(mse.dtype)

    def restarts(self, iteration: int, losses: Sequence[float], counts: Sequence[int] | None = None) -> bool:
        """Return True if a trial restarts after this iteration, because its loss is high and doesn't fall.

            mean(first half) <= mean(second half) + sd(second half)  and  mean(second half) > `restart_above`

        Of an odd number of losses, the second half has one more. A trial never restarts before `restart_every` or if
        that is None, outside of the window, or with `restart_memory` losses or fewer.

        Args:
            iteration: the number of this update, from 0 on.
            losses: the trial's losses since it started or restarted, one per iteration: of the batch in `ORIGINAL`, of
                the last evaluation in `PRIMER`. With a NaN or an infinity among them, it doesn't restart.
            counts: number of consecutive iterations that each loss stands for; None for one each.

        Example:
            >>> PRIMER.restarts(6_000, [9.0] * 6_001), PRIMER.restarts(6_001, [9.0] * 6_002)
            (True, False)
            >>> PRIMER.restarts(6_000, [9.0], [6_001])
            True
        """
        values = np.asarray(losses, np.float64)
        each = np.ones(len(values), np.int64) if counts is None else np.asarray(counts, np.int64)
        if self.restart_every is None or iteration < self.restart_every or each.sum() <= self.restart_memory:
            return False
        if iteration % self.restart_every >= self.restart_window:
            return False
        ends = np.cumsum(each)
        early = np.clip(ends[-1] // 2 - (ends - each), 0, each)
        late = each - early
        mean = np.average(values, weights=late)
        spread = np.sqrt(np.average((values - mean) ** 2, weights=late))
        return bool(np.average(values, weights=early) <= mean + spread and mean > self.restart_above)

    def new_values(self, unit: INALU, uniform: Uniform) -> dict[str, Tensor]:
        """Compute new parameters for a trial that restarts; the optimiser keeps its state.

        Args:
            unit: gives the sizes, the names and, without `restart_reach`, the distributions.
            uniform: returns float64 numbers uniform on [0, 1) for a parameter's index and shape.

        Returns:
            Each parameter's value by name, without a trial axis.

        Example:
            >>> from units.initialize import generator_uniform
            >>> values = ORIGINAL.new_values(INALU(3, 2, trials=4), generator_uniform(None))
            >>> values["weight_hat_add"].shape, values["gate"].shape
            (torch.Size([2, 3]), torch.Size([1, 2]))
        """
        sizes = (unit.in_features, unit.out_features)
        if self.restart_reach is None:
            return unit.initial(*sizes, uniform, dtype=unit.gate.dtype)
        values = {}
        for index, (name, parameter) in enumerate(unit.named_parameters()):
            drawn = within(uniform(index, tuple(parameter.shape[-2:])), 0.0, self.restart_reach)
            values[name] = drawn.to(parameter.dtype)
        return values


ORIGINAL = INALUTraining(
    outward_from=11_000,
    outward_apart=True,
    restart_every=10_000,
    restart_window=1_000,
    restart_memory=10_000,
    restart_reach=2.0,
)
"""Settings in the experiments of Schlör et al., 2020; their epochs, counted from 0, have 1,000 batches each."""

PRIMER = INALUTraining(
    outward_from=10_001,
    outward_apart=False,
    restart_every=10,
    restart_window=1,
    restart_memory=5_000,
    restart_reach=None,
)
"""Settings in Mistry, Farrahi & Hare, "A Primer for Neural Arithmetic Logic Modules", 2022."""
