"""Rows as CSV, as spreadsheets take them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from study.outcomes.text_cells import as_text
from study.visible import visible


def csv_text(header: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    r"""Write rows with full precision; missing values are empty.

    Args:
        header: the columns.
        rows: each maps columns to values.

    Example:
        >>> csv_text(["a", "b"], [{"a": 0.5, "b": True}, {"a": None}])
        'a,b\n0.5,true\n,\n'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([_plain(name) for name in header])
    for row in rows:
        writer.writerow([_plain(row.get(name)) for name in header])
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return as_text(visible(value))
    return str(value).lower() if isinstance(value, bool) else value
