"""Which family a cell belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_type_hints

from study.interface.declarations import Metric
from study.interface.family import Content, Family
from study.interface.function_family import TASK, FunctionFamily
from study.interface.packed_family import PackedFamily
from tasks.arithmetic import metrics_with
from tasks.arithmetic_cell import ArithmeticCell
from tasks.arithmetic_family import ARITHMETIC
from tasks.packed_tasks import PACKED_TASKS

BUILT_IN: Family = ARITHMETIC
"""The family of the tasks that come along."""

BUILT_IN_METRICS: Mapping[str, Metric] = metrics_with(has_relative_error=True)
"""The metrics of the tasks that come along, also those that only some cells ask for."""

BUILT_IN_TYPES: Mapping[str, Any] = get_type_hints(ArithmeticCell)
"""Task, model, and each hyperparameter of the tasks that come along, with its type, in the order of columns."""

OwnFamily = FunctionFamily | PackedFamily
"""What the code of a study declared."""

# Packs are made by a cell's values alone, so nothing needs to be known of the code here.
_FUNCTIONS = FunctionFamily("", {}, {}, code="")
_PACKED = PackedFamily("", {}, {}, {}, code="")


def family_of(cell: Content) -> Family:
    """Return the family of a cell, by the name of its task.

    Raises:
        ValueError: if no family has such a task.
    """
    if cell.task in ARITHMETIC.tasks:
        return ARITHMETIC
    if cell.task == TASK:
        return _FUNCTIONS
    if ":" in cell.task or cell.task in PACKED_TASKS:
        return _PACKED
    raise ValueError(f"no family of tasks has a task called {cell.task!r}")


def declared_family(text: str | bytes) -> OwnFamily:
    """Read what `to_json` of a family wrote.

    Raises:
        ValueError: if it isn't that.
    """
    content = json.loads(text)
    is_packed = isinstance(content, dict) and "task" in content
    return PackedFamily.from_json(text) if is_packed else FunctionFamily.from_json(text)
