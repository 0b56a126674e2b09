"""Tables as texts, with the values behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from study.errors import InputError, nearest
from study.words import NONE, Notation, estimate_alone

_STATISTICS = ("mean", "median", "interquartile_mean")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: the title; in LaTeX, neighbours with the same title share it if they have titles below.
        texts: one text a row.
        values: one value a row, to sort by; None where it is missing. Columns for LaTeX have no values.
        is_number: whether to align the column to the right.
        best: the rows with the best values of their groups.
        name: the name of the same column in CSV and Parquet files; empty if they have none.
        below: in LaTeX, the column's own title below a shared one; empty for none.
        unit: in LaTeX, the unit of the numbers; empty for none.
    """

    title: str
    texts: tuple[str, ...]
    values: tuple[Any, ...] = ()
    is_number: bool = True
    best: frozenset[int] = frozenset()
    name: str = ""
    below: str = ""
    unit: str = ""

    @property
    def entries(self) -> list[tuple[str, str, bool, bool]]:
        """By row: the text, a number's digits for sorting, `is_number`, and True if it is the best.

        The digits are empty for other values, and if the text is the number as Python writes it. A column with
        different numbers of texts and values, such as one with texts, but no values, raises ValueError.
        """
        are_numbers = (isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)
        return [
            (text, f"{value:.17g}" if is_number and str(value) != text else "", self.is_number, row in self.best)
            for row, (text, value, is_number) in enumerate(zip(self.texts, self.values, are_numbers, strict=True))
        ]


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Args:
        columns: from left to right.
        marked: rows to set off.
        keys: the number of leading columns that identify a row; they stay visible where the table is too wide.
    """

    columns: tuple[Column, ...]
    marked: frozenset[int] = frozenset()
    keys: int = 1

    @property
    def header(self) -> tuple[str, ...]:
        """The columns' titles."""
        return tuple(column.title for column in self.columns)

    @property
    def names(self) -> list[str]:
        """The key columns of each row as one text; an empty list with one key column or none.

        Numbers follow their column's title. Missing keys are left out; if all are missing, the text is an en dash.
        """
        if self.keys < 2:
            return []
        titles = [f"{column.title} " if column.is_number else "" for column in self.columns[: self.keys]]
        keys = (zip(titles, texts, strict=False) for texts in self.rows)
        rows = ([title + text for title, text in row_keys if text != NONE] for row_keys in keys)
        return [" · ".join(texts) or NONE for texts in rows]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The texts of each row."""
        return list(zip(*(column.texts for column in self.columns), strict=True))

    @property
    def entries(self) -> list[tuple[tuple[str, str, bool, bool], ...]]:
        """The entries of each row, from left to right; ValueError if a column has texts, but no values."""
        return list(zip(*(column.entries for column in self.columns), strict=True))


def text_column(title: str, pairs: Sequence[tuple[str, Any]], *, is_number: bool = True, name: str = "") -> Column:
    """Make a column from pairs of a text and the value to sort it by."""
    return Column(title, tuple(text for text, _ in pairs), tuple(value for _, value in pairs), is_number, name=name)


def count_column(title: str, counts: Sequence[int | None], name: str = "") -> Column:
    """Make a column of counts; None is left blank."""
    return text_column(title, [("" if count is None else str(count), count) for count in counts], name=name)


def names_column(title: str, names: Sequence[str]) -> Column:
    """Make a left-aligned column of names."""
    return text_column(title, [(name, name) for name in names], is_number=False)


def select(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """Select columns by name, in the order of the names, each once.

    A name without its statistic stands for all of them: ``solved_at`` for its mean and median.

    Raises:
        InputError: if a column doesn't exist.

    Example:
        >>> columns = [Column("solved at", ("1k",), (1000,), name=name) for name in ("solved_at_mean", "seeds")]
        >>> [column.name for column in select(columns, ["seeds", "solved_at"])]
        ['seeds', 'solved_at_mean']
        >>> select(columns, ["sedes"])
        Traceback (most recent call last):
            ...
        study.errors.InputError: --columns sedes: no such column; did you mean 'seeds'?; choose from
        solved_at_mean, seeds
    """
    valid = [column.name for column in columns]
    matches = {
        name: [c for c in columns if c.name == name or c.name.removeprefix(f"{name}_") in _STATISTICS] for name in names
    }
    unknown = [f"{name}: no such column{nearest(name, valid)}" for name in names if not matches[name]]
    if unknown:
        raise InputError(f"--columns {'; '.join(unknown)}; choose from {', '.join(valid)}")
    return list(dict.fromkeys(column for name in names for column in matches[name]))


def places(are_marked: Iterable[bool]) -> frozenset[int]:
    """Return the indices of the marked rows.

    Example:
        >>> sorted(places([True, False, True]))
        [0, 2]
    """
    return frozenset(row for row, is_marked in enumerate(are_marked) if is_marked)


def estimates_column(
    rows: Sequence[Any], title: str, name: str, write: Notation, interval: str | None = None, *, is_alone: bool = False
) -> Column:
    """Make a column of estimates from a field of each row.

    The interval determines the rounding of an estimate even if only the estimate is written.

    Args:
        rows: the rows, with the estimates as fields.
        title: the title of the column.
        name: the field of the estimates, and the column's name.
        write: formats an estimate with its interval.
        interval: the field of the intervals; None if there are none.
        is_alone: whether to leave the intervals out.
    """
    values = tuple(getattr(s, name) for s in rows)
    intervals = [getattr(s, interval) if interval else None for s in rows]
    texts = tuple(map(partial(estimate_alone, write) if is_alone else write, values, intervals))
    return Column(title, texts, values, name=name)
