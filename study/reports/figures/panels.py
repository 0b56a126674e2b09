"""The panels: success rates, times to success and metrics against the swept hyperparameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from study import words
from study.comparisons.comparison import Comparisons
from study.reports.figures import axes as axes_of
from study.reports.figures import texts
from study.reports.figures.dots import ITERATIONS, MOST_FACETS, SECONDS, Clock, Dot, Line, Lines, beside_style, lines
from study.reports.figures.multiples import FIELD_PT, MOST_TIPS, grid, left_out, panel_in
from study.reports.figures.scales import clipped_note, mark_handles
from study.reports.figures.style import STYLE, Drawn, Tips, plain
from study.summaries.dependence import DEPENDENCE_ADJUSTED
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

_HEIGHTS_IN = ((2, 2.0), (4, 1.6), (MOST_FACETS, 1.3))
"""The largest number of facets for each height, and that height."""
_PANEL_IN = 1.85
"""The approximate width of one of three panels."""
_LABEL_HEIGHT = 0.09
"""The height of a line of text, as a share of the panel's height."""
_COINCIDE, _MOSTLY = 0.01, 0.75
"""The largest distance of coinciding points, as a share of the axis, and the share of points that must coincide."""


def plot(rows: ResultRows, against: Comparisons | None = None, clock: Clock = ITERATIONS) -> Drawn | None:
    """Draw up to three quantities against the swept hyperparameter, with 95% intervals and references.

    The quantities are success rates, times to success and metrics. Each model, or combination of other swept values,
    has a curve. Up to six facets, and curves of up to 24 different names, are drawn.

    Args:
        rows: the rows, at least one.
        against: the references, such as published results.
        clock: `ITERATIONS`, or `SECONDS` of training.

    Returns:
        The figure; None if no row has a success criterion, and neither rows nor references have a mean of a metric.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
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
        between = " " if each > 1.5 else "\n"
        for axes, panel in zip(every, curves.panels * len(facets), strict=True):
            metric_label = panel.title if panel.metric is None else texts.fit(panel.title, each)
            axes.set_ylabel(f"solved at{between}({curves.unit[1]})" if panel.kind == "time" else metric_label)
        by_panel = [[facet_axes[place] for facet_axes in facets.values()] for place in range(across)]
        is_cut = bool(sum(scale.limit(panel_axes) for scale, panel_axes in zip(curves.scales, by_panel, strict=True)))
        for facet, facet_axes in facets.items():
            for place, axes in enumerate(facet_axes):
                _label_coinciding(axes, [line for line in curves.lines if line.facet == facet], place, curves)
        _add_tips(facets, curves, clock, tips)
        width_in = _PANEL_IN if across == 3 else panel_in(across)
        upright_in = max(curves.x.label(axes, width_in) for axes in every[-across:])
        figure.set_figheight(figure.get_figheight() + upright_in)
    caption = _caption(curves, clock, is_cut=is_cut) + left_out(curves.rows, len(rows.summaries), "rows")
    title = words.join_and([panel.title for panel in curves.panels])
    return Drawn(clock.name, clock.title or title[:1].upper() + title[1:], caption, figure, tips)


def _caption(curves: Lines, clock: Clock, *, is_cut: bool) -> str:
    interval_method = next(
        (dot.result.success_rate_by for dot in curves.dots() if isinstance(dot.result, Summary)), "Wilson"
    )
    time_unit = "iteration" if clock is ITERATIONS else "seconds of training"
    kinds = [panel.kind for panel in curves.panels]
    metrics = [(panel.title, panel.metric) for panel in curves.panels if panel.metric is not None]
    trials = {"solved": "the solved trials", "ended": "the trials that ended with a number"}
    by_beta, by_bootstrap = (
        [f"mean {title} of {trials[metric.of]}" for title, metric in metrics if metric.interval == interval]
        for interval in ("beta", "bootstrap")
    )
    by_likelihood = [f"mean {time_unit} at which trials were solved"] * kinds.count("time") + by_beta
    distributions = ["a gamma"] * kinds.count("time") + ["a beta"] * bool(by_beta)
    parts = [f"success rate with {interval_method} intervals"] * kinds.count("rate")
    has_more = interval_method != DEPENDENCE_ADJUSTED  # with adjusted intervals, other means have none
    if by_likelihood:
        likelihood = f", with profile-likelihood intervals of {words.join_and(distributions)} distribution"
        parts.append(f"{words.join_and(by_likelihood)}{likelihood if has_more else ''}")
    if by_bootstrap:
        bootstrap = ", with intervals by the studentised bootstrap"
        parts.append(f"{words.join_and(by_bootstrap)}{bootstrap if has_more else ''}")
    text = "; ".join(parts)
    sentences = [f"{text[:1].upper()}{text[1:]}. All intervals are 95%."]
    solved_titles = ["time"] * kinds.count("time") + [title for title, metric in metrics if metric.of == "solved"]
    if "rate" in kinds and solved_titles:
        others = "the other panels" if len(solved_titles) == len(kinds) - 1 else "panels of solved trials"
        sentences.append(f"A row without a solved trial has a rate of 0 and no point in {others}.")
    if is_cut:
        sentences.append("An interval that reaches the edge of its panel continues beyond it.")
    if not all(dot.result.complete for dot in curves.dots()):
        sentences.append("Half-filled: trials are missing, rates are over those that finished.")
    if clock is SECONDS:
        sentences.append("Seconds depend on the machine and its load: don't compare them between machines.")
    if curves.source:
        sentences.append(f"Hollow: {curves.source}.")
    return " ".join(sentences) + clipped_note(sum(scale.clipped for scale in curves.scales))


def _plot_line(panels: Sequence[Axes], line: Line, curves: Lines) -> None:
    for panel, (axes, scale) in enumerate(zip(panels, curves.scales, strict=True)):
        scale.mark(axes, [(dot.x, dot.points[panel][0]) for dot in line.dots], line.style)
        # NaN where a value is missing, which breaks the line.
        points = [
            (dot.x, y, ends or (y, y)) if y is not None and scale.has(y) else (dot.x, math.nan, (math.nan, math.nan))
            for dot in line.dots
            for y, ends in [dot.points[panel]]
        ]
        if any(math.isfinite(y) for _, y, _ in points):
            below = [np.maximum(0.0, y - low) for _, y, (low, _) in points]
            above = [np.maximum(0.0, high - y) for _, y, (_, high) in points]
            axes.errorbar([x for x, *_ in points], [y for _, y, _ in points], yerr=[below, above], **line.style)
        lacking = [point[:2] for point, dot in zip(points, line.dots, strict=True) if not dot.result.complete]
        if lacking:
            axes.plot(*zip(*lacking, strict=True), **axes_of.half_filled(line.style))


def _label_coinciding(axes: Axes, lines: Sequence[Line], place: int, curves: Lines) -> None:
    """Label groups of curves of panel `place` that coincide at three quarters of their points, where space permits."""
    seen: dict[str, dict[float, tuple[float, Dot]]] = {}
    for line in lines:
        for dot in line.dots if line.name else ():
            value = dot.points[place][0]
            if value is not None and curves.scales[place].has(value):
                height = axes.transLimits.transform(axes.transScale.transform((dot.x, value)))[1]
                seen.setdefault(line.name, {})[dot.level] = float(height), dot
    groups: list[list[str]] = []
    for name, at in seen.items():
        group = next((group for group in groups if _coincide(seen[group[0]], at)), [])
        groups += [] if group else [group]
        group.append(name)
    low, high = axes.get_ylim()
    taken: list[Bbox] = []
    for group in groups:
        if len(group) > 1:
            height, dot = list(seen[group[-1]].values())[-1]
            below, above = dot.points[place][1] or (dot.points[place][0] or 0.0,) * 2
            end, sign, side = (max(below, low), -1, "top") if height > 0.5 else (min(above, high), 1, "bottom")
            right, edge = axes.transAxes.inverted().transform(axes.transData.transform((dot.x, end)))
            text = plain(f"{len(group)} rows: {', '.join(group)}")
            text = text if texts.width_of(text) < _PANEL_IN * right else f"{len(group)} rows coincide"
            left = right - texts.width_of(text) / _PANEL_IN
            box = Bbox.from_extents(left, edge, right, edge + sign * _LABEL_HEIGHT)
            if left < 0 or box.count_overlaps(taken):
                continue
            taken.append(box)
            style: Any = {"ha": "right", "va": side, "fontsize": FIELD_PT, "zorder": 5, "in_layout": False}
            axes.annotate(text, (dot.x, end), (4, 2 * sign), textcoords="offset points", **style)


def _coincide(first: Mapping[float, tuple[float, Dot]], second: Mapping[float, tuple[float, Dot]]) -> bool:
    shared = first.keys() & second.keys()
    close = [abs(first[level][0] - second[level][0]) < _COINCIDE for level in shared]
    return len(close) >= min(2, len(first), len(second)) and sum(close) >= _MOSTLY * len(close)


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
        y = curves.scales[panel].place(axes, value or 0.0)
        drawn, unit = curves.panels[panel], curves.unit[0]
        text = f"{'' if drawn.metric is None else f'{drawn.title} '}{drawn.notation(value, interval)}"
        if drawn.kind == "time":
            scaled = None if interval is None else (interval[0] * unit, interval[1] * unit)
            text = f"{clock.write((value or 0.0) * unit, scaled)} {clock.noun}"
        tips.add(axes, dot.x, y, f"{dot.name}: {text}, {axes_of.count(dot.result)}")


def _handles(curves: Lines) -> list[Artist]:
    styles = {name: axes_of.curve_style(slot, is_line=curves.x.is_numeric) for slot, name in enumerate(curves.names)}
    handles: list[Artist] = [axes_of.handle(name, style) for name, style in styles.items() if name]
    if curves.source:
        if not handles:
            handles.append(axes_of.handle("here", *styles.values()))
        handles.append(axes_of.handle(curves.source, axes_of.neutral() | beside_style(curves.x)))
    if not all(dot.result.complete for dot in curves.dots()):
        handles.append(Line2D([], [], label="lacks trials", **axes_of.half_filled(axes_of.neutral())))
    titles = [panel.title for panel in curves.panels]
    return [*handles, *mark_handles(dict(zip(titles, curves.scales, strict=True)))]
