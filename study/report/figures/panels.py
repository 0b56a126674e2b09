"""The three panels: success rate, solved at and sparsity error, against hidden units or whatever is swept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from study import words
from study.analysis.comparison import Comparisons
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.records import Interval
from study.report.figures import axes as axes_of
from study.report.figures.dots import (
    ERROR_PANEL,
    ITERATIONS,
    MOST_FACETS,
    SECONDS,
    SOLVED_AT_PANEL,
    Clock,
    Line,
    Lines,
    Panels,
    beside_style,
    lines,
)
from study.report.figures.multiples import MOST_TIPS, grid, left_out
from study.report.figures.style import INK, STYLE, Drawn, Tips

_HEIGHTS_IN = ((2, 2.0), (4, 1.6), (MOST_FACETS, 1.3))
"""The largest number of facets, and the height of each."""
_PANEL_IN = 1.85
"""About the width of a panel."""
_FOOT = 0.02
"""Where an error of zero is marked, as a share of the axis."""
_ZERO: dict[str, Any] = {"marker": "v", "markersize": 4, "markeredgewidth": 0.7, "linestyle": "none"}


def draw(rows: ResultRows, against: Comparisons | None = None, clock: Clock = ITERATIONS) -> Drawn:
    """Draw a curve a model and swept hyperparameter, with 95% intervals; references, such as published, are dashed.

    Args:
        rows: the rows, at least one.
        against: the references.
        clock: `ITERATIONS`, or `SECONDS` of training.
    """
    curves = lines(rows, against, clock)
    each = next(inches for most, inches in _HEIGHTS_IN if len(curves.facets) <= most)
    tips = Tips()
    with mpl.rc_context(STYLE):
        titles = [title for facet in curves.facets for title in (facet, "", "")]
        figure, every = grid(titles, each, _handles(curves), across=3, sharey=False)
        facets = {facet: every[3 * row : 3 * row + 3] for row, facet in enumerate(curves.facets)}
        for line in curves.lines:
            _draw_line(facets[line.facet], line)
        between = " " if each > 1.5 else "\n"
        names = ("success rate", f"solved at{between}({curves.unit[1]})", "sparsity error")
        for axes, name in zip(every, names * len(facets), strict=True):
            axes.set_ylabel(name)
        is_cut = _limit(list(facets.values()), [dot.points for dot in curves.dots()])
        _add_tips(facets, curves, clock, tips)
        upright_in = max(curves.x.label(axes, _PANEL_IN) for axes in every[-3:])
        figure.set_figheight(figure.get_figheight() + upright_in)
    caption = _caption(curves, clock, is_cut=is_cut) + left_out(curves.rows, len(rows.summaries), "rows")
    return Drawn(clock.name, clock.title, caption, figure, tips)


def _caption(curves: Lines, clock: Clock, *, is_cut: bool) -> str:
    by = next((dot.of.success_rate_by for dot in curves.dots() if isinstance(dot.of, Summary)), "Wilson")
    what = "iteration" if clock is ITERATIONS else "seconds of training"
    sentences = [
        f"Success rate with {by} intervals; mean {what} at which trials were solved and mean sparsity error of "
        "the solved trials, with profile-likelihood intervals of a gamma and a beta distribution. All intervals are "
        "95%. A row that nothing solved has a rate of 0 and no point in the other panels."
    ]
    if is_cut:
        sentences.append("An interval that reaches the edge of its panel goes on beyond it.")
    if not all(dot.of.complete for dot in curves.dots()):
        sentences.append("Half-filled: trials are missing, rates are over those that finished.")
    if clock is SECONDS:
        sentences.append(
            "Seconds depend on the machine, and on what else was running: don't compare them between machines."
        )
    if curves.source:
        sentences.append(f"Hollow: {curves.source}.")
    return " ".join(sentences)


def _draw_line(panels: Sequence[Axes], line: Line) -> None:
    for panel, axes in enumerate(panels):
        is_error = panel == ERROR_PANEL
        if is_error:
            _draw_zeros(axes, [dot.x for dot in line.dots if dot.points[panel][0] == 0], line.style)
        # NaN where there is no value, so that the line is broken there.
        points = [
            (dot.x, math.nan, (math.nan, math.nan))
            if y is None or (is_error and y == 0)
            else (dot.x, y, ends or (y, y))
            for dot in line.dots
            for y, ends in [dot.points[panel]]
        ]
        if any(math.isfinite(y) for _, y, _ in points):
            below = [np.maximum(0.0, y - low) for _, y, (low, _) in points]
            above = [np.maximum(0.0, high - y) for _, y, (_, high) in points]
            axes.errorbar([x for x, *_ in points], [y for _, y, _ in points], yerr=[below, above], **line.style)
        lacking = [point[:2] for point, dot in zip(points, line.dots, strict=True) if not dot.of.complete]
        if lacking:
            axes.plot(*zip(*lacking, strict=True), **axes_of.half_filled(line.style))


def _draw_zeros(axes: Axes, xs: Sequence[float], style: Mapping[str, Any]) -> None:
    """Mark errors of exactly zero, for which a logarithmic axis has no place, at the foot of the axis."""
    if xs:
        look = {name: style[name] for name in ("color", "zorder", "markerfacecolor", "alpha") if name in style}
        foot = axes.get_xaxis_transform()
        axes.plot(xs, [_FOOT] * len(xs), transform=foot, clip_on=False, **(look | _ZERO))


def _limit(facets: Sequence[Sequence[Axes]], dots: Sequence[Panels]) -> bool:
    """Set the same y axes for all facets, so that all values fit and no wide interval flattens the rest.

    Returns:
        Whether an interval is cut.
    """
    times = [points[SOLVED_AT_PANEL] for points in dots]
    longest = max((y for y, _ in times if y is not None), default=1.0) or 1.0
    highest = max([longest, *(interval[1] for _, interval in times if interval is not None)])
    errors = [y for points in dots for y in (points[ERROR_PANEL][0], *(points[ERROR_PANEL][1] or ())) if y]
    lowest = math.floor(math.log10(min(errors, default=1e-3)) + 0.05)
    top = 10 ** (math.log10(max(errors)) + 0.3) if errors else 1.0
    for rate, solved_at, error in facets:
        rate.set_ylim(-0.04, 1.04)
        rate.set_yticks([0, 0.25, 0.5, 0.75, 1])
        solved_at.set_ylim(0, 1.05 * min(highest, 1.6 * longest))
        axes_of.logarithmic(error, 10.0 ** (lowest - 0.3), max(top, 10.0 ** (lowest + 1)))
    return highest > 1.05 * 1.6 * longest


def _add_tips(facets: Mapping[str, Sequence[Axes]], curves: Lines, clock: Clock, tips: Tips) -> None:
    """Add texts to points: the row, the value with its interval, and the number of trials."""
    marks = [
        (panel, line, dot)
        for panel in range(3)
        for line in curves.lines
        for dot in line.dots
        if dot.points[panel][0] is not None
    ]
    for panel, line, dot in marks[:MOST_TIPS]:
        axes = facets[line.facet][panel]
        value, interval = dot.points[panel]
        y = value or (_foot(axes) if panel == ERROR_PANEL else 0.0)
        text = f"{dot.name}: {_value(panel, value or 0.0, interval, clock, curves.unit[0])}"
        tips.add(axes, dot.x, y, f"{text}, {axes_of.count(dot.of)}")


def _value(panel: int, y: float, interval: Interval | None, clock: Clock, unit: float) -> str:
    if panel == SOLVED_AT_PANEL:
        write = clock.write
        scaled = None if interval is None else (interval[0] * unit, interval[1] * unit)
        return f"{write(y * unit)} {words.interval(scaled, write)}".rstrip() + f" {clock.noun}"
    name, write = ("sparsity error ", words.error) if panel == ERROR_PANEL else ("", words.rate)
    return f"{name}{write(y)} {words.interval(interval, write)}".rstrip()


def _foot(axes: Axes) -> float:
    low, high = axes.get_ylim()
    return float(low * (high / low) ** _FOOT)


def _handles(curves: Lines) -> list[Artist]:
    styles = [axes_of.curve_style(slot, is_line=curves.x.is_numeric) for slot in range(len(curves.names))]
    handles: list[Artist] = [
        axes_of.handle(name, style) for name, style in zip(curves.names, styles, strict=True) if name
    ]
    if curves.source:
        if not handles:
            handles.append(axes_of.handle("here", styles[0]))
        handles.append(axes_of.handle(curves.source, axes_of.neutral() | beside_style(curves.x)))
    if not all(dot.of.complete for dot in curves.dots()):
        handles.append(Line2D([], [], label="lacks trials", **axes_of.half_filled(axes_of.neutral())))
    if any(dot.points[ERROR_PANEL][0] == 0 for dot in curves.dots()):
        handles.append(Line2D([], [], label="sparsity error exactly 0", color=INK, **_ZERO))
    return handles
