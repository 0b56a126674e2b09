"""The task: a product of two numbers, divided by a third one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from study import Metric, Purpose, Stream, Task

INPUTS = 4


@dataclass(frozen=True)
class Ratio(Task):
    """A task: x1 x2 / x3 of rows of four numbers; the last one is ignored."""

    batch_size: int = 64
    metrics: ClassVar[Mapping[str, Metric]] = {"validation_mse": Metric(low=0), "test_mse": Metric(low=0)}

    def draw(self, stream: Stream) -> tuple[Tensor, Tensor]:
        """Draw a batch with its targets: rows from [0.5, 2)."""
        return self._with_targets(0.5 + 1.5 * stream.uniform(self.batch_size, INPUTS))

    def evaluation(self, stream: Stream, purpose: Purpose) -> tuple[Tensor, Tensor]:
        """Draw test rows from [2, 4), outside the training range, and validation rows from the training range."""
        uniform = stream.uniform(1000, INPUTS)
        return self._with_targets(2 + 2 * uniform if purpose == Purpose.TEST else 0.5 + 1.5 * uniform)

    def _with_targets(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x[:, :1] * x[:, 1:2] / x[:, 2:3]

    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        """Compute the mean squared error."""
        return (outputs - batch[1]).square().mean()

    def measure(self, outputs: Tensor, batch: Any) -> dict[str, Tensor]:
        """Compute the mean squared error on an evaluation set."""
        return {"mse": self.loss(outputs, batch)}
