"""The table of results in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from study.aggregate import CellSummary
from study.report import keyed, table
from study.report.compare import Comparison
from study.report.keyed import Keyed
from study.report.table import TextTable, comparison_table
from study.report.words import Labels


def summaries_table(summaries: Sequence[CellSummary], labels: Labels, *, title: str | None = None) -> Table:
    """Show one row a cell; a cell that lacks trials is dimmed and shows how many of its seeds are in.

    Args:
        summaries: what `study.aggregate.aggregate` gave.
        labels: names of points that several hyperparameters share.
        title: above the table.
    """
    return keyed_table(keyed.cells(summaries, labels), title=title)


def keyed_table(rows: Keyed, *, title: str | None = None, most: int | None = None) -> Table:
    """Show one row a summary, as `summaries_table`; the best value of each question is bold.

    Args:
        rows: the summaries.
        title: above the table.
        most: rows to show; None for all.
    """
    incomplete = [not summary.complete for summary in rows.summaries]
    text = table.summaries_table(rows, is_narrow=True)
    return _rich(replace(text, rows=text.rows[:most]), title, incomplete[:most])


def comparisons_table(comparison: Sequence[Comparison], labels: Labels, *, title: str | None = None) -> Table:
    """Show one row a compared cell; one that differs is bold."""
    text = comparison_table(comparison, labels)
    made = _rich(text, title, [False] * len(comparison))
    for row, compared in zip(made.rows, comparison, strict=True):
        row.style = "bold" if compared.verdict == "differs" else ""
    return made


def _rich(text: TextTable, title: str | None, is_dim: Sequence[bool]) -> Table:
    # names come from people: Text, since a plain str would be read as markup
    heading = None if title is None else Text(title)
    made = Table(title=heading, title_justify="left", box=None, pad_edge=False)
    for name, is_number in zip(text.header, text.is_number, strict=True):
        made.add_column(Text(name), justify="right" if is_number else "left", header_style="bold")
    for i, (row, dim) in enumerate(zip(text.rows, is_dim, strict=True)):
        shown = [Text(word, style="bold" if (i, j) in text.best else "") for j, word in enumerate(row)]
        made.add_row(*shown, style="dim" if dim else "")
    return made
