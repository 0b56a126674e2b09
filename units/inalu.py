"""Improved neural arithmetic logic unit: a gate independent of the input, separate weights, and signs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import torch
from torch import Tensor, nn

from units.initialize import Draw, Sizes, normal
from units.kernels import contract, mix, sigmoid
from units.nac import nac_add, nac_weight
from units.nalu import GatedUnit
from units.product import product
from units.sparsity import mean_sparsity_error
from units.traits import TRAITS

_SMALLEST_SIZE = 1e-7
_LARGEST_LOG = 20.0
_HATS = ("weight_hat_add", "mask_hat_add", "weight_hat_mul", "mask_hat_mul")

Start = Mapping[str, tuple[float, float]]
"""Mean and standard deviation of the initial ``weight_hat``, ``mask_hat`` and ``gate``, all normal."""

ORIGINAL_START: Start = MappingProxyType({"weight_hat": (1.0, 0.1), "mask_hat": (-1.0, 0.1), "gate": (0.0, 0.1)})
"""Start in all experiments of Schlör et al., 2020."""

PRIMER_START: Start = MappingProxyType({"weight_hat": (0.88, 0.2), "mask_hat": (0.5, 0.2), "gate": (0.0, 0.2)})
"""Start in Mistry et al., 2022."""


def inalu_mul(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply and divide with signs, up to e^20 in size.

        y_o = exp(min(sum_i W_oi log max(|x_i|, 1e-7), 20)) prod_i (sgn(x_i) |W_oi| + 1 - |W_oi|)

    Source: Schlör, Ring & Hotho, "iNALU: Improved Neural Arithmetic Logic Unit", Frontiers in AI, 2020.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> inalu_mul(torch.tensor([[6.0, -3.0]]), torch.tensor([[1.0, -1.0]])).round(decimals=4)
        tensor([[-2.]])
    """
    logs = torch.log(x.abs().clamp_min(_SMALLEST_SIZE))
    size = torch.exp(contract(weight, logs).clamp_max(_LARGEST_LOG))
    return size * product(torch.sign(x), weight.abs())


def inalu(x: Tensor, weight_add: Tensor, weight_mul: Tensor, gate: Tensor) -> Tensor:
    """Add or multiply: y = g ⊙ NAC+(x) + (1 - g) ⊙ m, g = σ(ĝ), m = `inalu_mul`.

    Source: Schlör, Ring & Hotho, "iNALU: Improved Neural Arithmetic Logic Unit", Frontiers in AI, 2020.

    Args:
        x: shape [..., batch, in].
        weight_add: W of NAC+, shape [..., out, in].
        weight_mul: W of the product, the same shape.
        gate: ĝ, one per output, shape [..., 1, out].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> one, half_open = torch.ones(1, 2), torch.zeros(1, 1)
        >>> inalu(torch.tensor([[2.0, -3.0]]), one, one, half_open).round(decimals=4)  # (-1 - 6) / 2
        tensor([[-3.5000]])
    """
    return mix(sigmoid(gate), nac_add(x, weight_add), inalu_mul(x, weight_mul))


class INALU(GatedUnit):
    """INALU with separate weights W = tanh(Ŵ) ⊙ σ(M̂) for sums and products; see `inalu`.

    It starts as in its authors' experiments, from `ORIGINAL_START`; the initial variance can't be chosen. The sparsity
    error is the mean of the two weights' errors. `units.inalu_training` has the options of its training.

    Args: as for `Unit`.

    Raises:
        ValueError: if `init_variance` is given, and as for `Unit`.

    Example:
        >>> INALU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["iNALU"]
    paths = ("NAC₊", "NAC•")
    start: ClassVar[Start] = ORIGINAL_START
    weight_hat_add: nn.Parameter
    mask_hat_add: nn.Parameter
    weight_hat_mul: nn.Parameter
    mask_hat_mul: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        weight_add, weight_mul = self.effective_weights()
        return inalu(x, weight_add, weight_mul, self.gate)

    def gates(self, x: Tensor) -> Tensor:
        leading = torch.broadcast_shapes(x.shape[:-2], self.gate.shape[:-2])  # type: ignore[no-untyped-call]
        return sigmoid(self.gate).expand(*leading, x.shape[-2], self.out_features)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        if init_variance is not None:
            raise ValueError(
                f"init_variance={init_variance:g} was given for {cls.__name__}, but its weights start from fixed "
                "normal distributions: leave it out"
            )
        values = {}
        for index, name in enumerate(_HATS):
            mean, std = cls.start[name.rsplit("_", 1)[0]]
            values[name] = mean + normal(uniform(index), std)
        mean, std = cls.start["gate"]
        # One gate per output: the first number of each drawn row.
        return values | {"gate": mean + normal(uniform(len(_HATS))[:, :1].mT, std)}

    def effective_weights(self) -> list[Tensor]:
        return [nac_weight(self.weight_hat_add, self.mask_hat_add), nac_weight(self.weight_hat_mul, self.mask_hat_mul)]

    @torch.no_grad()
    def sparsity_error(self) -> Tensor:
        return mean_sparsity_error(self.effective_weights())


class PrimerINALU(INALU):
    """INALU with the start of Mistry et al.'s Primer, 2022: `PRIMER_START`.

    Args: as for `INALU`.

    Example:
        >>> unit = PrimerINALU(300, 200, generator=torch.Generator().manual_seed(0))
        >>> round(float(unit.weight_hat_mul.detach().mean()), 2)
        0.88
    """

    traits = TRAITS["iNALU-Primer"]
    start = PRIMER_START
