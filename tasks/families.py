"""Which family a cell belongs to."""

from __future__ import annotations

from tasks import function_family
from tasks.arithmetic_family import ARITHMETIC
from tasks.family import Content, Family

# Packs are the same for all functions, so nothing needs to be known of the function here.
_FUNCTIONS = function_family.FunctionFamily("", {}, {}, code="")


def family_of(cell: Content) -> Family:
    """Return the family of a cell, by the name of its task.

    Raises:
        ValueError: if no family has such a task.
    """
    if cell.task in ARITHMETIC.tasks:
        return ARITHMETIC
    if cell.task == function_family.TASK:
        return _FUNCTIONS
    raise ValueError(f"no family of tasks has a task called {cell.task!r}")
