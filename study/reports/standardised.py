"""Standardised success rates: a table of rows, a table of differences, and both as CSV."""

from __future__ import annotations

from typing import Any

from study import words
from study.comparisons.standardised import Standardisation
from study.reports.columns import OWN_OF_STANDARDISED
from study.reports.csv_text import ends, key_values
from study.reports.text_table import TextTable, count_column, names_column, text_column
from study.summaries.rows import ResultRows

_MOST_UNSEEN = 0.05
"""A row has no trial at levels of so large a share of the starts: its standardised rate says little of them."""


def rates_table(rows: ResultRows, found: Standardisation) -> TextTable:
    """Lay out one row a row of the results: raw and standardised rate."""
    some = found.rates
    columns = [
        names_column("row", [rows.name(one.row) or "all" for one in some]),
        count_column("trials", [one.trials for one in some]),
    ]
    if any(one.without_number for one in some):
        columns.append(count_column(f"without {found.covariate}", [one.without_number for one in some]))
    raw = [(words.NONE, None) if one.rate is None else (words.rate(one.rate, one.interval), one.rate) for one in some]
    columns.append(text_column("success rate", raw))
    standardised = [one.standardised for one in some]
    columns.append(
        text_column(
            "standardised",
            [(words.NONE, None) if s is None else (words.rate(s.rate, s.interval), s.rate) for s in standardised],
        )
    )
    if any(one.unseen > _MOST_UNSEEN for one in some):
        columns.append(text_column("starts at unseen levels", [(f"{one.unseen:.0%}", one.unseen) for one in some]))
    return TextTable(tuple(columns))


def differences_table(found: Standardisation) -> TextTable | None:
    """Lay out one row a pair; None without one."""
    some = found.differences
    if not some:
        return None
    columns = [names_column("at", [one.question for one in some])] if any(one.question for one in some) else []
    columns += [
        names_column("first", [one.first for one in some]),
        names_column("second", [one.second for one in some]),
    ]
    raw = [
        (words.NONE, None) if one.raw is None else (words.change(one.raw, one.raw_interval), one.raw) for one in some
    ]
    columns.append(text_column("difference", raw))
    values = [(words.change(one.estimate, one.interval), one.estimate) for one in some]
    return TextTable((*columns, text_column("standardised", values)))


def note(found: Standardisation) -> str:
    """Say what a standardised rate is, and of which starts."""
    levels = f"{len(found.levels)} levels of {found.covariate} ({', '.join(found.levels)})"
    own = "its own starts" if found.has_own_starts else "the starts"
    whose = f"{own} in {found.population}" if found.population else "the trials of all rows"
    text = f"Each row's success rate at {levels}, averaged by how often {whose} have each level. Intervals are at 95%."
    if any(one.unseen > _MOST_UNSEEN for one in found.rates):
        text += " Where a row has no trial at a level, its trials at the next levels stand for it."
    return text


def cautions(found: Standardisation) -> list[str]:
    """Say when such a rate misleads, and which rows have none."""
    lacking = "A row of trials that share seeds, or without a number, has no standardised rate."
    unfair = (
        f"This is a fair comparison only if {found.covariate} is settled before the methods differ: what a method "
        "changes itself is part of its effect, and standardising takes it away."
    )
    told = [lacking] if any(one.standardised is None for one in found.rates) else []
    return told if found.has_own_starts else [*told, unfair]


def rates_rows(rows: ResultRows, found: Standardisation) -> list[dict[str, Any]]:
    """Return one mapping for each row with judged trials, with the columns of standardised.csv."""
    return [
        key_values(rows, one.row, OWN_OF_STANDARDISED, "{} (hyperparameter)")
        | {"covariate": found.covariate, "trials": one.trials, "without_number": one.without_number}
        | {"success_rate": one.rate, **ends("success_rate_", None if one.rate is None else one.interval)}
        | {"standardised": None if one.standardised is None else one.standardised.rate}
        | ends("standardised_", None if one.standardised is None else one.standardised.interval)
        | {"unseen": one.unseen}
        for one in found.rates
    ]


def differences_rows(found: Standardisation) -> list[dict[str, Any]]:
    """Return one mapping for each pair of rows, with the columns of standardised-differences.csv."""
    return [
        {"at": one.question, "first": one.first, "second": one.second, "covariate": found.covariate}
        | {"difference": one.raw, **ends("difference_", one.raw_interval)}
        | {"standardised": one.estimate, **ends("standardised_", one.interval)}
        for one in found.differences
    ]
