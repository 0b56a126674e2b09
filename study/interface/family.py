"""A family of tasks: what a study must know of the trials that it plans, whatever they compute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from study.interface.declarations import Hyperparameter, Metric

Values = Mapping[str, Any]
"""Values of hyperparameters that are set, by name."""

Arrays = Mapping[str, npt.NDArray[Any]]
"""Parameters of trained trials, by name."""

# A larger matrix has fields that nobody can tell apart in a figure.
_LARGEST_SHOWN = 10_000

Mistake = tuple[Collection[str], str]
"""The names that may be wrong, the likeliest first, and the message."""


class Content(Protocol):
    """What a cell of any family consists of."""

    @property
    def task(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def values(self) -> Values: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Check:
    """A check between values of one point of a study's grid.

    Args:
        names: the hyperparameters that it reads; it is left out if one of them had a mistake of its own.
        may_be_chosen: whether a search may suggest values that fail it, as long as some don't: it suggests others then.
    """

    names: tuple[str, ...]
    may_be_chosen: bool = False


class Family(ABC):
    """Trials whose hyperparameters and metrics are declared in one place.

    Attributes:
        hyperparameters: by name, in the order of a cell's values.
        metrics: by name; the best step is chosen by the first.
        tasks: the names of its tasks.
        models: the names of its models.
        remarks: sentences on the data that readers of the results must know.
        sources: the sources of randomness that may have seeds of their own.
        question_fields: the hyperparameters that belong to the question, where tables don't know that by their names.
        engines: names of the engines that can train its cells, the preferred first; empty for a study's own engine.
        kinds: the kind of each hyperparameter's column (`study.arrow.kinds`), in the order of columns; empty where
            the values say it.
        task_columns: the hyperparameters whose columns stand between those of task and model.
        revision: what stands for the code of a stable task; empty for any other.
        aliases: import strings by the names under which installed packages offer them, as the study file has them.
        data: of each field that names data, the digests by the paths that the study's file has.
        leaves_out: whether a trial can be called without a hyperparameter that doesn't apply; otherwise it has its
            default there.
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
        """Return whether a hyperparameter needs no value where it doesn't apply."""
        return True

    def metrics_of(self, cells: Sequence[Content]) -> Mapping[str, Metric]:
        """Return the metrics of the trials of some cells: by default, all have the same."""
        return self.metrics

    @property
    def titles(self) -> Mapping[str, str]:
        """The declared titles of hyperparameters, by name, without those that have none."""
        return {name: declared.title for name, declared in self.hyperparameters.items() if declared.title}

    @property
    def own_code(self) -> str | None:
        """The identity of a study's own code in the ids of trials; None for a family that a package offers."""
        return None

    def with_models(self, models: Mapping[str, Any], code: str, aliases: Mapping[str, str]) -> Family:
        """Return this family with models of a user's own beside its own ones.

        Args:
            models: classes or functions by import string.
            code: what stands for their code in the ids of trials.
            aliases: import strings by the names under which installed packages offer them.

        Raises:
            TypeError: if the family takes no such model; the message says what must hold.
        """
        raise TypeError(f"the task {self.tasks[0]} takes no models of your own")

    def from_declared(self, content: Mapping[str, Any]) -> Family:
        """Return this family with the models whose declaration a store keeps; see `to_json`."""
        raise ValueError(f"the task {self.tasks[0]} has no models of one's own")

    def own_engine(self, code: Any) -> Any:
        """Return the engine that trains models of a user's own; None for a family without them.

        Args:
            code: a `study.engine.own_code.OwnCode`.
        """
        return None

    def to_json(self) -> str:
        """Return what a store keeps of a family that a study's own code declares."""
        raise NotImplementedError("a family that a package offers isn't kept in a store")

    @property
    def all_metrics(self) -> Mapping[str, Metric]:
        """The metrics that any cell of the family may have: by default, those that all have."""
        return self.metrics

    @abstractmethod
    def canonical(self, task: str, model: str, values: Values) -> dict[str, Any]:
        """Return the values of a cell: with defaults, and None where something doesn't apply.

        Args:
            task: name of a task.
            model: name of a model.
            values: those that are set.

        Raises:
            ValueError: if there can't be such a cell.
        """

    @property
    def sizes(self) -> Sequence[str]:
        """The hyperparameters that say how large a model is, as far as that is declared."""
        return [name for name, one in self.hyperparameters.items() if one.is_searchable and not one.is_method]

    @property
    def plainest_model(self) -> str:
        """The model with the fewest hyperparameters: it stands for a wrong one while the rest of a file is checked."""
        return self.models[0]

    @property
    def checks(self) -> Sequence[Check]:
        """What `mistakes` checks."""
        return ()

    def mistakes(self, check: Check, task: str, model: str, values: Values) -> Iterator[Mistake]:
        """Yield what a check of `checks` finds wrong with some values, of which there are only those that it reads."""
        return iter(())

    def why_without_effect(self, name: str, task: str, model: str, values: Mapping[str, Collection[Any]]) -> str | None:
        """Return why a hyperparameter has no effect, or None if it has one.

        Args:
            name: the hyperparameter.
            task: name of the task.
            model: name of the model.
            values: what is set anywhere in the grid, by name.
        """
        return None

    @property
    def search_order(self) -> Sequence[str]:
        """The hyperparameters that a search may choose, each before those that depend on it."""
        return list(self.hyperparameters)

    def is_chosen(self, name: str, values: Values) -> bool:
        """Tell whether a hyperparameter has an effect, given the values that a search has chosen so far."""
        return True

    @abstractmethod
    def shape(self, cell: Content) -> tuple[object, ...]:
        """Return what must be equal among the trials of a pack."""

    def rows_of(self, cell: Content) -> Hashable | None:
        """Return what determines, with a seed, the rows that a trial of a cell sees; None if no two see the same."""
        return None

    @abstractmethod
    def cost_us(self, cells: Sequence[Content], draws: int) -> float:
        """Estimate the microseconds that a pack takes on one core.

        Args:
            cells: those of its trials, one for each, at least one.
            draws: of rows, one for those that see the same rows.
        """

    @abstractmethod
    def most_in_pack(self, cell: Content, trials: int, slots: int) -> int:
        """Return the most trials of a cell that are useful in a pack, if its size isn't given.

        Args:
            cell: a cell of the pack.
            trials: all trials of its shape that are to be trained.
            slots: packs that are trained side by side.
        """

    def cautions(self, cells: Sequence[Content]) -> list[str]:
        """Return sentences that a person should read before cells are trained."""
        return []

    def effective_weights(self, cell: Content, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
        """Return the matrices of a trained trial that a report shows, each [out, in], by names for people.

        By default the parameters that are matrices of at most 10,000 numbers, under their own names.

        Args:
            cell: the trial's.
            arrays: the trial's parameters by name.
        """
        return {name: array for name, array in arrays.items() if array.ndim == 2 and array.size <= _LARGEST_SHOWN}

    def mean_gates(self, cell: Content, arrays: Arrays, rows: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return how far the gates of trained trials are open on average, [trials, gates], by layer; by default none.

        Args:
            cell: of the trials.
            arrays: the trials' parameters by name, each [trials, ...].
            rows: how many validation rows to average over; None for all.
        """
        return {}

    def impossible(self, task: str, model: str, values: Values) -> str | None:
        """Return why there can't be a cell with these values; None if there can."""
        for check in self.checks:
            read = {name: value for name, value in values.items() if name in check.names}
            for _, message in self.mistakes(check, task, model, read):
                return message
        return None
