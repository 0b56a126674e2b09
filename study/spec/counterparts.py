"""Counterparts: cells with equal values of all swept fields but the compared ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from study.records import Cell, names_of


def swept(cells: Sequence[Cell]) -> list[str]:
    """List the fields that differ among the cells of the same model.

    Example:
        >>> swept([Cell("simple", model, {"hidden_size": n}) for model in ("NMU", "NAC-mul") for n in (2, 4)])
        ['hidden_size']
    """
    models = dict.fromkeys(cell.model for cell in cells)
    return [
        name
        for name in names_of(cells)
        if any(len({c.value(name) for c in cells if c.model == model}) > 1 for model in models)
    ]


def are_alike(cell: Cell, other: Cell, names: Collection[str]) -> bool:
    """Return True if two cells have equal values of the named fields; a missing value, or None, equals any.

    Example:
        >>> are_alike(Cell("t", "NMU", {"a": 1, "b": 2}), Cell("t", "MLP", {"a": 1}), ["a", "b"])
        True
    """
    values = [(cell.value(name), other.value(name)) for name in names]
    return all(a == b or a is None or b is None for a, b in values)
