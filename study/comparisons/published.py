"""Published results that a study's cells repeat, from installed packages."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import chain
from types import ModuleType
from typing import Any, Protocol

from study.errors import InputError
from study.plugins import offers
from study.records import Cell, Interval
from study.summaries.solved_times import SolvedTimes

Estimate = tuple[float | None, Interval | None]
"""A mean and its 95% interval."""

_RESULTS = ("solved", "seeds", "solved_at_median", "solved_at_mean", "solved_at_mean_lower", "solved_at_mean_upper")
_KEYS = ("source", "task", "model")
_MEANS = ("_mean", "_mean_lower", "_mean_upper")


@dataclass(frozen=True, kw_only=True)
class PublishedCell:
    """One published cell. A number that wasn't published is None.

    Args:
        source: the publication.
        table: the name of its table.
        solved: the number of seeds that solved the task.
        seeds: the number of seeds.
        solved_at_median: iterations; of the solved seeds, as are the next two.
        solved_at_mean: iterations.
        solved_at_interval: of the mean, 95%.
        metrics: means of metrics with their intervals, by name.
        caution: a sentence that limits the comparison of its numbers; empty for none.
    """

    source: str
    table: str
    solved: int
    seeds: int
    solved_at_median: float | None = None
    solved_at_mean: float | None = None
    solved_at_interval: Interval | None = None
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    caution: str = ""


class PublishedResults(Protocol):
    """Published cells, and their assignment to cells of a study.

    An entry point of the group ``seeded_study.published`` names such an object, or a package with CSV files
    (`PublishedTables`).
    """

    @property
    def sources(self) -> Sequence[str]:
        """The publications."""

    def choose(self, cell: Cell, cells: Collection[Cell]) -> PublishedCell | None:
        """Return the published cell that a cell repeats, given all cells of its study; None if it repeats none."""

    def times(self) -> Sequence[SolvedTimes]:
        """Return the known times to success of the trials of published cells."""


@dataclass(frozen=True)
class PublishedTables:
    """Published results in CSV files, one row for each cell.

    Required columns are ``source``, ``task``, ``model``, ``solved`` and ``seeds``. Optional are ``solved_at_median``,
    ``solved_at_mean``, ``solved_at_mean_lower``, ``solved_at_mean_upper``, and for a metric ``NAME_mean``,
    ``NAME_mean_lower``, ``NAME_mean_upper``. All other columns are hyperparameters. A cell repeats a row if it has the
    row's task, model and hyperparameters; an empty field matches any value.

    Args:
        rows: the rows of each file, by its name without ``.csv``.
    """

    rows: Mapping[str, Sequence[Mapping[str, str]]]

    @classmethod
    def of_package(cls, package: ModuleType) -> PublishedTables:
        """Read all CSV files of a package.

        Raises:
            InputError: if a file lacks a required column or a field, a value isn't a number, a row has no seeds, or
                more seeds are solved than there are, or it isn't UTF-8.
            OSError: if a file can't be read.
        """
        files = (file for file in resources.files(package).iterdir() if file.name.endswith(".csv"))
        texts = {}
        for file in sorted(files, key=lambda file: file.name):
            try:
                texts[file.name] = file.read_text(encoding="utf-8")
            except ValueError as error:
                raise InputError(f"{file.name}: published results must be UTF-8: {error}") from None
        return cls.of_texts(texts)

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> PublishedTables:
        r"""Parse the contents of CSV files.

        Args:
            texts: their contents by name.

        Raises:
            InputError: as for `of_package`, if a content is invalid.

        Example:
            >>> text = "source,task,model,width,solved,seeds\nOurs,lab:Sum,lab:mlp,8,7,10\n"
            >>> cell = Cell("lab:Sum", "lab:mlp", {"width": 8, "depth": 2})
            >>> tables = PublishedTables.of_texts({"sums.csv": text})
            >>> tables.choose(cell, [cell]).solved, tables.choose(cell.replace(width=4), [])
            (7, None)
        """
        rows = {name.removesuffix(".csv"): _rows(name, text) for name, text in texts.items()}
        return cls(rows)

    @property
    def sources(self) -> Sequence[str]:
        """The publications."""
        return list(dict.fromkeys(row["source"] for rows in self.rows.values() for row in rows))

    def choose(self, cell: Cell, cells: Collection[Cell]) -> PublishedCell | None:
        """Return the first row that a cell repeats; None if it repeats none. `cells` is unused."""
        matches = (_cell(table, row) for table, rows in self.rows.items() for row in rows if _repeats(cell, row))
        return next(matches, None)

    def times(self) -> Sequence[SolvedTimes]:
        """Return no times: a row need not have all of a cell's hyperparameters."""
        return ()


