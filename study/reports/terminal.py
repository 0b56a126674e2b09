"""Sections of a report in a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from study.console import Console, ConsoleTable
from study.reports import table
from study.reports.content import Findings
from study.reports.section import Section
from study.reports.sections import brief_sections
from study.reports.text_table import TextTable
from study.summaries.parts import Parts
from study.summaries.rows import ResultRows

MOST_ROWS = 200
"""The most rows that a terminal shows: more aren't read, and a thousand take seconds to lay out."""

_MOST_TRANSPOSED = 6
"""The most rows side by side."""

_RANKS = {
    "success_rate": 0, "failed": 1, "seeds": 1, "diverged": 2, "solved_at_median": 2, "finished": 3, "solved": 4,
    "solved_at_mean": 5, "training_s_mean": 7,
}  # fmt: skip
"""The order in which a narrow terminal drops columns of the results: the highest rank first.

Key columns are never dropped. In a study without success rates, the mean of the first metric also stays.
"""

_SECTION_RANKS = {
    "claims": {"estimate": 1, "seeds": 2, "evidence_for": 3, "evidence_against": 3, "p_value": 4},
    "comparison": {
        "difference": 1, "p_adjusted": 2, "success_rate": 3, "other_success_rate": 3, "solved": 5, "other_solved": 5,
        "trials": 5, "other_trials": 5, "p_value": 6, "log_rank_p": 7, "solved_at_mean": 8, "other_solved_at_mean": 8,
    },
    "verdicts": {"seeds": 1, "p_value": 2, "half_width": 2},
}  # fmt: skip
"""The ranks of the columns of other sections' tables."""
_FILES = {name: f"{name}.csv" for name in ("claims", "comparison", "sources", "standardised")}
"""The files with the columns that a narrow terminal drops."""
_STYLES = {"shown": "green", "refuted": "red", "undecided": "yellow", "not": "yellow"}
"""The styles of claims, by the first word of their verdict."""
_DEFAULT_RANK = 4
"""The rank of numeric columns that have no other."""


def summaries_table(
    rows: ResultRows, *, title: str | None = None, most: int | None = None, elsewhere: str = "cells.csv"
) -> ConsoleTable:
    """Make a table with one row a summary; the value that tests find best in its question is bold.

    That is a success rate or, without success rates, a mean of the main metric. A row with failed, stopped or pending
    trials is dimmed, and shows the number of its ended trials, such as ``18/20``.

    Args:
        rows: the summaries.
        title: the title above the table.
        most: the number of rows to show; None for all.
        elsewhere: the file with the columns that a narrow terminal drops.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    content = table.summaries_table(rows, is_narrow=True, most=most)
    metrics = [f"{name}_mean" for name in rows.metrics]
    first = {} if rows.has_rates else dict.fromkeys([c.name for c in content.columns if c.name in metrics][:1], 0)
    return _console_table(content, title, _RANKS | first, elsewhere)


def print_summaries(console: Console, rows: ResultRows, title: str, elsewhere: str = "cells.csv") -> None:
    """Print the table of `summaries_table` with up to `MOST_ROWS` rows, and the number of further rows, if any.

    Raises:
        InputError: as for `summaries_table`.
    """
    console.print(summaries_table(rows, title=title, most=MOST_ROWS, elsewhere=elsewhere))
    if len(rows.summaries) > MOST_ROWS:
        console.print(f"... and {len(rows.summaries) - MOST_ROWS:,} more rows, in the files")


def print_findings(
    console: Console, findings: Findings, title: str, *, elsewhere: str = "cells.csv", parts: Parts | None = None
) -> None:
    """Print the table of results, the headline, and the sections of `brief_sections`.

    Args:
        console: the console to print to.
        findings: the findings to print.
        title: the title of the table.
        elsewhere: the file with the columns that a narrow terminal drops.
        parts: collects the sections that fail; None to raise.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
        Exception: without `parts`, as a section that fails raises.
    """
    print_summaries(console, findings.rows, title, elsewhere)
    console.print(findings.headline)
    for section in brief_sections(findings, parts):
        print_section(console, section)


def print_section(console: Console, section: Section) -> None:
    """Print a section's items with numbers, its table, its sentences, and its brief parts."""
    for number, item in enumerate(section.items, 1):
        console.print(Text(f"{number}. {item}", style=_STYLES.get(item.partition(" ")[0].strip(":,"), "")))
    if section.table is not None:
        console.print(section_table(section.table, section.title, section.name))
    for sentence in section.sentences:
        console.print(sentence, style="yellow" if section.name == "comparison" else "")
    for part in section.parts:
        if part.is_brief:
            print_section(console, part)


def section_table(content: TextTable, title: str, name: str) -> ConsoleTable:
    """Make the table of a section.

    Args:
        content: the section's table.
        title: the title above it; unused for the section ``search``, whose rows are laid out side by side.
        name: the section's name, which sets the layout and the columns that a narrow terminal drops first.
    """
    if name == "search":
        return _transposed_table(content, "Confirmed with fresh seeds")
    mark = "bold" if name == "comparison" else "dim"
    return _console_table(content, title, _SECTION_RANKS.get(name, {}), _FILES.get(name, "report.html"), mark)


def _transposed_table(content: TextTable, title: str) -> ConsoleTable:
    """Lay out a table of a few rows with a column for each row, since its many titles are too wide for a terminal."""
    transposed = ConsoleTable(
        title=Text(title), title_justify="left", box=None, pad_edge=False, show_header=False, elsewhere="report.html"
    )
    transposed.add_column()
    for rank, name in enumerate(content.columns[0].texts[:_MOST_TRANSPOSED]):
        transposed.add_column(Text(name), justify="right", rank=rank)
    for column in content.columns:
        transposed.add_row(Text(column.title), *map(Text, column.texts[:_MOST_TRANSPOSED]))
    if len(content.rows) > _MOST_TRANSPOSED:
        transposed.caption = f"... and {len(content.rows) - _MOST_TRANSPOSED} more, in the files"
    return transposed


def _console_table(
    content: TextTable, title: str | None, ranks: Mapping[str, int], elsewhere: str, mark: str = "dim"
) -> ConsoleTable:
    """Make the table to print; its leading key columns and its text columns are never dropped."""
    # Names come from people: each is a Text, since a plain str would be read as markup.
    heading = None if title is None else Text(title)
    laid_out = ConsoleTable(title=heading, title_justify="left", box=None, pad_edge=False, elsewhere=elsewhere)
    for place, column in enumerate(content.columns):
        rank = ranks.get(column.name, _DEFAULT_RANK) if column.is_number and place >= content.keys else 0
        justify = "right" if column.is_number else "left"
        laid_out.add_column(Text(column.title), justify=justify, header_style="bold", rank=rank)
    for row, cells in enumerate(content.entries):
        texts = [Text(text, style="bold" if is_best else "") for text, _, _, is_best in cells]
        laid_out.add_row(*texts, style=mark if row in content.marked else "")
    return laid_out
