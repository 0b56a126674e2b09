"""Columns of metrics averaged over the trials of a row, for tables and cells.csv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from study import words
from study.reports.csv_text import ends
from study.reports.text_table import Column, estimates_column
from study.summaries.metrics import MetricSummary
from study.summaries.rows import ResultRows

_MOST_NARROW = 3
"""The most metrics of all ended trials in a terminal."""

STATISTICS = (
    ("mean", "mean", "mean_interval"),
    ("median", "median", "median_interval"),
    ("interquartile mean", "interquartile_mean", "interquartile_mean_interval"),
)
"""The titles of a metric's statistics, and the fields of `MetricSummary` that hold them and their intervals."""


def names_to_show(rows: ResultRows, *, is_narrow: bool = False) -> list[str]:
    """List the single metrics to show, in the rows' order.

    Metrics of solved trials are shown if there are success rates, those of all ended trials if a row has a value, and
    others never.

    Args:
        rows: the rows.
        is_narrow: whether to list only the first few metrics of all ended trials, for a terminal.
    """
    solved_metrics = [name for name, metric in rows.single_metrics.items() if metric.of == "solved" and rows.has_rates]
    ended_metrics = [name for name in with_values(rows) if rows.metrics[name].of == "ended"]
    chosen = {*solved_metrics, *(ended_metrics[:_MOST_NARROW] if is_narrow else ended_metrics)}
    return [name for name in rows.metrics if name in chosen]


def titles_of_solved(rows: ResultRows) -> list[str]:
    """List the titles of the statistics of solved trials: "solved at" if times are known, then single metrics.

    Without success rates, there are none.
    """
    metrics = rows.single_metrics.items() if rows.has_rates else ()
    return [
        *(["solved at"] if rows.has_times else []),
        *(words.metric_title(name, metric) for name, metric in metrics if metric.of == "solved"),
    ]


def with_values(rows: ResultRows) -> list[str]:
    """List the single metrics with a value in any row."""
    return [
        name for name in rows.single_metrics if any(s.metrics[name].count for s in rows.summaries if name in s.metrics)
    ]


def columns(rows: ResultRows, name: str, most: int | None = None, *, is_narrow: bool = False) -> list[Column]:
    """Lay out a metric: the mean in a terminal or for a beta distribution, else also median and interquartile mean.

    Args:
        rows: the rows.
        name: the metric's name, a key of `rows.metrics`.
        most: the number of rows to lay out; None for all.
        is_narrow: whether it is for a terminal, without beta intervals.
    """
    metric = rows.metrics[name]
    summaries = [s.metrics.get(name, MetricSummary(metric=metric)) for s in rows.summaries]
    title, write = words.metric_title(name, metric), words.metric_notation(metric)

    def column(heading: str, field: str, interval: str, *, is_alone: bool = False) -> Column:
        is_compared = not rows.has_rates and name == rows.main_metric and field == "mean"
        laid_out = estimates_column(summaries[:most], heading, field, write, interval, is_alone=is_alone)
        return replace(laid_out, best=rows.winners if is_compared else frozenset(), name=f"{name}_{field}")

    if metric.interval == "beta":
        return [column(title, "mean", "mean_interval", is_alone=is_narrow)]
    if is_narrow:
        return [column(title, "mean", "mean_interval")]
    return [column(f"{title}, {statistic_title}", field, interval) for statistic_title, field, interval in STATISTICS]


def numbers(metrics: Mapping[str, MetricSummary]) -> dict[str, float | None]:
    """Return a row's values of the columns in `columns.of_metric`, from the summaries of its metrics by name.

    The number of trials is always given, as ``NAME_trials``. Other columns that a metric doesn't use, and missing
    numbers, are None.
    """
    row: dict[str, float | None] = {}
    for name, summary in metrics.items():
        row |= {f"{name}_mean": summary.mean, **ends(f"{name}_", summary.mean_interval)}
        row |= {f"{name}_trials": summary.count}
        for field in ("median", "interquartile_mean"):
            row |= {f"{name}_{column}": number for column, number in statistic(summary, field).items()}
    return row


def statistic(summary: MetricSummary, field: str) -> dict[str, float | None]:
    """Return a statistic of a metric and the ends of its interval by column; None where a number is missing.

    Args:
        summary: the metric's summary.
        field: the summary's field with the statistic, such as ``median``; the columns' names begin with it.
    """
    return {field: getattr(summary, field), **ends(f"{field}_", getattr(summary, f"{field}_interval"))}
