"""The panels: success rates, times to success and metrics, against what is swept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from study import words
from study.comparisons.comparison import Comparisons
from study.interface.declarations import Metric
from study.records import Interval
from study.reports.figures import axes as axes_of
from study.reports.figures import texts
from study.reports.figures.axes import Point
from study.reports.figures.dots import ITERATIONS, MOST_FACETS, SECONDS, Clock, Line, Lines, Panel, beside_style, lines
from study.reports.figures.multiples import MOST_TIPS, grid, left_out, panel_in
from study.reports.figures.style import INK, STYLE, Drawn, Tips
from study.summaries.dependence import DEPENDENCE_ADJUSTED
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

_HEIGHTS_IN = ((2, 2.0), (4, 1.6), (MOST_FACETS, 1.3))
"""The largest number of facets, and the height of each."""
_PANEL_IN = 1.85
"""About the width of a panel of three."""


def plot(rows: ResultRows, against: Comparisons | None = None, clock: Clock = ITERATIONS) -> Drawn | None:
    """Draw a curve a model and swept hyperparameter, with 95% intervals; references, such as published, are dashed.

    Args:
        rows: the rows, at least one.
        against: the references.
        clock: `ITERATIONS`, or `SECONDS` of training.

    Returns:
        None if the rows have neither success rates nor metrics.
    """
    curves = lines(rows, against, clock)
    if not curves.panels:
        return None
    across = len(curves.panels)
    each = next(inches for most, inches in _HEIGHTS_IN if len(curves.facets) <= most)
    tips = Tips()
    with mpl.rc_context(STYLE):
        titles = [title for facet in curves.facets for title in (facet, *[""] * (across - 1))]
        figure, every = grid(titles, each, _handles(curves), across=across, sharey=False)
        facets = {facet: every[across * row : across * (row + 1)] for row, facet in enumerate(curves.facets)}
        for line in curves.lines:
            _plot_line(facets[line.facet], line, curves)
        names = [_axis_name(panel, curves, each) for panel in curves.panels]
        for axes, name in zip(every, names * len(facets), strict=True):
            axes.set_ylabel(name)
        is_cut = _limit(list(facets.values()), curves)
        _add_tips(facets, curves, clock, tips)
        width_in = _PANEL_IN if across == 3 else panel_in(across)
        upright_in = max(curves.x.label(axes, width_in) for axes in every[-across:])
        figure.set_figheight(figure.get_figheight() + upright_in)
    caption = _caption(curves, clock, is_cut=is_cut) + left_out(curves.rows, len(rows.summaries), "rows")
    title = words.join_and([panel.title for panel in curves.panels])
    return Drawn(clock.name, clock.title or title[:1].upper() + title[1:], caption, figure, tips)


def _axis_name(panel: Panel, curves: Lines, height_in: float) -> str:
    if panel.kind == "time":
        between = " " if height_in > 1.5 else "\n"
        return f"solved at{between}({curves.unit[1]})"
    return panel.title if panel.metric is None else texts.fit(panel.title, height_in)


def _caption(curves: Lines, clock: Clock, *, is_cut: bool) -> str:
    by = next((dot.of.success_rate_by for dot in curves.dots() if isinstance(dot.of, Summary)), "Wilson")
    what = "iteration" if clock is ITERATIONS else "seconds of training"
    kinds = [panel.kind for panel in curves.panels]
    metrics = [(panel.title, panel.metric) for panel in curves.panels if panel.metric is not None]
    by_beta = [f"mean {title}{_of(metric)}" for title, metric in metrics if metric.interval == "beta"]
    by_bootstrap = [f"mean {title}{_of(metric)}" for title, metric in metrics if metric.interval == "bootstrap"]
    by_likelihood = [f"mean {what} at which trials were solved"] * kinds.count("time") + by_beta
    distributions = ["a gamma"] * kinds.count("time") + ["a beta"] * bool(by_beta)
    parts = [f"success rate with {by} intervals"] * kinds.count("rate")
    has_more = by != DEPENDENCE_ADJUSTED  # then there are no other intervals
    if by_likelihood:
        likelihood = f", with profile-likelihood intervals of {words.join_and(distributions)} distribution"
        parts.append(f"{words.join_and(by_likelihood)}{likelihood if has_more else ''}")
    if by_bootstrap:
        bootstrap = ", with intervals by the studentised bootstrap"
        parts.append(f"{words.join_and(by_bootstrap)}{bootstrap if has_more else ''}")
    text = "; ".join(parts)
    sentences = [f"{text[:1].upper()}{text[1:]}. All intervals are 95%."]
    of_solved = ["time"] * kinds.count("time") + [title for title, metric in metrics if metric.of == "solved"]
    if "rate" in kinds and of_solved:
        others = "the other panels" if len(of_solved) == len(kinds) - 1 else "panels of solved trials"
        sentences.append(f"A row that nothing solved has a rate of 0 and no point in {others}.")
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


def _of(metric: Metric) -> str:
    return " of the solved trials" if metric.of == "solved" else " of the trials that ended with a number"


def _plot_line(panels: Sequence[Axes], line: Line, curves: Lines) -> None:
    for panel, (axes, is_log, most) in enumerate(zip(panels, curves.logarithmic, curves.largest, strict=True)):
        if is_log:
            axes_of.mark_zeros(axes, [dot.x for dot in line.dots if dot.points[panel][0] == 0], line.style)
            beyond = [dot.x for dot in line.dots if (dot.points[panel][0] or 0.0) > most]
            axes_of.mark_beyond(axes, beyond, line.style)
        # NaN where there is no value, so that the line is broken there.
        points = [
            (dot.x, math.nan, (math.nan, math.nan))
            if y is None or y > most or (is_log and y == 0)
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


def _limit(facets: Sequence[Sequence[Axes]], curves: Lines) -> bool:
    """Set the same y axes for all facets, so that all values fit and no wide interval flattens the rest.

    Returns:
        Whether an interval is cut.
    """
    is_cut = False
    for place, (panel, is_log) in enumerate(zip(curves.panels, curves.logarithmic, strict=True)):
        points, some = curves.values(place), [facet[place] for facet in facets]
        if panel.kind == "rate":
            for axes in some:
                axes.set_ylim(-0.04, 1.04)
                axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        elif is_log:
            axes_of.limit_logarithmic(some, points, curves.largest[place])
        else:
            is_cut |= _limit_times(some, points) if panel.kind == "time" else axes_of.limit_linear(some, points)
    return is_cut


def _limit_times(some: Sequence[Axes], times: Sequence[Point]) -> bool:
    longest = max((y for y, _ in times if y is not None), default=1.0) or 1.0
    highest = max([longest, *(interval[1] for _, interval in times if interval is not None)])
    for axes in some:
        axes.set_ylim(0, 1.05 * min(highest, 1.6 * longest))
    return highest > 1.05 * 1.6 * longest


def _add_tips(facets: Mapping[str, Sequence[Axes]], curves: Lines, clock: Clock, tips: Tips) -> None:
    """Add texts to points: the row, the value with its interval, and the number of trials."""
    marks = [
        (panel, line, dot)
        for panel in range(len(curves.panels))
        for line in curves.lines
        for dot in line.dots
        if dot.points[panel][0] is not None
    ]
    for panel, line, dot in marks[:MOST_TIPS]:
        axes = facets[line.facet][panel]
        value, interval = dot.points[panel]
        y = axes_of.on_logarithmic(axes, value or 0.0) if curves.logarithmic[panel] else value or 0.0
        text = f"{dot.name}: {_value(curves.panels[panel], value or 0.0, interval, clock, curves.unit[0])}"
        tips.add(axes, dot.x, y, f"{text}, {axes_of.count(dot.of)}")


def _value(panel: Panel, y: float, interval: Interval | None, clock: Clock, unit: float) -> str:
    if panel.kind == "time":
        scaled = None if interval is None else (interval[0] * unit, interval[1] * unit)
        return f"{clock.write(y * unit, scaled)} {clock.noun}"
    name = "" if panel.metric is None else f"{panel.title} "
    return f"{name}{panel.notation(y, interval)}"


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
    zeros = [
        panel.title
        for place, (panel, is_log) in enumerate(zip(curves.panels, curves.logarithmic, strict=True))
        if is_log and any(value == 0 for value, _ in curves.values(place))
    ]
    if zeros:
        handles.append(Line2D([], [], label=f"{words.join_and(zeros)} exactly 0", color=INK, **axes_of.ZERO))
    beyond = [
        panel.title
        for place, (panel, most) in enumerate(zip(curves.panels, curves.largest, strict=True))
        if any((value or 0.0) > most for value, _ in curves.values(place))
    ]
    if beyond:
        handles.append(Line2D([], [], label=f"{words.join_and(beyond)} beyond the axis", color=INK, **axes_of.BEYOND))
    return handles
