"""The task of parity, and a small network for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from study import Metric, Purpose, Stream, Task, seeded

INPUTS = 20


@dataclass(frozen=True)
class Parity(Task):
    """A task: the product of a row's first signs; the other signs are ignored."""

    bits: Annotated[int, Field(ge=1, le=INPUTS)] = 5
    batch_size: Annotated[int, Field(ge=1)] = 32
    metrics: ClassVar[Mapping[str, Metric]] = {
        "validation_loss": Metric(low=0),
        "test_accuracy": Metric(higher_is_better=True, low=0, high=1),
    }

    def draw(self, stream: Stream) -> tuple[Tensor, Tensor]:
        """Draw a batch with its targets: rows of 20 signs."""
        return self._with_targets(stream, self.batch_size)

    def evaluation(self, stream: Stream, purpose: Purpose) -> tuple[Tensor, Tensor]:
        """Draw 1,000 rows with their targets for validation or test."""
        return self._with_targets(stream, 1000)

    def _with_targets(self, stream: Stream, rows: int) -> tuple[Tensor, Tensor]:
        signs = 2 * stream.integers(2, rows, INPUTS) - 1
        return signs.float(), (signs[:, : self.bits].prod(1) + 1) // 2

    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        """Compute the cross-entropy."""
        return cross_entropy(outputs, batch[1])

    def measure(self, outputs: Tensor, batch: Any) -> dict[str, Tensor]:
        """Compute cross-entropy and accuracy on an evaluation set."""
        accuracy = (outputs.argmax(1) == batch[1]).float().mean()
        return {"loss": self.loss(outputs, batch), "accuracy": accuracy}


@seeded
def mlp(width: int = 16) -> nn.Module:
    """Build a network with one hidden layer."""
    return nn.Sequential(nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, 2))
