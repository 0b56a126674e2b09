"""Names of cells in claims, as in study files or in reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from study import words
from study.records import Cell
from study.spec.counterparts import swept

_ENDS = (", ", " ")


class ClaimNames:
    """Names of a study's cells: one or more parts, each a model, a label or a swept value.

    Args:
        cells: the study's cells.
        labels: their labels, by cell id and axis.
        fields_of: returns the hyperparameters that a zip axis sets.
        titles: declared titles of hyperparameters, by name.

    Example:
        >>> cells = [Cell("simple", m, {"optimizer": o}) for m in ("NMU", "NAC-mul") for o in ("adam", "sgd")]
        >>> names = ClaimNames(cells, {}, lambda axis: set())
        >>> [sorted(names.meaning(cells[2], name)) for name in ("NAC-mul", "NAC•, adam", "NAC• (adam)", "adam")]
        [[], ['optimizer'], ['optimizer'], ['optimizer']]
        >>> names.meaning(cells[3], "NAC•, adam") is None
        True
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        labels: Mapping[str, Mapping[str, str]],
        fields_of: Callable[[str], Collection[str]],
        titles: Mapping[str, str] | None = None,
    ) -> None:
        self._cells, self._labels, self._fields_of, self._titles = cells, labels, fields_of, titles or {}
        self._swept = [name for name in swept(cells) if name not in ("task", "model")]

    @cached_property
    def fields(self) -> dict[str, str]:
        """The names of hyperparameters, task and model, by their titles in reports.

        Raises:
            InputError: if the vocabulary of an installed package can't be imported.
        """
        return {words.title(name, self._titles): name for cell in self._cells for name in cell.names}

    @cached_property
    def ambiguous(self) -> dict[str, set[str]]:
        """The swept hyperparameters that share a textual value, by that text.

        Raises:
            InputError: if the vocabulary of an installed package can't be imported.
        """
        names_by_value: dict[str, set[str]] = {}
        for cell in self._cells:
            for name, text in self._values(cell):
                names_by_value.setdefault(text, set()).add(name)
        return {text: names for text, names in names_by_value.items() if len(names) > 1}

    @cached_property
    def _parts_by_cell(self) -> dict[str, dict[str, frozenset[str]]]:
        """The possible parts of each cell's name, by cell id, each with the fields whose values it states."""
        return {cell.id: self._parts_of(cell) for cell in self._cells}

    @cached_property
    def parts(self) -> list[str]:
        """All possible parts of names.

        Raises:
            InputError: if the vocabulary of an installed package can't be imported.
        """
        return list(dict.fromkeys(part for parts in self._parts_by_cell.values() for part in parts))

    @cached_property
    def usual(self) -> list[str]:
        """The names to suggest in a message: models, models with labels, and unambiguous textual values.

        These are values of swept hyperparameters. If there is only one model, labels alone are among the names.

        Raises:
            InputError: if the vocabulary of an installed package can't be imported.
        """
        names: dict[str, None] = {}
        are_several = len({cell.model for cell in self._cells}) > 1
        for cell in self._cells:
            models = _models(cell)[:2]
            names |= dict.fromkeys(models)
            for label in self._labels.get(cell.id, {}).values():
                names |= dict.fromkeys(f"{model} {label}" for model in models)
                names |= {} if are_several else {label: None}
            names |= {text: None for _, text in self._values(cell) if text not in self.ambiguous}
        return list(names)

    def meaning(self, cell: Cell, name: str) -> frozenset[str] | None:
        """Return the fields whose values a name states, besides the model; None if it isn't a name of the cell.

        Raises:
            KeyError: if the cell isn't one of the study's.
            InputError: if the vocabulary of an installed package can't be imported.
        """
        parts = self._parts_by_cell[cell.id]
        fields = _read(name, parts)
        if fields is None and name.endswith(")") and " (" in name:  # as in sentences of reports
            fields = _read(name.replace(" (", ", ", 1)[:-1], parts)
        return fields

    def _parts_of(self, cell: Cell) -> dict[str, frozenset[str]]:
        parts = dict.fromkeys(_models(cell), frozenset[str]())
        for axis, label in self._labels.get(cell.id, {}).items():
            parts.setdefault(label, frozenset(self._fields_of(axis)))
        for name, text in self._values(cell):
            if text not in self.ambiguous:
                parts.setdefault(text, frozenset({name}))
        for name in self._swept:
            for text in _texts(name, cell.value(name)):
                for title in (name, words.title(name), words.title(name, self._titles)):
                    parts.setdefault(f"{title} {text}", frozenset({name}))
        return parts

    def _values(self, cell: Cell) -> Iterator[tuple[str, str]]:
        """Yield each swept hyperparameter with a textual value, and that text, which is a name by itself as in reports.

        A value that reports write differently is yielded in both notations.
        """
        for name in self._swept:
            if isinstance(content := cell.value(name), str):
                yield from ((name, text) for text in _texts(name, content))


def _models(cell: Cell) -> list[str]:
    return list(dict.fromkeys((cell.model, cell.model.rpartition(":")[2], words.symbol(cell.model))))


def _texts(name: str, content: Any) -> list[str]:
    """Return the distinct notations of a value in reports and in files; None has only that of reports."""
    if content is None:
        return [words.format_value(name, content)]
    written = str(content).lower() if isinstance(content, bool) else str(content)
    as_float = [f"{content}.0"] if type(content) is int else []  # for programs, 0.0 is 0
    return list(dict.fromkeys((words.format_value(name, content), written, *as_float)))


def _read(name: str, parts: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """Return the fields that a name's parts state; None if it doesn't consist of parts."""
    if name in parts:
        return parts[name]
    for part, fields in parts.items():
        others = {other: stated for other, stated in parts.items() if other != part}
        for end in _ENDS:
            if name.startswith(part + end) and (more := _read(name[len(part + end) :], others)) is not None:
                return fields | more
    return None
