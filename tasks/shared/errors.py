"""Bounded errors, since those of multiplying units may overflow."""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST_ERROR = 1e30
"""Upper limit of errors."""


def bounded(errors: Tensor) -> Tensor:
    """Replace non-finite and larger errors by `LARGEST_ERROR`.

    Args:
        errors: any shape.

    Example:
        >>> bounded(torch.tensor([2.0, torch.inf, torch.nan]))
        tensor([2.0000e+00, 1.0000e+30, 1.0000e+30])
    """
    return torch.nan_to_num(errors, nan=LARGEST_ERROR, posinf=LARGEST_ERROR).clamp(max=LARGEST_ERROR)


def bounded_mean(errors: Tensor) -> Tensor:
    """Compute the mean of errors, a scalar, bounded by `bounded`.

    Args:
        errors: any shape.
    """
    return bounded(errors.mean())
