"""Rows of a table: summaries with the hyperparameters or columns that distinguish them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from study import words
from study.interface.declarations import Metric
from study.plugins.vocabulary import vocabulary
from study.records import Labels, value
from study.statistics import AsPublished
from study.summaries import questions
from study.summaries.aggregate import CellSummary, GroupSummary
from study.summaries.metrics import main, metrics_of, single
from study.summaries.summary import Summary


@dataclass(frozen=True)
class ResultRows:
    """Summaries, and the keys that distinguish them.

    Args:
        keys: names of hyperparameters, axes of the grid or columns.
        values: the values of each summary, one a key; None for a missing value.
        summaries: one summary a row.
        is_number: True for each numeric key.
        methods: the keys that are compared; the others are the question.
        is_declared: True if the methods are known; otherwise rows are compared that differ in one key.
        as_published: the numbers of the published estimators for each summary, if requested.
        is_plain: True if the keys are columns of a file, whose texts need the column's name.
        named_metrics: the metrics that are shown one by one even if they belong to a series.
        winners: the rows that are better than all others of their question, by tests.
        titles: the declared titles of keys; `title` names the others.
    """

    keys: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    summaries: Sequence[Summary]
    is_number: tuple[bool, ...]
    methods: frozenset[str]
    is_declared: bool = True
    as_published: Sequence[AsPublished] | None = None
    is_plain: bool = False
    named_metrics: Collection[str] = ()
    winners: frozenset[int] = frozenset()
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def noun(self) -> str:
        """The word for a row: "cell" or "group"."""
        return "group" if self.is_plain else "cell"

    def select(self, places: Sequence[int]) -> ResultRows:
        """Return the rows at the given places, in the order of `places`; `winners` isn't renumbered."""
        published = self.as_published
        return replace(
            self,
            values=tuple(self.values[row] for row in places),
            summaries=[self.summaries[row] for row in places],
            as_published=None if published is None else [published[row] for row in places],
        )

    def title(self, key: str) -> str:
        """Return a key's name for readers.

        Raises:
            InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
        """
        return words.title(key, self.titles)

    def texts(self) -> list[tuple[str, ...]]:
        """Return the values of all rows as texts, formatted by `text`.

        Raises:
            InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
        """
        return [tuple(self.text(row, key) for key in self.keys) for row in range(len(self.values))]

    def text(self, row: int, key: str) -> str:
        """Format a row's value of a key for readers; models' import strings are shortened if that is unambiguous.

        A missing value, or one of an unknown key, is the vocabulary's text for None, or else an en dash.

        Raises:
            InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
        """
        content = self.value(row, key)
        is_object = key == "model" and content in self._objects
        return self._objects[content] if is_object else words.format_value(key, content)

    @cached_property
    def _objects(self) -> dict[Any, str]:
        """The short names of models by import string, if they are unambiguous; else empty."""
        if "model" not in self.keys:
            return {}
        models = {str(row[self.keys.index("model")]) for row in self.values}
        objects = {model: model.rpartition(":")[2] for model in models}
        return {m: o for m, o in objects.items() if m != o} if len(set(objects.values())) == len(models) else {}

    def value(self, row: int, key: str) -> Any:
        """Return a row's value of a key; None for an unknown key."""
        return self.values[row][self.keys.index(key)] if key in self.keys else None

    def alike(self, keys: Sequence[str], among: Iterable[int]) -> dict[tuple[Any, ...], list[int]]:
        """Group the rows `among` by their values of keys; groups and their rows are in the order of `among`."""
        grouped: dict[tuple[Any, ...], list[int]] = {}
        for row in among:
            grouped.setdefault(tuple(self.value(row, key) for key in keys), []).append(row)
        return grouped

    def ended(self) -> list[int]:
        """List the rows with a trial that ended."""
        return [row for row, summary in enumerate(self.summaries) if summary.ended]

    def judged(self) -> list[int]:
        """List the rows with a success rate."""
        return [row for row, summary in enumerate(self.summaries) if summary.judged]

    @cached_property
    def has_rates(self) -> bool:
        """True if any row has a success criterion."""
        return have_rates(self.summaries)

    @cached_property
    def has_times(self) -> bool:
        """True if times to success, or censoring times, are known for any row with a criterion (`have_times`)."""
        return have_times(self.summaries)

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The declarations of the averaged metrics, by name."""
        return metrics_of(self.summaries)

    @cached_property
    def single_metrics(self) -> dict[str, Metric]:
        """The declarations of the metrics with their own columns and panels, by name."""
        return single(self.metrics, self.named_metrics)

    @property
    def main_metric(self) -> str | None:
        """The metric that compares rows without success rates; None without such a metric."""
        return main(self.metrics)

    def varying(self) -> Sequence[str]:
        """List the keys with more than one value."""
        return self._varying

    @cached_property
    def _varying(self) -> tuple[str, ...]:  # cached: needed for the name of every row
        return tuple(key for i, key in enumerate(self.keys) if len({row[i] for row in self.values}) > 1)

    @property
    def method_keys(self) -> list[str]:
        """The keys that vary and distinguish the methods of a question."""
        return [key for key in self.varying() if key in self.methods]

    @property
    def question_keys(self) -> list[str]:
        """The keys that vary and distinguish questions."""
        return [key for key in self.varying() if key not in self.methods]

    def name(self, row: int, keys: Sequence[str] | None = None) -> str:
        """Name a row by its values of keys (default: those that vary, else all), with titles unless they are clear.

        Missing values are left out unless the vocabulary has a text for them; the name is empty if all are left out.

        Raises:
            InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
        """
        named = (self.varying() or self.keys) if keys is None else keys
        return ", ".join(part for key in named if (part := self._part(row, key)))

    def _part(self, row: int, key: str) -> str:
        """Return a value as part of a name, with the key's title if it isn't clear alone; empty if missing."""
        cell_value = self.value(row, key)
        text = self.text(row, key)
        if text == words.NONE:
            return ""
        is_named = key in vocabulary().self_explanatory or (isinstance(cell_value, str) and not self.is_plain)
        return text if is_named else f"{self.title(key)} {text}"

    def questions(self) -> list[tuple[Any, ...]]:
        """Return each row's question; rows of one question are compared with each other."""
        return questions.questions(self.keys, self.values, self.methods)


