"""G-NALU: a NALU with the golden ratio as the base of tanh and σ."""

from __future__ import annotations

import math

from torch import Tensor

from units.initialize import Draw, Sizes
from units.nac import nac_weight
from units.nalu import NALU, gate_values, nalu
from units.traits import TRAITS

GOLDEN_RATIO = (1 + math.sqrt(5)) / 2
# (φ^2x - 1) / (φ^2x + 1) = tanh(x log φ), and 1 / (1 + φ^-x) = σ(x log φ): the same numbers without overflow.
_LOG_GOLDEN = math.log(GOLDEN_RATIO)


def golden_weight(weight_hat: Tensor, mask_hat: Tensor) -> Tensor:
    """Compute weights that tend to -1, 0 and 1: `nac_weight` with base φ = (1 + √5) / 2 instead of e.

        W = (φ^2Ŵ - 1) / (φ^2Ŵ + 1) ⊙ 1 / (1 + φ^-M̂)

    Source: Rana, Malhi & Främling, "Exploring Numerical Calculations with CalcNet", ICTAI 2019.

    Args:
        weight_hat: Ŵ, any shape.
        mask_hat: M̂, the same shape.

    Example:
        >>> import torch
        >>> golden_weight(torch.tensor([-1.0, 0.0, 20.0]), torch.tensor([40.0, 40.0, 40.0]))
        tensor([-0.4472,  0.0000,  1.0000])
    """
    return nac_weight(_LOG_GOLDEN * weight_hat, _LOG_GOLDEN * mask_hat)


def golden_gate_values(x: Tensor, gate: Tensor) -> Tensor:
    """Compute the gate between addition and multiplication, g = 1 / (1 + φ^-Gx); 1 adds, 0 multiplies.

    Source: as for `golden_weight`.

    Args:
        x: shape [..., batch, in].
        gate: G, shape [..., out, in].

    Returns:
        Shape [..., batch, out], in [0, 1].

    Example:
        >>> import torch
        >>> golden_gate_values(torch.tensor([[2.0, 3.0]]), torch.tensor([[1.5, -1.0], [-1.0, 1.0]]))
        tensor([[0.5000, 0.6180]])
    """
    return gate_values(x, _LOG_GOLDEN * gate)


class GNALU(NALU):
    """NALU with base φ instead of e in weights and gate; see `golden_weight` and `golden_gate_values`.

    The product is the NALU's, since φ^(W log_φ |x|) = exp(W log |x|). By default Ŵ, M̂ and G start as in the NALU, so W
    has a smaller variance than the NALU's.

    Args: as for `Unit`.

    Example:
        >>> import torch
        >>> GNALU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["G-NALU"]

    def forward(self, x: Tensor) -> Tensor:
        weight = golden_weight(self.weight_hat, self.mask_hat)
        return nalu(x, weight, weight, _LOG_GOLDEN * self.gate)

    def gates(self, x: Tensor) -> Tensor:
        return golden_gate_values(x, self.gate)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        values = super().initial_values(sizes, uniform, init_variance)
        if init_variance is None:
            return values
        # The NALU's values give that variance with base e; divided by log φ, they give it with base φ.
        return {name: value if name == "gate" else value / _LOG_GOLDEN for name, value in values.items()}

    def effective_weights(self) -> list[Tensor]:
        return [golden_weight(self.weight_hat, self.mask_hat)]
