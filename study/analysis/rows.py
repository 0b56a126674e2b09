"""Rows of a table: summaries with the hyperparameters or columns that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from study import words
from study.analysis import questions
from study.analysis.aggregate import CellSummary, GroupSummary
from study.analysis.summary import Summary
from study.records import Labels, value
from study.statistics import AsPublished

_UNNUMBERED = ("model", "operation", "interpolation_range", "extrapolation_range")


@dataclass(frozen=True)
class ResultRows:
    """Summaries, and the keys that tell them apart.

    Args:
        keys: names of hyperparameters, axes of the grid or columns.
        values: the values of each summary, one a key; None where there is none.
        summaries: one a row.
        is_number: whether each key is numeric.
        methods: the keys that are compared; the others are the question.
        as_published: the numbers of the published estimators for each summary, if requested.
        is_plain: whether the keys are columns of a file, whose texts mean little without the column's name.
    """

    keys: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    summaries: Sequence[Summary]
    is_number: tuple[bool, ...]
    methods: frozenset[str]
    as_published: Sequence[AsPublished] | None = None
    is_plain: bool = False

    @property
    def noun(self) -> str:
        """What a row is: "cell" or "group"."""
        return "group" if self.is_plain else "cell"

    def texts(self) -> list[tuple[str, ...]]:
        """Return the values of all rows as texts."""
        return [tuple(map(words.show_value, self.keys, row)) for row in self.values]

    def value(self, row: int, key: str) -> Any:
        """Return a row's value of a key; None if there is no such key."""
        return self.values[row][self.keys.index(key)] if key in self.keys else None

    def alike(self, keys: Sequence[str], among: Iterable[int]) -> dict[tuple[Any, ...], list[int]]:
        """Group the rows that have equal values of some keys, in their order."""
        grouped: dict[tuple[Any, ...], list[int]] = {}
        for row in among:
            grouped.setdefault(tuple(self.value(row, key) for key in keys), []).append(row)
        return grouped

    def finished(self) -> list[int]:
        """List the rows that have a finished trial."""
        return [row for row, summary in enumerate(self.summaries) if summary.finished]

    def varying(self) -> Sequence[str]:
        """List the keys that take more than one value."""
        return self._varying

    @cached_property
    def _varying(self) -> tuple[str, ...]:  # cached, since naming a row needs it, and there are many rows
        return tuple(key for i, key in enumerate(self.keys) if len({row[i] for row in self.values}) > 1)

    def name(self, row: int, keys: Sequence[str] | None = None) -> str:
        """Name a row by some keys (default: those that vary): values alone, numbers with their keys' titles."""
        named = (self.varying() or self.keys) if keys is None else keys
        return ", ".join(part for key in named if (part := self._part(row, key)))

    def _part(self, row: int, key: str) -> str:
        cell_value = self.value(row, key)
        text = words.show_value(key, cell_value)
        if text == words.NONE:
            return ""
        is_named = key in _UNNUMBERED or (isinstance(cell_value, str) and not self.is_plain)
        return text if is_named else f"{words.title(key)} {text}"

    def questions(self) -> list[tuple[Any, ...]]:
        """Return the question that each row answers: rows of one question are compared with each other."""
        return questions.questions(self.keys, self.values, self.methods)


def cells(summaries: Sequence[CellSummary], labels: Labels) -> ResultRows:
    """Make rows of cells; the keys are the fewest hyperparameters that tell the cells apart, and always the model."""
    all_cells = [summary.cell for summary in summaries]
    keys = questions.keys(all_cells, labels)
    axes = questions.axes(keys, labels)
    values = [[value(cell, key, labels) for cell in all_cells] for key in keys]
    return ResultRows(
        keys=keys,
        values=tuple(zip(*values, strict=True)),
        summaries=summaries,
        is_number=tuple(key not in axes and _are_numbers(column) for key, column in zip(keys, values, strict=True)),
        methods=questions.methods(keys, axes),
    )


def groups(summaries: Sequence[GroupSummary], by: Sequence[str]) -> ResultRows:
    """Make rows of groups; the keys are their columns."""
    published = [s.as_published for s in summaries if s.as_published is not None]
    return ResultRows(
        keys=tuple(by),
        values=tuple(s.values for s in summaries),
        summaries=summaries,
        is_number=tuple(_are_numbers([s.values[i] for s in summaries]) for i in range(len(by))),
        methods=questions.methods(by),
        as_published=published if len(published) == len(summaries) > 0 else None,
        is_plain=True,
    )


def best(rows: ResultRows, name: str, show: Callable[[Any], str]) -> list[int]:
    """List the best rows of each question: those whose text of a statistic is that of the best row.

    The best success rate is the greatest, if it isn't zero; of every other statistic, the least is the best. A question
    with only one row has no best.

    Args:
        rows: the summaries.
        name: the statistic.
        show: writes its values.
    """
    value = [getattr(s, name) for s in rows.summaries]
    rows_of: dict[tuple[Any, ...], list[int]] = {}
    for row, question in enumerate(rows.questions()):
        rows_of.setdefault(question, []).append(row)
    choose = max if name == "success_rate" else min
    best_rows: list[int] = []
    for members in rows_of.values():
        measured = [row for row in members if value[row] is not None]
        if len(members) < 2 or not measured:
            continue
        chosen = choose(value[row] for row in measured)
        if name != "success_rate" or chosen > 0:
            best_rows += [row for row in measured if show(value[row]) == show(chosen)]
    return best_rows


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in values)
