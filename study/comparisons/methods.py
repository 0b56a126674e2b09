"""Methods: rows that differ only in the swept hyperparameter, compared at the values that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from study.summaries import series
from study.summaries.rows import ResultRows


@dataclass(frozen=True)
class Method:
    """Rows of a report that are one method at a question.

    Args:
        name: the values that distinguish it from the other methods; empty if there are none.
        rows: the rows, in ascending order of the swept hyperparameter; several if their average is compared.
    """

    name: str
    rows: tuple[int, ...]

    @property
    def label(self) -> str:
        """The name with all but its first part in brackets, since commas separate methods in sentences."""
        first, comma, details = self.name.partition(", ")
        return f"{first} ({details})" if comma else self.name


def methods_of(rows: ResultRows, members: Sequence[int], x: str, question_keys: Sequence[str]) -> tuple[Method, ...]:
    """Group rows of one question that differ only in x into methods.

    Args:
        rows: the rows.
        members: the rows of one question.
        x: the swept hyperparameter; ``model`` if there is none, so that methods keep all of their rows.
        question_keys: the keys that distinguish the questions.

    Returns:
        The methods, with their rows at the values of x that all of them have; without methods that have no such row.

    Raises:
        InputError: if the vocabulary of an installed package can't be imported.
    """
    method_keys = [key for key in rows.varying() if key not in question_keys and (key != x or x == "model")]
    rank = {level: i for i, level in enumerate(series.levels(rows, x))}
    groups = rows.alike(method_keys, members)
    for group in groups.values():
        group.sort(key=lambda row: rank.get(rows.value(row, x), 0))
    compared = _rows_in_common(rows, groups, x) if x != "model" else groups
    return tuple(
        Method(rows.name(group[0], method_keys), tuple(compared[key])) for key, group in groups.items() if compared[key]
    )


def _rows_in_common(
    rows: ResultRows, groups: Mapping[tuple[Any, ...], Sequence[int]], x: str
) -> dict[tuple[Any, ...], list[int]]:
    """Select the rows at values of x that all groups have; without such a value, no rows."""
    levels = [{rows.value(row, x) for row in group} for group in groups.values()]
    common = set.intersection(*levels) if levels else set()
    return {key: [row for row in group if rows.value(row, x) in common] for key, group in groups.items()}
