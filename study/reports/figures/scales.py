"""Axes of values: their limits, and the marks for values beyond them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from study import words
from study.interface.declarations import Metric
from study.records import Interval
from study.reports.figures.style import INK

Point = tuple[float | None, Interval | None]
"""A value with its interval; None where it is missing."""

_DECADES = 100.0
"""The ratio of a metric's values from which its axis is logarithmic."""
_REACH, _LOG_REACH, _LOG_SPREADS = 100.0, 4.0, 3.0
"""The reach of an axis around the typical value: in typical sizes or spreads; on a logarithmic axis in decades."""
_EDGE = 0.02
"""The position of marks for values beyond an axis, as a share of its length."""
_MARK: dict[str, Any] = {"markersize": 6, "markeredgewidth": 0.7, "linestyle": "none"}
ZERO: dict[str, Any] = _MARK | {"marker": "v", "markersize": 4}
"""The mark for zero on a logarithmic axis."""
ARROW = ((0.0, 1.0), (-0.7, 0.1), (-0.2, 0.1), (-0.2, -1.0), (0.2, -1.0), (0.2, 0.1), (0.7, 0.1), (0.0, 1.0))
BEYOND: dict[str, Any] = _MARK | {"marker": ARROW}
"""The mark for a value beyond the upper end of an axis."""
BELOW: dict[str, Any] = _MARK | {"marker": tuple((x, -y) for x, y in ARROW)}
"""The mark for a value beyond the lower end of an axis."""
_TURNED = {"v": "<", ARROW: tuple((y, x) for x, y in ARROW), BELOW["marker"]: tuple((-y, x) for x, y in ARROW)}
"""The same marks for a horizontal axis."""

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def spans_decades(metric: Metric, values: Iterable[float]) -> bool:
    """Return True if lower is better, the metric has no upper limit, and its values span a factor of 100 or more.

    Zero and negative values are ignored if the metric's lower limit is 0; otherwise any of them makes it False. Values
    that aren't finite are ignored, and without a positive value it is False.
    """
    finite = [value for value in values if math.isfinite(value)]
    positive = [value for value in finite if value > 0]
    can_be_negative = metric.low != 0 and any(value <= 0 for value in finite)
    if can_be_negative or metric.high is not None or metric.higher_is_better or not positive:
        return False
    return max(positive) >= _DECADES * min(positive)


