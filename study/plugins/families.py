"""Families of tasks, by the names of their tasks, and the family of a cell."""

from __future__ import annotations

import json
from typing import Any

from study.errors import InputError
from study.interface.declarations import Metric
from study.interface.family import Content, Family
from study.interface.function_family import TASK, FunctionFamily
from study.interface.packed_family import PackedFamily
from study.interface.program_family import TASK as PROGRAM_TASK
from study.interface.program_family import ProgramFamily
from study.plugins import offers

# Packs are made by a cell's values alone, so nothing needs to be known of the code here.
_FUNCTIONS = FunctionFamily("", {}, {}, code="")
_PACKED = PackedFamily("", {}, {}, {}, code="")


def is_family_task(task: str) -> bool:
    """Tell whether a task belongs to a family that an installed package offers.

    Example:
        >>> is_family_task("simple"), is_family_task("identity"), is_family_task("lab:Spirals")
        (True, False, False)
    """
    return offers.is_offered("families", task)


def family_named(task: str) -> Family:
    """Return the family that an installed package offers for a task.

    Raises:
        InputError: if none has such a task, several have, or the family can't be imported.

    Example:
        >>> family_named("simple") is family_named("arithmetic")
        True
    """
    family = offers.load("families", task)
    if not isinstance(family, Family) or task not in family.tasks:
        entry = offers.find_plugin("families", task)
        raise InputError(f"{entry} must be a study.interface.family.Family with a task {task!r}, but is {family!r}")
    return family


def families() -> list[Family]:
    """Return all families that installed packages offer."""
    return list({id(family): family for family in map(family_named, offers.names("families"))}.values())


def family_kinds() -> dict[str, str]:
    """Return the kind of each hyperparameter's column that the families declare, in order."""
    return {name: kind for family in families() for name, kind in family.kinds.items()}


def family_metrics() -> dict[str, Metric]:
    """Return the metrics that cells of the families may have."""
    return {name: metric for family in families() for name, metric in family.all_metrics.items()}


def family_of(cell: Content) -> Family:
    """Return the family of a cell, by the name of its task.

    Raises:
        ValueError: if no family has such a task.
    """
    if is_family_task(cell.task):
        return family_named(cell.task)
    if cell.task in (TASK, PROGRAM_TASK):
        return _FUNCTIONS
    if ":" in cell.task or offers.is_offered("stable_tasks", cell.task):
        return _PACKED
    raise ValueError(f"no family of tasks has a task called {cell.task!r}")


def declared_family(text: str | bytes) -> Family:
    """Read the family that a study's own code declared, as its `to_json` wrote it.

    Raises:
        ValueError: if it isn't that.
    """
    content: Any = json.loads(text)
    if isinstance(content, dict) and "family" in content:
        task = content["family"]
        if not isinstance(task, str) or not is_family_task(task):
            raise ValueError(f"no installed package offers a family with a task {task!r}")
        return family_named(task).from_declared(content)
    if isinstance(content, dict) and "program" in content:
        return ProgramFamily.from_json(text)
    is_packed = isinstance(content, dict) and "task" in content
    return PackedFamily.from_json(text) if is_packed else FunctionFamily.from_json(text)
