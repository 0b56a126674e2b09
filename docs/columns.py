"""Tables of docs/reference/columns.md: every column of every file, from the descriptions in the code.

python -m docs.columns
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from docs.marks import BEGIN, END, ROOT
from study.reports.columns import FILES, ColumnNote

PAGE = ROOT / "docs" / "reference" / "columns.md"


def table(columns: Mapping[str, ColumnNote]) -> str:
    """Return a file's columns as a Markdown table, a row for each column or pair of limits."""
    rows = []
    for name, note in columns.items():
        if name.endswith("upper"):
            continue
        title = f"`{name}`, `{name.removesuffix('lower')}upper`" if name.endswith("lower") else f"`{name}`"
        rows.append(f"| {title} | {without_end(note.meaning)} | {note.unit} | {note.values} | {note.empty} |\n")
    return "| column | meaning | unit | values | empty if |\n| --- | --- | --- | --- | --- |\n" + "".join(rows)


def without_end(meaning: str) -> str:
    """Replace a leading "lower limit" or "upper limit" by "limits"; return other texts unchanged.

    Example:
        >>> without_end("lower limit, 95%, Wilson")
        'limits, 95%, Wilson'
    """
    return re.sub("^(lower|upper) limit", "limits", meaning)


def updated(page: str) -> str:
    """Return the page with the current tables between its two marks; without them, both are appended.

    If only the end mark is missing, the text after the first one is replaced.
    """
    before, _, remainder = page.partition(BEGIN)
    _, _, after = remainder.partition(END)
    parts = [f"## {name}\n\n{row[:1].upper()}{row[1:]}.\n\n{table(columns)}" for name, (row, columns) in FILES.items()]
    return before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
