"""Rows as dots and lines of the panels: their places, and their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from study import words
from study.comparisons.comparison import Comparisons, Reference
from study.interface.declarations import Metric
from study.reports.figures import axes as axes_of
from study.reports.figures.axes import Across, Units
from study.reports.figures.multiples import MOST_CURVES
from study.reports.figures.scales import Point, Scale
from study.reports.figures.style import PAPER
from study.reports.metric_columns import names_to_show
from study.summaries import series
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary
from study.words import Notation

_REFERENCE: dict[str, Any] = {
    "linestyle": (0, (3, 2)),
    "linewidth": 0.7,
    "markerfacecolor": PAPER,
    "elinewidth": 0.5,
    "capsize": 0,
    "alpha": 0.7,
    "zorder": 2,
}

_MOST_PANELS = 3
_DIFFERENT_PACE, _EXPLAINED = 1.1, 0.25
"""The least ratio of rows' seconds an iteration, and the least share of explained variance, for a figure of seconds."""


@dataclass(frozen=True)
class Panel:
    """The quantity of a panel.

    Args:
        kind: success rates, the times at which trials were solved, or the means of a metric.
        title: the title for readers.
        name: the metric's name.
        metric: the metric's declaration.
    """

    kind: Literal["rate", "time", "metric"]
    title: str
    name: str = ""
    metric: Metric | None = None

    @property
    def notation(self) -> Notation:
        """The notation of a rate or of a metric."""
        return words.rate if self.metric is None else words.metric_notation(self.metric)

    def point(self, result: Summary | Reference) -> Point:
        """Return a row's success rate, or its mean of the metric, with the interval; None where missing.

        For times, use `Clock.time`.
        """
        if self.metric is None:
            return result.success_rate, result.success_rate_interval
        summary = result.metrics.get(self.name)
        return (None, None) if summary is None else (summary.mean, summary.mean_interval)


def panel_of(rows: ResultRows, name: str | None) -> Panel:
    """Return the panel of a metric, or of success rates for None.

    Raises:
        KeyError: if no row has this metric.
    """
    if name is None:
        return Panel("rate", "success rate")
    return Panel("metric", words.metric_title(name, rows.metrics[name]), name, rows.metrics[name])


def panels_of(rows: ResultRows) -> tuple[Panel, ...]:
    """List the panels: success rates if a row has a criterion, times if any are known, and the metrics to show."""
    panels = [panel_of(rows, None)] if rows.has_rates else []
    panels += [Panel("time", "solved at")] if rows.has_times else []
    return (*panels, *(panel_of(rows, name) for name in names_to_show(rows)))


@dataclass(frozen=True)
class Clock:
    """The unit of times: iterations or seconds.

    Args:
        name: the name of the figure's files.
        title: the figure's title; empty to use the titles of its panels.
        statistic: the prefix of the summary's fields, which end in _mean and _interval.
        units: the units of the axis.
        noun: the unit of numbers in texts.
        write: the notation of times.
    """

    name: str
    title: str
    statistic: str
    units: Units
    noun: str
    write: Notation

    def time(self, summary: Summary | Reference, unit: float = 1.0) -> Point:
        """Return the mean time to success of solved trials, divided by `unit`, and its interval; None where missing."""
        mean: float | None = getattr(summary, f"{self.statistic}_mean", None)
        interval = getattr(summary, f"{self.statistic}_interval", None)
        return mean if mean is None else mean / unit, interval and (interval[0] / unit, interval[1] / unit)


MOST_FACETS = 6
"""The most rows of panels on a printed page."""

ITERATIONS = Clock("figure", "", "solved_at", axes_of.ITERATIONS, "iterations", words.iterations)
SECONDS = Clock(
    "training-time",
    "Seconds of training until trials were solved",
    "solved_at_s",
    ((3600.0, "h of training"), (60.0, "min of training"), (1.0, "s of training")),
    "s of training",
    words.seconds,
)


def paces_differ(rows: ResultRows) -> bool:
    """Return True if the seconds an iteration differ between rows, so that seconds add information to iterations.

    Three conditions must hold for the solved trials with known seconds, in two or more rows: the Kruskal-Wallis test
    rejects at 1%, rows explain a quarter of the ranks' variance, and the rows' medians differ by 10%.
    """
    from scipy.stats import kruskal  # imported here, since it takes long and is rarely needed

    known = ((t, t.solved & np.isfinite(t.seconds) & (t.iterations > 0)) for s in rows.summaries if (t := s.times))
    paces = [times.seconds[which] / times.iterations[which] for times, which in known if which.any()]
    medians = [float(np.median(pace)) for pace in paces]
    if len(paces) < 2 or max(medians) < _DIFFERENT_PACE * min(medians):
        return False
    test, count = kruskal(*paces), sum(pace.size for pace in paces)
    explained = (test.statistic - len(paces) + 1) / max(1, count - len(paces))
    return bool(test.pvalue < 0.01 and explained > _EXPLAINED)


