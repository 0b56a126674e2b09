"""Penalties and gradient limits of the torch engine; compiled code doesn't support them.

Penalties are differentiated by autograd. The sparsity regulariser of clipped weights is usually part of the optimiser's
step, which has a formula for it. It is a penalty here only if weights should become -1 or 1, or gradients are limited.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from study.engine.penalties import l1, stepwise
from tasks.arithmetic.cell import ArithmeticCell
from tasks.arithmetic.engine.shared.update_rule import UpdateRule
from tasks.arithmetic.networks import Network
from units.gradients import clip_by_norm, clip_by_value
from units.inalu import INALU
from units.inalu_training import PRIMER, INALUTraining, outward_sum
from units.regularize import Shape

Penalty = tuple[Tensor, Tensor]
"""Each trial's penalty and its strength, both [trials]."""


def inalu_training(cell: ArithmeticCell) -> INALUTraining:
    """Return the settings of a cell's iNALU training: the Primer's, with the cell's own numbers.

    Example:
        >>> from tasks.arithmetic.canonical import canonical
        >>> inalu_training(canonical("single-module", "iNALU-Primer", {})) == PRIMER
        True
    """
    return replace(
        PRIMER,
        outward_strength=cell.outward_strength or 0.0,
        outward_from=cell.outward_start or 0,
        restart_every=None if cell.restart_memory is None else PRIMER.restart_every,
        restart_memory=cell.restart_memory or 0,
    )


class Penalties:
    """The penalties of some trials' loss.

    Args:
        cell: any of the trials' cells; the values used here are equal in all of them.
        network: the trials' network.
        rule: the update rule; its sparsity regulariser is applied here if `has_sparsity`, else in the optimiser's step.
    """

    def __init__(self, cell: ArithmeticCell, network: Network, rule: UpdateRule) -> None:
        self._cell, self._network, self._rule = cell, network, rule
        self._parameters = list(network.parameters())
        self._device = self._parameters[0].device
        kinds = {kind for layer in network.layers for kind in layer.traits.bounded.values()}
        self._limits = cell.clip_norm is not None or cell.clip_value is not None
        self.has_sparsity = cell.bounds == "regularized" or "sign" in kinds or self._limits
        """True if the sparsity regulariser is among the penalties, not part of the optimiser's step."""
        self._training = inalu_training(cell)
        self.asks_for_losses = cell.outward_strength is not None
        self._is_plain = not (self.has_sparsity or self.asks_for_losses or cell.l1_strength is not None)

    def terms(
        self, iteration: int, strength: npt.NDArray[np.float32], mse: npt.NDArray[np.float32] | None
    ) -> list[Penalty]:
        """Compute the penalties of an iteration.

        Args:
            iteration: number of updates made so far.
            strength: λ of the sparsity regulariser, float32 [trials].
            mse: the last validation MSE, float32 [trials]; required if `asks_for_losses`, else it may be None.

        Returns:
            Each penalty and its strength, which may be 0; empty if nothing is penalised in this iteration.

        Raises:
            ValueError: unless 0 < first strength <= last strength holds for the cell's L1 penalty.
        """
        if self._is_plain:
            return []
        cell, terms = self._cell, []
        of_trials = torch.from_numpy(strength).to(self._device)
        if self.has_sparsity and strength.any():
            shape = _shape("squared" if self._rule.squared else "linear")
            terms += [(layer.sparsity(shape), of_trials) for layer in self._network.layers]
        if cell.bounds == "regularized":
            out = torch.full_like(of_trials, cell.out_of_bounds_strength or 0.0)
            terms += [(layer.out_of_bounds(_shape(cell.out_of_bounds_shape)), out) for layer in self._network.layers]
        if cell.l1_strength is not None and cell.l1_first_strength is not None:
            beta = stepwise(iteration, cell.l1_first_strength, cell.l1_strength)
            terms.append((l1(self._parameters, has_trials=True), torch.full_like(of_trials, beta)))
        if mse is not None and iteration >= (cell.outward_start or 0):
            strengths = self._training.outward_strengths(iteration, torch.from_numpy(mse).to(self._device))
            terms += [(outward_sum(layer), strengths) for layer in self._network.layers if isinstance(layer, INALU)]
        return [(penalty, strengths) for penalty, strengths in terms if penalty is not None]

    def limit_gradients(self) -> None:
        """Limit each trial's gradient in place, if the cell has a limit: first its norm, then its elements.

        Raises:
            ValueError: if a limit isn't above 0.
        """
        if self._limits:
            self._limit_gradients()

    @torch.no_grad()
    def _limit_gradients(self) -> None:
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        limited = gradients
        if self._cell.clip_norm is not None:
            limited = clip_by_norm(limited, self._cell.clip_norm, has_trials=True)
        if self._cell.clip_value is not None:
            limited = clip_by_value(limited, self._cell.clip_value)
        for gradient, new in zip(gradients, limited, strict=True):
            gradient.copy_(new)


def _shape(name: str | None) -> Shape:
    return "squared" if name == "squared" else "linear"
