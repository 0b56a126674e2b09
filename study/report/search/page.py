"""What the page says of a search."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from study.analysis.rows import ResultRows
from study.analysis.search import Searched
from study.report import html
from study.report.figures.style import Drawn
from study.report.search import names as search_names
from study.report.search.tables import CAUTION, MOST_CANDIDATES, candidates_table, told, winners_table

IMPORTANCE = "search-importance"
"""The figure that stands in the search's section, and not among the others."""


def section(search: Searched | None, rows: ResultRows, drawn: Sequence[Drawn]) -> str:
    """Write the page's section of a search; empty without one.

    Args:
        search: what was tried.
        rows: of the report.
        drawn: the report's figures.
    """
    if search is None:
        return ""
    parts = [f"<p>{escape(told(search))}</p>"]
    if search_names.confirmed(search):
        parts.append(html.table(winners_table(search, rows), label="confirmed candidates"))
        parts.append(f"<p class=small>{escape(f'{CAUTION} {search_names.told_apart(search)}'.rstrip())}</p>")
    if search.file:
        pre = f"<pre><code>{escape(search.file)}</code></pre>"
        parts.append(html.details("The winner's study file, ready to run (winner.yaml)", pre))
    if search.candidates:
        parts.append(html.details(f"All candidates ({len(search.candidates):,})", _candidates(search)))
    parts += [html.figure(figure) for figure in drawn if figure.name == IMPORTANCE]
    return html.section("Search", "".join(parts))


def _candidates(search: Searched) -> str:
    some = search_names.selected(search, MOST_CANDIDATES)
    table = html.table(
        candidates_table(search), marked=[candidate.is_front for candidate in some], label="candidates"
    )
    lacking = (
        f" {len(some)} of them, the front among them; candidates.csv has all."
        if len(some) < len(search.candidates)
        else ""
    )
    return (
        f"<p class=small>Set off: the front, than which none is better in all respects.{lacking}</p>{table}"
    )
