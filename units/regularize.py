"""Regularisers of bounded weights.

There are three kinds of bounded weights:

    NAU   in [-1, 1], should become -1, 0 or 1
    NMU   in [0, 1], should become 0 or 1
    sign  in [-1, 1], should become -1 or 1; a gate removes unneeded inputs

Each regulariser is the mean over a layer's weights, one value per trial. The caller multiplies it by a strength.

Source: Madsen & Johansen, "Neural Arithmetic Units", 2020 (linear), and its draft (squared); for ``sign`` Mistry, Hare
& Farrahi, "Learning Division with Neural Arithmetic Logic Modules", 2021 (linear).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Kind = Literal["NAU", "NMU", "sign"]
Shape = Literal["linear", "squared"]

LIMITS: dict[Kind, tuple[float, float]] = {"NAU": (-1.0, 1.0), "NMU": (0.0, 1.0), "sign": (-1.0, 1.0)}


def sparsity(weight: Tensor, kind: Kind, shape: Shape) -> Tensor:
    """Measure the distance of the weights from discrete values.

        NAU: mean min(|W|, |1 - |W||)  or  mean W² (1 - |W|)²
        NMU: mean min(|W|, |1 - W|)    or  mean W² (1 - W)²
        sign: mean |1 - |W||           or  mean (1 - |W|)²

    Args:
        weight: shape [..., out, in].
        kind: kind of the weights.
        shape: ``linear``, as for the published numbers, or ``squared``, as in the draft.

    Returns:
        Shape [...]: one value per trial, >= 0, and 0 only for discrete weights, unless a square underflows.

    Example:
        >>> sparsity(torch.tensor([[0.0, 1.0], [0.25, 0.5]]), "NMU", "linear")
        tensor(0.1875)
    """
    size = weight if kind == "NMU" else weight.abs()
    if kind == "sign":
        return ((1 - size).abs() if shape == "linear" else (1 - size).square()).mean((-2, -1))
    if shape == "linear":
        return torch.minimum(weight.abs(), (1 - size).abs()).mean((-2, -1))
    return (weight * (1 - size)).square().mean((-2, -1))


def out_of_bounds(weight: Tensor, kind: Kind, shape: Shape) -> Tensor:
    """Measure the excess of the weights over their bounds.

        NAU, sign: mean relu(|W| - 1)    or  mean relu(|W| - 1)²
        NMU: mean relu(|W - 1/2| - 1/2)  or  mean relu(|W - 1/2| - 1/2)²

    Args:
        weight: shape [..., out, in].
        kind: kind of the weights.
        shape: ``linear`` or ``squared``.

    Returns:
        Shape [...]: one value per trial, 0 if all weights are within bounds.

    Example:
        >>> out_of_bounds(torch.tensor([[-0.5, 0.5], [1.0, 1.5]]), "NMU", "linear")
        tensor(0.2500)
    """
    low, high = LIMITS[kind]
    centre, reach = (low + high) / 2, (high - low) / 2
    excess = torch.relu((weight - centre).abs() - reach)
    return (excess if shape == "linear" else excess.square()).mean((-2, -1))
