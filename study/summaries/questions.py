"""Questions and methods: rows with the same question are compared, and differ in methods."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

from study.plugins.families import is_family_task
from study.plugins.vocabulary import vocabulary
from study.records import Cell, Labels, names_of, value


def varying(cells: Sequence[Cell], labels: Labels | None = None) -> list[str]:
    """List names of values that distinguish the cells, without those that the ones before them determine.

    The model comes first, then axes of the grid, then hyperparameters. So a label on an axis replaces all
    hyperparameters that change together there, and the model replaces the hyperparameters that it prescribes.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> varying([Cell("simple", "NMU", {"hidden_size": 2}), Cell("simple", "NMU", {"hidden_size": 3})])
        ['hidden_size']
    """
    labels = labels or {}
    axes = list(dict.fromkeys(axis for cell in cells for axis in labels.get(cell.id, {})))
    first = ["model", *axes, *vocabulary().named_first]
    names: list[str] = []
    for key in dict.fromkeys([*first, *names_of(cells)]):
        without_key = {tuple(value(cell, k, labels) for k in names) for cell in cells}
        with_key = {tuple(value(cell, k, labels) for k in [*names, key]) for cell in cells}
        if len(with_key) > len(without_key):
            names.append(key)
    return names


def keys(cells: Sequence[Cell], labels: Labels) -> tuple[str, ...]:
    """List the keys of a table of cells: the model, and the `varying` names that distinguish its rows.

    The model is left out if it doesn't vary, other keys do, and no cell's task belongs to a family: then it is a user's
    own, with a long import string.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> cells = [Cell("function", "lab:train", {"width": width}) for width in (2, 4)]
        >>> keys(cells, {}), keys(cells[:1], {})
        (('width',), ('model',))
    """
    names = varying(cells, labels)
    is_own = not any(is_family_task(cell.task) for cell in cells)
    return tuple(names if "model" in names or (names and is_own) else ["model", *names])


def axes(names: Sequence[str], labels: Labels) -> list[str]:
    """List the keys that are labelled axes of the grid."""
    return [key for key in names if any(key in points for points in labels.values())]


def methods(names: Sequence[str], axes: Sequence[str] = ()) -> frozenset[str]:
    """Select the keys that are compared: known methods and the axes, or all keys if none of these is among the names.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> sorted(methods(["model", "operation", "learning_rate"])), sorted(methods(["source", "colour"]))
        (['learning_rate', 'model'], ['colour', 'source'])
    """
    compared = [key for key in names if key in vocabulary().methods or key in axes]
    return frozenset(compared or names)


def has_methods(names: Sequence[str]) -> bool:
    """Return True if any column is a known method.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    return any(key in vocabulary().methods for key in names)


def are_declared(cells: Sequence[Cell]) -> bool:
    """Return True if each cell's task belongs to a family, which declares its methods; True without cells."""
    return all(is_family_task(cell.task) for cell in cells)


def cell_methods(
    cells: Sequence[Cell], names: Sequence[str], labels: Labels, question_fields: Collection[str] = ()
) -> frozenset[str]:
    """Select the keys that are compared in a table of cells.

    If each cell's task belongs to a family, the known methods are compared, with all axes outside of the question; or
    all keys if there are none of these. Otherwise all keys outside of the question are compared; or the last one if
    there are none. An axis that the question determines, such as one of input ranges, belongs to the question.

    Args:
        cells: the cells of the table.
        names: the keys of the table.
        labels: the names of points on axes of the grid.
        question_fields: hyperparameters that are declared to belong to the question. For cells of families, they only
            decide which axes belong to it.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.

    Example:
        >>> cells = [Cell("lab:Spirals", "lab:mlp", {"turns": n, "width": width}) for n in (1, 2) for width in (2, 4)]
        >>> sorted(cell_methods(cells, ["turns", "width"], {}, question_fields=["turns"]))
        ['width']
    """
    if are_declared(cells):
        compared_axes = [key for key in axes(names, labels) if not _names_question(cells, key, labels, question_fields)]
        return methods(names, compared_axes)
    compared = [
        key for key in names if key not in question_fields and not _names_question(cells, key, labels, question_fields)
    ]
    return frozenset(compared or names[-1:])


def _names_question(cells: Sequence[Cell], axis: str, labels: Labels, question_fields: Collection[str]) -> bool:
    """Return True for a labelled axis whose points the question determines, so that it belongs to the question."""
    if not any(axis in points for points in labels.values()):
        return False
    points_of: dict[tuple[str, ...], set[Any]] = {}
    for cell in cells:
        question = tuple(repr(cell.value(name)) for name in question_fields)
        points_of.setdefault(question, set()).add(value(cell, axis, labels))
    return all(len(points) == 1 for points in points_of.values())


def questions(
    names: Sequence[str], values: Sequence[Sequence[Any]], compared: frozenset[str]
) -> list[tuple[Hashable, ...]]:
    """Return each row's question: its values of the keys that aren't compared.

    Args:
        names: the keys.
        values: the values of each row, one a key.
        compared: the keys that are methods.
    """
    places = [place for place, key in enumerate(names) if key not in compared]
    return [tuple(row[place] for place in places) for row in values]


def cell_questions(
    cells: Sequence[Cell], labels: Labels, question_fields: Collection[str] = ()
) -> list[tuple[Hashable, ...]]:
    """Return each cell's question in a table of these cells: its values of the keys that aren't compared.

    Arguments as for `cell_methods`.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    names = keys(cells, labels)
    values = [[value(cell, key, labels) for key in names] for cell in cells]
    return questions(names, values, cell_methods(cells, names, labels, question_fields))
