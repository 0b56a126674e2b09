"""Lookup of families by task name and by cell."""

from __future__ import annotations

from typing import Any

from study.errors import InputError
from study.interface.declarations import Metric
from study.interface.family import Content, Family
from study.interface.function_family import TASK, FunctionFamily
from study.interface.json_text import parse_json
from study.interface.packed_family import PackedFamily
from study.interface.program_family import TASK as PROGRAM_TASK
from study.interface.program_family import ProgramFamily
from study.plugins import offers

# Packs depend on a cell's values alone, so these families need no code.
_FUNCTIONS = FunctionFamily("", {}, {}, code="")
_PACKED = PackedFamily("", {}, {}, {}, code="")


def is_family_task(task: str) -> bool:
    """Return True if a task belongs to a family that an installed package offers.

    Example:
        >>> is_family_task("simple"), is_family_task("identity"), is_family_task("lab:Spirals")
        (True, False, False)
    """
    return offers.is_offered("families", task)


def family_named(task: str) -> Family:
    """Return the family that an installed package offers for a task.

    Raises:
        InputError: if no package or more than one offers this task, or the family can't be imported or isn't a `Family`
            with this task.

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
    """Return all families that installed packages offer, each once, in the order of their tasks' names.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    return list({id(family): family for family in map(family_named, offers.names("families"))}.values())


def family_kinds() -> dict[str, str]:
    """Return the column kinds (`study.arrow.kinds`) that the families declare, by hyperparameter, in column order.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    return {name: kind for family in families() for name, kind in family.kinds.items()}


def family_metrics() -> dict[str, Metric]:
    """Return all metrics that cells of the families can have, by name.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    return {name: metric for family in families() for name, metric in family.all_metrics.items()}


def family_of(cell: Content) -> Family:
    """Return the family of a cell, by the name of its task.

    Raises:
        ValueError: if no family has this task.
        InputError: if several packages offer a family of this task, or it can't be imported or isn't a `Family` with
            this task.
    """
    if is_family_task(cell.task):
        return family_named(cell.task)
    if cell.task in (TASK, PROGRAM_TASK):
        return _FUNCTIONS
    if ":" in cell.task or offers.is_offered("stable_tasks", cell.task):
        return _PACKED
    raise ValueError(f"no family of tasks has a task called {cell.task!r}")


def declared_family(text: str | bytes) -> Family:
    """Read a family that was declared by a study's own code and written by its `to_json`.

    Raises:
        ValueError: if the text isn't such a declaration, or no installed package offers its family.
        InputError: if the family can't be imported or isn't a `Family` with the declared task, or several packages
            offer it.
    """
    content: Any = parse_json(text)
    if isinstance(content, dict) and "family" in content:
        task = content["family"]
        if not isinstance(task, str) or not is_family_task(task):
            raise ValueError(f"no installed package offers a family with a task {task!r}")
        return family_named(task).from_declared(content)
    if isinstance(content, dict) and "program" in content:
        return ProgramFamily.from_json(text)
    is_packed = isinstance(content, dict) and "task" in content
    return PackedFamily.from_json(text) if is_packed else FunctionFamily.from_json(text)
