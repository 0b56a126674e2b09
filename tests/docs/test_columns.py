"""Agreement of docs/reference/columns.md with the columns in the code."""

from __future__ import annotations

from docs import columns
from study.reports.columns import FILES

TEXT = columns.PAGE.read_text(encoding="utf-8")


def test_the_tables_are_as_described() -> None:
    """The page has each column of each file, with its meaning; two limits have one row."""
    assert columns.updated(TEXT) == TEXT, "stale: run `python -m docs.columns`"
    notes = {name: note for _, described in FILES.values() for name, note in described.items()}
    assert all(f"`{name}`" in TEXT and columns.without_end(note.meaning) in TEXT for name, note in notes.items())


def test_a_changed_row_is_stale() -> None:
    """A changed row is restored; text outside the marks is kept."""
    row = next(line for line in TEXT.splitlines(keepends=True) if line.startswith("| `success_rate` |"))
    for changed in (row.replace("solved", "shot"), ""):
        assert columns.updated(TEXT.replace(row, changed, 1)) == TEXT
    assert columns.updated(TEXT + "more") == TEXT + "more"
