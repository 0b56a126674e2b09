"""Questions and methods: which rows ask the same and are compared, and in what they differ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from study.records import CELL_FIELDS, Cell, Labels, value

METHODS = (
    "model", "init_variance", "bounds", "out_of_bounds_strength", "out_of_bounds_shape", "sparsity_strength",
    "sparsity_start", "sparsity_end", "sparsity_shape", "sparsity_scaling", "optimizer", "learning_rate",
    "momentum", "batch_size",
)  # fmt: skip
"""Hyperparameters that say how a question is answered; all others are the question."""


def varying(cells: Sequence[Cell], labels: Labels | None = None) -> list[str]:
    """List the fewest hyperparameters, in order, that tell the cells apart.

    A label on an axis stands for the several hyperparameters that move together there, and the model for
    those that it prescribes: what follows from the names before it isn't listed.

    Example:
        >>> cell = dict(task="simple", operation="mul", input_size=4, subset_ratio=None, overlap_ratio=None,
        ...     subsets=2, interpolation_range=((1, 2),), extrapolation_range=((2, 6),), model="NMU")
        >>> varying([Cell(**cell, hidden_size=2), Cell(**cell, hidden_size=3)])
        ['hidden_size']
    """
    labels = labels or {}
    axes = list(dict.fromkeys(axis for cell in cells for axis in labels.get(cell.id, {})))
    first = ["model", *axes, "hidden_size", "operation"]
    kept: list[str] = []
    for key in dict.fromkeys([*first, *CELL_FIELDS]):
        told_apart = {tuple(value(cell, k, labels) for k in kept) for cell in cells}
        with_it = {tuple(value(cell, k, labels) for k in [*kept, key]) for cell in cells}
        if len(with_it) > len(told_apart):
            kept.append(key)
    return kept


def keys(cells: Sequence[Cell], labels: Labels) -> tuple[str, ...]:
    """List what tells the rows of a table of cells apart: the fewest hyperparameters, the model always among them."""
    found = varying(cells, labels)
    return tuple(found if "model" in found else ["model", *found])


def axes(some: Sequence[str], labels: Labels) -> list[str]:
    """List those of some keys that are axes of the grid, on which points have names."""
    return [key for key in some if any(key in of for of in labels.values())]


def methods(some: Sequence[str], axes: Sequence[str] = ()) -> frozenset[str]:
    """Tell what is compared from what it is compared in; where nobody knows, the last key is compared.

    Example:
        >>> sorted(methods(["model", "operation", "learning_rate"])), sorted(methods(["source", "colour"]))
        (['learning_rate', 'model'], ['colour'])
    """
    known = [key for key in some if key in METHODS or key in axes]
    return frozenset(known or some[-1:])


def questions(
    some: Sequence[str], values: Sequence[Sequence[Any]], compared: frozenset[str]
) -> list[tuple[Hashable, ...]]:
    """Give of each row what it answers.

    Args:
        some: keys.
        values: of each row, one a key.
        compared: the keys that are methods.
    """
    kept = [key not in compared for key in some]
    return [tuple(v for v, keep in zip(row, kept, strict=True) if keep) for row in values]


def of_cells(cells: Sequence[Cell], labels: Labels) -> list[tuple[Hashable, ...]]:
    """Give of each cell what it answers, as a table of these cells has it."""
    some = keys(cells, labels)
    values = [[value(cell, key, labels) for key in some] for cell in cells]
    return questions(some, values, methods(some, axes(some, labels)))
