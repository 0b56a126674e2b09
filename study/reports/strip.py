"""A strip of marks that shows the results of a study's rows at a glance, one mark a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from study import words
from study.records import Interval
from study.summaries.metrics import MetricSummary
from study.summaries.rows import ResultRows
from study.words import Notation

WIDTH, HEIGHT = 240.0, 40.0
"""The size of the drawing, in CSS pixels."""

_EDGE = 4.0  # room for half a mark at each end
_WIDEST_STEP = 18.0
_WIDEST_MARK = 6.0


@dataclass(frozen=True)
class Mark:
    """A row's mark.

    Args:
        x: the distance from the left, in CSS pixels.
        y: the distance from the top.
        ends: the heights of the interval's ends; None without an interval.
        text: the text shown at the pointer.
    """

    x: float
    y: float
    ends: tuple[float, float] | None
    text: str


@dataclass(frozen=True)
class Strip:
    """The marks of all rows.

    Args:
        caption: the title of the drawn quantity, with its unit.
        limits: the lower and the upper end of the axis.
        description: the drawing in words, for screen readers.
        width: the width from the first row to the last.
        mark_width: the width of each mark.
        marks: one mark for each row with a number, in the rows' order.
    """

    caption: str
    limits: tuple[str, str]
    description: str
    width: float
    mark_width: float
    marks: Sequence[Mark]


def strip(rows: ResultRows) -> Strip | None:
    """Draw each row's success rate with its interval, or without rates the mean of the main metric.

    Rates are drawn from 0 to 1, means between the lowest and the highest finite mean or end of an interval.

    Args:
        rows: the results of the trials.

    Returns:
        The strip; None if no row has a finite number.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    if rows.has_rates:
        rates = [(s.success_rate if s.judged else None, s.success_rate_interval) for s in rows.summaries]
        return _draw_strip(rows, "success rate (share of trials)", rates, words.rate, (0.0, 1.0))
    name = rows.main_metric
    if name is None:
        return None
    metric = rows.metrics[name]
    summaries = [s.metrics.get(name, MetricSummary(metric=metric)) for s in rows.summaries]
    means = [(m.mean, m.mean_interval) for m in summaries]
    ends = [end for mean, interval in means if mean is not None for end in (mean, *(interval or ()))]
    finite = [end for end in ends if math.isfinite(end)]
    if not finite:
        return None
    return _draw_strip(
        rows, words.metric_title(name, metric), means, words.metric_notation(metric), (min(finite), max(finite))
    )


def _draw_strip(
    rows: ResultRows,
    title: str,
    values: Sequence[tuple[float | None, Interval | None]],
    write: Notation,
    limits: Interval,
) -> Strip | None:
    present = {row: v for row, (v, _) in enumerate(values) if v is not None and math.isfinite(v)}
    if not present:
        return None
    low, high = limits
    step = min(_WIDEST_STEP, (WIDTH - 2 * _EDGE) / len(values))

    def height(value: float) -> float:
        share = 0.5 if high == low else (min(max(value, low), high) - low) / (high - low)
        return round(HEIGHT - _EDGE - share * (HEIGHT - 2 * _EDGE), 2)

    marks = []
    for row, value in present.items():
        interval = values[row][1]
        ends = None if interval is None else (height(interval[0]), height(interval[1]))
        text = ": ".join(part for part in (rows.name(row), write(value, interval)) if part)
        marks.append(Mark(round(_EDGE + (row + 0.5) * step, 2), height(value), ends, text))
    lowest, highest = (choose(present, key=present.__getitem__) for choose in (min, max))
    ends_named = (f"{write(present[row])} ({rows.name(row)})" for row in (lowest, highest))
    return Strip(
        caption=title,
        limits=(write(low), write(high)),
        description=f"{title} of {words.count_of(len(values), rows.noun)} with 95% intervals, in the report's order: "
        + ("from {} to {}".format(*ends_named) if len(present) > 1 else write(present[lowest])),
        width=round(2 * _EDGE + step * len(values), 2),
        mark_width=round(min(_WIDEST_MARK, 0.8 * step), 2),
        marks=marks,
    )
