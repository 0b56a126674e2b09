"""Neural accumulators: adding (NAC+) and multiplying (NAC•, NAC•,σ, NAC•,NMU)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from units.initialize import Draw, Sizes, normal, within
from units.kernels import contract, sigmoid
from units.nmu import MultiplyingUnit
from units.traits import TRAITS
from units.unit import Unit
from units.variance import largest_nac_variance, largest_sigmoid_variance, nac_reach, require_variance, sigmoid_std

_EPSILON = 1e-7


def nac_weight(weight_hat: Tensor, mask_hat: Tensor) -> Tensor:
    """Compute weights that tend to -1, 0 and 1: W = tanh(Ŵ) ⊙ σ(M̂).

    Source: Trask et al., "Neural Arithmetic Logic Units", 2018.

    Args:
        weight_hat: Ŵ, any shape.
        mask_hat: M̂, the same shape.

    Example:
        >>> nac_weight(torch.tensor([-9.0, 0.0, 9.0]), torch.tensor([20.0, 20.0, 20.0]))
        tensor([-1.0000,  0.0000,  1.0000])
    """
    return torch.tanh(weight_hat) * sigmoid(mask_hat)


def nac_add(x: Tensor, weight: Tensor) -> Tensor:
    """Add and subtract: y_o = sum_i W_oi x_i.

    Source: Trask et al., "Neural Arithmetic Logic Units", 2018.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> nac_add(torch.tensor([[5.0, 3.0]]), torch.tensor([[1.0, -1.0]]))
        tensor([[2.]])
    """
    return contract(weight, x)


def nac_mul(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply and divide in log space: y_o = exp(sum_i W_oi log(|x_i| + 1e-7)); signs are lost.

    Source: Trask et al., "Neural Arithmetic Logic Units", 2018.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in].

    Returns:
        Shape [..., batch, out], positive unless it underflows to 0.

    Example:
        >>> nac_mul(torch.tensor([[6.0, -3.0]]), torch.tensor([[1.0, -1.0]]))
        tensor([[2.]])
    """
    return torch.exp(contract(weight, torch.log(x.abs() + _EPSILON)))


def nac_initial(
    in_features: int,
    out_features: int,
    weight_uniform: Tensor,
    mask_uniform: Tensor,
    init_variance: float | None,
    unit: str = "NACAdd",
) -> tuple[Tensor, Tensor]:
    """Compute initial Ŵ and M̂, U[-r, r], where r solves Var[W] = 2 / max(in + out, 5), or a given variance.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        weight_uniform: float64 numbers on [0, 1), shape [out, in].
        mask_uniform: the same.
        init_variance: variance of W, > 0 and at most `largest_nac_variance`, about 1/2; None for the default.
        unit: the unit's name, for the error message.

    Returns:
        Ŵ and M̂, float64 [out, in].

    Raises:
        ValueError: if the weights can't have that variance.

    Example:
        >>> one = torch.full((1, 1), 0.75, dtype=torch.float64)
        >>> nac_initial(1, 1, one, one, 0.25)
        (tensor([[1.6437]], dtype=torch.float64), tensor([[1.6437]], dtype=torch.float64))
    """
    if init_variance is None:
        init_variance = 2 / max(in_features + out_features, 5)
    require_variance(unit, init_variance, largest_nac_variance())
    reach = nac_reach(init_variance)
    return within(weight_uniform, 0.0, reach), within(mask_uniform, 0.0, reach)


class _Accumulator(Unit):
    weight_hat: nn.Parameter
    mask_hat: nn.Parameter

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        weight_hat, mask_hat = nac_initial(*sizes, uniform(0), uniform(1), init_variance, cls.__name__)
        return {"weight_hat": weight_hat, "mask_hat": mask_hat}

    def effective_weights(self) -> list[Tensor]:
        return [nac_weight(self.weight_hat, self.mask_hat)]


class NACAdd(_Accumulator):
    """NAC+, for sums and differences: y = Wx, W = tanh(Ŵ) ⊙ σ(M̂); see `nac_add` and `nac_initial`.

    Args: as for `Unit`.

    Example:
        >>> NACAdd(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NAC-add"]

    def forward(self, x: Tensor) -> Tensor:
        return nac_add(x, nac_weight(self.weight_hat, self.mask_hat))


class NACMul(_Accumulator):
    """NAC•, for products and quotients: y = exp(W log(|x| + 1e-7)), W as in NAC+; see `nac_mul`, `nac_initial`.

    Args: as for `Unit`.

    Example:
        >>> NACMul(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NAC-mul"]

    def forward(self, x: Tensor) -> Tensor:
        return nac_mul(x, nac_weight(self.weight_hat, self.mask_hat))


class NACMulSigma(Unit):
    """NAC•,σ, for products: y = exp(W log(|x| + 1e-7)), W = σ(Ŵ).

    Ŵ starts Xavier normal, std = sqrt(2 / (in + out)), or normal with the std of `sigmoid_std` for a given Var[W].

    Args: as for `Unit`.

    Example:
        >>> NACMulSigma(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NAC-mul-sigma"]
    weight_hat: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        return nac_mul(x, sigmoid(self.weight_hat))

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        std = math.sqrt(2 / sum(sizes))
        if init_variance is not None:
            require_variance(cls.__name__, init_variance, largest_sigmoid_variance())
            std = sigmoid_std(init_variance)
        return {"weight_hat": normal(uniform(0), std)}

    def effective_weights(self) -> list[Tensor]:
        return [sigmoid(self.weight_hat)]


class NACMulNMU(MultiplyingUnit):
    """NAC•,NMU, for products: y = exp(W log(|x| + 1e-7)), W in [0, 1] with the bounds and start of the NMU.

    Args: as for `Unit`.

    Example:
        >>> NACMulNMU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NAC-mul-NMU"]

    def forward(self, x: Tensor) -> Tensor:
        return nac_mul(x, self._within_bounds("weight"))
