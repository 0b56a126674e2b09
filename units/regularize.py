"""Regularisers of bounded weights, and their gradients in closed form.

There are two kinds of bounded weights: ``NAU`` weights lie in [-1, 1] and should become -1, 0 or 1; ``NMU``
weights lie in [0, 1] and should become 0 or 1. Each regulariser is the mean over a layer's weights, one value
a trial; its strength is the caller's. The gradients are those of one weight: divide by the number of weights
for the mean's.

Source: Madsen & Johansen, "Neural Arithmetic Units", 2020 (linear), and its draft (squared).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Kind = Literal["NAU", "NMU"]
Shape = Literal["linear", "squared"]

LIMITS: dict[Kind, tuple[float, float]] = {"NAU": (-1.0, 1.0), "NMU": (0.0, 1.0)}


def sparsity(weight: Tensor, kind: Kind, shape: Shape) -> Tensor:
    """Measure how far the weights are from discrete values.

        NAU: mean min(|W|, |1 - |W||)  or  mean W² (1 - |W|)²
        NMU: mean min(|W|, |1 - W|)    or  mean W² (1 - W)²

    Args:
        weight: shape [..., out, in].
        kind: of the weights.
        shape: ``linear`` (made the published numbers) or ``squared`` (the draft).

    Returns:
        Shape [...]: one value a trial, >= 0, and 0 only for discrete weights.

    Example:
        >>> sparsity(torch.tensor([[0.0, 1.0], [0.25, 0.5]]), "NMU", "linear")
        tensor(0.1875)
    """
    size = weight.abs() if kind == "NAU" else weight
    if shape == "linear":
        return torch.minimum(weight.abs(), (1 - size).abs()).mean((-2, -1))
    return (weight * (1 - size)).square().mean((-2, -1))


def sparsity_gradient(weight: Tensor, kind: Kind, shape: Shape) -> Tensor:
    """Differentiate `sparsity`, weight by weight, without the mean's 1 / (out in).

    At the kinks of the linear shape (a discrete weight, or one half) it is 0, as with automatic
    differentiation.

    Args:
        weight: any shape.
        kind: of the weights.
        shape: as for `sparsity`.

    Returns:
        The shape of `weight`.

    Example:
        >>> sparsity_gradient(torch.tensor([-0.9, -0.1, 0.0, 0.2, 0.7, 1.0]), "NAU", "linear")
        tensor([ 1., -1.,  0.,  1., -1.,  0.])
    """
    size = weight.abs() if kind == "NAU" else weight
    if shape == "linear":
        return torch.sign(weight) * torch.sign(size - 0.5) * torch.sign(size - 1)
    return 2 * weight * (1 - size) * (1 - 2 * size)


def out_of_bounds(weight: Tensor, kind: Kind, shape: Shape) -> Tensor:
    """Measure how far the weights are outside of their bounds.

        NAU: mean relu(|W| - 1)          or of its square
        NMU: mean relu(|W - 1/2| - 1/2)  or of its square

    Args:
        weight: shape [..., out, in].
        kind: of the weights.
        shape: ``linear`` or ``squared``.

    Returns:
        Shape [...]: one value a trial, 0 if all weights are within bounds.

    Example:
        >>> out_of_bounds(torch.tensor([[-0.5, 0.5], [1.0, 1.5]]), "NMU", "linear")
        tensor(0.2500)
    """
    centre, reach = _centre(kind)
    excess = torch.relu((weight - centre).abs() - reach)
    return (excess if shape == "linear" else excess.square()).mean((-2, -1))


def out_of_bounds_gradient(weight: Tensor, kind: Kind, shape: Shape) -> Tensor:
    """Differentiate `out_of_bounds`, weight by weight, without the mean's 1 / (out in).

    Args:
        weight: any shape.
        kind: of the weights.
        shape: as for `out_of_bounds`.

    Returns:
        The shape of `weight`.

    Example:
        >>> out_of_bounds_gradient(torch.tensor([-1.5, 0.5, 3.0]), "NAU", "squared")
        tensor([-1.,  0.,  4.])
    """
    centre, reach = _centre(kind)
    offset = weight - centre
    excess = torch.relu(offset.abs() - reach)
    return torch.sign(offset) * (torch.sign(excess) if shape == "linear" else 2 * excess)


def _centre(kind: Kind) -> tuple[float, float]:
    low, high = LIMITS[kind]
    return (low + high) / 2, (high - low) / 2
