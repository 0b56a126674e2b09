"""The table of results in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from study.analysis.comparison import Comparisons
from study.analysis.rows import ResultRows
from study.analysis.search import SearchFindings
from study.console import Console
from study.reports import table
from study.reports.search import names as search_names
from study.reports.search import tables as search_tables
from study.reports.text_table import TextTable

if TYPE_CHECKING:
    from study.plan.until import Verdict  # its imports take long, and tables of files don't need them

MOST_ROWS = 200
"""The most rows that a terminal shows: nobody reads more there, and a thousand take seconds to lay out."""

_MOST_UPRIGHT = 6
"""The most rows side by side."""


def summaries_table(rows: ResultRows, *, title: str | None = None, most: int | None = None) -> Table:
    """Show one row a summary; the best value of each question is bold.

    A row that lacks trials is dimmed and shows how many of its seeds have a result.

    Args:
        rows: the summaries.
        title: the title above the table.
        most: the number of rows to show; None for all.
    """
    return _rich(table.summaries_table(rows, is_narrow=True, most=most), title)


def show_summaries(console: Console, rows: ResultRows, title: str) -> None:
    """Print one row a summary, but only the first ones of very many."""
    console.print(summaries_table(rows, title=title, most=MOST_ROWS))
    if len(rows.summaries) > MOST_ROWS:
        console.print(f"... and {len(rows.summaries) - MOST_ROWS:,} more rows, in the files")


def comparisons_table(rows: ResultRows, against: Comparisons) -> Table:
    """Show one row a comparison; rows that differ are bold."""
    title = f"Against {'the published numbers' if against.is_published else against.source}"
    return _rich(table.comparison_table(rows, against), title, mark="bold")


def verdicts_table(rows: ResultRows, verdicts: Sequence[Verdict]) -> Table:
    """Show whether the seeds are enough; rows in which they aren't are dimmed."""
    return _rich(table.verdicts_table(rows, verdicts), "Are the seeds enough?")


def show_search(console: Console, search: SearchFindings, rows: ResultRows) -> None:
    """Print the candidates that were confirmed, and which parameters mattered."""
    if search_names.confirmed(search):
        console.print(_upright(search_tables.winners_table(search, rows), "Confirmed with fresh seeds"))
    line = search_tables.importance_line(search)
    if line:
        console.print(line)


def _upright(content: TextTable, title: str) -> Table:
    """Lay a table of a few rows out with one column for each: many titles side by side are too wide for a terminal."""
    upright = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, show_header=False)
    upright.add_column()
    for _ in content.rows[:_MOST_UPRIGHT]:
        upright.add_column(justify="right")
    for column in content.columns:
        upright.add_row(Text(column.title), *map(Text, column.texts[:_MOST_UPRIGHT]))
    if len(content.rows) > _MOST_UPRIGHT:
        upright.caption = f"... and {len(content.rows) - _MOST_UPRIGHT} more, in the files"
    return upright


def _rich(content: TextTable, title: str | None, mark: str = "dim") -> Table:
    # Names come from people: each is a Text, since a plain str would be read as markup.
    heading = None if title is None else Text(title)
    laid_out = Table(title=heading, title_justify="left", box=None, pad_edge=False)
    for column in content.columns:
        laid_out.add_column(Text(column.title), justify="right" if column.is_number else "left", header_style="bold")
    for row, cells in enumerate(content.cells):
        texts = [Text(text, style="bold" if is_best else "") for text, _, _, is_best in cells]
        laid_out.add_row(*texts, style=mark if row in content.marked else "")
    return laid_out
