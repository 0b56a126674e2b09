"""Shared parts of a search's figures: places of values and choices on an axis, and the style of candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from study.records import Interval
from study.reports.figures import axes as axes_of
from study.reports.figures import texts
from study.reports.figures.scales import power_of_ten
from study.reports.figures.style import PALETTE, PAPER, Tips, plain
from study.reports.search import names as search_names
from study.summaries.rows import ResultRows
from study.summaries.search import NO_NUMBER, Candidate, Objective, Parameter, SearchFindings

CANDIDATE, CONFIRMED = PALETTE[0], PALETTE[1]
MOST_DOTS = 3000
"""The most dots of a figure: more make files of megabytes, and hide each other."""

_FRESH: dict[str, Any] = {"marker": "D", "color": CONFIRMED, "markersize": 4, "markeredgewidth": 0.7, "zorder": 5}
_BARS: dict[str, Any] = {"elinewidth": 0.9, "capsize": 1.8, "capthick": 0.9, "linestyle": "none"}
_DOT: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgewidth": 0}
_CONFIRMED = _DOT | {
    "marker": "s", "color": CONFIRMED, "markersize": 5, "markeredgecolor": PAPER, "markeredgewidth": 0.5, "zorder": 4.5,
}  # fmt: skip
_FAINT, _DENSE = 0.32, 0.85
_LEAST_PT2, _MOST_PT2 = 7.0, 42.0
_ROOM = 0.05
_TICKS = 4
"""The approximate number of ticks on an axis."""
_TITLE_LINES = 3


@dataclass(frozen=True)
class Scale:
    """The places of numbers, or of names, on an axis.

    Args:
        title: the axis's title, with its unit.
        low: the place at the lower end of the axis.
        high: the place at the upper end.
        ticks: texts by place.
        unit: the number at place 1.
        is_log: whether places are logarithms of numbers.
        parameter: the parameter with choices at the places 0, 1, ...; None for numbers.
    """

    title: str
    low: float
    high: float
    ticks: Mapping[float, str]
    unit: float = 1.0
    is_log: bool = False
    parameter: Parameter | None = None

    def at(self, value: Any) -> float:
        """Return the place of a number or name.

        Magnitudes of `NO_NUMBER` or more are placed at an end, and on a logarithmic axis NaN and numbers <= 0 at the
        lower end. On other axes of numbers, NaN stays NaN.

        Raises:
            ValueError: if the axis has choices, and the value isn't one of them.
        """
        if self.parameter is not None:
            return float(self.parameter.place(value))
        if abs(value) >= NO_NUMBER:
            return self.high if value > 0 else self.low
        if self.is_log:
            return math.log10(value) if value > 0 else self.low
        return float(value) / self.unit

    def across(self, axes: Axes, width_in: float) -> float:
        """Make this the x axis of a panel of about `width_in`; return the height of upright names in inches, or 0."""
        axes.set_xlim(self.low, self.high)
        axes.set_xlabel(texts.fit(self.title, width_in))
        return texts.x_ticks(axes, self.ticks, width_in, is_numeric=self.parameter is None)

    def up(self, axes: Axes, height_in: float) -> None:
        """Make this the y axis of a panel with an approximate height."""
        axes.set_ylim(self.low, self.high)
        axes.set_yticks(list(self.ticks), list(map(plain, self.ticks.values())))
        axes.set_ylabel(self.lines(height_in), linespacing=1.1)

    def lines(self, height_in: float) -> str:
        """Break the title for an axis of an approximate height."""
        return texts.fit(self.title, height_in, _TITLE_LINES)


def objective_scales(search: SearchFindings, rows: ResultRows | None = None) -> list[Scale]:
    """Make an axis for each objective that holds all values and, given the rows, the estimates by fresh seeds.

    An axis is logarithmic for a metric that is better if lower and has no negative value; it then holds the positive
    values. Unknown and infinite values are ignored.
    """
    scales = []
    summaries = [] if rows is None else [rows.summaries[row] for _, row in search_names.confirmed(search)]
    for i, objective in enumerate(search.objectives):
        values = [c.values[i] for c in search.candidates if objective.has_number(c.values[i])]
        for summary in summaries:
            value, interval = search_names.measured(objective).measure(summary)
            values += [number for number in (value, *(interval or ())) if number is not None]
        scales.append(_objective_scale(objective, values))
    return scales


def _objective_scale(objective: Objective, values: Sequence[float]) -> Scale:
    finite, title = [value for value in values if math.isfinite(value)], objective.title
    if objective.statistic == "rate":
        return Scale(title, -0.04, 1.04, {tick: f"{tick:g}" for tick in (0.0, 0.25, 0.5, 0.75, 1.0)})
    if objective.statistic == "time":
        unit, name = axes_of.unit(max(finite, default=1.0))
        ends = min(finite, default=0.0) / unit, max(finite, default=unit) / unit
        return _scale(f"{title} ({name})", *ends, unit=unit)
    if objective.is_higher_better or min(finite, default=0.0) < 0:
        return _scale(title, min(finite, default=0.0), max(finite, default=1.0))
    powers = [math.log10(value) for value in finite if value > 0] or [0.0]
    return _scale(title, min(powers), max(powers), is_log=True)


def parameter_scale(parameter: Parameter) -> Scale:
    """Make an axis for the range or the choices of a parameter.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    title, unit = search_names.title(parameter), search_names.unit(parameter.name)
    title = f"{title} ({unit})" if unit else title
    if parameter.choices:
        choices = [search_names.value(parameter.name, choice) for choice in parameter.choices]
        return Scale(title, -0.6, len(choices) - 0.4, dict(enumerate(choices)), parameter=parameter)
    low, high = parameter.low, parameter.high
    if parameter.is_log:
        return _scale(title, math.log10(low), math.log10(high), is_log=True)
    return _scale(title, low, high)


