"""Shared parts of figures: positions of rows on the x axis, units, and styles of curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from study import words
from study.comparisons.comparison import Reference
from study.plugins.vocabulary import vocabulary
from study.reports.figures import texts
from study.reports.figures.scales import Point
from study.reports.figures.style import INK, MARKERS, PALETTE, PAPER, Tips
from study.summaries import series
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

Units = tuple[tuple[float, str], ...]
"""Units in decreasing order: the number of iterations or seconds in a unit, and the unit's name."""
ITERATIONS: Units = ((1e6, "10⁶ iterations"), (1e3, "10³ iterations"), (1.0, "iterations"))

NULL: dict[str, Any] = {"color": INK, "linewidth": 0.6, "linestyle": (0, (4, 3)), "zorder": 1}
"""The style of the line at which two methods are equal."""
_ERROR_BARS = {"elinewidth": 0.8, "capsize": 1.4, "capthick": 0.8}
_MOST_NAMES = 20
"""The most names on the x axis of a panel."""
_MARKERS_OF_CURVE = 3
"""The number of markers on a curve without points of its own."""


@dataclass(frozen=True)
class Across:
    """The x axis: its key, and the position of each row.

    Args:
        key: the key on the axis.
        title: the key's title for readers.
        positions: one position a row; NaN if the row isn't on the axis.
        ticks: texts by position.
        is_numeric: whether points may be joined by lines.
    """

    key: str
    title: str
    positions: tuple[float, ...]
    ticks: Mapping[float, str]
    is_numeric: bool

    def label(self, axes: Axes, width_in: float) -> float:
        """Set limits, ticks and title of the x axis of a panel; the key ``model`` gets no title.

        Args:
            axes: the panel.
            width_in: its approximate width in inches.

        Returns:
            The height of upright names in inches; 0 if the texts are horizontal.
        """
        axes.set_xlim(min(self.ticks) - 0.5 * self.gap, max(self.ticks) + 0.5 * self.gap)
        if self.key != "model":
            axes.set_xlabel(texts.fit(self.title, width_in))
        return texts.x_ticks(axes, self.ticks, width_in, is_numeric=self.is_numeric)

    def dodge(self, slots: int) -> float:
        """Return the shift between the points of neighbouring curves in data units, for `slots` curves side by side."""
        return min(0.1, 0.56 / max(slots, 1)) * self.gap

    @property
    def gap(self) -> float:
        """The smallest distance between ticks; 1 with a single tick."""
        return min((b - a for a, b in pairwise(sorted(self.ticks))), default=1.0)


def across(rows: ResultRows) -> Across:
    """Place rows on the x axis: to scale if the vocabulary draws the key to scale and no row lacks a value.

    Otherwise values have equal distances. Of more than 20 names, only the rows with the first 20 are placed.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    x = series.x_axis(rows)
    levels = series.levels(rows, x)
    are_numbers = all(level is None or isinstance(level, int | float) for level in levels)
    is_numeric = are_numbers and len(levels) > 1
    to_scale = are_numbers and x in vocabulary().to_scale and None not in levels
    places = levels if is_numeric else levels[:_MOST_NAMES]
    at = {level: float(level) if to_scale else float(rank) for rank, level in enumerate(places)}
    positions = tuple(at.get(rows.value(row, x), math.nan) for row in range(len(rows.summaries)))
    return Across(
        x, rows.title(x), positions, {at[level]: words.format_value(x, level) for level in places}, is_numeric
    )


def curve_style(slot: int, *, is_line: bool) -> dict[str, Any]:
    """Return a curve's style, with a line only if `is_line`.

    Colours repeat after eight slots. Among 24 slots, curves of one colour differ in marker and dashes.
    """
    cycle = slot // len(PALETTE)
    dash = ("-", (0, (5, 1.5)), (0, (1, 1)))[cycle % 3]
    own = {"color": PALETTE[slot % len(PALETTE)], "marker": MARKERS[(slot + 3 * cycle) % len(MARKERS)]}
    return neutral() | own | {"linestyle": dash if is_line else "none", "zorder": 3} | _ERROR_BARS


def marker_places(slot: int, curves: int) -> npt.NDArray[np.float64]:
    """Return the places of a curve's markers, as shares of its length, shifted from those of coinciding curves.

    Example:
        >>> (12 * marker_places(0, 2)).round().tolist(), (12 * marker_places(1, 2)).round().tolist()
        ([1.0, 5.0, 9.0], [3.0, 7.0, 11.0])
    """
    return (np.arange(_MARKERS_OF_CURVE) + (slot + 0.5) / curves) / _MARKERS_OF_CURVE


def line_style(slot: int) -> dict[str, Any]:
    """Return the style of a curve and its markers, without error bars and drawing order."""
    style = curve_style(slot, is_line=True)
    names = ("color", "linestyle", "linewidth", "marker", "markersize", "markeredgewidth")
    return {name: style[name] for name in names}


def half_filled(style: Mapping[str, Any]) -> dict[str, Any]:
    """Return the style of a half-filled marker, for a row that lacks trials."""
    marker = {name: style[name] for name in ("color", "marker", "markersize", "markeredgewidth")}
    return marker | {"linestyle": "none", "fillstyle": "left", "markerfacecoloralt": PAPER, "zorder": 4}


def neutral() -> dict[str, Any]:
    """Return the style of marks that don't belong to a curve, such as some legend entries."""
    return {"color": INK, "marker": "o", "markersize": 3.6, "markeredgewidth": 0.7, "linewidth": 1.1}


def handle(name: str, style: Mapping[str, Any]) -> Line2D:
    """Make an entry of a legend from a curve's style, without error bars."""
    return Line2D([], [], label=name, **{key: value for key, value in style.items() if key not in _ERROR_BARS})


def unit(largest: float, units: Units = ITERATIONS) -> tuple[float, str]:
    """Return the unit of an axis for numbers up to `largest`: its size and name; the smallest for smaller numbers."""
    return next((unit for unit in units if largest >= unit[0]), units[-1])


def count(result: Summary | Reference) -> str:
    """Return a text such as ``18 of 20``: the solved of the judged trials, or else the number of ended ones.

    If trials are missing, the text says so, with the number of planned trials if it is known.
    """
    text = f"{result.solved} of {result.judged}" if result.judged else words.count_of(result.ended, "trial")
    if result.complete:
        return text
    return f"{text} so far; {result.seeds} planned" if isinstance(result, Summary) else f"{text} so far"


def forest(axes: Axes, names: Sequence[str], points: Sequence[Point], tips: Sequence[str], all_tips: Tips) -> None:
    """Draw a dot with its interval for each name, from the top.

    Args:
        axes: the axes to draw into.
        names: the names on the y axis.
        points: the value and the interval of each name; a missing value isn't drawn.
        tips: the text that is shown when the pointer is at a name's dot.
        all_tips: the texts of the figure, to which those of drawn dots are added.
    """
    style = neutral() | {"linewidth": 0}
    for place, ((value, interval), tip) in enumerate(zip(points, tips, strict=True)):
        if value is not None:
            axes.plot(interval or (), [place] * len(interval or ()), color=INK, linewidth=0.8, solid_capstyle="butt")
            axes.plot([value], [place], zorder=3, **style)
            all_tips.add(axes, value, place, tip)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
