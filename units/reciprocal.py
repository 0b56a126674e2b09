"""Reciprocal units: NRU and NMRU, with different functions for training and evaluation."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from units.initialize import Draw, Sizes
from units.kernels import contract
from units.nau import nau_initial
from units.nmu import nmu_initial
from units.npu import EPSILON
from units.product import product, product_of_factors
from units.traits import TRAITS
from units.unit import Unit

_STEEPNESS = 1000.0


def nru(x: Tensor, weight: Tensor, is_training: bool) -> Tensor:
    """Multiply and divide: y_o = prod_i (sgn(x_i) |x_i|^W_oi s_oi + 1 - s_oi), W in [-1, 1].

        s = tanh²(1000 W) in training, |W| in evaluation

    Both agree at W in {-1, 0, 1}. An input of 0 is a factor of 1 - s, even for W < 0, and its gradient is 0.

    Source: Mistry, Hare & Farrahi, "Learning Division with Neural Arithmetic Logic Modules", 2021.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in].
        is_training: True for the s of training, False for that of evaluation.

    Returns:
        Shape [..., batch, out].

    Example:
        >>> weight = torch.tensor([[1.0, -1.0, 0.0]])
        >>> nru(torch.tensor([[6.0, -3.0, 5.0]]), weight, is_training=True).round(decimals=4)
        tensor([[-2.]])
    """
    columns, exponent = x.mT.unsqueeze(-3), weight.unsqueeze(-1)
    selected = torch.tanh(_STEEPNESS * exponent).square() if is_training else exponent.abs()
    # Zeros are replaced before the logarithm, whose gradient there is infinite; their sign is zero.
    size = torch.where(columns == 0, 1.0, columns.abs())
    power = torch.sign(columns) * torch.exp(exponent * torch.log(size))
    return product_of_factors(power * selected + (1 - selected))


def with_reciprocals(x: Tensor, is_training: bool) -> Tensor:
    """Append the reciprocal of every input: [x, 1/x], in training [x, 1/(x + ε)], ε = 2^-23.

    A divisor of 0 is replaced by ε.

    Source: Mistry, Hare & Farrahi, "Learning Division with Neural Arithmetic Logic Modules", 2021.

    Args:
        x: shape [..., batch, in].
        is_training: True to add ε before dividing.

    Returns:
        Shape [..., batch, 2 in].

    Example:
        >>> with_reciprocals(torch.tensor([[2.0, 4.0]]), is_training=False)
        tensor([[2.0000, 4.0000, 0.5000, 0.2500]])
    """
    columns = x.mT
    divisor = columns + EPSILON if is_training else columns
    divisor = torch.where(divisor == 0, EPSILON, divisor)
    return torch.cat([columns, 1 / divisor], -2).mT


def nmru(x: Tensor, weight: Tensor, is_training: bool) -> Tensor:
    """Multiply inputs and their reciprocals u, with signs; W in [0, 1].

        y_o = prod_j (|u_j| W_oj + 1 - W_oj) cos(π sum_j [u_j < 0] W_oj)

    Source: Mistry, Hare & Farrahi, "Learning Division with Neural Arithmetic Logic Modules", 2021.

    Args:
        x: shape [..., batch, in]; u is `with_reciprocals` of x.
        weight: W, shape [..., out, 2 in]: first the weights of x, then those of the reciprocals.
        is_training: True to add ε before dividing.

    Returns:
        Shape [..., batch, out].

    Example:
        >>> weight = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
        >>> nmru(torch.tensor([[6.0, -3.0]]), weight, is_training=False).round(decimals=4)
        tensor([[-2.]])
    """
    both = with_reciprocals(x, is_training)
    columns = both.mT
    phase = math.pi * (columns < 0).to(columns.dtype)
    return product(columns.abs().mT, weight) * torch.cos(contract(weight, phase.mT))


class NRU(Unit):
    """Neural reciprocal unit, for products and quotients with W in [-1, 1]; see `nru`.

    Bounds, start and regularisers are the NAU's. Until W is discrete, training and evaluation compute different
    functions; torch's `train` and `eval` switch between them.

    Args: as for `Unit`.

    Example:
        >>> NRU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NRU"]
    weight: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        return nru(x, self._within_bounds("weight"), self.training)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        return {"weight": nau_initial(*sizes, uniform(0), init_variance, cls.__name__)}

    def effective_weights(self) -> list[Tensor]:
        return [self._within_bounds("weight")]


class NMRU(Unit):
    """Neural multiplicative reciprocal unit, for products and quotients with W in [0, 1]; see `nmru`.

    Bounds, start and regularisers are the NMU's. W has shape [out, 2 in]; an input and its reciprocal can be selected
    together. torch's `train` and `eval` switch between 1/(x + ε) and 1/x. The published unit is trained with gradients
    clipped to a norm of 1.

    Args: as for `Unit`.

    Example:
        >>> unit = NMRU(3, 2)
        >>> unit(torch.ones(5, 3)).shape, unit.weight.shape
        (torch.Size([5, 2]), torch.Size([2, 6]))
    """

    traits = TRAITS["NMRU"]
    weight: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        return nmru(x, self._within_bounds("weight"), self.training)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        halves = [nmu_initial(uniform(index), init_variance, cls.__name__) for index in (0, 1)]
        return {"weight": torch.cat(halves, -1)}

    def effective_weights(self) -> list[Tensor]:
        return [self._within_bounds("weight")]
