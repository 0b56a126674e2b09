"""Sparsity error: the largest distance of a weight from -1, 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def sparsity_error(weights: Sequence[Tensor]) -> Tensor:
    """Find the largest distance of any effective weight from the nearest discrete value.

        max over W of min(|W|, |1 - |W||)

    Source: Madsen & Johansen, "Neural Arithmetic Units", 2020.

    Args:
        weights: weights of one layer, or of all layers of a network, at least one; each of shape [..., out, in].

    Returns:
        Shape [...]: one value per trial; NaN if any of its weights is NaN.

    Example:
        >>> sparsity_error([torch.tensor([[1.0, -0.75]]), torch.tensor([[0.125]])])
        tensor(0.2500)
    """
    errors = []
    for weight in weights:
        size = weight.abs()
        errors.append(torch.minimum(size, (1 - size).abs()).amax((-2, -1)))
    return errors[0] if len(errors) == 1 else torch.stack(errors).amax(0)


def mean_sparsity_error(weights: Sequence[Tensor]) -> Tensor:
    """Average the sparsity errors of a unit's weight matrices, as published for units with two matrices.

    Source: Mistry, Farrahi & Hare, "A Primer for Neural Arithmetic Logic Modules", 2022.

    Args:
        weights: as for `sparsity_error`.

    Returns:
        Shape [...]: one value per trial; NaN if any of its weights is NaN.

    Example:
        >>> mean_sparsity_error([torch.tensor([[1.0, -0.75]]), torch.tensor([[0.125]])])
        tensor(0.1875)
    """
    return torch.stack([sparsity_error([weight]) for weight in weights]).mean(0)
