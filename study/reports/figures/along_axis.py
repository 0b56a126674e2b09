"""Series of metrics along their axes, with a panel for each series and a line for each row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from study import words
from study.interface.declarations import Metric
from study.interface.references import KINDS
from study.reports.figures import axes as axes_of
from study.reports.figures.multiples import MOST_CURVES, MOST_TIPS, columns, grid, left_out
from study.reports.figures.scales import Point, Scale, clipped_note, mark_handles
from study.reports.figures.style import INK, STYLE, Drawn, Tips
from study.reports.metric_series import number, place_title, places_to_show, series_with_values
from study.summaries import series as curves_of
from study.summaries.metrics import MetricSeries
from study.summaries.references import ReferenceFindings
from study.summaries.rows import ResultRows

_MOST_ACROSS, _MOST_FACETS, _MOST_MARKED, _MOST_TICKS = 3, 4, 12, 6
_HEIGHT_IN = 1.9
_TRAINED: dict[str, Any] = {"facecolor": INK, "edgecolor": INK, "alpha": 0.1, "linewidth": 1.0}
_BAND = 0.15
"""The opacity of intervals."""
_DECADES = 100.0
"""The ratio of places from which their axis is logarithmic."""


@dataclass(frozen=True)
class _SeriesPanel:
    """A series with the title of its y axis, and each row's points at its places.

    `metric` is None for the rates within bounds.
    """

    series: MetricSeries
    title: str
    points: Sequence[Sequence[Point]]
    metric: Metric | None

    @property
    def is_marked(self) -> bool:
        """True if each place has a marker."""
        return len(self.series.places) <= _MOST_MARKED

    @cached_property
    def scale(self) -> Scale:
        """The y axis."""
        return Scale.of_metric(self.metric, [point for row_points in self.points for point in row_points])


def plot(rows: ResultRows, references: ReferenceFindings | None = None) -> Drawn | None:
    """Draw the means of each series along its axis with 95% intervals, and the rates within bounds of references.

    Up to four facets, and curves of up to 24 different names, are drawn; further rows are left out.

    Returns:
        The figure; None if no series has a value.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    panels = _panels(rows, None if references is None else references.along)
    if not panels:
        return None
    curves = curves_of.split(rows, "")
    facets = tuple(dict.fromkeys(curve.facet for curve in curves))[:_MOST_FACETS]
    names = tuple(dict.fromkeys(curve.name for curve in curves))[:MOST_CURVES]
    drawn = [curve for curve in curves if curve.facet in facets and curve.name in names]
    across = columns(len(panels) if len(panels) > 1 else len(facets), _MOST_ACROSS)
    empty = [None] * (-len(panels) % across) if len(panels) > 1 else []
    tips = Tips()
    with mpl.rc_context(STYLE):
        titles = [title for facet in facets for title in (facet, *[""] * (len(panels) - 1), *empty)]
        handles = _handles(panels, names)
        figure, every = grid(titles, _HEIGHT_IN, handles, across=across, sharex=False, sharey=False)
        for place, axes in enumerate(every):
            panel = panels[place % len(panels)]
            facet_curves = [curve for curve in drawn if curve.facet == facets[place // len(panels)]]
            _label(axes, panel)
            for curve in facet_curves:
                style = axes_of.curve_style(names.index(curve.name), is_line=True)
                places = axes_of.marker_places(names.index(curve.name), len(names)).tolist()
                _plot_line(axes, panel, panel.points[curve.rows[0]], style, places)
            _add_tips(axes, panel, rows, [curve.rows[0] for curve in facet_curves], tips, MOST_TIPS // len(every))
    title = words.join_and(list(dict.fromkeys(panel.series.heading for panel in panels)))
    caption = _caption(panels, references) + left_out(len(drawn), len(rows.summaries), "rows")
    return Drawn("series", title[:1].upper() + title[1:], caption, figure, tips)


def _panels(rows: ResultRows, references: ReferenceFindings | None) -> list[_SeriesPanel]:
    """Make a panel of means for each series, then one for each kind of bound of each series with bounds."""
    rates = {} if references is None else {(r.cell_id, r.metric, r.kind): r for r in references.rates}
    panels, every = [], series_with_values(rows)
    for series in every:
        means = [[s.metrics.get(name) for name in series.metrics] for s in rows.summaries]
        points = [
            [(summary.mean, summary.mean_interval) if summary else (None, None) for summary in summaries]
            for summaries in means
        ]
        panels.append(_SeriesPanel(series, series.name, points, series.metric))
    for series in every:
        for kind in KINDS:
            cells = [str(getattr(summary, "cell_id", "")) for summary in rows.summaries]
            passed = [[rates.get((cell, name, kind)) for name in series.metrics] for cell in cells]
            points = [
                [(rate.rate, rate.interval) if rate else (None, None) for rate in row_rates] for row_rates in passed
            ]
            if any(value is not None for row_points in points for value, _ in row_points):
                title = f"{series.title}: within {'prediction bound' if kind == 'prediction' else 'bound of mean'}"
                panels.append(_SeriesPanel(series, title, points, None))
    return panels


def _label(axes: Axes, panel: _SeriesPanel) -> None:
    """Set both axes of a panel, equally in all facets, and shade the places that training covers."""
    at = panel.series.places
    if panel.series.trained is not None:
        axes.axvspan(*panel.series.trained, zorder=0, **_TRAINED)
    if at[0] > 0 and at[-1] >= _DECADES * at[0]:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(list(chosen := places_to_show(panel.series).values()), map(number, chosen))
    elif len(at) > 1:
        axes.xaxis.set_major_locator(
            MaxNLocator(_MOST_TICKS, steps=[1, 2, 5, 10], integer=all(place == int(place) for place in at))
        )
    else:
        axes.set_xticks(at, map(number, at))
    axes.set_xlabel(panel.series.along)
    axes.set_ylabel(panel.title)
    panel.scale.limit([axes])


def _plot_line(
    axes: Axes, panel: _SeriesPanel, points: Sequence[Point], style: Mapping[str, Any], places: Sequence[float]
) -> None:
    at, scale, none = panel.series.places, panel.scale, math.nan
    # NaN where a value is missing, which breaks the line; a value beyond the axis doesn't.
    y = np.array([none if value is None or (scale.is_log and value == 0) else value for value, _ in points])
    ends = np.array([ends if ends and scale.has(value) else (none, none) for value, ends in points]).T
    scale.mark(axes, [(x, value) for x, (value, _) in zip(at, points, strict=True)], style)
    if scale.is_log:
        ends = np.maximum(ends, axes.get_ylim()[0] / 10)
    line = {name: style[name] for name in ("color", "linestyle", "linewidth", "zorder", "marker", "markersize")}
    marked = [round(share * (len(at) - 1)) for share in places]
    axes.plot(at, y, **line, markevery=None if panel.is_marked else marked)
    axes.fill_between(at, ends[0], ends[1], color=style["color"], alpha=_BAND, linewidth=0)


def _add_tips(
    axes: Axes, panel: _SeriesPanel, rows: ResultRows, drawn_rows: Sequence[int], tips: Tips, most: int
) -> None:
    """Add texts to the first `most` points: the row, the place, and the value with its interval."""
    write = words.rate if panel.metric is None else words.metric_notation(panel.metric)
    marks = [
        (row, x, point) for row in drawn_rows for x, point in zip(panel.series.places, panel.points[row], strict=True)
    ]
    for row, x, (value, interval) in marks[:most]:
        if value is not None:
            text = f"{rows.name(row)}, {place_title(panel.series, x)}: {panel.title} {write(value, interval)}"
            tips.add(axes, x, panel.scale.place(axes, value), text)


def _handles(panels: Sequence[_SeriesPanel], names: Sequence[str]) -> list[Artist]:
    styles = [axes_of.curve_style(slot, is_line=True) for slot in range(len(names))]
    handles: list[Artist] = [axes_of.handle(name, style) for name, style in zip(names, styles, strict=True) if name]
    if any(panel.series.trained is not None for panel in panels):
        handles.append(Patch(label="trained", **_TRAINED))
    return [*handles, *mark_handles({panel.title: panel.scale for panel in panels})]


def _caption(panels: Sequence[_SeriesPanel], references: ReferenceFindings | None) -> str:
    metrics = {panel.title: panel.metric for panel in panels if panel.metric is not None}
    by = "by the studentised bootstrap"
    sentences = [f"Means of {words.join_and(list(metrics))}, with 95% intervals {by}."]
    if references is not None and any(panel.metric is None for panel in panels):
        sentences.append(
            "Shares of trials within the bound that references set at each place, at a level of "
            f"{100 * references.criterion.level:g}%, with Wilson's intervals."
        )
    return " ".join(sentences) + clipped_note(sum(panel.scale.clipped for panel in panels))
