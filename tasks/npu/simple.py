"""Simple task of neural power units: learn x + y, x y, x / y and √x, and extrapolate to negative inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from study.interface.declarations import Metric
from study.interface.task import Task
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.npu.networks import free_layer, only_adds
from tasks.shared.errors import bounded_mean
from units import UNITS, Unit

Count = Annotated[int, Field(ge=1)]

OPERATIONS: Mapping[str, str] = {"add": "x + y", "mul": "x y", "div": "x / y", "root": "√x"}
"""Formulas of the four outputs, in order, by their names in metrics."""

_LOW, _WIDTH = 0.1, 2.0
_VALIDATION_ROWS = 1000


def network_of_dense_layers(*, hidden_size: Count = 50) -> nn.Sequential:
    """Build 2 -> hidden -> hidden -> 4 with sigmoids between, Xavier uniform initial weights and zero biases.

    Args:
        hidden_size: units of each hidden layer.

    Example:
        >>> network_of_dense_layers()(torch.ones(100, 2)).shape
        torch.Size([100, 4])
    """
    dense = [nn.Linear(*sizes) for sizes in pairwise([2, hidden_size, hidden_size, len(OPERATIONS)])]
    for layer in dense:
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(dense[0], nn.Sigmoid(), dense[1], nn.Sigmoid(), dense[2])


def simple_network(first: type[Unit], second: type[Unit], *, hidden_size: Count = 6) -> nn.Sequential:
    """Build 2 -> hidden -> 4 from two layers; see `tasks.npu.networks.free_layer`.

    If the model is an NAU or a NAC+ followed by another unit, that unit is the first layer here, followed by an NAU.

    Args:
        first: unit of the model's first layer.
        second: unit of the model's second layer; may be the same.
        hidden_size: outputs of the first layer.

    Example:
        >>> simple_network(UNITS["NAU"], UNITS["RealNPU"])
        Sequential(
          (0): RealNPU(2, 6)
          (1): FreeNAU(6, 4)
        )
    """
    if only_adds(first) and second is not first:
        first, second = second, UNITS["NAU"]
    return nn.Sequential(free_layer(first, 2, hidden_size), free_layer(second, hidden_size, len(OPERATIONS)))


@dataclass(frozen=True)
class NPUSimple(Task):
    """Learn four functions of two numbers at once, from inputs in [0.1, 2.1).

        t = (x + y, x y, x / y, √x),   L = mean over rows and outputs of (f(x, y) - t)²

    The test grid of sum, product and quotient has x and y in -4.1, -3.9, ..., 3.9; that of the root has 0.1, 0.2, ...,
    4. The test metrics are mean absolute errors, of each output and over all four.

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020; the program where it differs from the text.

    Args:
        batch_size: rows per update.

    Example:
        >>> x, t = NPUSimple().draw(Stream([0], 0, Purpose.TRAIN))
        >>> tuple(x.shape), tuple(t.shape), bool((x >= 0.1).all())
        ((100, 2), (100, 4), True)
    """

    model_names: ClassVar[tuple[str, ...]] = ("dense",)
    metrics: ClassVar[Mapping[str, Metric]] = {
        "validation_mae": Metric(title="validation MAE", low=0.0),
        "validation_loss": Metric(title="validation MSE", low=0.0),
        "test_mae": Metric(title="MAE of the four", low=0.0),
        **{f"test_mae_{name}": Metric(title=f"MAE of {formula}", low=0.0) for name, formula in OPERATIONS.items()},
    }

    batch_size: Count = 100

    @property
    def update_us(self) -> float:
        """Estimated time of an update with two small layers, in microseconds."""
        return 60.0

    def draw(self, stream: Stream, *setup: Any) -> tuple[Tensor, Tensor]:
        """Draw rows (x, y) and their targets, float32 [batch, 2] and [batch, 4]."""
        return self._rows(stream, self.batch_size)

    def _rows(self, stream: Stream, rows: int) -> tuple[Tensor, Tensor]:
        x = _LOW + _WIDTH * stream.uniform(rows, 2)
        return x, torch.stack([*self.arithmetic(x), x[:, 0].sqrt()], -1)

    @staticmethod
    def arithmetic(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute sums, products and quotients.

        Args:
            x: pairs of numbers with a nonzero second number, [rows, 2].

        Returns:
            Three tensors, [rows].

        Example:
            >>> [number.item() for number in NPUSimple.arithmetic(torch.tensor([[-3.0, 2.0]]))]
            [-1.0, -6.0, -1.5]
        """
        first, second = x[:, 0], x[:, 1]
        return first + second, first * second, first / second

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> Any:
        """Draw 1,000 rows and targets as `draw` does, or for ``TEST`` return the two grids by name, each [rows, 2]."""
        if purpose is not Purpose.TEST:
            return self._rows(stream, _VALIDATION_ROWS)
        return {"arithmetic": _grid(-41, 39, 2), "root": _grid(1, 40, 1)}

    def predict(self, model: Callable[..., Any], batch: Any) -> Any:
        """Apply the model to the rows, or to both grids."""
        if isinstance(batch, dict):
            return {name: model(x) for name, x in batch.items()}
        return model(batch[0])

    def loss(self, outputs: Tensor, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Compute the mean squared error."""
        return (outputs - batch[1]).square().mean()

    def measure(self, outputs: Any, batch: Any) -> dict[str, Tensor]:
        """Compute mean absolute errors, and outside of tests the loss; values above 1e30 or not finite become 1e30."""
        if not isinstance(batch, dict):
            return {"mae": bounded_mean((outputs - batch[1]).abs()), "loss": bounded_mean(self.loss(outputs, batch))}
        targets = [*self.arithmetic(batch["arithmetic"]), batch["root"][:, 0].sqrt()]
        predictions = [*outputs["arithmetic"].unbind(-1)[:3], outputs["root"][:, 3]]
        errors = {
            f"mae_{name}": bounded_mean((predicted - target).abs())
            for name, predicted, target in zip(OPERATIONS, predictions, targets, strict=True)
        }
        return errors | {"mae": bounded_mean(torch.stack(list(errors.values())))}

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of the dense network, whatever the name."""
        return network_of_dense_layers

    def network(self, first: type[Unit], second: type[Unit]) -> Callable[..., nn.Module]:
        """Return the builder of a network of two units."""
        return partial(simple_network, first, second)


def _grid(low: int, high: int, step: int) -> Tensor:
    """Return all pairs of the numbers low / 10, (low + step) / 10, ..., high / 10, float32 [pairs, 2]."""
    tenths = torch.arange(low, high + 1, step, dtype=torch.float32) / 10
    return torch.cartesian_prod(tenths, tenths)
