"""Initial weights as pure functions of uniform numbers, and the ranges that give a wanted variance.

Randomness is an argument: a unit's initial weights are the inverse distribution function of numbers uniform
on [0, 1) that the caller supplies, so any random stream can seed them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

Uniform = Callable[[int, tuple[int, ...]], Tensor]
"""Given a parameter's index and shape: float64 numbers uniform on [0, 1), of that shape."""

_LARGEST_NAC_RANGE = 1000.0
_LARGEST_SIGMOID_STD = 1000.0
# A uniform of exactly 0 would be a normal of minus infinity; half a step of a 32-bit stream stands in for it.
_SMALLEST_UNIFORM = 2.0**-33


def generator_uniform(generator: torch.Generator | None) -> Uniform:
    """Draw the uniforms from torch's generator, in the order asked for.

    Args:
        generator: on the CPU; None for torch's default one.

    Example:
        >>> uniform = generator_uniform(torch.Generator().manual_seed(1))
        >>> uniform(0, (2, 3)).shape
        torch.Size([2, 3])
    """

    def uniform(index: int, shape: tuple[int, ...]) -> Tensor:
        return torch.rand(shape, dtype=torch.float64, generator=generator)

    return uniform


def within(uniform: Tensor, centre: float, reach: float) -> Tensor:
    """Spread uniforms over [centre - reach, centre + reach].

    Example:
        >>> within(torch.tensor([0.0, 0.5], dtype=torch.float64), 0.5, 0.25)
        tensor([0.2500, 0.5000], dtype=torch.float64)
    """
    return (centre - reach) + 2 * reach * uniform


def normal(uniform: Tensor, std: float) -> Tensor:
    """Turn uniforms into normals of mean 0 by the inverse distribution function.

    Example:
        >>> normal(torch.tensor([0.5, 0.975], dtype=torch.float64), 2.0)
        tensor([0.0000, 3.9199], dtype=torch.float64)
    """
    z: Tensor = torch.special.ndtri(uniform.clamp_min(_SMALLEST_UNIFORM))
    return std * z


def uniform_reach(variance: float) -> float:
    """Give the half-width of a uniform distribution: r = sqrt(3 Var).

    Example:
        >>> uniform_reach(1 / 48)
        0.25
    """
    return math.sqrt(3 * variance)


def xavier_reach(in_features: int, out_features: int, gain: float = 1.0) -> float:
    """Give the half-width of Xavier's uniform distribution: gain sqrt(6 / (in + out)).

    Source: Glorot & Bengio, "Understanding the difficulty of training deep feedforward neural networks",
        2010.

    Example:
        >>> xavier_reach(4, 2)
        1.0
    """
    return gain * math.sqrt(6 / (in_features + out_features))


def kaiming_reach(in_features: int) -> float:
    """Give the half-width of Kaiming's uniform distribution for a ReLU: sqrt(6 / in).

    Source: He et al., "Delving Deep into Rectifiers", 2015.

    Example:
        >>> kaiming_reach(6)
        1.0
    """
    return math.sqrt(6 / in_features)


def require_variance(unit: str, variance: float, largest: float) -> None:
    """Refuse a variance that a unit's initial weights can't have.

    Args:
        unit: its name, for the message.
        variance: what was asked for.
        largest: what is possible; infinity for unbounded weights.

    Raises:
        ValueError: unless 0 < variance <= largest and variance is finite.
    """
    if not (0 < variance <= largest and variance < math.inf):
        limit = (
            f"<= {largest:.6g}, the largest possible for its weights," if largest < math.inf else "< infinity"
        )
        raise ValueError(
            f"init_variance={variance:g} was given for {unit}, but 0 < init_variance {limit} must hold: "
            "choose one in that range, or leave it out for the unit's own default"
        )


def nac_variance(reach: float) -> float:
    """Give the variance of W = tanh(Ŵ) ⊙ σ(M̂) for Ŵ, M̂ ~ U[-r, r].

        Var(r) = (1 - tanh(r) / r) (r - tanh(r / 2)) / (2r)

    Source: Madsen & Johansen, "Neural Arithmetic Units", 2020, appendix.

    Args:
        reach: r > 0.

    Example:
        >>> round(nac_variance(1.0), 6)
        0.064117
    """
    if reach < 1e-3:
        return reach**2 / 12  # the formula's leading term; the formula itself loses its digits here
    return (1 - math.tanh(reach) / reach) * (reach - math.tanh(reach / 2)) / (2 * reach)


def largest_nac_variance() -> float:
    """Give the largest variance of a NAC's weights that is still of use.

    The limit for r -> infinity is 1/2, where every weight is saturated and none can be trained; r = 1000 is
    taken for the last range of use.

    Example:
        >>> round(largest_nac_variance(), 6)
        0.499001
    """
    return nac_variance(_LARGEST_NAC_RANGE)


@lru_cache(maxsize=256)
def nac_reach(variance: float) -> float:
    """Solve `nac_variance` for r by bisection.

    Args:
        variance: 0 < variance <= `largest_nac_variance`.

    Example:
        >>> round(nac_reach(nac_variance(1.7)), 9)
        1.7
    """
    return _bisect(nac_variance, variance, _LARGEST_NAC_RANGE)


def sigmoid_variance(std: float) -> float:
    """Give the variance of σ(Ŵ) for a normal Ŵ of mean 0.

        Var = E[tanh²(std z / 2)] / 4,  z ~ N(0, 1)

    There is no closed form. The trapezoid rule converges exponentially on integrands as smooth as this, if
    the grid resolves the narrower of the two factors: the density for a small std, the slope of the sigmoid
    for a large one.

    Args:
        std: standard deviation of Ŵ, > 0.

    Example:
        >>> round(sigmoid_variance(1e-3) / 1e-6, 6), round(sigmoid_variance(1e6), 6)
        (0.0625, 0.25)
    """
    z = np.linspace(-10.0, 10.0, 2001)
    if std < 2:
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        return float(np.sum(density * np.tanh(std * z / 2) ** 2) * (z[1] - z[0]) / 4)
    t = 2 * z  # t = std z / 2: sech² is over within 20
    density = np.exp(-0.5 * (2 * t / std) ** 2) / math.sqrt(2 * math.pi)
    return float(1 - np.sum(density / np.cosh(t) ** 2) * (t[1] - t[0]) * 2 / std) / 4


def largest_sigmoid_variance() -> float:
    """Give the largest variance of σ(Ŵ) that is still of use: at std = 1000, just below the limit 1/4.

    Example:
        >>> round(largest_sigmoid_variance(), 4)
        0.2496
    """
    return sigmoid_variance(_LARGEST_SIGMOID_STD)


@lru_cache(maxsize=256)
def sigmoid_std(variance: float) -> float:
    """Solve `sigmoid_variance` for the standard deviation of Ŵ by bisection.

    Args:
        variance: 0 < variance <= `largest_sigmoid_variance`.

    Example:
        >>> round(sigmoid_std(sigmoid_variance(1.7)), 9)
        1.7
    """
    return _bisect(sigmoid_variance, variance, _LARGEST_SIGMOID_STD)


def _bisect(increasing: Callable[[float], float], value: float, high: float) -> float:
    low = 0.0
    while low < (middle := (low + high) / 2) < high:
        if increasing(middle) < value:
            low = middle
        else:
            high = middle
    return high
