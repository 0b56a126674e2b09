"""Canonical cells of points: with defaults, and None for hyperparameters that don't apply.

Points with equal cells have the same trials, whatever their labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from study.interface.family import Family
from study.plugins.families import family_named
from study.records import Cell
from study.spec.grid import Point, model_level, points
from study.spec.tables import Spec


def canonical_cell(task: str, model: str, values: Mapping[str, Any], family: Family | None = None) -> Cell:
    """Make the canonical cell of a point: with defaults, and None for hyperparameters that don't apply.

    Args:
        task: the task's name.
        model: the model's name.
        values: the values of the hyperparameters that are set, by name.
        family: the family that declares them; None for the installed family of the task.

    Raises:
        KeyError: if the family has no such task or model, for families that check it.
        ValueError: if a value is invalid, or one without a default is missing.
        InputError: if `family` is None, and the installed packages don't offer exactly one usable family of the task.

    Example:
        >>> cell = canonical_cell("simple", "NAC-mul", {"sparsity_strength": 10.0})
        >>> cell.value("sparsity_strength"), cell.iterations
        (None, 200000)
    """
    return Cell(task, model, (family or family_named(task)).canonical(task, model, values))


def applied(values: Mapping[str, Any], inapplicable: Collection[str], family: Family) -> dict[str, Any]:
    """Return the values without inapplicable hyperparameters, or with None for these if the family leaves them out."""
    applying = {name: value for name, value in values.items() if name not in inapplicable}
    return {**applying, **dict.fromkeys(inapplicable if family.leaves_out else ())}


def cell_of_point(spec: Spec, model: str, point: Point) -> Cell:
    """Make the cell of a point of a model's grid.

    Raises:
        ValueError: if the family rejects the point's values, or one without a default is missing.
    """
    values = {name: setting.value for name, setting in point.settings.items()}
    return canonical_cell(spec.task_name, model, applied(values, point.inapplicable, spec.family), spec.family)


def labelled_cells(spec: Spec) -> dict[Cell, dict[str, str]]:
    """Return a study's distinct cells, in the file's order, each with its labels by axis.

    A cell of several points has only the labels that all of them share.

    Raises:
        ValueError: if the family rejects the values of a point, or one without a default is missing.
    """
    labels: dict[Cell, dict[str, str]] = {}
    for index, model in enumerate(spec.model_tables):
        for point in points(model_level(spec, index)):
            cell = cell_of_point(spec, model.name, point)
            # If points with different labels become one cell, the axis gives it no label.
            earlier = labels.get(cell, point.labels)
            labels[cell] = {axis: text for axis, text in earlier.items() if point.labels.get(axis) == text}
    return labels
