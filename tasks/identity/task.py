"""Identity task: learn y = x from the integers -5 ... 5, tested on -20 ... 20."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from study.interface.declarations import Metric
from study.interface.task import Task
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from units import Unit

LARGEST_TRAINED, LARGEST_TESTED = 5, 20
"""Largest trained and largest tested number; the smallest are their negatives."""

_EDGES = (10, LARGEST_TESTED)
_NUMBERS = tuple(range(-LARGEST_TESTED, LARGEST_TESTED + 1))


def network_of_activations(
    activation: Callable[[], nn.Module], *, hidden_size: int = 8, hidden_layers: int = 3
) -> nn.Sequential:
    """Build 1 -> hidden -> ... -> hidden -> 1, with an activation after each hidden layer, and a linear output.

    Initial weights and biases are uniform within ± 1 / sqrt(inputs of the layer).

    Args:
        activation: builds the activation of one layer.
        hidden_size: units per hidden layer, >= 1.
        hidden_layers: number of hidden layers, >= 1.

    Example:
        >>> network_of_activations(nn.Tanh)(torch.ones(11, 1)).shape
        torch.Size([11, 1])
    """
    layers: list[nn.Module] = []
    for size, next_size in pairwise([1, *[hidden_size] * hidden_layers]):
        layers += [nn.Linear(size, next_size), activation()]
    return nn.Sequential(*layers, nn.Linear(hidden_size, 1))


def network_of_layers(
    first: type[Unit], last: type[Unit], *, hidden_size: int = 8, hidden_layers: int = 3
) -> nn.Sequential:
    """Build 1 -> hidden -> ... -> hidden -> 1 from units.

    Args:
        first: unit of the hidden layers.
        last: unit of the output layer.
        hidden_size: outputs per hidden layer, >= 1.
        hidden_layers: number of hidden layers, >= 1.

    Example:
        >>> from units import UNITS
        >>> network_of_layers(UNITS["NAU"], UNITS["NAU"])(torch.ones(11, 1)).shape
        torch.Size([11, 1])
    """
    sizes = [1, *[hidden_size] * hidden_layers]
    return nn.Sequential(*(first(*pair) for pair in pairwise(sizes)), last(hidden_size, 1))


_ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    "hardtanh": nn.Hardtanh,
    "sigmoid": nn.Sigmoid,
    "ReLU6": nn.ReLU6,
    "tanh": nn.Tanh,
    "tanhshrink": nn.Tanhshrink,
    "hardshrink": nn.Hardshrink,
    "leaky-ReLU": nn.LeakyReLU,
    "softshrink": nn.Softshrink,
    "softsign": nn.Softsign,
    "threshold": partial(nn.Threshold, 0.1, 20.0),
    "ReLU": nn.ReLU,
    "PReLU": nn.PReLU,
    "softplus": nn.Softplus,
    "ELU": nn.ELU,
    "SELU": nn.SELU,
}


@dataclass(frozen=True)
class Identity(Task):
    """Learn y = x from the integers -5 ... 5, with all of them in each batch.

        L = mean over x of (f(x) - x)²

    The metrics are mean absolute errors: on the trained numbers, at -10 and 10, at -20 and 20, and, as a series, at
    each integer.

    Source: Trask et al., "Neural Arithmetic Logic Units", NeurIPS 2018, figure 1. Unpublished details, such as the
    constants of the threshold, follow PyTorch.

    Example:
        >>> x, y = Identity().draw(None)
        >>> x.flatten().tolist()
        [-5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """

    model_names: ClassVar[tuple[str, ...]] = tuple(_ACTIVATIONS)
    metrics: ClassVar[Mapping[str, Metric]] = {
        "train_error": Metric(title="error on the trained numbers", low=0.0),
        **{f"test_error_{edge}": Metric(title=f"error at ±{edge}", low=0.0) for edge in _EDGES},
        **{
            f"test_error_at_{number}": Metric(
                title=f"error at {number}",
                low=0.0,
                series="error",
                along="number",
                at=number,
                is_trained=abs(number) <= LARGEST_TRAINED,
            )
            for number in _NUMBERS
        },
    }

    @property
    def update_us(self) -> float:
        """Estimated time of an update with a network of a few neurons, in microseconds."""
        return 15.0

    def draw(self, stream: Stream, *setup: Any) -> tuple[Tensor, Tensor]:
        """Return the trained numbers as inputs and targets, float32 [11, 1]."""
        x = torch.arange(-LARGEST_TRAINED, LARGEST_TRAINED + 1.0)[:, None]
        return x, x

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> tuple[Tensor, Tensor]:
        """Return inputs and targets: for ``TRAIN`` as `draw`, else all tested numbers, float32 [41, 1]."""
        if purpose is Purpose.TRAIN:
            return self.draw(stream)
        x = torch.tensor(_NUMBERS, dtype=torch.float32)[:, None]
        return x, x

    def loss(self, outputs: Tensor, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Compute the mean squared error."""
        return (outputs - batch[1]).square().mean()

    def measure(self, outputs: Tensor, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        """Return the absolute errors at 41 numbers, and their means at ±10 and at ±20; for fewer rows only the mean."""
        errors = (outputs - batch[1]).abs().squeeze(-1)
        if len(errors) < len(_NUMBERS):
            return {"error": errors.mean()}
        error_at = dict(zip(_NUMBERS, errors, strict=True))
        edges = {f"error_{edge}": (error_at[-edge] + error_at[edge]) / 2 for edge in _EDGES}
        return edges | {f"error_at_{number}": error for number, error in error_at.items()}

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of a network with the named activation.

        Raises:
            KeyError: if it isn't one of `model_names`.
        """
        return partial(network_of_activations, _ACTIVATIONS[name])

    def network(self, first: type[Unit], second: type[Unit]) -> Callable[..., nn.Module]:
        """Return the builder of a network of units, by default three layers of the first and one of the second."""
        return partial(network_of_layers, first, second)
