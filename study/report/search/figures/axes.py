"""What the figures of a search share: where values and choices stand on an axis, how candidates look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from study.analysis.rows import ResultRows
from study.analysis.search import Candidate, Objective, Parameter, SearchFindings
from study.records import Interval
from study.report.figures import axes as axes_of
from study.report.figures import texts
from study.report.figures.style import PALETTE, PAPER, plain
from study.report.search import names as search_names

CANDIDATE, CONFIRMED = PALETTE[0], PALETTE[1]
MOST_DOTS = 3000
"""Of a figure: beyond, a file is megabytes of dots that hide each other."""

_FRESH: dict[str, Any] = {
    "marker": "D",
    "color": CONFIRMED,
    "markersize": 4,
    "markeredgewidth": 0.7,
    "zorder": 5,
}
_BARS: dict[str, Any] = {"elinewidth": 0.9, "capsize": 1.8, "capthick": 0.9, "linestyle": "none"}
_SEEN: dict[str, Any] = {
    "marker": "o",
    "color": CONFIRMED,
    "markersize": 5,
    "markeredgecolor": PAPER,
    "markeredgewidth": 0.5,
    "linestyle": "none",
    "zorder": 4.5,
}
_FAINT, _DENSE = 0.32, 0.85
_LEAST_PT2, _MOST_PT2 = 7.0, 42.0
_ROOM = 0.05
_TICKS = 4
_TITLE_LINES = 3


@dataclass(frozen=True)
class Scale:
    """Where numbers, or names, stand on an axis.

    Args:
        title: of the axis, with its unit.
        low: where the axis begins, as a place.
        high: where it ends.
        ticks: texts by place.
        unit: so many of a number are one of a place.
        is_log: whether places are the logarithms of numbers.
        names: that stand at 0, 1, ... instead of numbers.
    """

    title: str
    low: float
    high: float
    ticks: Mapping[float, str]
    unit: float = 1.0
    is_log: bool = False
    names: tuple[Any, ...] = ()

    def at(self, value: Any) -> float:
        """Give the place of a number or name; what is too small for a logarithm is at the axis' foot."""
        if self.names:
            return float(self.names.index(value))
        if self.is_log:
            return math.log10(value) if value > 0 else self.low
        return float(value) / self.unit

    def across(self, axes: Axes, width_in: float) -> float:
        """Make it the x axis of a panel of about this width; give the height that upright names take, in inches."""
        axes.set_xlim(self.low, self.high)
        axes.set_xlabel(texts.fit(self.title, width_in))
        return texts.x_ticks(axes, self.ticks, width_in, is_numeric=not self.names)

    def up(self, axes: Axes, height_in: float) -> None:
        """Make it the y axis of a panel of about this height."""
        axes.set_ylim(self.low, self.high)
        axes.set_yticks(list(self.ticks), list(map(plain, self.ticks.values())))
        axes.set_ylabel(self.lines(height_in), linespacing=1.1)

    def lines(self, height_in: float) -> str:
        """Break the title for an axis of about this height."""
        return texts.fit(self.title, height_in, _TITLE_LINES)


def objective_scales(search: SearchFindings, rows: ResultRows | None = None) -> list[Scale]:
    """Lay out an axis an objective for all candidates' values and, given the report's rows, what fresh seeds say."""
    scales = []
    summaries = [] if rows is None else [rows.summaries[row] for _, row in search_names.confirmed(search)]
    for i, objective in enumerate(search.objectives):
        values = [candidate.values[i] for candidate in search.candidates]
        for summary in summaries:
            value, interval = search_names.MEASURED[objective.name].of(summary)
            values += [one for one in (value, *(interval or ())) if one is not None]
        scales.append(_objective_scale(objective, values))
    return scales


def _objective_scale(objective: Objective, values: Sequence[float]) -> Scale:
    known = [value for value in values if math.isfinite(value)]
    if objective.name == "success_rate":
        ticks = {tick: f"{tick:g}" for tick in (0.0, 0.25, 0.5, 0.75, 1.0)}
        return Scale(objective.title, -0.04, 1.04, ticks)
    if objective.name == "sparsity_error":
        powers = [math.log10(value) for value in known if value > 0] or [0.0]
        return _scale(objective.title, min(powers), max(powers), is_log=True)
    unit, name = axes_of.unit(max(known, default=1.0))
    ends = min(known, default=0.0) / unit, max(known, default=unit) / unit
    return _scale(f"{objective.title} ({name})", *ends, unit=unit)


def parameter_scale(parameter: Parameter) -> Scale:
    """Lay out an axis for all that a parameter could be."""
    title, unit = search_names.title(parameter.name), search_names.unit(parameter.name)
    title = f"{title} ({unit})" if unit else title
    if parameter.choices:
        choices = [search_names.value(parameter.name, choice) for choice in parameter.choices]
        return Scale(title, -0.6, len(choices) - 0.4, dict(enumerate(choices)), names=parameter.choices)
    low, high = parameter.low, parameter.high
    if parameter.is_log:
        return _scale(title, math.log10(low), math.log10(high), is_log=True)
    return _scale(title, low, high)


def _scale(title: str, low: float, high: float, *, unit: float = 1.0, is_log: bool = False) -> Scale:
    room = _ROOM * (high - low) or 0.5
    ticks = _powers(low - room, high + room) if is_log else _steps(low, high)
    return Scale(title, low - room, high + room, ticks, unit, is_log)


