"""Rows as curves, for figures and for MLflow's charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from study.plugins.vocabulary import vocabulary
from study.records import Labels
from study.summaries import rows as result_rows
from study.summaries.aggregate import CellSummary
from study.summaries.metrics import main, metrics_of
from study.summaries.rows import ResultRows

T = TypeVar("T")

MOST_CURVES = 8
"""The most curves of one panel; more are split into facets."""


@dataclass(frozen=True)
class Series:
    """A curve.

    Args:
        name: its name in the legend; empty for the only curve.
        facet: the name of its row of panels; empty for the only row.
        rows: the rows that are its points, by ascending x.
    """

    name: str
    facet: str
    rows: tuple[int, ...]


def x_axis(rows: ResultRows) -> str:
    """Choose the key of the x axis among the keys that vary; ``model`` if no other key varies.

    This is the first of the vocabulary's `swept_first`, else the numeric key with the most values, else the key other
    than the model with the most values. Of keys with equally many values, the first is chosen.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    keys = rows.varying()
    for key in vocabulary().swept_first:
        if key in keys:
            return key
    swept = [key for key in keys if key != "model"]
    return max(swept, key=lambda k: (rows.is_number[rows.keys.index(k)], len(levels(rows, k))), default="model")


def levels(rows: ResultRows, key: str) -> list[Any]:
    """List the distinct values of a key: None, then ascending numbers.

    If any value is neither, such as a text or a Boolean, the values are in the order of their first rows.
    """
    values = list(dict.fromkeys(rows.value(row, key) for row in range(len(rows.summaries))))
    numbers = [level for level in values if isinstance(level, int | float) and not isinstance(level, bool)]
    if len(numbers) + values.count(None) == len(values):
        return [*([None] if None in values else []), *sorted(numbers)]
    return values


def split(rows: ResultRows, x: str, most: int = MOST_CURVES) -> list[Series]:
    """Split rows into curves over x, one for each combination of the other keys that vary.

    The first key, the model if it varies, distinguishes curves. So does each further key with which the curves still
    fit into a panel. Each combination of the other keys is a facet.

    Args:
        rows: the rows.
        x: the key of the x axis.
        most: the most curves in one facet; the first key may have more.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    indices = range(len(rows.summaries))
    keys = sorted((key for key in rows.varying() if key != x), key=lambda key: key != "model")
    curve_keys = keys[:1]
    for key in keys[1:]:
        if len({tuple(rows.value(row, k) for k in [*curve_keys, key]) for row in indices}) <= most:
            curve_keys.append(key)
    facet_keys = [key for key in keys if key not in curve_keys]
    rank = {level: i for i, level in enumerate(levels(rows, x))}
    groups = rows.alike([*curve_keys, *facet_keys], indices)  # by value, since two names may have the same text
    return [
        Series(
            rows.name(group[0], curve_keys),
            rows.name(group[0], facet_keys),
            tuple(sorted(group, key=lambda row: rank[rows.value(row, x)])),
        )
        for group in groups.values()
    ]


def by_effect(rows: ResultRows) -> list[str]:
    """List the keys that vary, in descending order of their effect on results.

    Results are success rates, or else means of the main metric. The effect is the range of mean ranks, so that a single
    extreme result doesn't decide. Equal results are ranked in the order of the rows. Rows without a result are ignored.
    """
    results = _results(rows)
    known = [row for row, result in enumerate(results) if result is not None]
    order = sorted(known, key=lambda row: results[row] or 0.0)
    rank = {row: place for place, row in enumerate(order)}
    means = {
        key: [sum(map(rank.__getitem__, group)) / len(group) for group in rows.alike([key], known).values()]
        for key in rows.varying()
    }
    return sorted(means, key=lambda key: min(means[key], default=0.0) - max(means[key], default=0.0))


def _results(rows: ResultRows) -> list[float | None]:
    """Return each row's success rate, or its mean of the main metric if no row has a rate."""
    name = rows.main_metric
    if rows.has_rates:
        return [summary.success_rate for summary in rows.summaries]
    return [None if name is None else summary.metrics[name].mean for summary in rows.summaries]


