"""Regularisers of bounded weights.

There are two kinds of bounded weights: ``NAU`` weights lie in [-1, 1] and should become -1, 0 or 1; ``NMU``
weights lie in [0, 1] and should become 0 or 1. Each regulariser is the mean over a layer's weights, one value
a trial; its strength is the caller's.

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
        shape: ``linear``, as for the published numbers, or ``squared``, as in the draft.

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
    low, high = LIMITS[kind]
    centre, reach = (low + high) / 2, (high - low) / 2
    excess = torch.relu((weight - centre).abs() - reach)
    return (excess if shape == "linear" else excess.square()).mean((-2, -1))


def distance_from_one(weight: Tensor, shape: Shape) -> Tensor:
    """Measure how far the weights are from -1 and 1: mean |1 - |W||, or mean (1 - |W|)².

    Zero is no goal: a gate leaves out what isn't needed.

    Source: Mistry, Hare & Farrahi, "Learning Division with Neural Arithmetic Logic Modules", 2021 (linear).

    Args:
        weight: shape [..., out, in].
        shape: ``linear``, as published, or ``squared``.

    Returns:
        Shape [...]: one value a trial, >= 0, and 0 only for weights of -1 and 1.

    Example:
        >>> distance_from_one(torch.tensor([[-1.0, 0.5], [0.0, 1.5]]), "linear")
        tensor(0.5000)
    """
    distance = 1 - weight.abs()
    return (distance.abs() if shape == "linear" else distance.square()).mean((-2, -1))
