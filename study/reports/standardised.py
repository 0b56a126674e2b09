"""Standardised success rates: a table of rates, a table of differences, and both as CSV."""

from __future__ import annotations

from typing import Any

from study import words
from study.comparisons.standardised import Standardisation
from study.reports.columns import OWN_OF_STANDARDISED
from study.reports.csv_text import ends, key_values
from study.reports.text_table import TextTable, count_column, names_column, text_column
from study.summaries.rows import ResultRows

_MOST_UNSEEN = 0.05
"""The share of starts at levels without a trial above which the table lists that share."""


def rates_table(rows: ResultRows, standardisation: Standardisation) -> TextTable:
    """Lay out the raw and the standardised rate, one row for each row with judged trials.

    Trials without the covariate have a column if there are any. So has the share of starts at levels without a trial,
    if it is above 5% in any row.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    rates = standardisation.rates
    columns = [
        names_column("row", [rows.name(rate.row) or "all" for rate in rates]),
        count_column("trials", [rate.trials for rate in rates]),
    ]
    if any(rate.without_number for rate in rates):
        columns.append(count_column(f"without {standardisation.covariate}", [rate.without_number for rate in rates]))
    raw = [
        (words.NONE, None) if rate.rate is None else (words.rate(rate.rate, rate.interval), rate.rate) for rate in rates
    ]
    columns.append(text_column("success rate", raw))
    standardised = [rate.standardised for rate in rates]
    columns.append(
        text_column(
            "standardised",
            [(words.NONE, None) if s is None else (words.rate(s.rate, s.interval), s.rate) for s in standardised],
        )
    )
    if any(rate.unseen > _MOST_UNSEEN for rate in rates):
        columns.append(text_column("starts at unseen levels", [(f"{rate.unseen:.0%}", rate.unseen) for rate in rates]))
    return TextTable(tuple(columns))


def differences_table(standardisation: Standardisation) -> TextTable | None:
    """Lay out the raw and the standardised difference of success rates of each pair of rows; None without pairs.

    Pairs are those that the report compares row by row, if both rows have a standardised rate.
    """
    pairs = standardisation.differences
    if not pairs:
        return None
    columns = [names_column("at", [pair.question for pair in pairs])] if any(pair.question for pair in pairs) else []
    columns += [
        names_column("first", [pair.first for pair in pairs]),
        names_column("second", [pair.second for pair in pairs]),
    ]
    raw = [
        (words.NONE, None) if pair.raw is None else (words.change(pair.raw, pair.raw_interval), pair.raw)
        for pair in pairs
    ]
    columns.append(text_column("difference", raw))
    values = [(words.change(pair.estimate, pair.interval), pair.estimate) for pair in pairs]
    return TextTable((*columns, text_column("standardised", values)))


def note(standardisation: Standardisation) -> str:
    """Explain standardised rates, with the levels and the starts that they use."""
    levels = (
        f"{len(standardisation.levels)} levels of {standardisation.covariate} ({', '.join(standardisation.levels)})"
    )
    kind = "its own starts" if standardisation.has_own_starts else "the starts"
    starts = f"{kind} in {standardisation.population}" if standardisation.population else "the trials of all rows"
    text = f"Each row's success rate at {levels}, weighted by how often {starts} have each level. Intervals are at 95%."
    if any(rate.unseen > _MOST_UNSEEN for rate in standardisation.rates):
        text += " At a level without a trial of the row, the row's trials at the adjacent levels are used."
    return text


def cautions(standardisation: Standardisation) -> list[str]:
    """List warnings: rows without a standardised rate, and comparisons that may be unfair; empty without either."""
    lacking = "Rows whose trials share seeds, and rows without a number, have no standardised rate."
    unfair = (
        f"This is a fair comparison only if {standardisation.covariate} is determined before the methods differ: "
        "where a method changes it, standardising removes part of the method's effect."
    )
    notes = [lacking] if any(rate.standardised is None for rate in standardisation.rates) else []
    return notes if standardisation.has_own_starts else [*notes, unfair]


def rates_rows(rows: ResultRows, standardisation: Standardisation) -> list[dict[str, Any]]:
    """Return one mapping for each row with judged trials, with the columns of standardised.csv."""
    return [
        key_values(rows, rate.row, OWN_OF_STANDARDISED, "{} (hyperparameter)")
        | {"covariate": standardisation.covariate, "trials": rate.trials, "without_number": rate.without_number}
        | {"success_rate": rate.rate, **ends("success_rate_", None if rate.rate is None else rate.interval)}
        | {"standardised": None if rate.standardised is None else rate.standardised.rate}
        | ends("standardised_", None if rate.standardised is None else rate.standardised.interval)
        | {"unseen": rate.unseen}
        for rate in standardisation.rates
    ]


def differences_rows(standardisation: Standardisation) -> list[dict[str, Any]]:
    """Return one mapping for each pair of rows, with the columns of standardised-differences.csv."""
    return [
        {"at": pair.question, "first": pair.first, "second": pair.second, "covariate": standardisation.covariate}
        | {"difference": pair.raw, **ends("difference_", pair.raw_interval)}
        | {"standardised": pair.estimate, **ends("standardised_", pair.interval)}
        for pair in standardisation.differences
    ]