def _steps(low: float, high: float) -> dict[float, str]:
    room = _ROOM * (high - low) or 0.5
    ticks = MaxNLocator(_TICKS, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return {float(tick): _short(float(tick)) for tick in ticks if low - room <= tick <= high + room}


def _powers(low: float, high: float) -> dict[float, str]:
    """Mark powers of ten, at most a few; where there are fewer than two, some numbers between."""
    first, last = math.ceil(low), math.floor(high)
    if last > first:
        step = -(-(last - first) // _TICKS)
        return {float(power): _power(power) for power in range(first, last + 1, step)}
    between = [mantissa * 10.0**power for power in range(first - 1, last + 2) for mantissa in (1, 2, 5)]
    return {math.log10(number): _short(number) for number in between if low <= math.log10(number) <= high}


def _power(power: int) -> str:
    return f"{10.0**power:g}" if abs(power) <= 3 else axes_of.power_of_ten(power)


def _short(number: float) -> str:
    """Write a tick; thousands as k."""
    if number and abs(number) >= 1000:
        return f"{number / 1000:g}k"
    return f"{round(number, 12):g}".replace("-", "−")


def area_pt2(seeds: int, most: int) -> float:
    """Give the size of a candidate's dot: it grows with the seeds that it earned."""
    return _LEAST_PT2 + (_MOST_PT2 - _LEAST_PT2) * seeds / max(most, 1)


def dots(axes: Axes, some: Sequence[Candidate], x: Sequence[float], y: Sequence[float], density: float) -> None:
    """Draw candidates as dots whose size is that of their seeds, the small ones over the large."""
    most = max(candidate.seeds for candidate in some)
    style: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgewidth": 0, "zorder": 3}
    # A line of markers a size: of a scatter, a file has the outline of every dot.
    for seeds in sorted({candidate.seeds for candidate in some}, reverse=True):
        these = [i for i, candidate in enumerate(some) if candidate.seeds == seeds]
        places = [x[i] for i in these], [y[i] for i in these]
        size_pt = math.sqrt(area_pt2(seeds, most))
        axes.plot(*places, color=CANDIDATE, alpha=density, markersize=size_pt, **style)


def shade(number: int, last: int) -> float:
    """Give how dense the dot of a candidate is: faint if it was tried first, dense if last."""
    return _FAINT + (_DENSE - _FAINT) * number / max(last, 1)


def shades() -> list[Artist]:
    """Give the legend of `shade`."""
    return [_dot("tried first", _FAINT), _dot("tried last", _DENSE)]


def sizes(seeds: Sequence[int]) -> list[Artist]:
    """Give the legend of `area_pt2`: the fewest seeds, the most, and one between."""
    there = sorted(set(seeds))
    some = dict.fromkeys((there[0], there[len(there) // 2], there[-1]))
    return [_dot(f"{count} seeds", 0.6, math.sqrt(area_pt2(count, there[-1]))) for count in some]


def _dot(name: str, alpha: float, size_pt: float = 4.5) -> Artist:
    style: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgewidth": 0, "alpha": alpha}
    return Line2D([], [], color=CANDIDATE, markersize=size_pt, label=name, **style)


def seen(axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """Mark the candidates that were confirmed, where the search saw them."""
    axes.plot(x, y, **_SEEN)


def fresh(axes: Axes, x: float, y: float, across: tuple[float, float] | None, up: tuple[float, float] | None) -> None:
    """Mark what fresh seeds say, with the ends of its intervals as places."""
    axes.errorbar([x], [y], xerr=_reach(x, across), yerr=_reach(y, up), **_FRESH, **_BARS)


def _reach(at: float, ends: tuple[float, float] | None) -> list[list[float]] | None:
    return None if ends is None else [[max(0.0, at - ends[0])], [max(0.0, ends[1] - at)]]


def confirmed_handles(search: SearchFindings, *, with_fresh: bool) -> list[Artist]:
    """Give the legend of `seen` and, if they are drawn, of `fresh`; none where nothing is confirmed."""
    if not search_names.confirmed(search):
        return []
    style = {name: value for name, value in _FRESH.items() if name != "zorder"}
    name = f"by {search.fresh:,} fresh seeds, 95%"
    fresh_handle = [Line2D([], [], label=name, linewidth=0.9, **style)] if with_fresh else []
    return [Line2D([], [], label="confirmed: as the search saw it", **_SEEN), *fresh_handle]


def fresh_place(
    search: SearchFindings, rows: ResultRows, row: int, i: int, scale: Scale
) -> tuple[float, Interval | None]:
    """Give where fresh seeds put a candidate on an objective's axis, and the ends of their interval.

    Returns:
        NaN where they say nothing, such as of a time when nothing was solved.
    """
    value, interval = search_names.MEASURED[search.objectives[i].name].of(rows.summaries[row])
    place = math.nan if value is None else scale.at(value)
    return place, None if interval is None else (scale.at(interval[0]), scale.at(interval[1]))


def fresh_text(search: SearchFindings, number: int, summary: Any) -> str:
    """Say what fresh seeds say of a candidate."""
    values = ", ".join(
        f"{search_names.MEASURED[one.name].title} {search_names.MEASURED[one.name].text(summary)}"
        for one in search.objectives
    )
    return f"#{number}, fresh seeds: {values}; {axes_of.count(summary)} solved"


def part_of(search: SearchFindings, count: int) -> list[str]:
    """Say in a caption how many candidates are shown, if not all."""
    every = len(search.candidates)
    return [f"{count:,} of {every:,} candidates are shown, the front among them."] if count < every else []


CAUTION = (
    "Each value is the end of a 95% interval at which the candidate looks worst, and candidates were chosen by it: "
    "the best of them are too good."
)
"""What every caption must say of the search's own values."""
