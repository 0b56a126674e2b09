"""Tasks: data from the trial's stream, a loss and metrics, written as for one trial."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import isabstract
from typing import Any, ClassVar, TypeAlias, get_type_hints

from torch import Tensor, nn

from study.interface.declarations import MOST_IN_PACK, REQUIRED, UPDATE_US, Hyperparameter, Metric, check_series
from study.interface.networks import LayerClass, network_of_units
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream

Batch: TypeAlias = tuple[Tensor, ...] | list[Tensor] | dict[str, Tensor] | Tensor
"""A batch of one trial: tensors, the model's input first."""

EVALUATIONS = {"train": Purpose.TRAIN, "validation": Purpose.VALIDATION, "test": Purpose.TEST}
"""The evaluation sets, by the first part of the names of the metrics that are measured on them."""

SCORE_NETWORKS = 100
"""The untrained networks whose mean is 100 % of a score."""


class Task(ABC):
    """A task that trials learn; a concrete subclass is a frozen dataclass, whose fields are hyperparameters.

    All methods are written as for one trial; `torch.func.vmap` runs them for all trials of a pack at once. They draw
    random numbers from the stream that they are handed, and from nothing else. The batch size is a field of the task,
    if it has one: a task may draw anything.

    A trial may have something of its own from its first to its last iteration, such as a split of the data. Then
    `setup` draws it, and `draw` and `evaluation` take it as a further argument.

    Attributes:
        metrics: by their names; the best step is chosen by the first. A name begins with the evaluation set that the
            metric is measured on, ``train_``, ``validation_`` or ``test_``, and goes on with a name that `measure`
            returns. If the metrics depend on the fields, `measured` returns them instead. The engine measures
            ``test_sparsity_error`` where `measure` doesn't: how far the weights of the model's units are from discrete.
        model_names: names of the models that `model` builds, besides networks of units.
        revision: raised whenever trials of a task that comes along would get other results than before.

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

    metrics: ClassVar[Mapping[str, Metric]] = {}
    model_names: ClassVar[tuple[str, ...]] = ()
    revision: ClassVar[int] = 1

    def setup(self, stream: Stream) -> Any:
        """Draw what a trial has of its own before its first iteration: tensors, in any nesting; by default nothing."""
        return None

    @abstractmethod
    def draw(self, stream: Stream, *setup: Any) -> Batch:
        """Draw a batch to train on: tensors, the model's input first.

        Args:
            stream: of the trial and the iteration.
            setup: what `setup` returned, if the task defines it.
        """

    @abstractmethod
    def loss(self, outputs: Any, batch: Any) -> Tensor:
        """Compute what training makes small, a scalar."""

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> Any:
        """Draw an evaluation set: by default as a training batch is drawn. All trials share it, if there is no `setup`.

        It may be tensors in any nesting, if `predict` and `measure` take it.

        Args:
            stream: of a fixed seed, another one for each purpose.
            purpose: ``Purpose.TRAIN``, ``Purpose.VALIDATION`` or ``Purpose.TEST``.
            setup: what `setup` returned, if the task defines it.
        """
        return self.draw(stream, *setup)

    def predict(self, model: Callable[..., Any], batch: Any) -> Any:
        """Apply the model to a batch: by default to its first tensor."""
        if isinstance(batch, Tensor):
            return model(batch)
        return model(next(iter(batch.values() if isinstance(batch, Mapping) else batch)))

    def measure(self, outputs: Any, batch: Any) -> Mapping[str, Tensor]:
        """Compute metrics on an evaluation set: scalars by name, without the set's; by default the loss."""
        return {"loss": self.loss(outputs, batch)}

    def measured(self) -> Mapping[str, Metric]:
        """Return the metrics of a task with these fields: by default `metrics`."""
        return self.metrics

    def scores(self) -> Mapping[str, str]:
        """Return the metrics that are measured in percent of what untrained networks have of another, by their names.

            score = 100 metric / (mean of the metric over 100 networks of the same model, untrained)

        By default there is none. The scores are metrics, too, and `measured` returns them with the others.
        """
        return {}

    def for_proof(self) -> Task:
        """Return the task on which packs are proven: itself, or one of the same operations that takes less time."""
        return self

    @property
    def most_in_pack(self) -> int:
        """The most trials of a pack, if its size isn't given; fewer where one alone keeps a core busy."""
        return MOST_IN_PACK

    @property
    def update_us(self) -> float:
        """Microseconds that an update of one trial of a pack takes on a core, roughly; plans start from it."""
        return UPDATE_US

    @property
    def remarks(self) -> Sequence[str]:
        """Sentences on the data that plans, runs and reports tell, such as what was left out; by default none."""
        return ()

    @property
    def has_setup(self) -> bool:
        """Whether the task defines `setup`, whose result `draw` and `evaluation` take."""
        return type(self).setup is not Task.setup

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return what builds a model that the task knows by name; its arguments are hyperparameters.

        Args:
            name: one of `model_names`.
        """
        raise NotImplementedError(f"task {type(self).__name__} has model_names, so it must define model(self, name)")

    def network(self, first: LayerClass, second: LayerClass) -> Callable[..., nn.Module]:
        """Return what builds a network of two units for this task; its further arguments are hyperparameters.

        By default it is input -> hidden -> output.

        Args:
            first: unit of the first layer.
            second: unit of the second layer, which may be the same.

        Raises:
            TypeError: if the sizes of input and output aren't known.
        """
        return partial(network_of_units, first, second, *self.sizes())

    def sizes(self) -> tuple[int, int]:
        """Return how many numbers a row of the model's input and of its output has, for networks made of units.

        By default those of the first two tensors of a batch, [rows, numbers].

        Raises:
            TypeError: if these say nothing of it.
        """
        setup = (self.setup(Stream([0], 0, Purpose.SETUP)),) if self.has_setup else ()
        batch = self.draw(Stream([0], 0, Purpose.TRAIN), *setup)
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
    if cls.measured is Task.measured or cls.metrics:
        check_metrics(cls.__name__, cls.metrics)


def check_metrics(task: str, metrics: Mapping[str, Metric]) -> None:
    """Check what a task declares to measure.

    Args:
        task: the name of its class.
        metrics: by their names.

    Raises:
        TypeError: if there is none, a name says no evaluation set, or metrics of a series don't go together.
    """
    if not isinstance(metrics, Mapping) or not metrics:
        raise TypeError(f"task {task} must name a metric: metrics = {{'validation_loss': Metric()}}")
    for name, metric in metrics.items():
        if not isinstance(metric, Metric):
            raise TypeError(f"metric {name!r} of task {task} must be a Metric, but is {metric!r}")
        if not any(name.startswith(f"{part}_") and len(name) > len(part) + 1 for part in EVALUATIONS):
            *first, last = (f"{part}_" for part in EVALUATIONS)
            raise TypeError(f"the name of metric {name!r} of task {task} must begin with {', '.join(first)} or {last}")
    try:
        check_series(metrics)
    except ValueError as error:
        raise TypeError(f"metrics of task {task}: {error}") from None


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return REQUIRED if field.default_factory is dataclasses.MISSING else field.default_factory()
