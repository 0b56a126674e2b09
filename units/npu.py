"""Neural power units, for products, quotients and powers: NPU, RealNPU and the modified RealNPU."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from units.initialize import Draw, Sizes, uniform_reach, within, xavier_reach
from units.kernels import contract
from units.nau import nau_initial
from units.sparsity import mean_sparsity_error
from units.traits import TRAITS
from units.unit import Unit
from units.variance import require_variance

EPSILON = 2.0**-23
"""Added to |x|, so that its logarithm is finite: the spacing of single-precision numbers at 1."""

_GATE_START = 0.5


def polar(x: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
    """Split gated inputs into log magnitude and phase.

        g = min(max(ĝ, 0), 1),  r = g (|x| + ε) + 1 - g,  k = π g [x < 0],  ε = 2^-23

    A closed gate, g = 0, gives r = 1 and k = 0: the input becomes a factor of 1. r is always positive. The gradient of
    ĝ is zero outside of [0, 1].

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020.

    Args:
        x: shape [..., batch, in].
        gate: ĝ, one per input, shape [..., 1, in].

    Returns:
        log r and k, each of shape [..., batch, in].

    Example:
        >>> polar(torch.tensor([[1.0, -1.0]]), torch.tensor([[0.0, 1.0]]))
        (tensor([[0.0000e+00, 1.1921e-07]]), tensor([[0.0000, 3.1416]]))
    """
    columns, gate = x.mT, gate.clamp(0, 1).mT
    magnitude = gate * (columns.abs() + EPSILON) + (1 - gate)
    phase = (math.pi * gate) * (columns < 0)
    return torch.log(magnitude).mT, phase.mT


def real_npu(x: Tensor, weight: Tensor, gate: Tensor) -> Tensor:
    """Multiply and divide with signs: y_o = exp(sum_i W_oi log r_i) cos(sum_i W_oi k_i); see `polar`.

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020.

    Args:
        x: shape [..., batch, in].
        weight: W, shape [..., out, in].
        gate: ĝ, shape [..., 1, in].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> real_npu(torch.tensor([[6.0, -3.0]]), torch.tensor([[1.0, -1.0]]), torch.ones(1, 2)).round(decimals=4)
        tensor([[-2.]])
    """
    log_magnitude, phase = polar(x, gate)
    return torch.exp(contract(weight, log_magnitude)) * torch.cos(contract(weight, phase))


def npu(x: Tensor, weight: Tensor, weight_imaginary: Tensor, gate: Tensor) -> Tensor:
    """Compute the real part of a product of powers with complex exponents.

        y_o = exp(sum_i (R_oi log r_i - I_oi k_i)) cos(sum_i (R_oi k_i + I_oi log r_i))

    r and k are from `polar`. With I = 0 it is `real_npu`.

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020.

    Args:
        x: shape [..., batch, in].
        weight: R, the real part of the exponents, shape [..., out, in].
        weight_imaginary: I, the imaginary part, the same shape.
        gate: ĝ, shape [..., 1, in].

    Returns:
        Shape [..., batch, out].

    Example:
        >>> none, all_of_it = torch.zeros(1, 2), torch.ones(1, 2)
        >>> npu(torch.tensor([[6.0, -3.0]]), torch.tensor([[1.0, -1.0]]), none, all_of_it).round(decimals=4)
        tensor([[-2.]])
    """
    log_magnitude, phase = polar(x, gate)
    size = contract(weight, log_magnitude) - contract(weight_imaginary, phase)
    angle = contract(weight, phase) + contract(weight_imaginary, log_magnitude)
    return torch.exp(size) * torch.cos(angle)


def npu_initial(sizes: Sizes, uniform: Tensor, init_variance: float | None, unit: str = "RealNPU") -> Tensor:
    """Compute initial W: Xavier uniform, or U[-r, r], r = sqrt(3 Var), for a given variance.

    With few inputs and outputs the default is wider than [-1, 1]: ±1.414 for 2 inputs and 1 output.

    Args:
        sizes: numbers of inputs and outputs.
        uniform: float64 numbers on [0, 1), shape [out, in].
        init_variance: > 0; None for the default.
        unit: the unit's name, for the error message.

    Raises:
        ValueError: if the weights can't have that variance.

    Example:
        >>> npu_initial((2, 1), torch.zeros(1, 2, dtype=torch.float64), None)
        tensor([[-1.4142, -1.4142]], dtype=torch.float64)
    """
    if init_variance is None:
        return within(uniform, 0.0, xavier_reach(*sizes))
    require_variance(unit, init_variance, math.inf)
    return within(uniform, 0.0, uniform_reach(init_variance))


def gate_start(sizes: Sizes) -> Tensor:
    """Return the initial gates of an NPU: all 1/2, shape [1, in].

    Example:
        >>> gate_start((2, 1))
        tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    return torch.full((1, sizes[0]), _GATE_START, dtype=torch.float64)


