"""Bounded errors, since those of multiplying units may overflow."""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST_ERROR = 1e30
"""Upper limit of errors."""


def bounded(errors: Tensor) -> Tensor:
    """Replace NaN, infinity and errors above `LARGEST_ERROR` by `LARGEST_ERROR`.

    Args:
        errors: >= 0, any shape.

    Example:
        >>> bounded(torch.tensor([2.0, torch.inf, torch.nan]))
        tensor([2.0000e+00, 1.0000e+30, 1.0000e+30])
    """
    return torch.nan_to_num(errors, nan=LARGEST_ERROR, posinf=LARGEST_ERROR).clamp(max=LARGEST_ERROR)


def bounded_mean(errors: Tensor) -> Tensor:
    """Compute the mean of errors, a scalar, bounded by `bounded`; `LARGEST_ERROR` for no errors.

    Args:
        errors: >= 0, any shape.
    """
    return bounded(errors.mean())