def repeated_cell(cell: Cell, cells: Collection[Cell]) -> PublishedCell | None:
    """Return the published cell with seeds that a cell repeats, of the first installed results that have one.

    Args:
        cell: the cell.
        cells: all cells of its study.

    Raises:
        InputError: if the published results of an installed package are invalid.
    """
    chosen = (results.choose(cell, cells) for results in _offered())
    return next((repeated for repeated in chosen if repeated is not None and repeated.seeds), None)


def published_times() -> list[SolvedTimes]:
    """Return the known times to success of the trials of published cells.

    Raises:
        InputError: if the published results of an installed package are invalid.

    Example:
        >>> next(times.first for times in published_times() if times.cell.model == "NAU" and times.first)
        15000
    """
    return list(chain.from_iterable(results.times() for results in _offered()))


def published_sources() -> list[str]:
    """Return the publications of the installed results.

    Raises:
        InputError: if the published results of an installed package are invalid.
    """
    return list(chain.from_iterable(results.sources for results in _offered()))


def _offered() -> Sequence[PublishedResults]:
    """Return the published results of installed packages."""
    return _loaded(offers.names("published"))


@cache
def _loaded(names: tuple[str, ...]) -> Sequence[PublishedResults]:
    """Load published results by their names; those of a package are its CSV files."""
    objects = [offers.load("published", name) for name in names]
    return [PublishedTables.of_package(offered) if isinstance(offered, ModuleType) else offered for offered in objects]


def _rows(name: str, text: str) -> list[dict[str, str]]:
    """Parse a CSV file; raise InputError for a missing column or field, a wrong number, no seeds, or solved > seeds."""
    reader = csv.DictReader(text.splitlines())
    missing = [key for key in (*_KEYS, "solved", "seeds") if key not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{name}: published results lack the columns {', '.join(missing)}, which are required")
    rows = list(reader)
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise InputError(f"{name}, line {line}: must have a field for each of {len(row)} columns")
        for column in [column for column in row if column in _RESULTS or column.endswith(_MEANS)]:
            is_count = column in ("solved", "seeds")
            if not row[column].isdecimal() if is_count else row[column] and not _is_number(row[column]):
                kind = "a whole number" if is_count else "a number"
                raise InputError(f"{name}, line {line}: {column} must be {kind}, but is {row[column]!r}")
        solved, seeds = int(row["solved"]), int(row["seeds"])
        if not solved <= seeds or not seeds:
            given = f"solved {solved} and seeds {seeds}"
            raise InputError(f"{name}, line {line}: must have 1 <= seeds and solved <= seeds, but has {given}")
    return rows


def _is_number(text: str) -> bool:
    """Return True if `float` parses a text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cell(table: str, row: Mapping[str, str]) -> PublishedCell:
    """Make a published cell of a row."""
    names = [name.removesuffix("_mean") for name in row if name.endswith("_mean") and name != "solved_at_mean"]
    solved_at_mean, interval = _estimate(row, "solved_at")
    return PublishedCell(
        source=row["source"],
        table=table,
        solved=int(row["solved"]),
        seeds=int(row["seeds"]),
        solved_at_median=_number(row, "solved_at_median"),
        solved_at_mean=solved_at_mean,
        solved_at_interval=interval,
        metrics={name: _estimate(row, name) for name in names},
    )


def _estimate(row: Mapping[str, str], name: str) -> Estimate:
    """Return a row's mean of a metric and its interval; None for a number that wasn't published."""
    low, high = (_number(row, f"{name}_mean_{end}") for end in ("lower", "upper"))
    return _number(row, f"{name}_mean"), None if low is None or high is None else (low, high)


def _number(row: Mapping[str, str], column: str) -> float | None:
    """Return a row's number; None without one."""
    return float(row[column]) if row.get(column) else None


def _repeats(cell: Cell, row: Mapping[str, str]) -> bool:
    """Return True if a cell has the row's task, model and hyperparameters; an empty field matches any value."""
    if (cell.task, cell.model) != (row["task"], row["model"]):
        return False
    others = {n: text for n, text in row.items() if n not in (*_KEYS, *_RESULTS) and not n.endswith(_MEANS) and text}
    return all(name in cell.values and _is_equal(cell.values[name], text) for name, text in others.items())


def _is_equal(value: Any, text: str) -> bool:
    """Return True if a cell's value equals a field of a CSV file: as numbers if both are, else as texts."""
    if isinstance(value, int | float) and not isinstance(value, bool) and _is_number(text):
        return float(text) == value
    return str(value) == text
