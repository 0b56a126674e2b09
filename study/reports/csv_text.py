"""Rows as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from study.arrow.kinds import encoded, kind_of
from study.outcomes.text_cells import as_text
from study.summaries.aggregate import CellSummary
from study.summaries.rows import ResultRows
from study.visible import visible


def csv_text(rows: Sequence[Mapping[str, Any]], header: Iterable[str] | None = None) -> str:
    r"""Return rows as CSV with a header and full precision; missing values are empty, and NaN is ``nan``.

    Booleans become ``true`` and ``false``. In texts, control characters are made visible, and a text that a spreadsheet
    would take for a formula gets an apostrophe in front.

    Args:
        rows: each maps columns to values.
        header: the columns to write; None for all that occur in the rows, in order of first occurrence.

    Example:
        >>> csv_text([{"a": 0.5, "b": True}, {"a": None}])
        'a,b\n0.5,true\n,\n'
    """
    columns = list(dict.fromkeys(name for row in rows for name in row) if header is None else header)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(_plain, columns))
    writer.writerows([_plain(row.get(name)) for name in columns] for row in rows)
    return buffer.getvalue()


def key_values(rows: ResultRows, row: int, taken: Container[str] = (), mark: str = "{}") -> dict[str, Any]:
    """Return a row's key values by key, after its ``cell_id`` if it is a cell; ranges and lists are formatted as texts.

    Args:
        rows: all rows.
        row: the index of the row.
        taken: names of other columns; a key with one of these names is renamed.
        mark: the format of the new name, with ``{}`` for the key.
    """
    summary = rows.summaries[row]
    own = {"cell_id": summary.cell_id} if isinstance(summary, CellSummary) else {}
    values = {key: rows.value(row, key) for key in rows.keys}
    return own | {
        mark.format(key) if key in taken else key: _list_text(value) if isinstance(value, tuple) else value
        for key, value in values.items()
    }


def _list_text(value: tuple[Any, ...]) -> str:
    """Format a range or a list as in the results' columns."""
    return str(encoded([value], kind_of([value]))[0])


def ends(prefix: str, interval: Sequence[float] | None) -> dict[str, float | None]:
    """Return the ends of an interval as two columns with the given prefix; both are None without an interval."""
    return dict(zip((f"{prefix}lower", f"{prefix}upper"), interval or (None, None), strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return as_text(visible(value))
    return str(value).lower() if isinstance(value, bool) else value
