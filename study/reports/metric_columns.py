"""The columns of metrics that are averaged over the trials of a row: in tables, and in cells.csv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from study import words
from study.reports.csv_text import ends
from study.reports.text_table import Column, estimates_column
from study.summaries.metrics import MetricSummary
from study.summaries.rows import ResultRows

_MOST_NARROW = 3
"""The most metrics of all trials in a terminal."""

STATISTICS = (
    ("mean", "mean", "mean_interval"),
    ("median", "median", "median_interval"),
    ("interquartile mean", "interquartile_mean", "interquartile_mean_interval"),
)
"""The titles of a metric's statistics, and the fields of `MetricSummary` that hold them and their intervals."""


def names_to_show(rows: ResultRows, *, is_narrow: bool = False) -> list[str]:
    """List the metrics that a table shows: those of solved trials where there are success rates, others with a value.

    Args:
        rows: the rows.
        is_narrow: whether to list only the first of those of all trials, for a terminal.
    """
    of_solved = [name for name, metric in rows.single_metrics.items() if metric.of == "solved" and rows.has_rates]
    of_ended = [name for name in with_values(rows) if rows.metrics[name].of == "ended"]
    chosen = {*of_solved, *(of_ended[:_MOST_NARROW] if is_narrow else of_ended)}
    return [name for name in rows.metrics if name in chosen]


def titles_of_solved(rows: ResultRows) -> list[str]:
    """List the titles of what is of the solved trials alone: times to success, then single metrics."""
    metrics = rows.single_metrics.items() if rows.has_rates else ()
    return [
        *(["solved at"] if rows.has_times else []),
        *(words.metric_title(name, metric) for name, metric in metrics if metric.of == "solved"),
    ]


def with_values(rows: ResultRows) -> list[str]:
    """List the single metrics of which any row has a value."""
    return [
        name for name in rows.single_metrics if any(s.metrics[name].count for s in rows.summaries if name in s.metrics)
    ]


def columns(rows: ResultRows, name: str, most: int | None = None, *, is_narrow: bool = False) -> list[Column]:
    """Lay out a metric: the mean alone in a terminal, or where it is bounded by a beta distribution; else all.

    Args:
        rows: the rows.
        name: the metric's name.
        most: the number of rows to lay out; None for all.
        is_narrow: whether it is for a terminal.
    """
    metric = rows.metrics[name]
    of_rows = [s.metrics.get(name, MetricSummary(metric=metric)) for s in rows.summaries]
    title, write = words.metric_title(name, metric), words.metric_notation(metric)

    def column(heading: str, field: str, interval: str, *, is_alone: bool = False) -> Column:
        is_compared = not rows.has_rates and name == rows.main_metric and field == "mean"
        laid_out = estimates_column(of_rows[:most], heading, field, write, interval, is_alone=is_alone)
        return replace(laid_out, best=rows.winners if is_compared else frozenset(), name=f"{name}_{field}")

    if metric.interval == "beta":
        return [column(title, "mean", "mean_interval", is_alone=is_narrow)]
    if is_narrow:
        return [column(title, "mean", "mean_interval")]
    return [column(f"{title}, {what}", field, interval) for what, field, interval in STATISTICS]


def numbers(metrics: Mapping[str, MetricSummary]) -> dict[str, float | None]:
    """Return the values of a row in the columns of `columns.of_metric`, and in others that stay empty."""
    row: dict[str, float | None] = {}
    for name, summary in metrics.items():
        row |= {f"{name}_mean": summary.mean, **ends(f"{name}_", summary.mean_interval)}
        row |= {f"{name}_trials": summary.count}
        for field in ("median", "interquartile_mean"):
            row |= {f"{name}_{column}": number for column, number in statistic(summary, field).items()}
    return row


def statistic(summary: MetricSummary, field: str) -> dict[str, float | None]:
    """Return a statistic of a metric and the ends of its interval, in columns named after the field."""
    return {field: getattr(summary, field), **ends(f"{field}_", getattr(summary, f"{field}_interval"))}
