"""Base class of packed tasks: data from the trial's stream, a loss and metrics, written for a single trial."""

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
"""Batch of one trial: a tensor, or tensors with the model's input first."""

EVALUATIONS = {"train": Purpose.TRAIN, "validation": Purpose.VALIDATION, "test": Purpose.TEST}
"""Purposes of the evaluation sets, by the prefix of their metrics' names."""

SCORE_NETWORKS = 100
"""Number of untrained networks whose mean metric is a score of 100 %."""


class Task(ABC):
    """Base class of tasks. A concrete subclass is a frozen dataclass whose fields are hyperparameters.

    Subclasses define `draw`, `loss` and `metrics`. All methods are written for a single trial; `torch.func.vmap` runs
    them for all trials of a pack at once. They must draw random numbers from their argument `stream` only. The batch
    size, if the task has one, is a field.

    If a trial needs random data that stay fixed over its iterations, such as a split of a data set, define `setup` to
    draw them. `draw` and `evaluation` then get them as an additional argument.

    Attributes:
        metrics: metrics by name; the best step is chosen by the first. A name is a prefix for the evaluation set,
            ``train_``, ``validation_`` or ``test_``, and a name from the result of `measure`. If the metrics depend on
            the fields, define `measured` instead. The engine measures ``test_sparsity_error`` if `measure` doesn't: the
            largest distance of an effective weight of the model's pack layers from -1, 0 or 1.
        model_names: names of the models that `model` builds, besides networks of units.
        revision: version of a stable task; to be incremented whenever its trials' results change.

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
        """Draw a trial's fixed data before its first iteration.

        Args:
            stream: the trial's stream for this purpose.

        Returns:
            Tensors, nested as needed; by default None.
        """
        return None

    @abstractmethod
    def draw(self, stream: Stream, *setup: Any) -> Batch:
        """Draw a training batch: a tensor, or tensors with the model's input first.

        Args:
            stream: stream of the trial and the iteration.
            setup: the result of `setup`, if the task defines it.
        """

    @abstractmethod
    def loss(self, outputs: Any, batch: Any) -> Tensor:
        """Compute the training loss, a scalar tensor to minimise.

        Args:
            outputs: the result of `predict`.
            batch: the result of `draw`, or of `evaluation` if the default `measure` calls this method.
        """

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> Any:
        """Draw an evaluation set, by default like a training batch. Without `setup`, all trials share it.

        Args:
            stream: stream with a fixed seed, different for each purpose.
            purpose: ``Purpose.TRAIN``, ``Purpose.VALIDATION`` or ``Purpose.TEST``.
            setup: the result of `setup`, if the task defines it.

        Returns:
            Tensors, nested as `predict` and `measure` need them.
        """
        return self.draw(stream, *setup)

    def predict(self, model: Callable[..., Any], batch: Any) -> Any:
        """Apply the model to a batch, by default to the batch's first tensor.

        Args:
            model: the model, called with tensors of a single trial.
            batch: the result of `draw` or `evaluation`.

        Returns:
            The argument `outputs` of `loss` and `measure`.
        """
        if isinstance(batch, Tensor):
            return model(batch)
        return model(next(iter(batch.values() if isinstance(batch, Mapping) else batch)))

    def measure(self, outputs: Any, batch: Any) -> Mapping[str, Tensor]:
        """Compute metrics on an evaluation set, by default the loss.

        Args:
            outputs: the result of `predict`.
            batch: the result of `evaluation`.

        Returns:
            Scalar tensors by metric name without the set's prefix, such as ``accuracy``.
        """
        return {"loss": self.loss(outputs, batch)}

    def measured(self) -> Mapping[str, Metric]:
        """Return the metrics of this instance, by default `metrics`; override it if they depend on the fields."""
        return self.metrics

    def scores(self) -> Mapping[str, str]:
        """Return the metric behind each score, by the score's name; by default empty.

        A score is a metric in percent of its mean over untrained networks:

            score = 100 metric / (mean of the metric over 100 untrained networks of the same model)

        Scores are metrics, too, so `measured` must include them.
        """
        return {}

    def for_proof(self) -> Task:
        """Return the task for the proof of packs: this task, or a faster one with the same operations.

        The proof shows before training that a trial's bits don't depend on its pack (docs/guides/own-code.md).
        """
        return self

    @property
    def most_in_pack(self) -> int:
        """Largest number of trials in a pack without a user-set pack size; reduce it if one trial keeps a core busy."""
        return MOST_IN_PACK

    @property
    def update_us(self) -> float:
        """Estimated time of an update of one trial in a pack on one core, in microseconds, for plans."""
        return UPDATE_US

    @property
    def remarks(self) -> Sequence[str]:
        """Sentences on the data for plans, runs and reports, such as excluded rows; by default none."""
        return ()

    @property
    def has_setup(self) -> bool:
        """True if the task defines `setup`, so that `draw` and `evaluation` take its result."""
        return type(self).setup is not Task.setup

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of a named model; the builder's arguments are hyperparameters.

        Args:
            name: an element of `model_names`.

        Raises:
            NotImplementedError: if the task doesn't define this method.
        """
        raise NotImplementedError(f"task {type(self).__name__} has model_names, so it must define model(self, name)")

    def network(self, first: LayerClass, second: LayerClass) -> Callable[..., nn.Module]:
        """Return the builder of a network of two units, by default input -> hidden -> output.

        The builder's arguments are hyperparameters.

        Args:
            first: class of the first layer.
            second: class of the second layer.

        Raises:
            TypeError: if `sizes` can't determine the sizes of input and output.
            Exception: as `sizes` raises.
        """
        return partial(network_of_units, first, second, *self.sizes())

    def sizes(self) -> tuple[int, int]:
        """Return the widths of the model's input and output, for networks of units.

        By default, these are the widths of a batch's first two tensors, which must be [rows, width].

        Raises:
            TypeError: if a batch has fewer than two tensors, or one of its first two isn't [rows, width].
            Exception: as `setup` or `draw` raises.
        """
        setup = (self.setup(Stream([0], 0, Purpose.SETUP)),) if self.has_setup else ()
        batch = self.draw(Stream([0], 0, Purpose.TRAIN), *setup)
        tensors = list(batch.values() if isinstance(batch, Mapping) else batch)[:2]
        if isinstance(batch, Tensor) or len(tensors) < 2 or any(tensor.dim() != 2 for tensor in tensors):
            raise TypeError(
                f"task {type(self).__name__} must define sizes(self), the widths of input and output, to be learned by "
                "a network of units: its batches aren't two tensors [rows, width]"
            )
        return tensors[0].shape[1], tensors[1].shape[1]

    @classmethod
    def hyperparameters(cls) -> dict[str, Hyperparameter]:
        """Return the fields of the constructor as hyperparameters by name, with types, limits and defaults.

        Raises:
            TypeError: as `check_task_class` raises.
            Exception: of various types, such as NameError, if an annotation can't be evaluated; also as a default's
                factory raises.
        """
        check_task_class(cls)
        types = get_type_hints(cls, include_extras=True)
        return {
            field.name: Hyperparameter(type=types[field.name], default=_default(field))
            for field in dataclasses.fields(cls)  # type: ignore[arg-type]
            if field.init
        }


def check_task_class(cls: type[Task]) -> None:
    """Check the declarations of a class of tasks; metrics that only its `measured` returns aren't checked.

    Raises:
        TypeError: if the class isn't itself a frozen dataclass, lacks a method, or declares no or invalid metrics.
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
    """Check the metrics of a task.

    Args:
        task: name of the task's class, for messages.
        metrics: metrics by name.

    Raises:
        TypeError: if `metrics` is empty or has a value that isn't a `Metric`, a name lacks the prefix of an evaluation
            set, or a series is inconsistent.
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