def panel_rows(rows: ResultRows, across: int, down: int) -> list[int]:
    """Choose rows for a grid of panels: values of the two keys with the largest effect, other keys as in the best row.

    If that leaves fewer than two rows, the rows are chosen at equal steps instead.

    Args:
        rows: the rows; at least one key varies, and at least one row has a trial that ended. Only such rows are chosen.
        across: the most values of the key with more values.
        down: the most values of the other key. If only one key varies, it has at most across times down values.
    """
    metric = None if rows.has_rates or rows.main_metric is None else rows.metrics[rows.main_metric]
    sign = 1.0 if metric is None or metric.higher_is_better else -1.0
    results = _results(rows)
    best = max(rows.ended(), key=lambda row: -math.inf if (value := results[row]) is None else sign * value)
    first = sorted(by_effect(rows)[:2], key=lambda key: -len(levels(rows, key)))
    others = [key for key in rows.varying() if key not in first]
    sizes = (across, down) if len(first) > 1 else (across * down,)
    shown = {key: _spread(levels(rows, key), most) for key, most in zip(first, sizes, strict=True)}
    chosen = [
        row
        for row in rows.ended()
        if all(rows.value(row, key) in values for key, values in shown.items())
        and all(rows.value(row, key) == rows.value(best, key) for key in others)
    ]
    # Without a full grid, the best row may be the only one.
    return chosen if len(chosen) > 1 else _spread(rows.ended(), across * down)


def _spread(values: list[T], most: int) -> list[T]:
    """Select at most `most` values, including the first and the last."""
    count = min(len(values), most)
    return [values[round(i * (len(values) - 1) / max(1, count - 1))] for i in range(count)]


def chart_series(summaries: Sequence[CellSummary], labels: Labels | None = None) -> list[tuple[str, str, int, float]]:
    """List the points of charts against the x axis.

    The charts show the success rate and the median of solved-at, in iterations. If no cell has a success criterion, the
    chart shows the mean of the main metric. The x axis is the first of the vocabulary's `swept_first` that is a whole
    number in each of these cells, even if it doesn't vary, or else `x_axis`.

    Returns:
        (name of the chart, name of the curve, x, value) for each value of a cell; empty without values. If the values
        on the x axis aren't all whole numbers, x is their index in `levels`.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    metric = None if result_rows.have_rates(summaries) else main(metrics_of(summaries))
    charts = [_charted(summary, metric) for summary in summaries]
    drawn = [summary for summary, values in zip(summaries, charts, strict=True) if values]
    if not drawn:
        return []
    charts = [values for values in charts if values]
    rows = result_rows.cell_rows(drawn, labels or {})
    x = next(
        (key for key in vocabulary().swept_first if all(isinstance(s.cell.value(key), int) for s in drawn)),
        x_axis(rows),
    )
    values = [s.cell.value(x) if x in s.cell.names else rows.value(row, x) for row, s in enumerate(drawn)]
    rank = {value: place for place, value in enumerate(levels(rows, x))}
    are_whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return [
        (
            chart,
            ", ".join(filter(None, (curve.name, curve.facet))) or "all",
            values[row] if are_whole else rank[values[row]],
            y,
        )
        for curve in split(rows, x)
        for row in curve.rows
        for chart, y in charts[row].items()
    ]


def _charted(summary: CellSummary, metric: str | None) -> dict[str, float]:
    """Return a cell's values by chart; empty if it has none."""
    if metric is not None:
        mean = summary.metrics[metric].mean if metric in summary.metrics else None
        return {} if mean is None else {f"{metric}_mean": mean}
    if not summary.judged:
        return {}
    median = {} if summary.solved_at_median is None else {"solved_at_median": summary.solved_at_median}
    return {"success_rate": summary.solved / summary.judged} | median
