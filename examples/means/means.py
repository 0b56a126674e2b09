"""The task `means`, and three models for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from study import Metric, Purpose, Stream, Task, seeded
from units import UNITS

INPUTS = 8


@dataclass(frozen=True)
class Means(Task):
    """A task: the mean of a row's first numbers; the others are ignored."""

    subset: Annotated[int, Field(ge=1, le=INPUTS)] = 4
    batch_size: Annotated[int, Field(ge=1)] = 64
    metrics: ClassVar[Mapping[str, Metric]] = {"validation_mse": Metric(low=0), "test_mse": Metric(low=0)}

    def draw(self, stream: Stream) -> tuple[Tensor, Tensor]:
        """Draw a batch with its targets: rows from [1, 2)."""
        return self._with_targets(1 + stream.uniform(self.batch_size, INPUTS))

    def evaluation(self, stream: Stream, purpose: Purpose) -> tuple[Tensor, Tensor]:
        """Draw test rows from [2, 6), outside the training range, and validation rows from the training range."""
        uniform = stream.uniform(1000, INPUTS)
        return self._with_targets(2 + 4 * uniform if purpose == Purpose.TEST else 1 + uniform)

    def _with_targets(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x[:, : self.subset].mean(1, keepdim=True)

    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        """Compute the mean squared error."""
        return (outputs - batch[1]).square().mean()

    def measure(self, outputs: Tensor, batch: Any) -> dict[str, Tensor]:
        """Compute the mean squared error on an evaluation set."""
        return {"mse": self.loss(outputs, batch)}


@seeded
def linear() -> nn.Module:
    """Build a linear model with a bias."""
    return nn.Linear(INPUTS, 1)


@seeded
def nau() -> nn.Module:
    """Build a neural addition unit, whose weights are clipped to [-1, 1] after each update."""
    return UNITS["NAU"](INPUTS, 1)


@seeded
def mlp(hidden: int = 16) -> nn.Module:
    """Build a network with one hidden layer."""
    return nn.Sequential(nn.Linear(INPUTS, hidden), nn.ReLU(), nn.Linear(hidden, 1))
