"""Notes on the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from study.analysis.rows import ResultRows

_MOST_NAMES = 8


def times_notes(rows: ResultRows) -> list[str]:
    """Name the rows with trials that ended unsolved before the iterations to which times to success are restricted."""
    early = [(row, s) for row, s in enumerate(rows.summaries) if s.ended_early]
    if not early:
        return []
    trials = sum(s.ended_early for _, s in early)
    plural = "s" if trials > 1 else ""
    counts = [f"{rows.name(row) or 'all'} ({s.ended_early:,} of {s.finished:,})" for row, s in early]
    notes = [
        f"{trials:,} trial{plural} ended unsolved before the iterations up to which times to success are averaged, and "
        f"count{'' if plural else 's'} as censored there: {_join(counts)}"
    ]
    without = [rows.name(row) or "all" for row, s in early if s.time_to_success_mean is None]
    if without:
        notes.append(f"no mean time to success, since no trial was observed that long: {_join(without)}")
    return notes


def _join(names: Sequence[str]) -> str:
    first = "; ".join(names[:_MOST_NAMES])
    return first if len(names) <= _MOST_NAMES else f"{first}; and {len(names) - _MOST_NAMES:,} more rows"
