"""Networks of two layers, input -> hidden -> output."""

from __future__ import annotations

from typing import Any

from torch import nn

GIVEN = ("first", "second", "input_size", "output_size")
"""Arguments of `network_of_units` that aren't hyperparameters."""

LayerClass = type[Any]
"""The class of a layer, which is built from the numbers in and the numbers out."""


def network_of_units(
    first: LayerClass, second: LayerClass, input_size: int, output_size: int, *, hidden_size: int = 2
) -> nn.Sequential:
    """Build second(first(x)) for a task of one's own: bounded weights are clipped, and nothing is regularised.

    Args:
        first: unit of the first layer.
        second: unit of the second layer.
        input_size: numbers in one row of the input, >= 1.
        output_size: numbers in one row of the output, >= 1.
        hidden_size: hidden units, >= 1.

    Raises:
        ValueError: if a size is below 1.

    Example:
        >>> import torch
        >>> network_of_units(nn.Linear, nn.Linear, 4, 3)(torch.ones(128, 4)).shape
        torch.Size([128, 3])
    """
    return nn.Sequential(first(input_size, hidden_size), second(hidden_size, output_size))
