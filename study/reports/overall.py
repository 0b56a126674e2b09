"""Methods aggregated over tasks: a table, and CSV files of numbers and profiles."""

from __future__ import annotations

from typing import Any

from study import words
from study.comparisons.overall import Overall
from study.reports.csv_text import ends
from study.reports.text_table import Column, TextTable, count_column, names_column, text_column
from study.statistics import MeanOverCells
from study.words import Notation

_MOST_OTHERS = 5
"""The most methods that the table compares pairwise; with more, each is compared with the best one."""


def overall_table(overall: Overall) -> TextTable:
    """Lay out one row for each method: interquartile mean, and probabilities of being better than other methods.

    Each row also has the number of seeds and, if any method has such trials, the number of trials without a number.
    With more than five methods, each is compared only with the best one.
    """
    methods, write = overall.methods, words.metric_notation(overall.metric)
    columns = [
        names_column("method", [method.name for method in methods]),
        text_column(
            "seeds", [(" to ".join(map(str, dict.fromkeys(method.seeds))), method.seeds[0]) for method in methods]
        ),
    ]
    if any(method.without_number for method in methods):
        columns.append(count_column("without a number", [method.without_number for method in methods]))
    columns.append(
        _column(f"{overall.title}, interquartile mean", [method.interquartile_mean for method in methods], write)
    )
    against = range(len(methods)) if len(methods) <= _MOST_OTHERS else [overall.best]
    columns += [
        _column(f"better than {methods[j].name}", [method.improvements[j] for method in methods], words.rate)
        for j in against
    ]
    return TextTable(tuple(columns))


def _column(title: str, estimates: list[MeanOverCells | None], write: Notation) -> Column:
    return text_column(
        title,
        [
            (write(estimate.value, estimate.interval), estimate.value) if estimate else (words.NONE, None)
            for estimate in estimates
        ],
    )


def overall_note(overall: Overall) -> str:
    """Return sentences that explain the numbers of `overall_table`."""
    return (
        f"Interquartile means, averaged over the {len(overall.questions)} tasks that all methods have, and "
        "probabilities that a trial is better than one of another method with another seed, ties counted half. "
        "Intervals are at 95%, each by itself; shared seeds are allowed for."
    )


def methods_rows(overall: Overall) -> list[dict[str, Any]]:
    """Return one mapping for each ordered pair of methods, with the columns of methods.csv."""
    return [
        {"metric": overall.name, "method": method.name, "questions": len(overall.questions)}
        | {"trials": method.trials, "without_number": method.without_number}
        | _numbers("interquartile_mean", method.interquartile_mean)
        | {"other": other.name, **_numbers("probability", method.improvements[place])}
        for method in overall.methods
        for place, other in enumerate(overall.methods)
        if other is not method
    ]


def profiles_rows(overall: Overall) -> list[dict[str, Any]]:
    """Return one mapping for each method and threshold, with the columns of profiles.csv.

    Thresholds increase. A share holds from its threshold to the next one; that of a method's first row, which has no
    threshold, holds below all of them.
    """
    return [
        {"metric": overall.name, "method": method.name, "from": start, "share": share, **ends("share_", band)}
        for method in overall.methods
        for start, share, *band in zip(
            [None, *method.profile.thresholds.tolist()],
            *(values.tolist() for values in (method.profile.shares, method.profile.low, method.profile.high)),
            strict=True,
        )
    ]


def _numbers(name: str, estimate: MeanOverCells | None) -> dict[str, float | None]:
    value, interval = (None, None) if estimate is None else (estimate.value, estimate.interval)
    return {name: value, **ends(f"{name}_", interval)}