def fences(values: Iterable[float], metric: Metric, *, is_log: bool) -> Interval:
    """Return limits for an axis that exclude exploded values, since these would flatten the others.

    On a linear axis, a value has exploded if its distance from the typical value exceeds 100 times both the spread and
    the typical value, unless both are 0. On a logarithmic axis, it has exploded if it exceeds the median by four
    decades and by three times the spread; the lower limit is 0. If all values keep a declared limit of the metric, that
    side has no fence: its limit is infinite, or 0 at the lower end of a logarithmic axis.

    Args:
        values: the values; those that aren't finite, or on a logarithmic axis not positive, are ignored. Without any
            other, both limits are infinite.
        metric: the metric's declaration.
        is_log: whether the axis is logarithmic.

    Example:
        >>> fences([5.0, 4.5, 6.0, -1e30], Metric(), is_log=False), fences([0.01, 0.1, 1e28], Metric(), is_log=True)
        ((-495.0, 505.0), (0.0, 1000.0))
    """
    finite = [value for value in values if math.isfinite(value) and (value > 0 or not is_log)]
    scaled = [math.log10(value) for value in finite] if is_log else finite
    if not scaled:
        return -math.inf, math.inf
    has_high = metric.high is not None and max(finite) <= metric.high
    has_low = metric.low is not None and min(finite) >= metric.low
    middle = (len(scaled) - 1) // 2
    centre = sorted(scaled)[len(scaled) // 2] if is_log else sorted(scaled, key=abs)[middle]
    spread = sorted(abs(value - centre) for value in scaled)[middle]
    if is_log:
        reach = centre + max(_LOG_REACH, _LOG_SPREADS * spread)
        return 0.0, math.inf if has_high or reach > 300 else 10.0**reach
    reach = _REACH * max(spread, abs(centre)) or math.inf
    return -math.inf if has_low else centre - reach, math.inf if has_high else centre + reach


@dataclass(frozen=True)
class Scale:
    """An axis of values, shared by one or more panels.

    Args:
        kind: an axis of rates, of times from 0 on, or a linear or logarithmic one for a metric.
        points: all values drawn on the axis, with their intervals.
        ends: the limits; values beyond them are marked at the edge.
        which: the axis of the panels, x or y.
    """

    kind: Literal["rate", "time", "linear", "log"]
    points: Sequence[Point]
    ends: Interval = (-math.inf, math.inf)
    which: Literal["x", "y"] = "y"

    @classmethod
    def of_metric(cls, metric: Metric | None, points: Sequence[Point], which: Literal["x", "y"] = "y") -> Scale:
        """Choose the axis of a metric, or of rates for None."""
        if metric is None:
            return cls("rate", points, which=which)
        values = [value for value, _ in points if value is not None]
        is_log = metric.interval == "beta" or spans_decades(metric, values)
        return cls("log" if is_log else "linear", points, fences(values, metric, is_log=is_log), which)

    @property
    def is_log(self) -> bool:
        """True if the axis is logarithmic."""
        return self.kind == "log"

    def has(self, value: float | None) -> bool:
        """Return True if the axis can show a value: a number within its limits, on a logarithmic axis not 0."""
        return value is not None and self.ends[0] <= value <= self.ends[1] and not (self.is_log and value == 0)

    @cached_property
    def clipped(self) -> int:
        """The number of values beyond the limits."""
        return sum(y is not None and (y < self.ends[0] or y > self.ends[1]) for y, _ in self.points)

    @property
    def has_zeros(self) -> bool:
        """True if a logarithmic axis can't show some values, since they are exactly zero."""
        return self.is_log and any(y == 0 for y, _ in self.points)

    def limit(self, panels: Sequence[Axes]) -> bool:
        """Set the axis of panels, so that all values within `ends` fit and no wide interval flattens the others.

        On a logarithmic axis, all intervals fit, apart from ends that are 0 or less, or above `ends`.

        Returns:
            True if an interval is cut; always False for a logarithmic axis.
        """
        shown = [(y, interval) for y, interval in self.points if y is not None and self.has(y)]
        if self.kind == "rate":
            low, high, needed = -0.04, 1.04, (0.0, 1.0)
        elif self.is_log:
            inside = [y for point in shown for y in (point[0], *(point[1] or ())) if 0 < y <= self.ends[1]]
            lowest = math.floor(math.log10(min(inside, default=1e-3)) + 0.05)
            top = 10 ** (math.log10(max(inside)) + 0.3) if inside else 1.0
            low, high = needed = 10.0 ** (lowest - 0.3), max(top, 10.0 ** (lowest + 1))
        elif self.kind == "time":
            longest = max((y for y, _ in shown), default=1.0) or 1.0
            highest = max([longest, *(interval[1] for _, interval in shown if interval is not None)])
            low, high, needed = 0.0, 1.05 * min(highest, 1.6 * longest), (0.0, highest)
        else:
            low, high, needed = _linear_ends(shown)
        for axes in panels:
            set_ends(axes, low, high, self.which, is_log=self.is_log)
            if self.kind == "rate":
                axes.set(**{f"{self.which}ticks": [0, 0.25, 0.5, 0.75, 1]})
        return needed[0] < low or needed[1] > high

    def place(self, axes: Axes, value: float) -> float:
        """Return the position of a value, or of its mark at the edge, on an axis with limits."""
        if self.has(value):
            return value
        low, high = axes.get_ylim() if self.which == "y" else axes.get_xlim()
        share = 1 - _EDGE if value > self.ends[1] else _EDGE
        return float(low * (high / low) ** share) if self.is_log else low + share * (high - low)

    def mark(self, axes: Axes, values: Sequence[tuple[float, float | None]], style: Mapping[str, Any]) -> None:
        """Mark at the edge the values that the axis can't show; NaN isn't marked.

        Args:
            axes: the panel, whose limits are already set.
            values: each value with its position on the other axis; missing ones are ignored.
            style: the style of the curve, whose colour is used.
        """
        look = {name: style[name] for name in ("color", "zorder", "markerfacecolor", "alpha") if name in style}
        lost = [(at, value) for at, value in values if value is not None and not self.has(value)]
        is_y = self.which == "y"
        for mark, edge, places in (
            (BEYOND, 1 - _EDGE, [at for at, value in lost if value > self.ends[1]]),
            (BELOW, _EDGE, [at for at, value in lost if value < self.ends[0]]),
            (ZERO, _EDGE, [at for at, value in lost if self.ends[0] <= value <= self.ends[1]]),
        ):
            if places:
                edges = [edge] * len(places)
                look["transform"] = axes.get_xaxis_transform() if is_y else axes.get_yaxis_transform()
                turned = mark if is_y else mark | {"marker": _TURNED[mark["marker"]]}
                axes.plot(*((places, edges) if is_y else (edges, places)), clip_on=False, **look, **turned)


def _linear_ends(points: Sequence[tuple[float, Interval | None]]) -> tuple[float, float, Interval]:
    """Choose ends that hold all means, and return them with the ends that would hold all intervals.

    Intervals extend them by at most the means' range or, if that is larger, the width of the narrowest interval.
    """
    means, ends = [y for y, _ in points], [interval for _, interval in points if interval is not None]
    low, high = min(means, default=0.0), max(means, default=1.0)
    room = max(high - low, min((above - below for below, above in ends), default=0.0)) or 0.05 * abs(high) or 1.0
    needed = min([low, *(below for below, _ in ends)]), max([high, *(above for _, above in ends)])
    lowest, highest = max(needed[0], low - room), min(needed[1], high + room)
    margin = 0.06 * (highest - lowest) or 0.5 * room
    return lowest - margin, highest + margin, needed


def mark_handles(scales: Mapping[str, Scale]) -> list[Line2D]:
    """Make the legend's entries for the marks at the edges, from the axes by title."""
    texts = [
        (ZERO, "exactly 0", [title for title, scale in scales.items() if scale.has_zeros]),
        (BEYOND, "beyond the axis", [title for title, scale in scales.items() if scale.clipped]),
    ]
    return [
        Line2D([], [], label=f"{words.join_and(titles)} {text}", color=INK, **mark)
        for mark, text, titles in texts
        if titles
    ]


def clipped_note(count: int) -> str:
    """Return a caption's sentence on the number of values beyond an axis; empty for 0.

    Example:
        >>> clipped_note(1), clipped_note(3), clipped_note(0)
        (' An arrow marks 1 value far beyond the axis.', ' Arrows mark 3 values far beyond the axis.', '')
    """
    verb = "An arrow marks" if count == 1 else "Arrows mark"
    return f" {verb} {words.count_of(count, 'value')} far beyond the axis." if count else ""


def set_ends(axes: Axes, low: float, high: float, which: Literal["x", "y"] = "y", *, is_log: bool) -> None:
    """Set the ends of an axis; a logarithmic one, from low > 0 to high > low, gets ticks at a few powers of ten.

    If no power of ten is between the ends, the axis has no ticks.
    """
    ends = {f"{which}lim": (low, high)}
    axes.set(**ends)  # before the scale, which would choose its own limits and warn if all values are equal
    if not is_log:
        return
    # The labels are plain letters: typesetting of mathematics takes longer than all the rest of a figure.
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, -(-(last - first) // 5))
    powers = [power for power in range(first, last + 1) if power % step == 0] or [first]
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_ticks([10.0**power for power in powers], [power_of_ten(power) for power in powers])
    axis.set_minor_locator(NullLocator())
    axes.set(**ends)  # a tick beyond them, the only one of a narrow axis, has extended it


def power_of_ten(power: int) -> str:
    """Write a power of ten in plain letters.

    Example:
        >>> power_of_ten(-12)
        '10⁻¹²'
    """
    return "10" + str(power).translate(_SUPERSCRIPT)
