"""Base class of families of tasks: hyperparameters, metrics, checks and packs of their trials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from study.interface.declarations import Hyperparameter, Metric

Values = Mapping[str, Any]
"""Values of hyperparameters by name."""

Arrays = Mapping[str, npt.NDArray[Any]]
"""Parameters of trained trials, by name."""

# The fields of larger matrices can't be distinguished in a figure.
_LARGEST_SHOWN = 10_000

Mistake = tuple[Collection[str], str]
"""The possibly wrong hyperparameters, the likeliest first, and the message."""


class Content(Protocol):
    """Content of a cell of any family: task, model, and values of hyperparameters."""

    @property
    def task(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def values(self) -> Values: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Check:
    """A check of the values at one point of a study's grid.

    Args:
        names: the hyperparameters that it reads; the check is skipped if one of them is invalid by itself.
        may_be_chosen: True if ranges of a search may contain values that fail it; the search suggests others then.
    """

    names: tuple[str, ...]
    may_be_chosen: bool = False


class Family(ABC):
    """A family of tasks that declare their hyperparameters and metrics in the same way.

    Subclasses define the attributes without a default, `canonical`, `shape`, `cost_us` and `most_in_pack`.

    Attributes:
        hyperparameters: hyperparameters by name, in the order of a cell's values.
        metrics: metrics by name; the best step is chosen by the first.
        tasks: names of its tasks.
        models: names of its models.
        remarks: sentences on the data, for readers of the results.
        sources: sources of randomness that may have their own seeds.
        question_fields: hyperparameters that the family declares to be part of the question.
        engines: names of the engines that can train its cells, the preferred first; empty if the study's own code
            brings an engine.
        kinds: column kinds (`study.arrow.kinds`) by hyperparameter, in the order of columns; empty to infer them from
            the values.
        task_columns: hyperparameters whose columns are between those of task and model.
        revision: identity of a stable task's code in trial ids; empty for any other task.
        aliases: import strings by the short names of plug-ins in the study file.
        data: digests by path in the study file, for each field that names data.
        leaves_out: True if inapplicable hyperparameters are omitted from the call of a trial; False if they get their
            default.

    Example:
        >>> class Lab(Family):
        ...     hyperparameters = {"width": Hyperparameter(type=int, default=8)}
        ...     metrics = {"loss": Metric()}
        ...     tasks, models = ("spirals",), ("mlp",)
        ...
        ...     def canonical(self, task, model, values):
        ...         return {"width": values.get("width", 8)}
        ...
        ...     def shape(self, cell):
        ...         return (cell.values["width"],)
        ...
        ...     def cost_us(self, cells, draws):
        ...         return 1000.0 * len(cells)
        ...
        ...     def most_in_pack(self, cell, trials, slots):
        ...         return 64
        >>> Lab().canonical("spirals", "mlp", {}), Lab().plainest_model
        ({'width': 8}, 'mlp')
    """

    hyperparameters: Mapping[str, Hyperparameter]
    metrics: Mapping[str, Metric]
    tasks: Sequence[str]
    models: Sequence[str]
    remarks: Sequence[str] = ()
    question_fields: Sequence[str] = ()
    engines: Sequence[str] = ()
    kinds: Mapping[str, str] = {}
    task_columns: Sequence[str] = ()
    revision: str = ""
    aliases: Mapping[str, str] = {}
    data: Mapping[str, Mapping[str, str]] = {}
    sources: Sequence[str] = ("init", "data")
    leaves_out: bool = False

    def may_be_left_out(self, name: str) -> bool:
        """Return True (the default) if a hyperparameter can be omitted where it doesn't apply."""
        return True

    def metrics_of(self, cells: Sequence[Content]) -> Mapping[str, Metric]:
        """Return the metrics of trials of these cells, by name; by default `metrics`."""
        return self.metrics

    @property
    def titles(self) -> Mapping[str, str]:
        """Declared titles of hyperparameters by name; hyperparameters without a title are omitted."""
        return {name: declared.title for name, declared in self.hyperparameters.items() if declared.title}

    @property
    def own_code(self) -> str | None:
        """Identity of a study's own code in trial ids; None for a family that a package offers."""
        return None

    def with_models(self, models: Mapping[str, Any], code: str, aliases: Mapping[str, str]) -> Family:
        """Return this family with a user's models added to its own.

        Args:
            models: classes or functions by import string.
            code: identity of their code in trial ids.
            aliases: import strings by the short names of plug-ins.

        Raises:
            TypeError: if the family doesn't support these models; by default always.
        """
        raise TypeError(f"the task {self.tasks[0]} takes no models of your own")

    def from_declared(self, content: Mapping[str, Any]) -> Family:
        """Return this family with the user's models of a declaration in the store.

        Args:
            content: the declaration, as `to_json` writes it.

        Raises:
            ValueError: if the declaration is invalid; by default always.
        """
        raise ValueError(f"the task {self.tasks[0]} takes no models of your own")

    def own_engine(self, code: Any) -> Any:
        """Return the engine that trains a user's models; None (the default) for a family without them.

        Args:
            code: a `study.engine.own_code.OwnCode`.
        """
        return None

    def to_json(self) -> str:
        """Return the declarations of a study's own code as JSON, for the store.

        Raises:
            NotImplementedError: if a package offers the family; by default always.
        """
        raise NotImplementedError("a family that a package offers isn't kept in a store")

    @property
    def all_metrics(self) -> Mapping[str, Metric]:
        """All metrics that cells of the family can have, by name; by default `metrics`."""
        return self.metrics

    @abstractmethod
    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the canonical values of a cell: defaults filled in, and None for inapplicable hyperparameters.

        Args:
            task: name of the task.
            model: name of the model.
            values: the values that are set, by hyperparameter.

        Raises:
            ValueError: if a value is invalid, or a value without a default is missing.
            KeyError: if the task or model is unknown, in families that check it.
        """

    @property
    def sizes(self) -> Sequence[str]:
        """Hyperparameters that determine a model's size: searchable ones that aren't part of the method."""
        return [
            name for name, declared in self.hyperparameters.items() if declared.is_searchable and not declared.is_method
        ]

    @property
    def plainest_model(self) -> str:
        """Replacement for an invalid model while other parts of a study file are checked; by default the first model.

        It should be the model with the fewest hyperparameters.
        """
        return self.models[0]

    @property
    def checks(self) -> Sequence[Check]:
        """The checks that `mistakes` can perform; by default none."""
        return ()

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Iterator[Mistake]:
        """Yield the mistakes that a check finds; by default none.

        Args:
            check: an element of `checks`.
            task: name of the task.
            model: name of the model.
            values: the values that are set, limited to the hyperparameters in ``check.names``.
        """
        return iter(())

    def why_without_effect(self, name: str, task: str, model: str, values: Mapping[str, Collection[Any]]) -> str | None:
        """Return the reason why a hyperparameter has no effect; None (the default) if it has one.

        Args:
            name: the hyperparameter.
            task: name of the task.
            model: name of the model.
            values: all values in the grid, by hyperparameter.
        """
        return None

    @property
    def search_order(self) -> Sequence[str]:
        """Hyperparameters that a search may choose, each before its dependents; by default all, as declared."""
        return list(self.hyperparameters)

    def is_chosen(self, name: str, values: Values) -> bool:
        """Return True (the default) if a hyperparameter has an effect, given the values that a search chose before it.

        Args:
            name: the hyperparameter.
            values: values chosen or set so far, by hyperparameter.
        """
        return True

    @abstractmethod
    def shape(self, cell: Content) -> tuple[object, ...]:
        """Return a hashable key of a cell; only trials of cells with equal keys share packs."""

    def rows_of(self, cell: Content) -> Hashable | None:
        """Return a key of the rows that a trial sees; trials with equal keys and seeds see the same rows.

        None (the default) if trials never share rows.
        """
        return None

    @abstractmethod
    def cost_us(self, cells: Sequence[Content], draws: int) -> float:
        """Estimate the training time of a pack on one core, in microseconds.

        Args:
            cells: the cell of each trial of the pack, at least one.
            draws: number of different draws of rows; trials that see the same rows share a draw.
        """

    @abstractmethod
    def most_in_pack(self, cell: Content, trials: int, slots: int) -> int:
        """Return the largest useful number of trials in a pack, if the user sets no pack size.

        Args:
            cell: a cell of the pack.
            trials: number of trials to train that have the cell's shape.
            slots: number of packs that are trained concurrently.
        """

    def cautions(self, cells: Sequence[Content]) -> list[str]:
        """Return warnings to show before cells are trained; by default none."""
        return []

    def effective_weights(self, cell: Content, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
        """Return the weight matrices of a trained trial that a report shows, each [out, in], by display name.

        By default, these are the two-dimensional parameters with at most 10,000 elements.

        Args:
            cell: the trial's cell.
            arrays: the trial's parameters by name.
        """
        return {name: array for name, array in arrays.items() if array.ndim == 2 and array.size <= _LARGEST_SHOWN}

    def mean_gates(self, cell: Content, arrays: Arrays, rows: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return the mean gates of trained trials by layer, each [trials, gates] in [0, 1]; by default none.

        Args:
            cell: the cell of the trials.
            arrays: the trials' parameters by name, each [trials, ...].
            rows: number of validation rows to average over; None for all.
        """
        return {}

    def impossible(self, task: str, model: str, values: Values) -> str | None:
        """Return the message of the first mistake that `checks` find in a cell's values; None without mistakes.

        Args:
            task: name of the task.
            model: name of the model.
            values: the values that are set, by hyperparameter, each valid by itself.

        Raises:
            KeyError: if the task or model is unknown, in families whose checks look it up.
        """
        for check in self.checks:
            read = {name: value for name, value in values.items() if name in check.names}
            for _, message in self.mistakes(check, task, model, read):
                return message
        return None
