"""The table of results in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from study.comparisons.comparison import Comparisons
from study.comparisons.sources import SourceShares
from study.console import Console, ConsoleTable
from study.reports import table
from study.reports.claims import claims_guarantee, claims_table, verdict_line
from study.reports.search import names as search_names
from study.reports.search import tables as search_tables
from study.reports.sources import advice, next_table, sources_table
from study.reports.text_table import TextTable
from study.summaries.rows import ResultRows
from study.summaries.search import SearchFindings

if TYPE_CHECKING:
    from study.plan.claims import ClaimVerdict
    from study.plan.verdict import Verdict  # its imports take long, and tables of files don't need them

MOST_ROWS = 200
"""The most rows that a terminal shows: nobody reads more there, and a thousand take seconds to lay out."""

_MOST_UPRIGHT = 6
"""The most rows side by side."""

_RANKS = {
    "success_rate": 0, "failed": 1, "seeds": 1, "diverged": 2, "solved_at_median": 2, "finished": 3, "solved": 4,
    "solved_at_mean": 5, "training_s_mean": 7,
}  # fmt: skip
"""In which order columns of the results are left out where a terminal is narrow: those of the highest rank first.

What tells rows apart is never left out. Of a study without success rates, the mean of the first metric stays, too.
"""

_RANKS_OF_COMPARISONS = {
    "difference": 1, "p_adjusted": 2, "success_rate": 3, "other_success_rate": 3, "solved": 5, "other_solved": 5,
    "trials": 5, "other_trials": 5, "p_value": 6, "log_rank_p": 7, "solved_at_mean": 8, "other_solved_at_mean": 8,
}  # fmt: skip
_RANKS_OF_VERDICTS = {"seeds": 1, "p_value": 2, "half_width": 2}
_RANKS_OF_CLAIMS = {"estimate": 1, "seeds": 2, "evidence_for": 3, "evidence_against": 3, "p_value": 4}
_STYLES = {"shown": "green", "refuted": "red", "undecided": "yellow", "open": "yellow"}
_RANK = 4
"""The rank of other columns of numbers."""


def summaries_table(
    rows: ResultRows, *, title: str | None = None, most: int | None = None, elsewhere: str = "cells.csv"
) -> ConsoleTable:
    """Show one row a summary; the best value of each question is bold.

    A row that lacks trials is dimmed and shows how many of its seeds have a result.

    Args:
        rows: the summaries.
        title: the title above the table.
        most: the number of rows to show; None for all.
        elsewhere: what has the columns that a narrow terminal has no room for.
    """
    content = table.summaries_table(rows, is_narrow=True, most=most)
    metrics = [f"{name}_mean" for name in rows.metrics]
    first = {} if rows.has_rates else dict.fromkeys([c.name for c in content.columns if c.name in metrics][:1], 0)
    return _rich(content, title, _RANKS | first, elsewhere)


def print_summaries(console: Console, rows: ResultRows, title: str, elsewhere: str = "cells.csv") -> None:
    """Print one row a summary, but only the first ones of very many."""
    console.print(summaries_table(rows, title=title, most=MOST_ROWS, elsewhere=elsewhere))
    if len(rows.summaries) > MOST_ROWS:
        console.print(f"... and {len(rows.summaries) - MOST_ROWS:,} more rows, in the files")


def comparisons_table(rows: ResultRows, against: Comparisons) -> ConsoleTable:
    """Show one row a comparison; rows that differ are bold."""
    title = f"Against {'the published numbers' if against.is_published else against.source}"
    content = table.comparison_table(rows, against)
    return _rich(content, title, _RANKS_OF_COMPARISONS, "comparison.csv", mark="bold")


def verdicts_table(rows: ResultRows, verdicts: Sequence[Verdict]) -> ConsoleTable:
    """Show whether the seeds are enough; rows in which they aren't are dimmed."""
    return _rich(table.verdicts_table(rows, verdicts), "Are the seeds enough?", _RANKS_OF_VERDICTS, "report.html")


def print_claims(console: Console, rows: ResultRows, verdicts: Sequence[ClaimVerdict]) -> None:
    """Print each claim with its verdict, and the evidence of its cells; what isn't shown is dimmed."""
    for number, verdict in enumerate(verdicts, 1):
        console.print(Text(f"{number}. {verdict_line(verdict)}", style=_STYLES[verdict.state]))
    console.print(_rich(claims_table(rows, verdicts), "Evidence", _RANKS_OF_CLAIMS, "claims.csv"))
    console.print(claims_guarantee(verdicts))


def print_sources(console: Console, rows: ResultRows, shares: Sequence[SourceShares]) -> None:
    """Print what each source makes of the variance, and which to vary for the next trials."""
    console.print(_rich(sources_table(rows, shares), "Which randomness matters", {}, "sources.csv"))
    after = next_table(rows, shares)
    if after is not None:
        console.print(advice(shares))
        console.print(_rich(after, None, {}, "report.html"))


def print_search(console: Console, search: SearchFindings, rows: ResultRows) -> None:
    """Print the candidates that were confirmed, and which parameters mattered."""
    if search_names.confirmed(search):
        console.print(_upright(search_tables.winners_table(search, rows), "Confirmed with fresh seeds"))
    line = search_tables.importance_line(search)
    if line:
        console.print(line)


def _upright(content: TextTable, title: str) -> ConsoleTable:
    """Lay a table of a few rows out with one column for each: many titles side by side are too wide for a terminal."""
    upright = ConsoleTable(
        title=Text(title), title_justify="left", box=None, pad_edge=False, show_header=False, elsewhere="report.html"
    )
    upright.add_column()
    for rank, name in enumerate(content.columns[0].texts[:_MOST_UPRIGHT]):
        upright.add_column(Text(name), justify="right", rank=rank)
    for column in content.columns:
        upright.add_row(Text(column.title), *map(Text, column.texts[:_MOST_UPRIGHT]))
    if len(content.rows) > _MOST_UPRIGHT:
        upright.caption = f"... and {len(content.rows) - _MOST_UPRIGHT} more, in the files"
    return upright


def _rich(
    content: TextTable, title: str | None, ranks: Mapping[str, int], elsewhere: str, mark: str = "dim"
) -> ConsoleTable:
    """Make the table that is printed; its first columns, the keys, and its columns of text are never left out."""
    # Names come from people: each is a Text, since a plain str would be read as markup.
    heading = None if title is None else Text(title)
    laid_out = ConsoleTable(title=heading, title_justify="left", box=None, pad_edge=False, elsewhere=elsewhere)
    for place, column in enumerate(content.columns):
        rank = ranks.get(column.name, _RANK) if column.is_number and place >= content.keys else 0
        justify = "right" if column.is_number else "left"
        laid_out.add_column(Text(column.title), justify=justify, header_style="bold", rank=rank)
    for row, cells in enumerate(content.entries):
        texts = [Text(text, style="bold" if is_best else "") for text, _, _, is_best in cells]
        laid_out.add_row(*texts, style=mark if row in content.marked else "")
    return laid_out
