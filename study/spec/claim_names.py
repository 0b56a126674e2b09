"""What cells are called in claims: as study files name them, or as reports do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from study import words
from study.records import Cell
from study.spec.counterparts import swept

_ENDS = (", ", " ")


class ClaimNames:
    """The names of a study's cells: parts such as a model, a label or a swept value, alone or one after the other.

    Args:
        cells: the study's cells.
        labels: their labels, by id and axis.
        fields_of: returns the hyperparameters that an axis of the zips sets.
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
        """The names of hyperparameters by the titles that reports have for them."""
        return {words.title(name, self._titles): name for cell in self._cells for name in cell.names}

    @cached_property
    def ambiguous(self) -> dict[str, set[str]]:
        """The hyperparameters of each value that several have, so that it doesn't say which is meant."""
        of_value: dict[str, set[str]] = {}
        for cell in self._cells:
            for name, text in self._values(cell):
                of_value.setdefault(text, set()).add(name)
        return {text: names for text, names in of_value.items() if len(names) > 1}

    @cached_property
    def _of_cell(self) -> dict[str, dict[str, frozenset[str]]]:
        """The parts that a cell's name may have, by its id, each with the fields whose values it says."""
        return {cell.id: self._parts_of(cell) for cell in self._cells}

    @cached_property
    def parts(self) -> list[str]:
        """Every part that a name may have."""
        return list(dict.fromkeys(part for parts in self._of_cell.values() for part in parts))

    @cached_property
    def usual(self) -> list[str]:
        """The names that a message offers: models, each with each of its labels, labels and values alone."""
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
        """Return the fields whose values a name says, besides the model; None if it isn't a name of the cell."""
        parts = self._of_cell[cell.id]
        fields = _read(name, parts)
        if fields is None and name.endswith(")") and " (" in name:  # as sentences of reports have it
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
        """Yield the swept values that are names by themselves, as those of rows of reports."""
        for name in self._swept:
            if isinstance(content := cell.value(name), str):
                yield from ((name, text) for text in _texts(name, content))


def _models(cell: Cell) -> list[str]:
    return list(dict.fromkeys((cell.model, cell.model.rpartition(":")[2], words.symbol(cell.model))))


def _texts(name: str, content: Any) -> list[str]:
    """Return how a file and a report write a value."""
    if content is None:
        return [words.format_value(name, content)]
    written = str(content).lower() if isinstance(content, bool) else str(content)
    as_float = [f"{content}.0"] if type(content) is int else []  # of a program, 0.0 is 0
    return list(dict.fromkeys((words.format_value(name, content), written, *as_float)))


def _read(name: str, parts: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """Return the fields that parts in a row say; None if the name isn't made of parts."""
    if name in parts:
        return parts[name]
    for part, fields in parts.items():
        others = {other: of for other, of in parts.items() if other != part}
        for end in _ENDS:
            if name.startswith(part + end) and (rest := _read(name[len(part + end) :], others)) is not None:
                return fields | rest
    return None
