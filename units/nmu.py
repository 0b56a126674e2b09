"""Neural multiplication unit, plain and normalised: products of chosen inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from units.initialize import Draw, Sizes, uniform_reach, within
from units.product import product
from units.traits import TRAITS
from units.unit import Unit
from units.variance import LARGEST_NMU_VARIANCE, require_variance

_DEFAULT_REACH = 0.25  # a variance of 1/48


def nmu(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply: y_o = prod_i (W_oi x_i + 1 - W_oi), W in [0, 1].

    Source: Madsen & Johansen, "Neural Arithmetic Units", 2020.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> nmu(torch.tensor([[5.0, 3.0, 9.0]]), torch.tensor([[1.0, 1.0, 0.0]]))
        tensor([[15.]])
    """
    return product(x, weight)


def nmu_normalized(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply inputs scaled to unit variance, and scale back: y_o = NMU(x / c)_o c^(sum_i W_oi), c = std of x.

    It equals `nmu` at W in {0, 1}. The std is that of a sample, with n - 1. A constant input isn't scaled.

    Source: an early draft of Madsen & Johansen, "Neural Arithmetic Units", 2020.

    Args:
        x: shape [..., batch, in]; c is taken over the last two axes.
        weight: W, shape [..., out, in].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> nmu_normalized(torch.tensor([[5.0, 3.0], [1.0, 2.0]]), torch.tensor([[1.0, 1.0]]))
        tensor([[15.0000],
                [ 2.0000]])
    """
    entries = x.shape[-2] * x.shape[-1]
    variance = x.mT.var((-2, -1), keepdim=True, correction=min(1, entries - 1))
    # Zeros are replaced before the logarithm, whose gradient there is infinite; `!= 0` keeps NaN.
    variance = torch.where(variance != 0, variance, 1.0)
    log_c = 0.5 * torch.log(variance)
    scale = torch.exp(log_c * weight.sum(-1).unsqueeze(-2))
    return nmu(x * torch.exp(-log_c), weight) * scale


def nmu_initial(uniform: Tensor, init_variance: float | None, unit: str = "NMU") -> Tensor:
    """Compute initial weights: U[1/4, 3/4], or U[1/2 - r, 1/2 + r], r = sqrt(3 Var), for a given variance.

    Args:
        uniform: float64 numbers on [0, 1).
        init_variance: > 0 and at most 1/12; None for the default, 1/48.
        unit: the unit's name, for the error message.

    Raises:
        ValueError: if the weights can't have that variance.

    Example:
        >>> nmu_initial(torch.tensor([0.0, 0.5], dtype=torch.float64), 1 / 12)
        tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    if init_variance is None:
        return within(uniform, 0.5, _DEFAULT_REACH)
    require_variance(unit, init_variance, LARGEST_NMU_VARIANCE)
    return within(uniform, 0.5, min(0.5, uniform_reach(init_variance)))


def nmu_initial_in(uniform: Tensor, low: float, high: float) -> Tensor:
    """Compute initial weights U[low, high]; the ends aren't checked.

    Args:
        uniform: float64 numbers on [0, 1).
        low: at least 0.
        high: more than low, and at most 1.

    Example:
        >>> nmu_initial_in(torch.tensor([0.0, 0.5], dtype=torch.float64), 0.5, 1.0)
        tensor([0.5000, 0.7500], dtype=torch.float64)
    """
    return within(uniform, (low + high) / 2, (high - low) / 2)


class MultiplyingUnit(Unit):
    """Base class of units with one weight matrix W in [0, 1], the parameter ``weight``; see `nmu_initial`.

    Args: as for `Unit`.
    """

    weight: nn.Parameter

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        return {"weight": nmu_initial(uniform(0), init_variance, cls.__name__)}

    def effective_weights(self) -> list[Tensor]:
        return [self._within_bounds("weight")]


class NMU(MultiplyingUnit):
    """Neural multiplication unit: y_o = prod_i (W_oi x_i + 1 - W_oi), W in [0, 1]; see `nmu` and `nmu_initial`.

    Args: as for `Unit`.

    Example:
        >>> NMU(3, 2, trials=4)(torch.ones(5, 3)).shape
        torch.Size([4, 5, 2])
    """

    traits = TRAITS["NMU"]

    def forward(self, x: Tensor) -> Tensor:
        return nmu(x, self._within_bounds("weight"))


class NormalizedNMU(MultiplyingUnit):
    """NMU of inputs scaled to unit variance; see `nmu_normalized` and `nmu_initial`.

    Args: as for `Unit`.

    Example:
        >>> NormalizedNMU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NMU-normalized"]

    def forward(self, x: Tensor) -> Tensor:
        return nmu_normalized(x, self._within_bounds("weight"))
