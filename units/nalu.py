"""Neural arithmetic logic unit: a gate between NAC+ and NAC•, with shared or separate weights."""

from __future__ import annotations

from torch import Tensor, nn

from units.initialize import Draw, Sizes, within, xavier_reach
from units.kernels import contract, mix, sigmoid
from units.nac import nac_add, nac_initial, nac_mul, nac_weight
from units.traits import TRAITS
from units.unit import Unit


def nalu(x: Tensor, weight_add: Tensor, weight_mul: Tensor, gate: Tensor) -> Tensor:
    """Add or multiply: y = g ⊙ NAC+(x) + (1 - g) ⊙ NAC•(x), g = σ(Gx).

    Source: Trask et al., "Neural Arithmetic Logic Units", 2018.

    Args:
        x: shape [..., batch, in].
        weight_add: W of NAC+, shape [..., out, in].
        weight_mul: W of NAC•, the same shape; the original unit shares one W.
        gate: G, the same shape.

    Returns:
        Shape [..., batch, out].

    Example:
        >>> import torch
        >>> one = torch.ones(1, 2)
        >>> nalu(torch.tensor([[2.0, 3.0]]), one, one, 0 * one)  # the gate in the middle: (5 + 6) / 2
        tensor([[5.5000]])
    """
    return mix(gate_values(x, gate), nac_add(x, weight_add), nac_mul(x, weight_mul))


def gate_values(x: Tensor, gate: Tensor) -> Tensor:
    """Compute the gate between addition and multiplication, g = σ(Gx), without a bias; 1 adds, 0 multiplies.

    Source: Trask et al., "Neural Arithmetic Logic Units", 2018.

    Args:
        x: shape [..., batch, in].
        gate: G, shape [..., out, in].

    Returns:
        Shape [..., batch, out], in [0, 1].

    Example:
        >>> import torch
        >>> gate_values(torch.tensor([[2.0, 3.0]]), torch.tensor([[1.5, -1.0], [20.0, 20.0]]))
        tensor([[0.5000, 1.0000]])
    """
    return sigmoid(contract(gate, x))


def gate_initial(in_features: int, out_features: int, uniform: Tensor) -> Tensor:
    """Compute initial G: Xavier uniform with gain 1.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        uniform: float64 numbers on [0, 1), shape [out, in].

    Example:
        >>> import torch
        >>> gate_initial(4, 2, torch.zeros(2, 4, dtype=torch.float64))[0, 0].item()
        -1.0
    """
    return within(uniform, 0.0, xavier_reach(in_features, out_features))


class GatedUnit(Unit):
    """Base class of units that mix two outputs by a gate, the parameter ``gate``; see `gate_values`.

    Args: as for `Unit`.
    """

    gate: nn.Parameter

    def gates(self, x: Tensor) -> Tensor:
        """Compute the gate's values g.

        Args:
            x: as for `forward`.

        Returns:
            Values in [0, 1], of the shape of the unit's output.

        Example:
            >>> import torch
            >>> NALU(3, 2).gates(torch.zeros(1, 3))
            tensor([[0.5000, 0.5000]], grad_fn=...)
        """
        return gate_values(x, self.gate)


class NALU(GatedUnit):
    """NALU with shared weights W = tanh(Ŵ) ⊙ σ(M̂) for sums and products; see `nalu`.

    Args: as for `Unit`.

    Example:
        >>> import torch
        >>> NALU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NALU"]
    weight_hat: nn.Parameter
    mask_hat: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        weight = nac_weight(self.weight_hat, self.mask_hat)
        return nalu(x, weight, weight, self.gate)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        weight_hat, mask_hat = nac_initial(*sizes, uniform(0), uniform(1), init_variance, cls.__name__)
        return {"weight_hat": weight_hat, "mask_hat": mask_hat, "gate": gate_initial(*sizes, uniform(2))}

    def effective_weights(self) -> list[Tensor]:
        return [nac_weight(self.weight_hat, self.mask_hat)]


class SeparateNALU(GatedUnit):
    """NALU with separate weights for sums and products; see `nalu`.

    Args: as for `Unit`.

    Example:
        >>> import torch
        >>> SeparateNALU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NALU-separate"]
    paths = ("NAC₊", "NAC•")
    weight_hat_add: nn.Parameter
    mask_hat_add: nn.Parameter
    weight_hat_mul: nn.Parameter
    mask_hat_mul: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        weight_add, weight_mul = self.effective_weights()
        return nalu(x, weight_add, weight_mul, self.gate)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        add = nac_initial(*sizes, uniform(0), uniform(1), init_variance, cls.__name__)
        mul = nac_initial(*sizes, uniform(2), uniform(3), init_variance, cls.__name__)
        names = ("weight_hat_add", "mask_hat_add", "weight_hat_mul", "mask_hat_mul", "gate")
        return dict(zip(names, (*add, *mul, gate_initial(*sizes, uniform(4))), strict=True))

    def effective_weights(self) -> list[Tensor]:
        return [nac_weight(self.weight_hat_add, self.mask_hat_add), nac_weight(self.weight_hat_mul, self.mask_hat_mul)]