def cell_rows(
    summaries: Sequence[CellSummary],
    labels: Labels,
    named_metrics: Collection[str] = (),
    question_fields: Collection[str] = (),
    titles: Mapping[str, str] | None = None,
) -> ResultRows:
    """Make rows of cells, with the keys of `study.summaries.questions.keys`.

    Args:
        summaries: the summaries of the cells.
        labels: the names of points on axes of the grid.
        named_metrics: as for `ResultRows`.
        question_fields: hyperparameters that are declared to belong to the question.
        titles: declared titles of hyperparameters, by name.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    all_cells = [summary.cell for summary in summaries]
    keys = questions.keys(all_cells, labels)
    axes = questions.axes(keys, labels)
    values = [[value(cell, key, labels) for cell in all_cells] for key in keys]
    return ResultRows(
        keys=keys,
        values=tuple(zip(*values, strict=True)),
        summaries=summaries,
        is_number=tuple(key not in axes and _are_numbers(column) for key, column in zip(keys, values, strict=True)),
        methods=questions.cell_methods(all_cells, keys, labels, question_fields),
        is_declared=questions.are_declared(all_cells),
        named_metrics=named_metrics,
        titles=titles or {},
    )


def groups(summaries: Sequence[GroupSummary], by: Sequence[str], named_metrics: Collection[str] = ()) -> ResultRows:
    """Make rows of groups, with the grouping columns as keys.

    The numbers of the published estimators are left out unless all groups have them.

    Args:
        summaries: the summaries of the groups.
        by: the grouping columns.
        named_metrics: as for `ResultRows`.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    published = [s.as_published for s in summaries if s.as_published is not None]
    return ResultRows(
        keys=tuple(by),
        values=tuple(s.values for s in summaries),
        summaries=summaries,
        is_number=tuple(_are_numbers([s.values[i] for s in summaries]) for i in range(len(by))),
        methods=questions.methods(by),
        is_declared=questions.has_methods(by),
        as_published=published if len(published) == len(summaries) > 0 else None,
        is_plain=True,
        named_metrics=named_metrics,
    )


def have_rates(summaries: Iterable[Summary]) -> bool:
    """Return True if any row has a success criterion."""
    return any(summary.is_judged for summary in summaries)


def have_times(summaries: Iterable[Summary]) -> bool:
    """Return True if times to success, or censoring times, are known for any row with a success criterion.

    Censoring times that aren't loaded count as known.
    """
    return any(summary.is_judged and _has_times(summary) for summary in summaries)


def _has_times(summary: Summary) -> bool:
    """Return True if a row's times to success or, if none is solved, censoring times are known, or not loaded."""
    if summary.solved:
        return summary.solved_at_mean is not None
    return summary.times is None or bool((summary.times.iterations > 0).any())


def _are_numbers(values: Sequence[Any]) -> bool:
    """Return True if all values that aren't None are numbers; True without any."""
    return all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in values)
