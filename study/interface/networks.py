"""Networks of two layers, input -> hidden -> output."""

from __future__ import annotations

from typing import Any

from torch import nn

GIVEN = ("first", "second", "input_size", "output_size")
"""Arguments of `network_of_units` that aren't hyperparameters."""

LayerClass = type[Any]
"""Class of a layer, called with the number of inputs and the number of outputs."""


def network_of_units(
    first: LayerClass, second: LayerClass, input_size: int, output_size: int, *, hidden_size: int = 2
) -> nn.Sequential:
    """Build the network second(first(x)) of two layers.

    In training, bounded weights are clipped, and nothing is regularised by default.

    Args:
        first: class of the first layer.
        second: class of the second layer.
        input_size: width of the input, >= 1.
        output_size: width of the output, >= 1.
        hidden_size: number of hidden units, >= 1.

    Returns:
        A module that maps [rows, input_size] to [rows, output_size].

    Raises:
        Exception: as a layer's class raises, such as ValueError of units for sizes below 1.

    Example:
        >>> import torch
        >>> network_of_units(nn.Linear, nn.Linear, 4, 3)(torch.ones(128, 4)).shape
        torch.Size([128, 3])
    """
    return nn.Sequential(first(input_size, hidden_size), second(hidden_size, output_size))
