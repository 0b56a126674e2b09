"""The tasks that come along and train in packs: their names, and the models that each of them knows by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from tasks.models import MODELS

if TYPE_CHECKING:
    from torch import nn

    from tasks.task import Task

PACKED_TASKS: Mapping[str, str] = {
    "counting": "tasks.counting:Counting",
    "identity": "tasks.identity:Identity",
    "language": "tasks.language:Language",
    "npu-large": "tasks.npu_large:NPULarge",
    "npu-simple": "tasks.npu_simple:NPUSimple",
    "recurrent": "tasks.recurrent:Recurrent",
    "sequential": "tasks.sequential:Sequential",
    "tabular": "tasks.tabular:Tabular",
    "time-tracking": "tasks.time_tracking:TimeTracking",
}
"""Where each task is, by the name that study files use; nothing is imported before a file names it."""


def packed_task(name: str) -> type[Task]:
    """Import a task by its name.

    Raises:
        KeyError: if no task has this name.

    Example:
        >>> packed_task("identity").__name__
        'Identity'
    """
    module, _, class_ = PACKED_TASKS[name].partition(":")
    task: type[Task] = getattr(import_module(module), class_)
    return task


def model_names(task: type[Task]) -> tuple[str, ...]:
    """Return the names of the models that a task knows: its own, and the networks of units.

    Example:
        >>> "softplus" in model_names(packed_task("identity")), "NALU" in model_names(packed_task("identity"))
        (True, True)
    """
    return tuple(dict.fromkeys([*task.model_names, *MODELS]))


def builder_of(task: Task, model: str) -> Callable[..., nn.Module]:
    """Return what builds the networks of a model that a task knows by name; its arguments are hyperparameters.

    Raises:
        KeyError: if the task knows no such model.
        TypeError: if it doesn't say the sizes that networks of units need.
    """
    from tasks.networks import units_of  # torch comes with it

    if model in task.model_names:
        return task.model(model)
    return task.network(*units_of(model))


def revision_of(task: str) -> str:
    """Return what stands for the code of a task that comes along in the ids of trials; empty for one's own.

    Example:
        >>> revision_of("identity"), revision_of("mylab.tasks:Spirals")
        ('identity 1', '')
    """
    return f"{task} {packed_task(task).revision}" if task in PACKED_TASKS else ""
