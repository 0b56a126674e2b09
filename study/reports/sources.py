"""Sources of randomness: a table of their variance shares, the benefit of more trials, and sources.csv."""

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
    """Lay out one row for each cell, quantity and source, with its share of the variance.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    lines = [(row_shares, part) for row_shares in shares for part in row_shares.parts]
    names = [name_of(rows, row_shares.row) for row_shares, _ in lines]
    columns = (
        names_column("cell", names),
        names_column("quantity", [row_shares.quantity for row_shares, _ in lines]),
        names_column("source", [name for _, (name, _, _) in lines]),
        text_column("share", [(words.rate(share, interval), share) for _, (_, share, interval) in lines]),
    )
    return TextTable(columns)


def name_of(rows: ResultRows, row: int) -> str:
    """Name a row; one without values of its keys has the name of its model, or an empty name if it isn't a cell.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    summary = rows.summaries[row]
    return rows.name(row) or (summary.cell.model if isinstance(summary, CellSummary) else "")


def next_table(rows: ResultRows, shares: Sequence[SourceShares]) -> TextTable | None:
    """Lay out each cell's standard error of the success rate now, and after 100 more trials.

    These have new seeds of the first source, of the second, or of both; each case is a column. Cells without shares of
    success, or whose seeds can't grow, are left out.

    Returns:
        The table; None without shares of success, or if no more seeds can be asked for.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    growing = [row_shares for row_shares in shares if row_shares.quantity == SUCCESS and row_shares.can_grow]
    if not growing:
        return None
    after = [row_shares.estimate.errors_after(MORE) for row_shares in growing]
    names = [name_of(rows, row_shares.row) for row_shares in growing]
    titles = [f"new {growing[0].sources[0]} seeds", f"new {growing[0].sources[1]} seeds", "new seeds of both"]
    columns = [
        names_column("cell", names),
        text_column("standard error now", [_error(row_shares.estimate.standard_error) for row_shares in growing]),
    ]
    columns += [text_column(title, [_error(errors[k]) for errors in after]) for k, title in enumerate(titles)]
    return TextTable(tuple(columns))


def _error(error: float) -> tuple[str, float]:
    return f"{error:.3f}", error


def sources_note(shares: Sequence[SourceShares]) -> str:
    """Explain the variance shares of sources."""
    note = (
        "Shares of the variance of trials by source of randomness, each with its own 95% interval. Shares of success "
        "are those of a latent normal number that is positive if a trial is solved. A combination of sources has the "
        "share that no source has alone."
    )
    if any(len(row_shares.sources) == 2 for row_shares in shares):
        note += " If the seeds of one source are nested in those of another, its share includes the combination's."
    return note


def advice(shares: Sequence[SourceShares]) -> str:
    """Return sentences with the source to vary in the next trials; empty if `next_table` is None."""
    growing = [row_shares for row_shares in shares if row_shares.quantity == SUCCESS and row_shares.can_grow]
    if not growing:
        return ""
    first = sum(
        row_shares.estimate.errors_after(MORE)[0] < row_shares.estimate.errors_after(MORE)[1] for row_shares in growing
    )
    names = growing[0].sources[:2]
    better, count = (names[0], first) if 2 * first >= len(growing) else (names[1], len(growing) - first)
    cells = "" if len(growing) == 1 else f" in {count} of {words.count_of(len(growing), 'cell')}"
    return (
        f"For the next {MORE} trials, new {better} seeds reduce the standard error more than new seeds of the other "
        f"source alone{cells}. New seeds of both in each trial, as with a plain count of seeds, reduce it the most. "
        "Standard errors of the success rate:"
    )


def sources_sentence(shares: Sequence[SourceShares]) -> str:
    """Write the first two sources' shares of the variance of success, as ranges over cells; empty without any."""
    of_success = [row_shares for row_shares in shares if row_shares.quantity == SUCCESS]
    percentages: dict[str, list[float]] = {}
    for row_shares in of_success:
        for name, share, _ in row_shares.parts[:2]:
            percentages.setdefault(name, []).append(100 * share)
    spans = {name: dict.fromkeys((f"{min(shares):.0f}", f"{max(shares):.0f}")) for name, shares in percentages.items()}
    parts = [f"{name} seeds make {' to '.join(span)}%" for name, span in spans.items()]
    return f"Of the variance of success, {words.join_and(parts)}." if parts else ""


def sources_rows(rows: ResultRows, shares: Sequence[SourceShares]) -> list[dict[str, Any]]:
    """Return one mapping for each cell, quantity and source, with the columns of sources.csv."""
    return [
        {"cell_id": getattr(rows.summaries[row_shares.row], "cell_id", None), "quantity": row_shares.quantity}
        | {"source": name, "share": share, **ends("share_", interval)}
        | {"trials": row_shares.estimate.trials, "standard_error": row_shares.estimate.standard_error}
        for row_shares in shares
        for name, share, interval in row_shares.parts
    ]