@dataclass(frozen=True)
class Dot:
    """A row in the panels, or the reference that it is compared with.

    Args:
        level: the position of its value on the x axis.
        x: the position where it is drawn, beside other rows with that value.
        name: the name.
        result: the results.
        points: the value and the interval in each panel.
    """

    level: float
    x: float
    name: str
    result: Summary | Reference
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Line:
    """The dots of a curve, or of the references that it is compared with; the latter have no name."""

    facet: str
    name: str
    style: Mapping[str, Any]
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Lines:
    """The content of the panels.

    Args:
        panels: the panels.
        x: the x axis.
        unit: the unit of times, as in `Units`.
        source: the source of the references; empty without references.
        names: the curves' names for the legend, in the order of their colours.
        facets: the name of each row of panels.
        lines: the lines, in drawing order.
        rows: the number of shown rows.
    """

    panels: tuple[Panel, ...]
    x: Across
    unit: tuple[float, str]
    source: str
    names: tuple[str, ...]
    facets: tuple[str, ...]
    lines: tuple[Line, ...]
    rows: int

    def dots(self) -> Iterator[Dot]:
        """Iterate over all dots."""
        return (dot for line in self.lines for dot in line.dots)

    @cached_property
    def scales(self) -> tuple[Scale, ...]:
        """The y axis of each panel."""
        points = [[dot.points[place] for dot in self.dots()] for place in range(len(self.panels))]
        return tuple(
            Scale("time", panel_points) if panel.kind == "time" else Scale.of_metric(panel.metric, panel_points)
            for panel, panel_points in zip(self.panels, points, strict=True)
        )


def lines(rows: ResultRows, against: Comparisons | None, clock: Clock) -> Lines:
    """Lay out the curves of up to three panels, each with its references slightly to the right.

    The panels are the first of `panels_of` that have a value, and success rates in any case. Only the first
    `MOST_FACETS` facets and `MOST_CURVES` names of curves are laid out, without rows that aren't on the x axis.

    Args:
        rows: the rows, at least one.
        against: the references of rows; None without references.
        clock: the unit of times.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    x = axes_of.across(rows)
    beside = {c.row: c.beside for c in against.comparisons} if against else {}
    source = against.source if against and beside else ""
    everything: list[Summary | Reference] = [*rows.summaries, *beside.values()]

    def point(panel: Panel, entry: Summary | Reference, unit: float = 1.0) -> Point:
        return clock.time(entry, unit) if panel.kind == "time" else panel.point(entry)

    # A rate can always be shown, even if no trial was solved.
    available = [
        p for p in panels_of(rows) if p.kind == "rate" or any(point(p, entry)[0] is not None for entry in everything)
    ]
    panels = available[:_MOST_PANELS]
    longest = max((t for entry in everything if (t := clock.time(entry)[0]) is not None), default=0.0)
    unit = axes_of.unit(longest, clock.units)
    curves = series.split(rows, x.key)
    facets = tuple(dict.fromkeys(curve.facet for curve in curves))[:MOST_FACETS]
    names = tuple(dict.fromkeys(curve.name for curve in curves))[:MOST_CURVES]
    each = 2 if beside else 1
    step = x.dodge(len(names) * each)
    result: list[Line] = []
    for curve in curves:
        if curve.facet not in facets or curve.name not in names:
            continue
        slot = names.index(curve.name)
        style = axes_of.curve_style(slot, is_line=x.is_numeric)
        shift = (slot - (len(names) - 1) / 2) * step * each
        at = [(x.positions[row] + shift, row) for row in curve.rows if math.isfinite(x.positions[row])]
        row_dots, others = (
            tuple(
                Dot(
                    to - shift,
                    to + aside,
                    name + rows.name(row),
                    entry,
                    tuple(point(p, entry, unit[0]) for p in panels),
                )
                for to, row in at
                if (entry := results.get(row)) is not None
            )
            for results, aside, name in ((dict(enumerate(rows.summaries)), 0.0, ""), (beside, step, f"{source}: "))
        )
        result.append(Line(curve.facet, curve.name, style, row_dots))
        if others:
            result.append(Line(curve.facet, "", style | beside_style(x), others))
    count = sum(isinstance(dot.result, Summary) for line in result for dot in line.dots)
    return Lines(tuple(panels), x, unit, source, names, facets, tuple(result), count)


def beside_style(x: Across) -> dict[str, Any]:
    """Return the changes of a curve's style for its reference: hollow and dashed, without a line between names."""
    return _REFERENCE if x.is_numeric else _REFERENCE | {"linestyle": "none"}
