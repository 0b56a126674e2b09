"""Stable tasks, identified by name and revision, and the networks that model sets build for a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from study.plugins import offers

if TYPE_CHECKING:
    from torch import nn

    from study.interface.task import Task


class ModelSet(Protocol):
    """Named models of two layers, usable with any packed task.

    Packages offer model sets as entry points of the group ``seeded_study.model_sets``.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    def layers(self, name: str) -> tuple[type[Any], type[Any]]:
        """Import the classes of a model's first and second layer, both called with (size in, size out)."""


def is_stable_task(name: str) -> bool:
    """Return True if a package offers this task as stable: its revision, not its code, is part of trial ids.

    Example:
        >>> is_stable_task("identity"), is_stable_task("mylab.tasks:Spirals")
        (True, False)
    """
    return offers.is_offered("stable_tasks", name)


def packed_task(name: str) -> type[Task]:
    """Import a stable task by its name.

    Raises:
        InputError: if no package or more than one offers a stable task of this name, or it can't be imported.

    Example:
        >>> packed_task("identity").__name__
        'Identity'
    """
    task: type[Task] = offers.load("stable_tasks", name)
    return task


def model_set_names() -> tuple[str, ...]:
    """Return the names of the models in all model sets, each once, in the order of the sets' names.

    Raises:
        InputError: if a model set can't be imported, or two packages offer one of the same name.
    """
    return tuple(_model_sets())


def model_names(task: type[Task]) -> tuple[str, ...]:
    """Return the names of a task's models: its own, then those of model sets.

    Raises:
        InputError: if a model set can't be imported, or two packages offer one of the same name.

    Example:
        >>> "softplus" in model_names(packed_task("identity")), "NALU" in model_names(packed_task("identity"))
        (True, True)
    """
    return tuple(dict.fromkeys([*task.model_names, *_model_sets()]))


def builder_of(task: Task, model: str) -> Callable[..., nn.Module]:
    """Return the builder of a task's named model; the builder's arguments are hyperparameters.

    Raises:
        KeyError: if neither the task nor a model set has this model.
        TypeError: if a model set has the model, and the task's input and output sizes can't be determined.
        InputError: if a model set can't be imported, or two packages offer one of the same name.
        NotImplementedError: if the task names the model, but doesn't define the method `model`.
        Exception: as methods of the task or of the model set raise.
    """
    if model in task.model_names:
        return task.model(model)
    return task.network(*_model_sets()[model].layers(model))


def revision_of(task: str) -> str:
    """Return a stable task's name and revision, as used in trial ids; empty for any other task.

    Raises:
        InputError: if the stable task can't be imported, or two packages offer it.

    Example:
        >>> revision_of("identity"), revision_of("mylab.tasks:Spirals")
        ('identity 1', '')
    """
    return f"{task} {packed_task(task).revision}" if is_stable_task(task) else ""


def _model_sets() -> Mapping[str, ModelSet]:
    return _load_model_sets(offers.names("model_sets"))


@cache
def _load_model_sets(names: tuple[str, ...]) -> Mapping[str, ModelSet]:
    sets = [offers.load("model_sets", name) for name in names]
    return {model: model_set for model_set in sets for model in model_set.names}
