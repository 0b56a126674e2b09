"""Questions and methods: which rows ask the same and are compared, and in what they differ."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

from study.plugins.families import is_family_task
from study.plugins.vocabulary import vocabulary
from study.records import Cell, Labels, names_of, value


def varying(cells: Sequence[Cell], labels: Labels | None = None) -> list[str]:
    """List the fewest hyperparameters, in order, that tell the cells apart.

    A label on an axis stands for all hyperparameters that change together there, and the model for those that it
    prescribes: a hyperparameter that follows from the names before it isn't listed.

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
    """List the keys of a table of cells: the fewest hyperparameters that tell its rows apart, and the model.

    A model of one's own is named by a long import string. Where it is that of all cells, and they can be told apart by
    something else, it is left out.

    Example:
        >>> cells = [Cell("function", "lab:train", {"width": width}) for width in (2, 4)]
        >>> keys(cells, {}), keys(cells[:1], {})
        (('width',), ('model',))
    """
    names = varying(cells, labels)
    is_own = not any(is_family_task(cell.task) for cell in cells)
    return tuple(names if "model" in names or (names and is_own) else ["model", *names])


def axes(some: Sequence[str], labels: Labels) -> list[str]:
    """List those keys that are axes of the grid, on which points have names."""
    return [key for key in some if any(key in of for of in labels.values())]


def methods(some: Sequence[str], axes: Sequence[str] = ()) -> frozenset[str]:
    """Select the keys that are compared; the others are the question. If none is a method, all keys are compared.

    Example:
        >>> sorted(methods(["model", "operation", "learning_rate"])), sorted(methods(["source", "colour"]))
        (['learning_rate', 'model'], ['colour', 'source'])
    """
    compared = [key for key in some if key in vocabulary().methods or key in axes]
    return frozenset(compared or some)


def has_methods(some: Sequence[str]) -> bool:
    """Return whether any of some columns is known to say how a question is answered."""
    return any(key in vocabulary().methods for key in some)


def are_declared(cells: Sequence[Cell]) -> bool:
    """Return whether the family of some cells says which hyperparameters are methods."""
    return all(is_family_task(cell.task) for cell in cells)


def cell_methods(
    cells: Sequence[Cell], some: Sequence[str], labels: Labels, question_fields: Collection[str] = ()
) -> frozenset[str]:
    """Select the keys that are compared in a table of cells: all of them, unless the cells' family says what they are.

    An axis whose points follow from what the task is, such as ranges of numbers, names the question.

    Args:
        cells: those of the table.
        some: its keys.
        labels: the names of points on axes of the grid.
        question_fields: hyperparameters that are declared to belong to the question, as axes do that stand for such
            alone; if there is no other key, the last one is compared.

    Example:
        >>> cells = [Cell("lab:Spirals", "lab:mlp", {"turns": n, "width": width}) for n in (1, 2) for width in (2, 4)]
        >>> sorted(cell_methods(cells, ["turns", "width"], {}, question_fields=["turns"]))
        ['width']
    """
    if are_declared(cells):
        compared_axes = [one for one in axes(some, labels) if not _names_question(cells, one, labels, question_fields)]
        return methods(some, compared_axes)
    compared = [
        key for key in some if key not in question_fields and not _names_question(cells, key, labels, question_fields)
    ]
    return frozenset(compared or some[-1:])


def _names_question(cells: Sequence[Cell], axis: str, labels: Labels, question_fields: Collection[str]) -> bool:
    """Tell whether the points of an axis follow from what is asked: the axis is a name of the question then."""
    if not any(axis in of for of in labels.values()):
        return False
    points: dict[tuple[str, ...], set[Any]] = {}
    for cell in cells:
        asks = tuple(repr(cell.value(name)) for name in question_fields)
        points.setdefault(asks, set()).add(value(cell, axis, labels))
    return all(len(of) == 1 for of in points.values())


def questions(
    some: Sequence[str], values: Sequence[Sequence[Any]], compared: frozenset[str]
) -> list[tuple[Hashable, ...]]:
    """Return the question that each row answers: its values of the keys that aren't compared.

    Args:
        some: the keys.
        values: the values of each row, one a key.
        compared: the keys that are methods.
    """
    places = [place for place, key in enumerate(some) if key not in compared]
    return [tuple(row[place] for place in places) for row in values]


def cell_questions(
    cells: Sequence[Cell], labels: Labels, question_fields: Collection[str] = ()
) -> list[tuple[Hashable, ...]]:
    """Return the question that each cell answers in a table of these cells."""
    some = keys(cells, labels)
    values = [[value(cell, key, labels) for key in some] for cell in cells]
    return questions(some, values, cell_methods(cells, some, labels, question_fields))
