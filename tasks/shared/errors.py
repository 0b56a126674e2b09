"""Means of errors that may explode, as those of units that multiply do."""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST_ERROR = 1e30
"""Errors above this count as this."""


def bounded(errors: Tensor) -> Tensor:
    """Replace errors that aren't finite, or are larger, by `LARGEST_ERROR`.

    Args:
        errors: any shape.

    Example:
        >>> bounded(torch.tensor([2.0, torch.inf, torch.nan]))
        tensor([2.0000e+00, 1.0000e+30, 1.0000e+30])
    """
    return torch.nan_to_num(errors, nan=LARGEST_ERROR, posinf=LARGEST_ERROR).clamp(max=LARGEST_ERROR)


def bounded_mean(errors: Tensor) -> Tensor:
    """Compute the mean of errors, a scalar, as `bounded` has it.

    Args:
        errors: any shape.
    """
    return bounded(errors.mean())
