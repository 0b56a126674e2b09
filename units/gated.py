"""Gate between NAU and NMU."""

from __future__ import annotations

from torch import Tensor, nn

from units.initialize import Draw, Sizes
from units.kernels import mix
from units.nalu import GatedUnit, gate_initial, gate_values
from units.nau import nau, nau_initial
from units.nmu import nmu, nmu_initial
from units.traits import TRAITS


def gated(x: Tensor, weight_add: Tensor, weight_mul: Tensor, gate: Tensor) -> Tensor:
    """Add or multiply: y = g ⊙ NAU(x) + (1 - g) ⊙ NMU(x), g = σ(Gx).

    Source: Madsen & Johansen, "Neural Arithmetic Units", 2020.

    Args:
        x: shape [..., batch, in].
        weight_add: W of the NAU, shape [..., out, in].
        weight_mul: W of the NMU, the same shape.
        gate: G, the same shape.

    Returns:
        Shape [..., batch, out].

    Example:
        >>> import torch
        >>> one = torch.ones(1, 2)
        >>> gated(torch.tensor([[2.0, 3.0]]), one, one, 0 * one)  # the gate in the middle: (5 + 6) / 2
        tensor([[5.5000]])
    """
    return mix(gate_values(x, gate), nau(x, weight_add), nmu(x, weight_mul))


class GatedNAUNMU(GatedUnit):
    """Gated NAU and NMU with separate weights; see `gated`.

    `init_variance` applies to both weights, so its limit is the NMU's. Each regulariser is the mean over the NAU's
    weights plus the mean over the NMU's.

    Args: as for `Unit`.

    Example:
        >>> import torch
        >>> GatedNAUNMU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["gated-NAU-NMU"]
    paths = ("NAU", "NMU")
    weight_add: nn.Parameter
    weight_mul: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        weight_add, weight_mul = self.effective_weights()
        return gated(x, weight_add, weight_mul, self.gate)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        # The NMU comes first: its limit is lower, so the error message gives the limit that both weights must meet.
        weight_mul = nmu_initial(uniform(1), init_variance, cls.__name__)
        weight_add = nau_initial(*sizes, uniform(0), init_variance, cls.__name__)
        return {"weight_add": weight_add, "weight_mul": weight_mul, "gate": gate_initial(*sizes, uniform(2))}

    def effective_weights(self) -> list[Tensor]:
        return [self._within_bounds("weight_add"), self._within_bounds("weight_mul")]
