"""Tables as texts: columns, with the numbers behind their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from study import words
from study.records import Interval


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: its title.
        texts: one a row.
        values: one a row, to sort by; None where there is none.
        is_number: whether it is aligned to the right.
        best: the rows that have the best values of their groups.
    """

    title: str
    texts: tuple[str, ...]
    values: tuple[Any, ...]
    is_number: bool = True
    best: frozenset[int] = frozenset()

    @property
    def cells(self) -> list[tuple[str, str, bool, bool]]:
        """By row: the text, the number behind it ("" if the text is that), `is_number`, and whether it is best."""
        return [
            (text, _hidden_number(value, text), self.is_number, row in self.best)
            for row, (text, value) in enumerate(zip(self.texts, self.values, strict=True))
        ]


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Args:
        columns: from left to right.
        marked: rows to set off.
    """

    columns: tuple[Column, ...]
    marked: frozenset[int] = frozenset()

    @property
    def header(self) -> tuple[str, ...]:
        """The columns' titles."""
        return tuple(column.title for column in self.columns)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The texts of each row."""
        return list(zip(*(column.texts for column in self.columns), strict=True))

    @property
    def cells(self) -> list[tuple[tuple[str, str, bool, bool], ...]]:
        """The columns' cells by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


def text_column(title: str, pairs: Sequence[tuple[str, Any]], *, is_number: bool = True) -> Column:
    """Make a column of texts, each with the value that it is sorted by."""
    return Column(title, tuple(text for text, _ in pairs), tuple(value for _, value in pairs), is_number)


def estimate(value: float | None, interval: Interval | None, write: Callable[[float | None], str]) -> str:
    """Write an estimate with its 95% interval, if it has one.

    Example:
        >>> estimate(0.9, (0.826, 0.945), words.rate), estimate(0.9, None, words.rate)
        ('0.90 [0.83, 0.94]', '0.90')
    """
    return f"{write(value)} {words.interval(interval, write)}".rstrip()


def places(are_marked: Iterable[bool]) -> frozenset[int]:
    """Return the indices of the rows that are marked.

    Example:
        >>> sorted(places([True, False, True]))
        [0, 2]
    """
    return frozenset(row for row, is_marked in enumerate(are_marked) if is_marked)


def _hidden_number(value: Any, text: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or str(value) == text:
        return ""
    return f"{value:.17g}"


def estimates_column(
    some: Sequence[Any],
    title: str,
    name: str,
    show: Callable[[Any], str],
    interval: str | None = None,
    best: Iterable[int] = (),
) -> Column:
    """Make a column of estimates, which are fields of rows.

    Args:
        some: the rows.
        title: its title.
        name: the field of the estimates.
        show: writes a number.
        interval: the field of their intervals; None to write none.
        best: the rows that have the best values.
    """
    values = tuple(getattr(s, name) for s in some)
    intervals = [getattr(s, interval) if interval else None for s in some]
    texts = tuple(estimate(v, i, show) for v, i in zip(values, intervals, strict=True))
    return Column(title, texts, values, best=frozenset(best))
