"""Methods: rows that differ only in what is swept, compared at the values of it that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from study.analysis import series
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary


@dataclass(frozen=True)
class Method:
    """Rows that differ only in what is swept.

    Args:
        name: what they have in common; empty if there is nothing to tell them from.
        rows: their indices, in ascending order of what is swept.
        compared: the summaries of those that are compared with other methods.
    """

    name: str
    rows: tuple[int, ...]
    compared: tuple[Summary, ...]

    @property
    def solved(self) -> int:
        """The number of solved trials of the compared rows."""
        return sum(summary.solved for summary in self.compared)

    @property
    def judged(self) -> int:
        """The number of trials of the compared rows of which it is known whether they were solved."""
        return sum(summary.judged for summary in self.compared)

    @property
    def rate(self) -> float:
        """The success rate of all trials of the compared rows."""
        return self.solved / self.judged

    @property
    def label(self) -> str:
        """The name with all but the model in brackets, since commas separate methods in sentences."""
        first, comma, rest = self.name.partition(", ")
        return f"{first} ({rest})" if comma else self.name


def methods_of(rows: ResultRows, members: Sequence[int], x: str, question_keys: Sequence[str]) -> list[Method]:
    """Group rows of one question that differ only in x into methods.

    Args:
        rows: the rows.
        members: those of one question.
        x: what is swept.
        question_keys: the keys that tell the questions apart.

    Returns:
        The methods that have rows at the values of x that all of them have.
    """
    rest = [key for key in rows.varying() if key not in question_keys and (key != x or x == "model")]
    rank = {level: i for i, level in enumerate(series.levels(rows, x))}
    groups = rows.alike(rest, members)
    for some in groups.values():
        some.sort(key=lambda row: rank.get(rows.value(row, x), 0))
    compared = _rows_in_common(rows, groups, x) if x != "model" else groups
    return [
        Method(rows.name(some[0], rest), tuple(some), tuple(rows.summaries[row] for row in compared[key]))
        for key, some in groups.items()
        if compared[key]
    ]


def _rows_in_common(
    rows: ResultRows, groups: Mapping[tuple[Any, ...], Sequence[int]], x: str
) -> dict[tuple[Any, ...], list[int]]:
    """Select the rows at values of x that all groups have; if there is no such value, nothing can be compared."""
    levels = [{rows.value(row, x) for row in some} for some in groups.values()]
    common = set.intersection(*levels)
    return {key: [row for row in some if rows.value(row, x) in common] for key, some in groups.items()}
