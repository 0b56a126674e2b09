"""Neural addition unit: sums and differences of chosen inputs."""

from __future__ import annotations

from torch import Tensor, nn

from units.initialize import Draw, Sizes, uniform_reach, within, xavier_reach
from units.kernels import contract
from units.traits import TRAITS
from units.unit import Unit
from units.variance import LARGEST_NAU_VARIANCE, require_variance


def nau(x: Tensor, weight: Tensor) -> Tensor:
    """Add and subtract: y_o = sum_i W_oi x_i, W in [-1, 1].

    Source: Madsen & Johansen, "Neural Arithmetic Units", 2020.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> import torch
        >>> nau(torch.tensor([[5.0, 3.0, 9.0]]), torch.tensor([[1.0, -1.0, 0.0]]))
        tensor([[2.]])
    """
    return contract(weight, x)


def nau_initial(
    in_features: int, out_features: int, uniform: Tensor, init_variance: float | None, unit: str = "NAU"
) -> Tensor:
    """Compute initial weights U[-r, r]: r = min(1/2, sqrt(6 / (in + out))), or sqrt(3 Var) for a given variance.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        uniform: float64 numbers on [0, 1), shape [out, in].
        init_variance: > 0 and at most 1/3; None for the default.
        unit: the unit's name, for the error message.

    Raises:
        ValueError: if the weights can't have that variance.

    Example:
        >>> import torch
        >>> nau_initial(1, 1, torch.zeros(1, 1, dtype=torch.float64), None)
        tensor([[-0.5000]], dtype=torch.float64)
    """
    if init_variance is None:
        return within(uniform, 0.0, min(0.5, xavier_reach(in_features, out_features)))
    require_variance(unit, init_variance, LARGEST_NAU_VARIANCE)
    return within(uniform, 0.0, min(1.0, uniform_reach(init_variance)))


class NAU(Unit):
    """Neural addition unit: y_o = sum_i W_oi x_i, W in [-1, 1]; see `nau` and `nau_initial`.

    Args: as for `Unit`.

    Example:
        >>> import torch
        >>> NAU(3, 2, trials=4)(torch.ones(5, 3)).shape
        torch.Size([4, 5, 2])
    """

    traits = TRAITS["NAU"]
    weight: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        return nau(x, self._within_bounds("weight"))

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        return {"weight": nau_initial(*sizes, uniform(0), init_variance)}

    def effective_weights(self) -> list[Tensor]:
        return [self._within_bounds("weight")]
