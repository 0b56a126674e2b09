"""Stable tasks: known by their names and revisions; and the networks that model sets build for a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from study.plugins import offers

if TYPE_CHECKING:
    from torch import nn

    from study.interface.task import Task


class ModelSet(Protocol):
    """Models of two layers, by name: the networks that any packed task can be learned by.

    An entry point of the group ``seeded_study.model_sets`` names one.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    def layers(self, name: str) -> tuple[type[Any], type[Any]]:
        """Import the classes of a model's layers, first and second; each is built from sizes in and out."""


def is_stable_task(name: str) -> bool:
    """Tell whether an installed package offers a task whose revision stands for its code in the ids of trials.

    Example:
        >>> is_stable_task("identity"), is_stable_task("mylab.tasks:Spirals")
        (True, False)
    """
    return offers.is_offered("stable_tasks", name)


def packed_task(name: str) -> type[Task]:
    """Import a stable task by its name.

    Raises:
        InputError: if no task has this name.

    Example:
        >>> packed_task("identity").__name__
        'Identity'
    """
    task: type[Task] = offers.load("stable_tasks", name)
    return task


def model_set_names() -> tuple[str, ...]:
    """List the names of the models of all model sets."""
    return tuple(_sets())


def model_names(task: type[Task]) -> tuple[str, ...]:
    """List the names of the models that a task knows: its own, and those of model sets.

    Example:
        >>> "softplus" in model_names(packed_task("identity")), "NALU" in model_names(packed_task("identity"))
        (True, True)
    """
    return tuple(dict.fromkeys([*task.model_names, *_sets()]))


def builder_of(task: Task, model: str) -> Callable[..., nn.Module]:
    """Return what builds the networks of a model that a task knows by name; its arguments are hyperparameters.

    Raises:
        KeyError: if the task knows no such model.
        TypeError: if it doesn't say the sizes that networks of two layers need.
    """
    if model in task.model_names:
        return task.model(model)
    return task.network(*_sets()[model].layers(model))


def revision_of(task: str) -> str:
    """Return what stands for the code of a stable task in the ids of trials; empty for any other task.

    Example:
        >>> revision_of("identity"), revision_of("mylab.tasks:Spirals")
        ('identity 1', '')
    """
    return f"{task} {packed_task(task).revision}" if is_stable_task(task) else ""


def _sets() -> Mapping[str, ModelSet]:
    return _sets_of(offers.names("model_sets"))


@cache
def _sets_of(names: tuple[str, ...]) -> Mapping[str, ModelSet]:
    sets = [offers.load("model_sets", name) for name in names]
    return {model: model_set for model_set in sets for model in model_set.names}
