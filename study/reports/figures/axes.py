"""What figures share: where rows stand on the x axis, logarithmic axes, how curves look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from study import words
from study.comparisons.comparison import Reference
from study.interface.declarations import Metric
from study.plugins.vocabulary import vocabulary
from study.records import Interval
from study.reports.figures import texts
from study.reports.figures.style import INK, MARKERS, PALETTE, PAPER
from study.summaries import series
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

Units = tuple[tuple[float, str], ...]
"""From large to small: the number of iterations or seconds in a unit, and the unit's name."""
ITERATIONS: Units = ((1e6, "10⁶ iterations"), (1e3, "10³ iterations"), (1.0, "iterations"))

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DECADES = 100.0
"""The factor between values of a metric from which an axis is logarithmic."""
_MOST_NAMES = 20
"""The most names on the x axis of a panel."""
_FOOT = 0.02
"""Where zero is marked on a logarithmic axis, as a share of it."""
ZERO: dict[str, Any] = {"marker": "v", "markersize": 4, "markeredgewidth": 0.7, "linestyle": "none"}
"""How zero is marked on a logarithmic axis."""
ARROW = ((0.0, 1.0), (-0.7, 0.1), (-0.2, 0.1), (-0.2, -1.0), (0.2, -1.0), (0.2, 0.1), (0.7, 0.1), (0.0, 1.0))
BEYOND: dict[str, Any] = ZERO | {"marker": ARROW, "markersize": 6}
"""How a value beyond a logarithmic axis is marked at its upper end."""
_MOST_ABOVE = 1e6
"""The factor to the median of a panel's values beyond which its logarithmic axis doesn't go."""

Point = tuple[float | None, Interval | None]
"""A value with its interval; None where there is none."""


@dataclass(frozen=True)
class Across:
    """The x axis: its key, and where each row stands.

    Args:
        key: the key that the rows are drawn against.
        title: its name for readers.
        positions: one a row; NaN where the axis has no place for it.
        ticks: texts by position.
        is_numeric: whether points may be joined by lines.
    """

    key: str
    title: str
    positions: tuple[float, ...]
    ticks: Mapping[float, str]
    is_numeric: bool

    def label(self, axes: Axes, width_in: float) -> float:
        """Label the axis of a panel of about this width, and return the height of upright names in inches."""
        at = sorted(self.ticks)
        spare = 0.5 * min((b - a for a, b in pairwise(at)), default=1.0)
        axes.set_xlim(at[0] - spare, at[-1] + spare)
        if self.key != "model":
            axes.set_xlabel(texts.fit(self.title, width_in))
        return texts.x_ticks(axes, self.ticks, width_in, is_numeric=self.is_numeric)

    def dodge(self, slots: int) -> float:
        """Return the distance between neighbouring curves' points at which intervals don't hide each other."""
        gap = min((b - a for a, b in pairwise(sorted(self.ticks))), default=1.0)
        return min(0.1, 0.56 / max(slots, 1)) * gap


def across(rows: ResultRows) -> Across:
    """Place rows on the x axis: sizes to scale, everything else at equal steps; only the first of many names."""
    x = series.x_axis(rows)
    levels = series.levels(rows, x)
    is_numeric = all(level is None or isinstance(level, int | float) for level in levels) and len(levels) > 1
    to_scale = x in vocabulary().to_scale and None not in levels
    places = levels if is_numeric else levels[:_MOST_NAMES]
    at = {level: float(level) if to_scale else float(rank) for rank, level in enumerate(places)}
    positions = tuple(at.get(rows.value(row, x), math.nan) for row in range(len(rows.summaries)))
    return Across(
        x, rows.title(x), positions, {at[level]: words.format_value(x, level) for level in places}, is_numeric
    )


def curve_style(slot: int, *, is_line: bool) -> dict[str, Any]:
    """Return a curve's colour, marker and dash; where colours repeat, markers and dashes differ."""
    cycle = slot // len(PALETTE)
    dash = ("-", (0, (5, 1.5)), (0, (1, 1)))[cycle % 3]
    return {
        "color": PALETTE[slot % len(PALETTE)],
        "marker": MARKERS[(slot + 3 * cycle) % len(MARKERS)],
        "linestyle": dash if is_line else "none",
        "linewidth": 1.1,
        "markersize": 3.6,
        "markeredgewidth": 0.7,
        "elinewidth": 0.8,
        "capsize": 1.4,
        "capthick": 0.8,
        "zorder": 3,
    }


def half_filled(style: Mapping[str, Any]) -> dict[str, Any]:
    """Return the style of a half-filled marker, for a row that lacks trials."""
    marker = {name: style[name] for name in ("color", "marker", "markersize", "markeredgewidth")}
    return marker | {"linestyle": "none", "fillstyle": "left", "markerfacecoloralt": PAPER, "zorder": 4}


def neutral() -> dict[str, Any]:
    """Return a style that is no curve's own, for legends."""
    return {"color": INK, "marker": "o", "markersize": 3.6, "markeredgewidth": 0.7, "linewidth": 1.1}


def handle(name: str, style: Mapping[str, Any]) -> Line2D:
    """Make a legend's entry."""
    error_bars = ("elinewidth", "capsize", "capthick")
    return Line2D([], [], label=name, **{key: value for key, value in style.items() if key not in error_bars})


