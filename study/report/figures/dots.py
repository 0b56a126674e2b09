"""Rows as dots and lines of the three panels: where each stands, and the values that it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from study import words
from study.analysis import series
from study.analysis.comparison import Comparisons, Reference
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.records import Interval
from study.report.figures import axes as axes_of
from study.report.figures.axes import Across, Units
from study.report.figures.multiples import MOST_CURVES
from study.report.figures.style import PAPER

_REFERENCE: dict[str, Any] = {
    "linestyle": (0, (3, 2)),
    "linewidth": 0.7,
    "markerfacecolor": PAPER,
    "elinewidth": 0.5,
    "capsize": 0,
    "alpha": 0.7,
    "zorder": 2,
}

Point = tuple[float | None, Interval | None]
Panels = tuple[Point, Point, Point]
"""A row's value and interval in each panel."""
SOLVED_AT_PANEL, ERROR_PANEL = 1, 2


@dataclass(frozen=True)
class Clock:
    """What times are measured in: iterations or seconds.

    Args:
        name: name of the figure's files.
        title: the figure's title.
        statistic: the summary's fields are this, with _mean and _interval.
        units: units for the axis.
        noun: the unit of numbers in texts.
        write: formats a number.
    """

    name: str
    title: str
    statistic: str
    units: Units
    noun: str
    write: Callable[[float], str]

    def time(self, summary: Summary | Reference) -> Point:
        """Return the mean time at which trials were solved, and its interval; None where this clock wasn't read."""
        mean: float | None = getattr(summary, f"{self.statistic}_mean", None)
        return mean, getattr(summary, f"{self.statistic}_interval", None)


MOST_FACETS = 6
"""The most rows of panels on a page of paper."""

ITERATIONS = Clock(
    "figure",
    "Success rate, solved at and sparsity error",
    "solved_at",
    axes_of.ITERATIONS,
    "iterations",
    "{:,.0f}".format,
)
SECONDS = Clock(
    "training-time",
    "The same in seconds of training",
    "solved_at_s",
    ((3600.0, "h of training"), (60.0, "min of training"), (1.0, "s of training")),
    "s of training",
    words.seconds,
)


@dataclass(frozen=True)
class Dot:
    """A row in the panels, or the reference that it is compared with."""

    x: float
    name: str
    of: Summary | Reference
    points: Panels


@dataclass(frozen=True)
class Line:
    """The dots of a curve, or of the references that it is compared with."""

    facet: str
    style: Mapping[str, Any]
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Lines:
    """The content of the panels.

    Args:
        x: the x axis.
        unit: the unit of times, as in `Units`.
        source: the source of the references; empty if there are none.
        names: the curves' names, for the legend, in the order of their colours.
        facets: the name of each row of panels.
        lines: the lines, in the order in which they are drawn.
        rows: the number of rows that are shown.
    """

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


def lines(rows: ResultRows, against: Comparisons | None, clock: Clock) -> Lines:
    """Lay out each curve and, slightly to its right, its references: as many curves as one can read."""
    x = axes_of.across(rows)
    beside = {c.row: c.beside for c in against.comparisons} if against else {}
    source = against.source if against and beside else ""
    everything: list[Summary | Reference] = [*rows.summaries, *beside.values()]
    longest = max((t for of in everything if (t := clock.time(of)[0]) is not None), default=0.0)
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
        here = [Dot(to, rows.name(row), s := rows.summaries[row], _panels(s, clock, unit[0])) for to, row in at]
        there = [
            Dot(to + step, f"{source}: {rows.name(row)}", o := beside[row], _panels(o, clock, unit[0]))
            for to, row in at
            if row in beside
        ]
        result.append(Line(curve.facet, style, tuple(here)))
        if there:
            result.append(Line(curve.facet, style | beside_style(x), tuple(there)))
    count = sum(isinstance(dot.of, Summary) for line in result for dot in line.dots)
    return Lines(x, unit, source, names, facets, tuple(result), count)


def beside_style(x: Across) -> dict[str, Any]:
    """Return the style that sets references off from curves."""
    return _REFERENCE if x.is_numeric else _REFERENCE | {"linestyle": "none"}


def _panels(of: Summary | Reference, clock: Clock, unit: float) -> Panels:
    mean, interval = clock.time(of)
    time = None if mean is None else mean / unit, None if interval is None else (interval[0] / unit, interval[1] / unit)
    return (of.success_rate, of.success_rate_interval), time, (of.sparsity_error_mean, of.sparsity_error_interval)
