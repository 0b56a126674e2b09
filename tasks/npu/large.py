"""Large task of neural power units: sum, product, reciprocal or root of sums of 100 inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from study.interface.declarations import Metric
from study.interface.task import Task
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.npu.networks import free_layer, start_positive
from tasks.shared.errors import bounded_mean
from units import Unit

Count = Annotated[int, Field(ge=1)]
Range = tuple[float, float]

INPUTS = 100
FIRST, SECOND = slice(0, 50), slice(38, 88)
"""Inputs of the two sums, the same for all trials; twelve inputs are in both."""

TRAINED: Mapping[str, Range] = {"add": (-1.0, 1.0), "mul": (-1.0, 1.0), "reciprocal": (0.0, 0.5), "root": (0.0, 2.0)}
"""Range of the inputs in training and validation, by operation."""

TESTED: Mapping[str, Range] = {"add": (-2.0, 2.0), "mul": (-2.0, 2.0), "reciprocal": (-0.5, 0.0), "root": (0.0, 4.0)}
"""Range of the inputs in tests, according to the published program."""

TEXT: Mapping[str, Range] = {"add": (-4.0, 4.0), "mul": (-4.0, 4.0), "reciprocal": (-0.5, 0.5), "root": (0.0, 4.0)}
"""Range of the inputs in tests, according to the published text."""


def large_network(first: type[Unit], second: type[Unit], *, hidden_size: Count = INPUTS) -> nn.Sequential:
    """Build 100 -> hidden -> 1 from two layers, with initial weights from U[0, 0.1].

    See `tasks.npu.networks.free_layer` and `tasks.npu.networks.start_positive`.

    Args:
        first: unit of the first layer.
        second: unit of the second layer; may be the same.
        hidden_size: outputs of the first layer.

    Example:
        >>> from units import UNITS
        >>> large_network(UNITS["NAU"], UNITS["NPU"])
        Sequential(
          (0): FreeNAU(100, 100)
          (1): NPU(100, 1)
        )
    """
    network = nn.Sequential(free_layer(first, INPUTS, hidden_size), free_layer(second, hidden_size, 1))
    start_positive(network)
    return network


@dataclass(frozen=True)
class NPULarge(Task):
    """Learn an operation on sums over subsets of 100 inputs.

        a = x_0 + ... + x_49,   b = x_38 + ... + x_87
        add: t = a + b,   mul: t = a b,   reciprocal: t = 1 / a,   root: t = √a

    Inputs are Sobol points (`study.Stream.sobol`), in one range for training and in others for tests.

    Source: Heim, Pevný & Šmídl, "Neural Power Units", NeurIPS 2020; the program where it differs from the text.

    Args:
        operation: ``add``, ``mul``, ``reciprocal`` or ``root``.
        batch_size: points per update.
        evaluation_rows: points per evaluation set.

    Example:
        >>> import torch
        >>> x, t = NPULarge(operation="root").draw(Stream([0], 0, Purpose.TRAIN))
        >>> tuple(x.shape), tuple(t.shape), torch.equal(t[0], x[0, :50].sum(0, keepdim=True).sqrt())
        ((128, 100), (128, 1), True)
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "validation_mse": Metric(title="validation MSE", low=0.0),
        "test_mse": Metric(title="MSE beyond", low=0.0),
        "test_mse_text": Metric(title="MSE in the text's range", low=0.0),
    }

    operation: Literal["add", "mul", "reciprocal", "root"] = "add"
    batch_size: Count = 128
    evaluation_rows: Count = 10_000

    @property
    def update_us(self) -> float:
        """Estimated time of an update with a layer of 100 x 100 and 128 rows, in microseconds."""
        return 1000.0

    def for_proof(self) -> NPULarge:
        """Return the task with at most 200 evaluation rows, for the proof of packs."""
        return replace(self, evaluation_rows=min(self.evaluation_rows, 200))

    def draw(self, stream: Stream, *setup: Any) -> tuple[Tensor, Tensor]:
        """Draw points and their targets, float32 [batch, 100] and [batch, 1]."""
        return self._scaled(TRAINED, stream.sobol(self.batch_size, INPUTS))

    def _scaled(self, ranges: Mapping[str, Range], points: Tensor) -> tuple[Tensor, Tensor]:
        low, high = ranges[self.operation]
        x = low + (high - low) * points
        return x, self.target(x)

    def target(self, x: Tensor) -> Tensor:
        """Compute the targets.

        Args:
            x: inputs, [rows, 100].

        Returns:
            Targets, [rows, 1]; for ``root``, NaN if a < 0, and for ``reciprocal``, infinite if a = 0.

        Example:
            >>> import torch
            >>> NPULarge(operation="mul").target(torch.full((1, 100), 0.1)).round(decimals=4)
            tensor([[25.]])
        """
        a = x[:, FIRST].sum(-1, keepdim=True)
        match self.operation:
            case "reciprocal":
                return 1 / a
            case "root":
                return a.sqrt()
        b = x[:, SECOND].sum(-1, keepdim=True)
        return a + b if self.operation == "add" else a * b

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> Any:
        """Draw points and targets in the training range.

        For ``TEST``, draw points and return them in both test ranges, by the suffix of their metrics.
        """
        points = stream.sobol(self.evaluation_rows, INPUTS)
        if purpose is not Purpose.TEST:
            return self._scaled(TRAINED, points)
        return {"": self._scaled(TESTED, points), "_text": self._scaled(TEXT, points)}

    def predict(self, model: Callable[..., Any], batch: Any) -> Any:
        """Apply the model to the points, or to the points of both test ranges."""
        if isinstance(batch, dict):
            return {name: model(x) for name, (x, _) in batch.items()}
        return model(batch[0])

    def loss(self, outputs: Tensor, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Compute the mean squared error."""
        return (outputs - batch[1]).square().mean()

    def measure(self, outputs: Any, batch: Any) -> dict[str, Tensor]:
        """Compute the mean squared error of each range; values above 1e30 or not finite become 1e30."""
        if not isinstance(batch, dict):
            return {"mse": bounded_mean(self.loss(outputs, batch))}
        return {f"mse{name}": bounded_mean(self.loss(outputs[name], rows)) for name, rows in batch.items()}

    def network(self, first: type[Unit], second: type[Unit]) -> Callable[..., nn.Module]:
        """Return the builder of a network of two units."""
        return partial(large_network, first, second)