class RealNPU(Unit):
    """RealNPU, for products and quotients with signs: y = exp(W log r) ⊙ cos(W k).

    See `real_npu`, `npu_initial` and `gate_start`. W isn't bounded. The published unit is trained with an L1 penalty of
    all parameters, including the gates.

    Args: as for `Unit`.

    Example:
        >>> RealNPU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["RealNPU"]
    weight: nn.Parameter
    gate: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        return real_npu(x, self.weight, self.gate)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        return {"weight": npu_initial(sizes, uniform(0), init_variance, cls.__name__), "gate": gate_start(sizes)}

    def effective_weights(self) -> list[Tensor]:
        return [self.weight]


class ModifiedRealNPU(RealNPU):
    """RealNPU with W in [-1, 1], gates in [0, 1], and matching start and regularisers.

    W starts as the NAU's. `sparsity` is the sum of the gates' mean min(|ĝ|, |1 - ĝ|) and the weights' mean |1 - |W||:
    an unneeded input should be removed by its gate, not by a weight of 0.

    Source: Mistry, Hare & Farrahi, "Learning Division with Neural Arithmetic Logic Modules", 2021.

    Args: as for `Unit`; the variance is at most 1/3.

    Example:
        >>> unit = ModifiedRealNPU(3, 2)
        >>> sorted(unit.limits.items())
        [('gate', (0.0, 1.0)), ('weight', (-1.0, 1.0))]
    """

    traits = TRAITS["RealNPU-modified"]

    def forward(self, x: Tensor) -> Tensor:
        return real_npu(x, self._within_bounds("weight"), self._within_bounds("gate"))

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        weight = nau_initial(*sizes, uniform(0), init_variance, cls.__name__)
        return {"weight": weight, "gate": gate_start(sizes)}

    def effective_weights(self) -> list[Tensor]:
        return [self._within_bounds("weight")]


class NPU(Unit):
    """NPU, for powers with complex exponents; see `npu`, `npu_initial` and `gate_start`.

    The imaginary part starts at 0, and `init_variance` is that of the real part. The sparsity error is the mean of the
    two parts' errors.

    Args: as for `Unit`.

    Example:
        >>> NPU(3, 2)(torch.ones(5, 3)).shape
        torch.Size([5, 2])
    """

    traits = TRAITS["NPU"]
    paths = ("Re W", "Im W")
    weight: nn.Parameter
    weight_imaginary: nn.Parameter
    gate: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        return npu(x, self.weight, self.weight_imaginary, self.gate)

    @classmethod
    def initial_values(cls, sizes: Sizes, uniform: Draw, init_variance: float | None) -> dict[str, Tensor]:
        weight = npu_initial(sizes, uniform(0), init_variance, cls.__name__)
        return {"weight": weight, "weight_imaginary": torch.zeros_like(weight), "gate": gate_start(sizes)}

    def effective_weights(self) -> list[Tensor]:
        return [self.weight, self.weight_imaginary]

    @torch.no_grad()
    def sparsity_error(self) -> Tensor:
        return mean_sparsity_error(self.effective_weights())
