"""Which randomness matters: a table of the sources' shares, what more trials would bring, and sources.csv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from study import words
from study.comparisons.sources import MORE, SUCCESS, SourceShares
from study.reports.csv_text import ends
from study.reports.text_table import TextTable, names_column, text_column
from study.summaries.aggregate import CellSummary
from study.summaries.rows import ResultRows


def sources_table(rows: ResultRows, shares: Sequence[SourceShares]) -> TextTable:
    """Lay out one row for each cell, quantity and source."""
    lines = [(one, part) for one in shares for part in one.parts]
    names = [name_of(rows, one.row) for one, _ in lines]
    columns = (
        names_column("cell", names),
        names_column("of the variance of", [one.quantity for one, _ in lines]),
        names_column("source", [name for _, (name, _, _) in lines]),
        text_column("share", [(words.rate(share, interval), share) for _, (_, share, interval) in lines]),
    )
    return TextTable(columns)


def name_of(rows: ResultRows, row: int) -> str:
    """Name a row; a study's only one by its model."""
    summary = rows.summaries[row]
    return rows.name(row) or (summary.cell.model if isinstance(summary, CellSummary) else "")


def next_table(rows: ResultRows, shares: Sequence[SourceShares]) -> TextTable | None:
    """Lay out what more trials would bring for each cell's success rate; None where no rate is known."""
    some = [one for one in shares if one.quantity == SUCCESS and one.can_grow]
    if not some:
        return None
    after = [one.estimate.errors_after(MORE) for one in some]
    names = [name_of(rows, one.row) for one in some]
    titles = [f"new {some[0].sources[0]} seeds", f"new {some[0].sources[1]} seeds", "new seeds of both"]
    columns = [
        names_column("cell", names),
        text_column("standard error now", [_error(one.estimate.standard_error) for one in some]),
    ]
    columns += [text_column(title, [_error(errors[k]) for errors in after]) for k, title in enumerate(titles)]
    return TextTable(tuple(columns))


def _error(error: float) -> tuple[str, float]:
    return f"{error:.3f}", error


def sources_note(shares: Sequence[SourceShares]) -> str:
    """Say what shares are."""
    note = (
        "What each source of randomness makes of the variance of trials, with intervals at 95%, each by itself. Shares "
        "of success are those of a latent normal number that is positive where a trial is solved. What neither source "
        "makes alone, their combination makes."
    )
    if any(len(one.sources) == 2 for one in shares):
        note += " Where seeds of one source belong to those of another, they have their combination in them."
    return note


def advice(shares: Sequence[SourceShares]) -> str:
    """Say which source to vary for the next trials; empty where no rate is known."""
    some = [one for one in shares if one.quantity == SUCCESS and one.can_grow]
    if not some:
        return ""
    first = sum(one.estimate.errors_after(MORE)[0] < one.estimate.errors_after(MORE)[1] for one in some)
    names = some[0].sources[:2]
    better, count = (names[0], first) if 2 * first >= len(some) else (names[1], len(some) - first)
    cells = "" if len(some) == 1 else f" in {count} of {words.count_of(len(some), 'cell')}"
    return (
        f"For the next {MORE} trials, new {better} seeds bring more than new seeds of the other source alone{cells}; "
        "new seeds of both in each trial, which is what a plain count of seeds does, bring the most. Standard errors "
        "of the success rate:"
    )


def sources_sentence(shares: Sequence[SourceShares]) -> str:
    """Write what each source makes of the variance of success, over all cells; empty where no rate is known."""
    some = [one for one in shares if one.quantity == SUCCESS]
    of: dict[str, list[float]] = {}
    for one in some:
        for name, share, _ in one.parts[:2]:
            of.setdefault(name, []).append(100 * share)
    spans = {name: dict.fromkeys((f"{min(shares):.0f}", f"{max(shares):.0f}")) for name, shares in of.items()}
    parts = [f"{name} seeds make {' to '.join(span)}%" for name, span in spans.items()]
    return f"Of the variance of success, {words.join_and(parts)}." if parts else ""


def sources_rows(rows: ResultRows, shares: Sequence[SourceShares]) -> list[dict[str, Any]]:
    """Return one mapping for each cell, quantity and source, with the columns of sources.csv."""
    return [
        {"cell_id": getattr(rows.summaries[one.row], "cell_id", None), "quantity": one.quantity}
        | {"source": name, "share": share, **ends("share_", interval)}
        | {"trials": one.estimate.trials, "standard_error": one.estimate.standard_error}
        for one in shares
        for name, share, interval in one.parts
    ]
