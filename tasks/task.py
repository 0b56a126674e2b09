"""What a task of one's own is: data from the trial's stream, a loss, and metrics, written as for one trial."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from inspect import isabstract
from typing import Any, ClassVar, TypeAlias, get_type_hints

from torch import Tensor

from tasks.declarations import REQUIRED, Hyperparameter, Metric
from tasks.stream import Purpose
from tasks.trial_stream import Stream

Batch: TypeAlias = tuple[Tensor, ...] | list[Tensor] | dict[str, Tensor] | Tensor
"""What a task draws: tensors of one trial, the model's input first."""

EVALUATIONS = {"validation": Purpose.VALIDATION, "test": Purpose.TEST}
"""The evaluation sets, by the first part of the names of the metrics that are measured on them."""


class Task(ABC):
    """What a trial must learn; a concrete subclass is a frozen dataclass, whose fields are hyperparameters.

    All methods are written as for one trial; `torch.func.vmap` runs them for all trials of a pack at once. They draw
    random numbers from the stream that they are handed, and from nothing else. The batch size is a field of the task,
    if it has one: a task may draw anything.

    Attributes:
        metrics: by their names; the best step is chosen by the first. A name begins with the evaluation set that the
            metric is measured on, ``validation_`` or ``test_``, and goes on with a name that `measure` returns.

    Example:
        >>> import torch
        >>> @dataclasses.dataclass(frozen=True)
        ... class Spirals(Task):
        ...     turns: float = 1.0
        ...     batch_size: int = 128
        ...     metrics: ClassVar[Mapping[str, Metric]] = {
        ...         "validation_loss": Metric(),
        ...         "test_accuracy": Metric(higher_is_better=True, low=0, high=1),
        ...     }
        ...
        ...     def draw(self, stream):
        ...         label, radius = stream.integers(2, self.batch_size), stream.uniform(self.batch_size)
        ...         angle = torch.pi * (2 * self.turns * radius + label)
        ...         return torch.stack([radius * angle.cos(), radius * angle.sin()], -1), label
        ...
        ...     def loss(self, outputs, batch):
        ...         return torch.nn.functional.cross_entropy(outputs, batch[1])
        ...
        ...     def measure(self, outputs, batch):
        ...         accuracy = (outputs.argmax(-1) == batch[1]).float().mean()
        ...         return {"loss": self.loss(outputs, batch), "accuracy": accuracy}
        >>> Spirals.hyperparameters()["turns"].default
        1.0
    """

    metrics: ClassVar[Mapping[str, Metric]]

    @abstractmethod
    def draw(self, stream: Stream) -> Batch:
        """Draw a batch to train on: tensors, the model's input first."""

    @abstractmethod
    def loss(self, outputs: Any, batch: Any) -> Tensor:
        """Compute what training makes small, a scalar."""

    def evaluation(self, stream: Stream, purpose: Purpose) -> Batch:
        """Draw an evaluation set, which all trials share: by default as a training batch is drawn.

        Args:
            stream: of a fixed seed, another one for each purpose.
            purpose: ``Purpose.VALIDATION`` or ``Purpose.TEST``.
        """
        return self.draw(stream)

    def predict(self, model: Callable[..., Any], batch: Any) -> Any:
        """Apply the model to a batch: by default to its first tensor."""
        if isinstance(batch, Tensor):
            return model(batch)
        return model(next(iter(batch.values() if isinstance(batch, Mapping) else batch)))

    def measure(self, outputs: Any, batch: Any) -> Mapping[str, Tensor]:
        """Compute metrics on an evaluation set: scalars by name, without the set's; by default the loss."""
        return {"loss": self.loss(outputs, batch)}

    def sizes(self) -> tuple[int, int]:
        """Return how many numbers a row of the model's input and of its output has, for networks made of units.

        By default those of the first two tensors of a batch, [rows, numbers].

        Raises:
            TypeError: if these say nothing of it.
        """
        batch = self.draw(Stream([0], 0, Purpose.TRAIN))
        tensors = list(batch.values() if isinstance(batch, Mapping) else batch)[:2]
        if isinstance(batch, Tensor) or len(tensors) < 2 or any(tensor.dim() != 2 for tensor in tensors):
            raise TypeError(
                f"task {type(self).__name__} must say by sizes(self) how many numbers a row of the input and of the "
                "output has, to be learned by a network of units: its batches aren't two tensors [rows, numbers]"
            )
        return tensors[0].shape[1], tensors[1].shape[1]

    @classmethod
    def hyperparameters(cls) -> dict[str, Hyperparameter]:
        """List the fields as hyperparameters, with types, limits and defaults.

        Raises:
            TypeError: if the class isn't a frozen dataclass, lacks a method, or its metrics aren't well named.
        """
        check_task_class(cls)
        types = get_type_hints(cls, include_extras=True)
        return {
            field.name: Hyperparameter(type=types[field.name], default=_default(field))
            for field in dataclasses.fields(cls)  # type: ignore[arg-type]
            if field.init
        }


def check_task_class(cls: type[Task]) -> None:
    """Check that a class of tasks declares what it must.

    Raises:
        TypeError: if not.
    """
    if isabstract(cls):
        methods = ", ".join(sorted(cls.__abstractmethods__))
        raise TypeError(f"task {cls.__name__} must define the methods {methods}")
    parameters = cls.__dict__.get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise TypeError(f"task {cls.__name__} must be a frozen dataclass: put @dataclass(frozen=True) above it")
    metrics = getattr(cls, "metrics", None)
    if not isinstance(metrics, Mapping) or not metrics:
        raise TypeError(f"task {cls.__name__} must name a metric: metrics = {{'validation_loss': Metric()}}")
    for name, metric in metrics.items():
        if not isinstance(metric, Metric):
            raise TypeError(f"metric {name!r} of task {cls.__name__} must be a Metric, but is {metric!r}")
        if not any(name.startswith(f"{part}_") and len(name) > len(part) + 1 for part in EVALUATIONS):
            starts = " or ".join(f"{part}_" for part in EVALUATIONS)
            raise TypeError(f"the name of metric {name!r} of task {cls.__name__} must begin with {starts}")


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return REQUIRED if field.default_factory is dataclasses.MISSING else field.default_factory()
