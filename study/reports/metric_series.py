"""Metrics of series: a short table of each, and all values as CSV and LaTeX."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from study import words
from study.reports import latex
from study.reports.columns import SERIES
from study.reports.csv_text import key_values
from study.reports.latex_table import COLUMN_IN, tabular, width_in
from study.reports.metric_columns import STATISTICS, statistic
from study.reports.table import key_columns
from study.reports.text_table import Column, TextTable, estimates_column, places
from study.summaries.learning import spread
from study.summaries.metrics import MetricSeries, MetricSummary, series_of
from study.summaries.rows import ResultRows

_MOST_PLACES = 6
"""The most places in a table."""


def series_with_values(rows: ResultRows) -> list[MetricSeries]:
    """List the series with a value in any row."""
    return [
        series
        for series in series_of(rows.metrics)
        if any(summary.count for name in series.metrics for summary in _summaries(rows, name))
    ]


def _summaries(rows: ResultRows, name: str) -> list[MetricSummary]:
    return [s.metrics.get(name, MetricSummary(metric=rows.metrics[name])) for s in rows.summaries]


def places_to_show(series: MetricSeries, most: int = _MOST_PLACES) -> dict[str, float]:
    """Return up to `most` places of a series by metric, at equal steps in their order.

    The first place is included and, if `most` is at least two, the last one.
    """
    at = dict(zip(series.metrics, series.places, strict=True))
    return {name: at[name] for place in spread(len(at), most) for name in [list(at)[place]]}


def place_title(series: MetricSeries, at: float) -> str:
    """Write a place of a series, such as ``length 1,000``.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    return f"{series.along} {number(at)}"


def number(at: float) -> str:
    """Format a place of a series, such as a length: whole numbers without decimals.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    return words.format_value("", int(at) if at == int(at) else at).replace("-", "−")


def series_table(rows: ResultRows, series: MetricSeries) -> TextTable:
    """Lay out the series' means at up to six places, one row for each summary; incomplete rows are marked.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    keys = key_columns(rows, range(len(rows.summaries)))
    means = [replace(column, title=f"{series.along} {at}") for at, column in _means(rows, series)]
    return TextTable((*keys, *means), places(not s.complete for s in rows.summaries), len(rows.keys))


def _means(rows: ResultRows, series: MetricSeries, most: int = _MOST_PLACES) -> list[tuple[str, Column]]:
    """Lay out means at selected places, each with the place as text."""
    write = words.metric_notation(series.metric)
    return [
        (number(at), estimates_column(_summaries(rows, name), "", "mean", write, "mean_interval"))
        for name, at in places_to_show(series, most).items()
    ]


def series_rows(rows: ResultRows) -> list[dict[str, Any]]:
    """Return one mapping for each row and metric of the series that have values, with the columns of series.csv."""
    return [
        key_values(rows, row, SERIES, "{} (column)")
        | {"series": series.title, "along": series.along, "at": at, "metric": name}
        | {"trials": summary.count}
        | {column: number for _, field, _ in STATISTICS for column, number in statistic(summary, field).items()}
        for row in range(len(rows.summaries))
        for series in series_with_values(rows)
        for name, at in zip(series.metrics, series.places, strict=True)
        for summary in [_summaries(rows, name)[row]]
    ]


def series_latex(rows: ResultRows, *, command: str) -> str:
    """Return a tabular of means for each series with values, as one text; empty without such series.

    It has up to six places, fewer if they don't fit a paper's column, but at least one.

    Args:
        rows: the results.
        command: the command that makes the file again.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    keys, parts = latex.key_columns(rows, range(len(rows.summaries))), []
    for series in series_with_values(rows):
        for most in range(_MOST_PLACES, 0, -1):
            means = [
                latex.number_column(column, series.along, place, is_scaled=False)
                for place, column in _means(rows, series, most)
            ]
            if width_in([*keys, *means]) <= COLUMN_IN:
                break
        parts.append(tabular([*keys, *means], comments=[command, f"{series.heading}: means; intervals are at 95%."]))
    return "\n".join(parts)
