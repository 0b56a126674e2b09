"""Initial weights as pure functions of uniform numbers.

The caller supplies numbers uniform on [0, 1), from any random stream. The inverse distribution function turns them into
initial weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Uniform = Callable[[int, tuple[int, ...]], Tensor]
"""Function that returns float64 numbers uniform on [0, 1) for a parameter's index and shape."""

Sizes = tuple[int, int]
"""Numbers of inputs and outputs of a layer."""

Draw = Callable[[int], Tensor]
"""Function that returns float64 numbers uniform on [0, 1), shape [out, in], for a parameter's index."""

# A uniform of 0 would become a normal of minus infinity; half a step of a 32-bit stream replaces it.
_SMALLEST_UNIFORM = 2.0**-33


def generator_uniform(generator: torch.Generator | None) -> Uniform:
    """Return a function that draws uniforms from torch's generator in the order of its calls, ignoring the index.

    Args:
        generator: a generator on the CPU; None for torch's default.

    Example:
        >>> uniform = generator_uniform(torch.Generator().manual_seed(1))
        >>> uniform(0, (2, 3)).shape
        torch.Size([2, 3])
    """

    def uniform(index: int, shape: tuple[int, ...]) -> Tensor:
        return torch.rand(shape, dtype=torch.float64, generator=generator)

    return uniform


def within(uniform: Tensor, centre: float, reach: float) -> Tensor:
    """Scale uniforms to [centre - reach, centre + reach].

    Example:
        >>> within(torch.tensor([0.0, 0.5], dtype=torch.float64), 0.5, 0.25)
        tensor([0.2500, 0.5000], dtype=torch.float64)
    """
    return (centre - reach) + 2 * reach * uniform


def normal(uniform: Tensor, std: float) -> Tensor:
    """Convert uniforms to normals of mean 0 by the inverse distribution function; numbers below 2^-33 count as 2^-33.

    Example:
        >>> normal(torch.tensor([0.5, 0.975], dtype=torch.float64), 2.0)
        tensor([0.0000, 3.9199], dtype=torch.float64)
    """
    z: Tensor = torch.special.ndtri(uniform.clamp_min(_SMALLEST_UNIFORM))
    return std * z


def uniform_reach(variance: float) -> float:
    """Compute the half-width of the uniform distribution with a given variance >= 0: r = sqrt(3 Var).

    Example:
        >>> uniform_reach(1 / 48)
        0.25
    """
    return math.sqrt(3 * variance)


def xavier_reach(in_features: int, out_features: int, gain: float = 1.0) -> float:
    """Compute the half-width of Xavier's uniform distribution: gain sqrt(6 / (in + out)).

    Source: Glorot & Bengio, "Understanding the difficulty of training deep feedforward neural networks",
        2010.

    Example:
        >>> xavier_reach(4, 2)
        1.0
    """
    return gain * math.sqrt(6 / (in_features + out_features))


def kaiming_reach(in_features: int) -> float:
    """Compute the half-width of Kaiming's uniform distribution for a ReLU: sqrt(6 / in).

    Source: He et al., "Delving Deep into Rectifiers", 2015.

    Example:
        >>> kaiming_reach(6)
        1.0
    """
    return math.sqrt(6 / in_features)