def _scale(title: str, low: float, high: float, *, unit: float = 1.0, is_log: bool = False) -> Scale:
    room = _ROOM * (high - low) or 0.5
    places = map(float, MaxNLocator(_TICKS, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    steps = {place: _short(place) for place in places if low - room <= place <= high + room}
    ticks = _powers(low - room, high + room) if is_log else steps
    return Scale(title, low - room, high + room, ticks, unit, is_log)


def _powers(low: float, high: float) -> dict[float, str]:
    """Return ticks between two logarithms by place: a few powers of ten, or multiples, too, if fewer than two fit."""
    first, last = math.ceil(low), math.floor(high)
    if last > first:
        step = -(-(last - first) // _TICKS)
        powers = range(first, last + 1, step)
        return {float(power): f"{10.0**power:g}" if abs(power) <= 3 else power_of_ten(power) for power in powers}
    between = [mantissa * 10.0**power for power in range(first - 1, last + 2) for mantissa in (1, 2, 5)]
    return {math.log10(number): _short(number) for number in between if low <= math.log10(number) <= high}


def _short(number: float) -> str:
    """Format a tick; thousands as k."""
    text = f"{number / 1000:g}k" if abs(number) >= 1000 else f"{round(number, 12):g}"
    return text.replace("-", "−")


def area_pt2(seeds: int, most: int) -> float:
    """Return the area of a candidate's dot in square points, increasing from no seeds to the most seeds."""
    return _LEAST_PT2 + (_MOST_PT2 - _LEAST_PT2) * seeds / max(most, 1)


def dots(axes: Axes, candidates: Sequence[Candidate], x: Sequence[float], y: Sequence[float], density: float) -> None:
    """Draw candidates as dots sized by their number of seeds, small dots over large ones.

    Args:
        axes: the axes to draw into.
        candidates: the candidates; at least one.
        x: the place of each candidate.
        y: the place of each candidate.
        density: the opacity of the dots, in [0, 1].
    """
    most = max(candidate.seeds for candidate in candidates)
    # One line of markers for each size: a scatter plot would write the outline of every dot to the file.
    for seeds in sorted({candidate.seeds for candidate in candidates}, reverse=True):
        these = [i for i, candidate in enumerate(candidates) if candidate.seeds == seeds]
        places = [x[i] for i in these], [y[i] for i in these]
        size_pt = math.sqrt(area_pt2(seeds, most))
        axes.plot(*places, color=CANDIDATE, alpha=density, markersize=size_pt, zorder=3, **_DOT)


def shade(number: int, last: int) -> float:
    """Return the opacity of a candidate's dot: faint for the first candidate, dense for the last."""
    return _FAINT + (_DENSE - _FAINT) * number / max(last, 1)


def shades() -> list[Artist]:
    """Make the legend of `shade`."""
    return [_dot("tried first", _FAINT), _dot("tried last", _DENSE)]


def sizes(seeds: Sequence[int]) -> list[Artist]:
    """Make the legend of `area_pt2` for one or more numbers of seeds: the smallest, a middle one and the largest."""
    counts = sorted(set(seeds))
    chosen = dict.fromkeys((counts[0], counts[len(counts) // 2], counts[-1]))
    return [_dot(f"{count} seeds", 0.6, math.sqrt(area_pt2(count, counts[-1]))) for count in chosen]


def _dot(name: str, alpha: float, size_pt: float = 4.5) -> Artist:
    return Line2D([], [], color=CANDIDATE, alpha=alpha, markersize=size_pt, label=name, **_DOT)


def mark_confirmed(axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """Mark the confirmed candidates at their values in the search."""
    axes.plot(x, y, **_CONFIRMED)


def mark_among(
    axes: Axes, search: SearchFindings, candidates: Sequence[Candidate], x: Sequence[float], y: Sequence[float]
) -> None:
    """Mark the confirmed candidates among those at the given places."""
    confirmed = [i for i, candidate in enumerate(candidates) if candidate.number in search.rows]
    if confirmed:
        mark_confirmed(axes, [x[i] for i in confirmed], [y[i] for i in confirmed])


def mark_fresh(axes: Axes, x: float, y: float, across: Interval | None, up: Interval | None) -> None:
    """Mark the estimate by fresh seeds; the ends of its intervals are given as places, None for no interval."""
    axes.errorbar([x], [y], xerr=_reach(x, across), yerr=_reach(y, up), **_FRESH, **_BARS)


def _reach(at: float, ends: Interval | None) -> list[list[float]] | None:
    return None if ends is None else [[max(0.0, at - ends[0])], [max(0.0, ends[1] - at)]]


def confirmed_handles(search: SearchFindings, *, with_fresh: bool) -> list[Artist]:
    """Make the legend of `mark_confirmed` and, if asked for, of `mark_fresh`; empty without confirmed candidates."""
    if not search_names.confirmed(search):
        return []
    style = {name: value for name, value in _FRESH.items() if name != "zorder"}
    name = f"by {search.fresh:,} fresh seeds, 95%"
    fresh_handle = [Line2D([], [], label=name, linewidth=0.9, **style)] if with_fresh else []
    return [Line2D([], [], label="confirmed: value in the search", **_CONFIRMED), *fresh_handle]


def fresh_place(
    search: SearchFindings, rows: ResultRows, row: int, i: int, scale: Scale
) -> tuple[float, Interval | None]:
    """Return the place of the estimate by fresh seeds on an objective's axis, and the ends of its interval.

    The place is NaN without an estimate, such as `solved_at` if no trial was solved. The ends are None without an
    interval.

    Args:
        search: the search.
        rows: the report's rows.
        row: the row of a confirmed candidate.
        i: the index of the objective.
        scale: the objective's axis.
    """
    value, interval = search_names.measured(search.objectives[i]).measure(rows.summaries[row])
    place = math.nan if value is None else scale.at(value)
    return place, None if interval is None else (scale.at(interval[0]), scale.at(interval[1]))


def add_tips(
    axes: Axes,
    search: SearchFindings,
    rows: ResultRows,
    candidates: Sequence[Candidate],
    scales: Mapping[int, Scale],
    tips: Tips,
    most: int,
) -> None:
    """Add texts to at most `most` dots, those of fresh seeds first.

    Args:
        axes: the panel.
        search: the search.
        rows: the report's rows.
        candidates: the drawn candidates.
        scales: the axes of objectives, by index; a single one is drawn against the candidates' numbers.
        tips: the texts to add to.
        most: the largest number of texts.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    marks: list[tuple[int, list[float], str]] = []
    for candidate, row in search_names.confirmed(search):
        summary, estimates = rows.summaries[row], map(search_names.measured, search.objectives)
        text = (
            f"#{candidate.number}, fresh seeds: "
            f"{', '.join(f'{estimate.title} {estimate.text(summary)}' for estimate in estimates)}"
        )
        text += f"; {axes_of.count(summary)} solved" if summary.judged else ""
        marks.append((candidate.number, [fresh_place(search, rows, row, i, at)[0] for i, at in scales.items()], text))
    marks += [
        (c.number, [at.at(c.values[i]) for i, at in scales.items()], search_names.described(search, c))
        for c in candidates
    ]
    for number, places, text in marks[:most]:
        x, y = places if len(places) == 2 else (number, *places)
        tips.add(axes, x, y, text)


def confirmed_notes(search: SearchFindings, rows: ResultRows, fresh: str) -> list[str]:
    """Return a caption's sentences on confirmed candidates, beginning with `fresh`, or a note that there are none."""
    if not search_names.confirmed(search):
        return ["No candidate has been confirmed yet."]
    return [fresh, *filter(None, [search_names.objectives_note(search, rows.metrics)])]


def part_of(search: SearchFindings, count: int) -> list[str]:
    """Return a list with a caption's sentence on the number of shown candidates; empty if all are shown."""
    every = len(search.candidates)
    return [f"{count:,} of {every:,} candidates are shown, including the front."] if count < every else []


CAUTION = (
    "Each value is the worse end of a candidate's 95% interval. Candidates were chosen by it, so the best values are "
    "optimistic."
)
"""The warning in every caption about the search's own values."""
