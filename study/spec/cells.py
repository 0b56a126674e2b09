"""From a point's values to a canonical cell: with defaults, and None where something doesn't apply.

Points that have the same cell ask for the same trials, whatever the file calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.records import Cell
from tasks.arithmetic_cell import canonical


def canonical_cell(task: str, model: str, values: Mapping[str, Any]) -> Cell:
    """Make the cell of a point.

    Args:
        task: name in `tasks.TASKS`.
        model: name in `tasks.MODELS`.
        values: values of the hyperparameters that are set, by name.

    Raises:
        ValueError: if the task doesn't exist with these values.

    Example:
        >>> cell = canonical_cell("simple", "NAC-mul", {"sparsity_strength": 10.0})
        >>> cell.value("sparsity_strength"), cell.iterations
        (None, 200000)
    """
    content = dict(vars(canonical(task, model, values)))
    return Cell(content.pop("task"), content.pop("model"), content)