def unit(largest: float, units: Units = ITERATIONS) -> tuple[float, str]:
    """Choose the unit of an axis for numbers up to the largest."""
    return next((unit for unit in units if largest >= unit[0]), units[-1])


def logarithmic(axes: Axes, low: float, high: float, which: Literal["x", "y"] = "y") -> None:
    """Make an axis from low > 0 to high > low logarithmic, with a few powers of ten on it."""
    # The labels are plain letters: mathematics takes longer to set than all the rest of a figure.
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, -(-(last - first) // 5))
    powers = [power for power in range(first, last + 1) if power % step == 0] or [first]
    ends = {f"{which}lim": (low, high)}
    axes.set(**ends)  # first, or the scale would choose its own limits, and warn if all values are equal
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_ticks([10.0**power for power in powers], [power_of_ten(power) for power in powers])
    axis.set_minor_locator(NullLocator())


def spans_decades(metric: Metric, values: Sequence[float]) -> bool:
    """Return whether values of a metric that isn't negative, and has no greatest value, differ by a great factor."""
    finite = [value for value in values if math.isfinite(value)]
    positive = [value for value in finite if value > 0]
    can_be_negative = metric.low != 0 and any(value <= 0 for value in finite)
    if can_be_negative or metric.high is not None or metric.higher_is_better or not positive:
        return False
    return max(positive) >= _DECADES * min(positive)


def power_of_ten(power: int) -> str:
    """Write a power of ten without mathematics.

    Example:
        >>> power_of_ten(-12)
        '10⁻¹²'
    """
    return "10" + str(power).translate(_SUPERSCRIPT)


def count(of: Summary | Reference) -> str:
    """Describe how many trials ended, or how many were solved of them, and, if trials are missing, of how many."""
    text = f"{of.solved} of {of.judged}" if of.judged else words.count_of(of.ended, "trial")
    if of.complete:
        return text
    return f"{text} so far; {of.seeds} planned" if isinstance(of, Summary) else f"{text} so far"


def mark_zeros(axes: Axes, xs: Sequence[float], style: Mapping[str, Any]) -> None:
    """Mark values of exactly zero, for which a logarithmic axis has no place, at the foot of the axis."""
    _mark(axes, xs, _FOOT, ZERO, style)


def mark_beyond(axes: Axes, xs: Sequence[float], style: Mapping[str, Any]) -> None:
    """Mark values beyond a logarithmic axis at its upper end."""
    _mark(axes, xs, 1 - _FOOT, BEYOND, style)


def _mark(axes: Axes, xs: Sequence[float], height: float, mark: Mapping[str, Any], style: Mapping[str, Any]) -> None:
    if xs:
        look: dict[str, Any] = {
            name: style[name] for name in ("color", "zorder", "markerfacecolor", "alpha") if name in style
        }
        axes.plot(xs, [height] * len(xs), transform=axes.get_xaxis_transform(), clip_on=False, **look, **mark)


def largest_on_axis(points: Sequence[Point]) -> float:
    """Return up to which value a logarithmic axis goes at most: errors that explode would flatten all others.

    Example:
        >>> largest_on_axis([(0.01, None), (0.1, None), (1e28, None)])
        100000.0
    """
    values = sorted(value for value, _ in points if value and value > 0)
    return values[len(values) // 2] * _MOST_ABOVE if values else math.inf


def limit_logarithmic(some: Sequence[Axes], points: Sequence[Point], largest: float) -> None:
    """Choose a logarithmic axis: all positive values and ends of intervals fit, but those above the largest shown."""
    values = [y for value, interval in points for y in (value, *(interval or ())) if y and 0 < y <= largest]
    lowest = math.floor(math.log10(min(values, default=1e-3)) + 0.05)
    top = 10 ** (math.log10(max(values)) + 0.3) if values else 1.0
    for axes in some:
        logarithmic(axes, 10.0 ** (lowest - 0.3), max(top, 10.0 ** (lowest + 1)))


def limit_linear(some: Sequence[Axes], points: Sequence[Point]) -> bool:
    """Choose a linear axis: all means fit, and intervals as far as the means are apart, or the narrowest is wide.

    Returns:
        Whether an interval is cut.
    """
    means = [y for y, _ in points if y is not None]
    ends = [interval for _, interval in points if interval is not None]
    low, high = min(means, default=0.0), max(means, default=1.0)
    widths = [above - below for below, above in ends]
    room = max(high - low, min(widths, default=0.0)) or 0.05 * abs(high) or 1.0
    lowest = max(min([low, *(below for below, _ in ends)]), low - room)
    highest = min(max([high, *(above for _, above in ends)]), high + room)
    margin = 0.06 * (highest - lowest) or 0.5 * room
    for axes in some:
        axes.set_ylim(lowest - margin, highest + margin)
    return any(below < lowest - margin or above > highest + margin for below, above in ends)


def on_logarithmic(axes: Axes, value: float) -> float:
    """Return where a value is drawn or marked on a logarithmic axis: zero at its foot, one beyond it at its end."""
    low, high = axes.get_ylim()
    ends = [float(low * (high / low) ** share) for share in (_FOOT, 1 - _FOOT)]
    return ends[0] if value == 0 else ends[1] if value > high else value
