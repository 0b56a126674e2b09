"""Methods aggregated over tasks: a table, and their numbers and profiles as CSV."""

from __future__ import annotations

from typing import Any

from study import words
from study.comparisons.overall import Overall
from study.reports.csv_text import ends
from study.reports.text_table import Column, TextTable, count_column, names_column, text_column
from study.statistics import MeanOverCells
from study.words import Notation

_MOST_OTHERS = 5
"""The most methods that each is compared with in the table; of more, it is compared with the best one."""


def overall_table(overall: Overall) -> TextTable:
    """Lay out one row a method."""
    some, write = overall.methods, words.metric_notation(overall.metric)
    columns = [
        names_column("method", [one.name for one in some]),
        text_column("seeds", [(" to ".join(map(str, dict.fromkeys(one.seeds))), one.seeds[0]) for one in some]),
    ]
    if any(one.without_number for one in some):
        columns.append(count_column("without a number", [one.without_number for one in some]))
    columns.append(_column(f"{overall.title}, interquartile mean", [one.interquartile_mean for one in some], write))
    against = range(len(some)) if len(some) <= _MOST_OTHERS else [overall.best]
    columns += [
        _column(f"better than {some[j].name}", [one.improvements[j] for one in some], words.rate) for j in against
    ]
    return TextTable(tuple(columns))


def _column(title: str, some: list[MeanOverCells | None], write: Notation) -> Column:
    return text_column(title, [(write(of.value, of.interval), of.value) if of else (words.NONE, None) for of in some])


def overall_note(overall: Overall) -> str:
    """Say what the table's numbers are."""
    return (
        f"Interquartile means, averaged over the {len(overall.questions)} tasks that all methods have, and "
        "probabilities that a trial is better than one of another method with another seed, ties counted half. "
        "Intervals are at 95%, each by itself; shared seeds are allowed for."
    )


def methods_rows(overall: Overall) -> list[dict[str, Any]]:
    """Return one mapping for each method and each other that it is compared with, with the columns of methods.csv."""
    return [
        {"metric": overall.name, "method": one.name, "questions": len(overall.questions)}
        | {"trials": one.trials, "without_number": one.without_number}
        | _numbers("interquartile_mean", one.interquartile_mean)
        | {"other": other.name, **_numbers("probability", one.improvements[place])}
        for one in overall.methods
        for place, other in enumerate(overall.methods)
        if other is not one
    ]


def profiles_rows(overall: Overall) -> list[dict[str, Any]]:
    """Return one mapping for each method and threshold, from the least to the greatest, with those of profiles.csv."""
    return [
        {"metric": overall.name, "method": one.name, "from": start, "share": share, **ends("share_", band)}
        for one in overall.methods
        for start, share, *band in zip(
            [None, *one.profile.thresholds.tolist()],
            *(of.tolist() for of in (one.profile.shares, one.profile.low, one.profile.high)),
            strict=True,
        )
    ]


def _numbers(name: str, of: MeanOverCells | None) -> dict[str, float | None]:
    return {} if of is None else {name: of.value, **ends(f"{name}_", of.interval)}
