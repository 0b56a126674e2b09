"""The cells' table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from study.aggregate import CellSummary
from study.report.compare import Comparison
from study.report.table import TextTable, cells_table, comparison_table
from study.report.words import Labels


def summaries_table(summaries: Sequence[CellSummary], labels: Labels, *, title: str | None = None) -> Table:
    """Show one row a cell; a cell that lacks trials is dimmed and shows how many of its seeds are in.

    Args:
        summaries: what `study.aggregate.aggregate` gave.
        labels: names of points that several hyperparameters share.
        title: above the table.
    """
    incomplete = [not summary.complete for summary in summaries]
    return _rich(cells_table(summaries, labels, is_narrow=True), title, incomplete)


def comparisons_table(comparison: Sequence[Comparison], labels: Labels, *, title: str | None = None) -> Table:
    """Show one row a compared cell; one that differs is bold."""
    text = comparison_table(comparison, labels)
    table = _rich(text, title, [False] * len(comparison))
    for row, compared in zip(table.rows, comparison, strict=True):
        row.style = "bold" if compared.verdict == "differs" else ""
    return table


def _rich(text: TextTable, title: str | None, is_dim: Sequence[bool]) -> Table:
    # names come from people: Text, since a plain str would be read as markup
    heading = None if title is None else Text(title)
    table = Table(title=heading, title_justify="left", box=None, pad_edge=False)
    for name, is_number in zip(text.header, text.is_number, strict=True):
        table.add_column(Text(name), justify="right" if is_number else "left", header_style="bold")
    for row, dim in zip(text.rows, is_dim, strict=True):
        table.add_row(*map(Text, row), style="dim" if dim else "")
    return table
