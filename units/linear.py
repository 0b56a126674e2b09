"""Plain layers, for comparison: Linear, ReLU, ReLU6, Tanh, Sigmoid, Softsign, SELU, ELU."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

from units.initialize import Uniform, kaiming_reach, uniform_reach, within, xavier_reach
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
    """Bend the negative side and scale: λ x for x > 0, λ α (exp(x) - 1) below.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Args:
        x: any shape.

    Example:
        >>> selu(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.0507])
    """
    return _SELU_SCALE * torch.where(x > 0, x, _SELU_ALPHA * torch.expm1(x.clamp(max=0)))


class _Plain(Unit):
    weight: nn.Parameter
    bias: nn.Parameter

    @classmethod
    def initial(
        cls,
        in_features: int,
        out_features: int,
        uniform: Uniform,
        *,
        init_variance: float | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> dict[str, Tensor]:
        if init_variance is None:
            reach = cls._reach(in_features, out_features)
        else:
            require_variance(cls.__name__, init_variance, math.inf)
            reach = uniform_reach(init_variance)
        weight = within(uniform(0, (out_features, in_features)), 0.0, reach)
        return {"weight": weight.to(dtype), "bias": torch.zeros(out_features, dtype=dtype)}

    def effective_weights(self) -> list[Tensor]:
        return [self.weight]

    def _affine(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

    @classmethod
    @abstractmethod
    def _reach(cls, in_features: int, out_features: int) -> float:
        """Give the half-width of the default initial weights."""


class _Xavier(_Plain):
    @classmethod
    def _reach(cls, in_features: int, out_features: int) -> float:
        return xavier_reach(in_features, out_features)


class _Kaiming(_Plain):
    @classmethod
    def _reach(cls, in_features: int, out_features: int) -> float:
        return kaiming_reach(in_features)


class Linear(_Xavier):
    """Compute Wx + b; W starts Xavier uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> Linear(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._affine(x)


class ReLU(_Kaiming):
    """Compute max(0, Wx + b); W starts Kaiming uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> bool((ReLU(3, 2)(torch.randn(5, 3)) >= 0).all())
        True
    """

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self._affine(x))


class ReLU6(_Kaiming):
    """Compute min(max(0, Wx + b), 6); W starts Kaiming uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> bool((ReLU6(3, 2)(100 * torch.randn(5, 3)) <= 6).all())
        True
    """

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu6(self._affine(x))


class Tanh(_Plain):
    """Compute tanh(Wx + b); W starts Xavier uniform with gain 5/3, b at 0.

    Args: as for `Unit`.

    Example:
        >>> Tanh(3, 2)(torch.zeros(1, 3))
        tensor([[0., 0.]], grad_fn=...)
    """

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self._affine(x))

    @classmethod
    def _reach(cls, in_features: int, out_features: int) -> float:
        return xavier_reach(in_features, out_features, gain=5 / 3)


class Sigmoid(_Xavier):
    """Compute σ(Wx + b); W starts Xavier uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> Sigmoid(3, 2)(torch.zeros(1, 3))
        tensor([[0.5000, 0.5000]], grad_fn=...)
    """

    def forward(self, x: Tensor) -> Tensor:
        return sigmoid(self._affine(x))


class Softsign(_Xavier):
    """Compute z / (1 + |z|), z = Wx + b; W starts Xavier uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> bool((Softsign(3, 2)(torch.randn(5, 3)).abs() < 1).all())
        True
    """

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.softsign(self._affine(x))


class SELU(_Plain):
    """Compute selu(Wx + b); W starts uniform with variance 1 / in, b at 0.

    Args: as for `Unit`.

    Example:
        >>> SELU(3, 2)(torch.zeros(1, 3))
        tensor([[0., 0.]], grad_fn=...)
    """

    def forward(self, x: Tensor) -> Tensor:
        return selu(self._affine(x))

    @classmethod
    def _reach(cls, in_features: int, out_features: int) -> float:
        return uniform_reach(1 / in_features)


class ELU(_Kaiming):
    """Compute elu(Wx + b); W starts Kaiming uniform, b at 0.

    Args: as for `Unit`.

    Example:
        >>> bool((ELU(3, 2)(torch.randn(5, 3)) >= -1).all())
        True
    """

    def forward(self, x: Tensor) -> Tensor:
        return elu(self._affine(x))
