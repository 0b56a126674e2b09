"""Plain layers, for comparison: Linear, ReLU, ReLU6, Tanh, Sigmoid, Softsign, SELU, ELU."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import partial

import torch
from torch import Tensor, nn

from units.initialize import Draw, Sizes, kaiming_reach, uniform_reach, within, xavier_reach
from units.kernels import contract, elu, sigmoid
from units.unit import Unit
from units.variance import require_variance

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_ALPHA = 1.6732632423543772848170429916717


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute Wx + b.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in].
        bias: b, shape [..., out].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> linear(torch.tensor([[2.0, 3.0]]), torch.tensor([[1.0, 1.0]]), torch.tensor([0.5]))
        tensor([[5.5000]])
    """
    return contract(weight, x) + bias.unsqueeze(-2)


def selu(x: Tensor) -> Tensor:
    """Compute the SELU: λ x for x > 0, λ α (exp(x) - 1) below, λ = 1.0507 and α = 1.6733.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Args:
        x: any shape.

    Example:
        >>> selu(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.0507])
    """
    return _SELU_SCALE * torch.where(x > 0, x, _SELU_ALPHA * torch.expm1(x.clamp(max=0)))


class _Affine(Unit):
    """Layer f(Wx + b), f = `activation`; W starts uniform within ± `reach`, b at 0."""

    weight: nn.Parameter
    bias: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(linear(x, self.weight, self.bias))

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        if init_variance is None:
            reach = cls.reach(*sizes)
        else:
            require_variance(cls.__name__, init_variance, math.inf)
            reach = uniform_reach(init_variance)
        return {"weight": within(uniform(0), 0.0, reach), "bias": torch.zeros(sizes[1])}

    def effective_weights(self) -> list[Tensor]:
        return [self.weight]

    @staticmethod
    @abstractmethod
    def activation(z: Tensor, /) -> Tensor: ...

    @staticmethod
    def reach(in_features: int, out_features: int, /) -> float:
        return xavier_reach(in_features, out_features)


class _Kaiming(_Affine):
    reach = staticmethod(lambda in_features, out_features: kaiming_reach(in_features))


class Linear(_Affine):
    """Linear layer Wx + b; W starts Xavier uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> Linear(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    activation = staticmethod(lambda z: z)


class ReLU(_Kaiming):
    """Layer max(0, Wx + b); W starts Kaiming uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> bool((ReLU(3, 2)(torch.randn(5, 3)) >= 0).all())
        True
    """

    activation = staticmethod(torch.relu)


class ReLU6(_Kaiming):
    """Layer min(max(0, Wx + b), 6); W starts Kaiming uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> bool((ReLU6(3, 2)(100 * torch.randn(5, 3)) <= 6).all())
        True
    """

    activation = staticmethod(nn.functional.relu6)


class Tanh(_Affine):
    """Layer tanh(Wx + b); W starts Xavier uniform with gain 5/3, b at 0.

    Args: as for `Unit`.

    Example:
        >>> Tanh(3, 2)(torch.zeros(1, 3))
        tensor([[0., 0.]], grad_fn=...)
    """

    activation = staticmethod(torch.tanh)
    reach = staticmethod(partial(xavier_reach, gain=5 / 3))


class Sigmoid(_Affine):
    """Layer σ(Wx + b); W starts Xavier uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> Sigmoid(3, 2)(torch.zeros(1, 3))
        tensor([[0.5000, 0.5000]], grad_fn=...)
    """

    activation = staticmethod(sigmoid)


class Softsign(_Affine):
    """Layer z / (1 + |z|), z = Wx + b; W starts Xavier uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> bool((Softsign(3, 2)(torch.randn(5, 3)).abs() < 1).all())
        True
    """

    activation = staticmethod(nn.functional.softsign)


class SELU(_Affine):
    """Layer selu(Wx + b); W starts uniform with variance 1 / in, b at 0.

    Args: as for `Unit`.

    Example:
        >>> SELU(3, 2)(torch.zeros(1, 3))
        tensor([[0., 0.]], grad_fn=...)
    """

    activation = staticmethod(selu)
    reach = staticmethod(lambda in_features, out_features: uniform_reach(1 / in_features))


class ELU(_Kaiming):
    """Layer elu(Wx + b); W starts Kaiming uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> bool((ELU(3, 2)(torch.randn(5, 3)) >= -1).all())
        True
    """

    activation = staticmethod(elu)
