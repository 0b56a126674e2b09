"""Base class of the engines of the arithmetic family, with the cells they support."""

from __future__ import annotations

from study.engine.base import Engine
from study.records import Cell
from tasks.arithmetic import TASKS
from tasks.arithmetic.cell import task_of, typed_cell


class ArithmeticEngine(Engine):
    """An engine for tasks of the arithmetic family.

    Attributes:
        tasks: exact classes of the tasks it trains, since a subclass may have another target. None for an engine that
            uses the task's own masks and targets, and so trains any task of the family.
    """

    tasks: tuple[type, ...] | None

    def refuses(self, cell: Cell) -> str | None:
        """Return the reason why this engine can't train the cell, or None if it can."""
        if cell.task not in TASKS:
            return f"it trains only the built-in tasks {', '.join(TASKS)}, not {cell.task}"
        if cell.value("code") is not None:
            return f"it doesn't have the code of {cell.model}"
        if self.tasks is None or (task_class := type(task_of(typed_cell(cell)))) in self.tasks:
            return None
        known = ", ".join(task.__name__ for task in self.tasks)
        return f"it doesn't know the task {cell.task} (class {task_class.__name__}), but {known} only"
