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
        values: of each summary, one a key; None where there is none.
        summaries: one a row.
        is_number: of each key.
        methods: the keys that are no part of the question: what the question is asked about.
        as_published: the published estimators' numbers of each summary, if asked for.
        is_plain: whether keys are columns of a file, whose texts say little without their column's name.
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
        """Say what a row is."""
        return "group" if self.is_plain else "cell"

    def shown(self) -> list[tuple[str, ...]]:
        """Write the values for people."""
        return [tuple(map(words.show_value, self.keys, row)) for row in self.values]

    def value(self, row: int, key: str) -> Any:
        """Give a row's value of a key; None of a key that there isn't."""
        return self.values[row][self.keys.index(key)] if key in self.keys else None

    def alike(self, keys: Sequence[str], among: Iterable[int]) -> dict[tuple[Any, ...], list[int]]:
        """Put rows together that have equal values of some keys, in the order given."""
        found: dict[tuple[Any, ...], list[int]] = {}
        for row in among:
            found.setdefault(tuple(self.value(row, key) for key in keys), []).append(row)
        return found

    def finished(self) -> list[int]:
        """List the rows that have a finished trial."""
        return [row for row, summary in enumerate(self.summaries) if summary.finished]

    def varying(self) -> Sequence[str]:
        """List the keys that take more than one value."""
        return self._varying

    @cached_property
    def _varying(self) -> tuple[str, ...]:  # every name of every row asks
        return tuple(key for i, key in enumerate(self.keys) if len({row[i] for row in self.values}) > 1)

    def name(self, row: int, keys: Sequence[str] | None = None) -> str:
        """Name a row by some keys, those that vary if not told which: what is a number with what it is."""
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
        """Give of each summary what it answers: summaries of one question are compared with each other."""
        return questions.questions(self.keys, self.values, self.methods)


def cells(summaries: Sequence[CellSummary], labels: Labels) -> ResultRows:
    """Tell cells apart by the fewest hyperparameters, the model always among them."""
    found = [summary.cell for summary in summaries]
    keys = questions.keys(found, labels)
    axes = questions.axes(keys, labels)
    values = [[value(cell, key, labels) for cell in found] for key in keys]
    return ResultRows(
        keys=keys,
        values=tuple(zip(*values, strict=True)),
        summaries=summaries,
        is_number=tuple(
            key not in axes and _are_numbers(column) for key, column in zip(keys, values, strict=True)
        ),
        methods=questions.methods(keys, axes),
    )


def groups(summaries: Sequence[GroupSummary], by: Sequence[str]) -> ResultRows:
    """Tell groups apart by their columns."""
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
    """Find the best rows of each question: those that show what the best one does.

    The best success rate is the greatest, if it isn't zero; of all else the least is. A question with one answer
    has no best.

    Args:
        rows: the summaries.
        name: a statistic.
        show: how it is written.
    """
    value = [getattr(s, name) for s in rows.summaries]
    asked: dict[tuple[Any, ...], list[int]] = {}
    for row, question in enumerate(rows.questions()):
        asked.setdefault(question, []).append(row)
    choose = max if name == "success_rate" else min
    found: list[int] = []
    for members in asked.values():
        there = [row for row in members if value[row] is not None]
        if len(members) < 2 or not there:
            continue
        chosen = choose(value[row] for row in there)
        if name != "success_rate" or chosen > 0:
            found += [row for row in there if show(value[row]) == show(chosen)]
    return found


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in values)
