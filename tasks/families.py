"""Which family a cell belongs to."""

from __future__ import annotations

from tasks.arithmetic_family import ARITHMETIC
from tasks.family import Content, Family


def family_of(cell: Content) -> Family:
    """Return the family of a cell, by the name of its task.

    Raises:
        ValueError: if no family has such a task.
    """
    if cell.task in ARITHMETIC.tasks:
        return ARITHMETIC
    raise ValueError(f"no family of tasks has a task called {cell.task!r}")
