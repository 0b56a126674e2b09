"""From a point's values to a canonical cell: with defaults, and None where something doesn't apply.

Points that have the same cell ask for the same trials, whatever the file calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.records import Cell
from tasks.families import BUILT_IN
from tasks.family import Family


def canonical_cell(task: str, model: str, values: Mapping[str, Any], family: Family = BUILT_IN) -> Cell:
    """Make the cell of a point.

    Args:
        task: the task's name.
        model: the model's name.
        values: values of the hyperparameters that are set, by name.
        family: what declares them.

    Raises:
        ValueError: if the task doesn't exist with these values.

    Example:
        >>> cell = canonical_cell("simple", "NAC-mul", {"sparsity_strength": 10.0})
        >>> cell.value("sparsity_strength"), cell.iterations
        (None, 200000)
    """
    return Cell(task, model, family.canonical(task, model, values))
