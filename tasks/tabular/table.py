"""Tables of numbers from CSV files, with errors by line and column."""

from __future__ import annotations

import csv
import difflib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from study.interface.values import ChoiceError, quoted

Floats = npt.NDArray[np.float64]
Missing = Literal["refuse", "drop"]

_ABSENT = frozenset(
    {"", "na", "n/a", "null", "none", "nan", "+nan", "-nan", "inf", "+inf", "-inf", "infinity", "-infinity"}
)
_Lines = Iterator[tuple[int, list[str]]]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file.

    Args:
        numbers: numeric columns by name, at least one, float64 [rows].
        labels: texts of the label column, one per row; empty without a label column.
        dropped: number of rows left out because of a missing number.

    Example:
        >>> len(Table({"width": np.zeros(3)}))
        3
    """

    numbers: Mapping[str, Floats]
    labels: Sequence[str] = ()
    dropped: int = 0

    def __len__(self) -> int:
        return len(next(iter(self.numbers.values())))


def column_names(path: Path) -> list[str]:
    """Read the column names from the first line of a file.

    Raises:
        ValueError: if the file isn't UTF-8 or CSV, or its first line isn't a header with distinct names.
        OSError: if the file can't be read.
    """
    return next(_lines(path))[1]


def read_table(
    path: Path, names: Sequence[str], *, label: str = "", choices: Sequence[str] = (), missing: Missing = "refuse"
) -> Table:
    """Read columns of a CSV file: UTF-8, a header, commas between columns, numbers with a decimal point.

    Other columns may hold anything, and empty lines are skipped. A number is missing if its cell is empty, isn't
    finite, or is NA, N/A, null or none, in any case. Any other text is an error, whatever `missing` is.

    Args:
        path: path of the file.
        names: names of the numeric columns.
        label: name of the label column; empty for none.
        choices: allowed labels.
        missing: ``refuse`` raises an error for a missing number; ``drop`` leaves out its row and counts it.

    Returns:
        The columns; they are empty if the file has no rows, or every row is left out.

    Raises:
        ValueError: if the file isn't such a CSV file, is partial, lacks a column, has an unknown label in a row that
            isn't left out, or misses a number with ``refuse``; the message gives the line, the column and the
            requirement.
        OSError: if the file can't be read.
    """
    lines = _lines(path)
    header = next(lines)[1]
    places = {name: _place(path, header, name) for name in [*names, *([label] if label else [])]}
    numbers = [(name, places[name]) for name in names]
    rows: list[list[float]] = []
    labels: list[str] = []
    incomplete: list[tuple[int, str, str]] = []
    for line, fields in lines:
        if len(fields) != len(header):
            raise ValueError(
                f"{path.name}, line {line}: must have {len(header)} fields, as the header has, but has {len(fields)}; "
                "the file may be partial"
            )
        row = [_number(path, line, name, fields[place]) for name, place in numbers]
        absent = [(line, name, fields[place]) for (name, place), x in zip(numbers, row, strict=True) if x is None]
        if absent:
            incomplete.append(absent[0])
            continue
        rows.append(row)  # type: ignore[arg-type]
        if label:
            labels.append(_label(path, line, label, fields[places[label]].strip(), choices))
    if incomplete and missing == "refuse":
        line, name, cell = incomplete[0]
        raise ValueError(
            f"{path.name}, line {line}, column {name!r}: must be a finite number, but is {quoted(cell)}; such rows: "
            f"{len(incomplete):,} of {len(rows) + len(incomplete):,}. Correct them, or set missing: drop"
        )
    columns = np.array(rows, np.float64).reshape(len(rows), len(names))
    return Table({name: columns[:, i].copy() for i, name in enumerate(names)}, tuple(labels), len(incomplete))


def _lines(path: Path) -> _Lines:
    """Yield the line number and the fields of the header, then of each row that isn't blank.

    Raises:
        ValueError: if the file isn't UTF-8 or CSV, or its header is invalid.
        OSError: if the file can't be read.
    """
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path.name}, line {line}: must be UTF-8, but has the byte 0x{content[error.start]:02x}; save it as UTF-8"
        ) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header)
        yield 1, header
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise ValueError(f"{path.name}, line {reader.line_num}: must be CSV, but {error}") from None


def _check_header(path: Path, header: Sequence[str]) -> None:
    if not header or all(_parsed(name) is not None for name in header):
        has = "nothing" if not header else "only numbers"
        raise ValueError(f"{path.name}, line 1: must be a header with the columns' names, but has {has}")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise ValueError(f"{path.name}, line 1: must have commas between columns, but is {quoted(header[0])}")
    duplicate = next((name for name in header if header.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(
            f"{path.name}, line 1: must name each column once, but has {duplicate!r} {header.count(duplicate)} times"
        )


def _place(path: Path, header: Sequence[str], name: str) -> int:
    if name in header:
        return header.index(name)
    nearest = difflib.get_close_matches(name, header, n=1, cutoff=0.0)[0]
    raise ValueError(f"{path.name}, line 1: must have a column {name!r}, but has none; the nearest name is {nearest!r}")


def _number(path: Path, line: int, name: str, cell: str) -> float | None:
    """Return a cell's number, or None if it is missing; raise ValueError for other text."""
    number = _parsed(cell)
    if number is not None:
        return number
    if cell.strip().lower() in _ABSENT or _overflows(cell):
        return None
    raise ValueError(
        f"{path.name}, line {line}, column {name!r}: must be a number with a decimal point, but is {quoted(cell)}"
    )


def _label(path: Path, line: int, name: str, cell: str, choices: Sequence[str]) -> str:
    if cell not in choices:
        raise ValueError(f"{path.name}, line {line}, column {name!r}: {ChoiceError(cell, choices)}")
    return cell


def _parsed(cell: str) -> float | None:
    """Return a cell's finite number, or None; unlike `float`, reject 1_000 and non-ASCII digits."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) and cell.isascii() and "_" not in cell else None


def _overflows(cell: str) -> bool:
    """Return True if a cell is a number beyond the range of float64."""
    try:
        return math.isinf(float(cell)) and cell.isascii() and "_" not in cell
    except ValueError:
        return False
