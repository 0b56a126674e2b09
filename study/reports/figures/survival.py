"""Time to success: the share of all trials solved by an iteration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from study import words
from study.reports.figures import axes as axes_of
from study.reports.figures.multiples import MOST_CURVES, MOST_PANELS, MOST_TIPS, grid, left_out
from study.reports.figures.style import INK, RULE, STYLE, Drawn, Tips
from study.statistics import kaplan_meier
from study.summaries import series
from study.summaries.learning import spread
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

Floats = npt.NDArray[np.float64]

_FEW_CURVES = 6
"""The most curves in one panel with bands."""
_END: dict[str, Any] = {"marker": "*", "markersize": 5.5, "markeredgewidth": 0.7}
_LACKING: dict[str, Any] = {"marker": "o", "markersize": 3.2, "markeredgewidth": 0.7}
_CENSORED: dict[str, Any] = {"marker": "|", "markersize": 5, "markeredgewidth": 0.8, "linestyle": "none"}
_TURN_PT = 6.0
"""The length of a dash where coinciding curves alternate."""


@dataclass(frozen=True)
class _Curve:
    """The share solved by a time, and its interval; all arrays have shape [times], and NaN where it has no interval."""

    time: Floats
    share: Floats
    low: Floats
    high: Floats
    solved: Floats
    censored: npt.NDArray[np.bool_]


_Panel = tuple[str, list[tuple[str, int]]]
"""A panel's title, and its rows with their names in the legend."""


def plot(rows: ResultRows) -> Drawn | None:
    """Draw the share of trials solved by an iteration, by the Kaplan-Meier estimate with pointwise 95% bands.

    Rows with an unknown time are left out. Up to 12 panels, and curves of up to 24 different names, are drawn.

    Returns:
        The figure; None if no row with known times has a solved trial, or if judged rows are left out and no other row
        has an unsolved trial.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    curves = {row: curve for row, s in enumerate(rows.summaries) if (curve := _curve(s)) is not None}
    unknown = [row for row, s in enumerate(rows.summaries) if s.judged and row not in curves]
    # If times are known only for rows whose trials were all solved, the failures would be missing.
    is_lopsided = bool(unknown) and not any(curve.censored.any() for curve in curves.values())
    if is_lopsided or not any(curve.solved.any() for curve in curves.values()):
        return None
    every_panel = [panel for panel in _panels(rows, curves) if panel[1]]
    every = list(dict.fromkeys(name for _, members in every_panel for name, _ in members))
    names = every[:MOST_CURVES]
    first = [(title, [entry for entry in entries if entry[0] in names]) for title, entries in every_panel[:MOST_PANELS]]
    members = [row for _, entries in first for _, row in entries]
    longest = max(1.0, *(float(curves[row].time[-1]) for row in members))
    unit, unit_name = axes_of.unit(longest)
    tips = Tips()
    with mpl.rc_context(STYLE):
        height = 2.6 if len(first) == 1 else 1.75 if len(first) < 4 else 1.5
        handles = _handles(names, [rows.summaries[row] for row in members], [curves[row] for row in members])
        figure, panels = grid([title for title, _ in first], height, handles, x=unit_name, y="share solved")
        for axes, (_, entries) in zip(panels, first, strict=True):
            # Draw the curves of the other panels behind a single curve, for comparison.
            for row in members if len(entries) == 1 else ():
                if row != entries[0][1]:
                    axes.plot(*_line(curves[row], unit), color=RULE, linewidth=0.8, zorder=1.5)
            flat = [row for _, row in entries if not curves[row].solved.any()]
            for name, row in entries:
                style = _style(names.index(name))
                if row in flat and len(flat) > 1:
                    # The gaps of its dashes show the other lines at the same place.
                    style["linestyle"] = (
                        _TURN_PT * (len(flat) - flat.index(row)),
                        (_TURN_PT, _TURN_PT * (len(flat) - 1)),
                    )
                _plot_curve(axes, curves[row], unit, style, complete=rows.summaries[row].complete)
                _plot_markers(axes, curves[row], unit, style, axes_of.marker_places(names.index(name), len(names)))
                marks = _marks(curves[row], rows.name(row), rows.summaries[row], MOST_TIPS // len(members))
                for time, share, text in marks:
                    tips.add(axes, time / unit, share, text)
        panels[0].set_xlim(0, 1.04 * longest / unit)
        panels[0].set_ylim(-0.03, 1.03)
        panels[0].set_yticks([0, 0.5, 1] if len(panels) > 3 else [0, 0.25, 0.5, 0.75, 1])
    caption = _caption(first, len(members), len(unknown)) + left_out(len(first), len(every_panel))
    return Drawn("survival", "Time to success", caption + left_out(len(names), len(every), "curves"), figure, tips)


def _curve(summary: Summary) -> _Curve | None:
    times = summary.times.known("iterations") if summary.times else None
    estimate = kaplan_meier(*times) if times else None
    if estimate is None:
        return None
    left = np.append(estimate.at_risk[1:], 0)
    return _Curve(
        time=estimate.times,
        share=1 - estimate.survival,
        low=1 - estimate.high,
        high=1 - estimate.low,
        solved=np.cumsum(estimate.solved),
        censored=np.asarray(estimate.at_risk - estimate.solved > left),
    )


def _panels(rows: ResultRows, drawable: Collection[int]) -> Iterator[_Panel]:
    """Yield a panel for each facet and value of the x axis, or one panel if `series.split` gives a single short curve.

    Each row of the report has its own curve there. Only rows in `drawable` are in the panels, which may be empty.
    """
    x = series.x_axis(rows)
    curves = series.split(rows, x, _FEW_CURVES)
    if len(curves) == 1 and len(curves[0].rows) <= _FEW_CURVES:
        yield "", [(rows.name(row, [x]), row) for row in curves[0].rows if row in drawable]
        return
    for facet in dict.fromkeys(curve.facet for curve in curves):
        facet_curves = [curve for curve in curves if curve.facet == facet]
        for level in series.levels(rows, x):
            members = [(curve.name, row) for curve in facet_curves for row in curve.rows if rows.value(row, x) == level]
            if members:
                title = ", ".join(part for part in (facet, rows.name(members[0][1], [x])) if part)
                yield title, [(name, row) for name, row in members if row in drawable]


def _steps(time: Floats, value: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the function with `value[i]` from `time[i]` on; shapes [times] to [2 * times - 1]."""
    return np.repeat(time, 2)[1:], np.repeat(value, 2)[:-1]


def _style(slot: int) -> dict[str, Any]:
    return axes_of.line_style(slot) | {"linewidth": 1.2, "zorder": 3}


def _plot_curve(axes: Axes, curve: _Curve, unit: float, style: dict[str, Any], *, complete: bool) -> None:
    time, colour = curve.time / unit, style["color"]
    (corners, low), (_, high) = _steps(time, curve.low), _steps(time, curve.high)
    axes.fill_between(corners, low, high, where=np.isfinite(low), color=colour, alpha=0.15, linewidth=0)
    axes.plot(*_line(curve, unit), **style | {"marker": "None"})
    axes.plot(time[curve.censored], curve.share[curve.censored], color=colour, zorder=3, **_CENSORED)
    if curve.share[-1] == 1 or not complete:
        end = {"color": colour, "zorder": 4}
        end = end | _END if complete else axes_of.half_filled(end | _LACKING)
        axes.plot(time[-1:], curve.share[-1:], clip_on=False, **end)


def _plot_markers(axes: Axes, curve: _Curve, unit: float, style: dict[str, Any], places: Floats) -> None:
    """Mark a curve at the given shares of its length, for readers who can't tell colours, and where others hide it."""
    at = places * curve.time[-1]
    share = np.insert(curve.share, 0, 0.0)[np.searchsorted(curve.time, at, side="right")]
    axes.plot(at / unit, share, **style | {"linestyle": "none"})


def _line(curve: _Curve, unit: float) -> tuple[Floats, Floats]:
    return _steps(np.insert(curve.time / unit, 0, 0.0), np.insert(curve.share, 0, 0.0))


def _marks(curve: _Curve, name: str, summary: Summary, most: int) -> Iterator[tuple[float, float, str]]:
    """Yield up to `most` places of steps and of the end, evenly chosen, with texts on the share solved by then."""
    events = np.union1d(np.flatnonzero(np.diff(curve.solved, prepend=0.0)), [len(curve.time) - 1])
    planned = "" if summary.complete else f"; {summary.seeds} planned"
    for i in events[spread(len(events), most)] if most > 0 else []:
        interval = (curve.low[i], curve.high[i]) if np.isfinite(curve.low[i]) else None
        share = words.rate(curve.share[i], interval)
        text = f"{name}, by iteration {curve.time[i]:,.0f}: {share}, {curve.solved[i]:.0f} of {summary.judged}"
        yield curve.time[i], curve.share[i], text + planned


def _handles(names: Sequence[str], summaries: Sequence[Summary], curves: Sequence[_Curve]) -> list[Artist]:
    neutral: dict[str, Any] = {"color": INK}
    marks = [
        ("all are solved", any(curve.share[-1] == 1 for curve in curves), neutral | {"linestyle": "none"} | _END),
        ("censored", any(curve.censored.any() for curve in curves), neutral | _CENSORED),
        ("lacks trials", not all(s.complete for s in summaries), axes_of.half_filled(neutral | _LACKING)),
    ]
    return [
        *(Line2D([], [], label=name, **_style(slot)) for slot, name in enumerate(names) if name),
        *(Line2D([], [], label=name, **style) for name, is_drawn, style in marks if is_drawn),
    ]


def _caption(panels: Sequence[_Panel], curves: int, unknown: int) -> str:
    text = (
        "Share of the finished trials solved by an iteration: one minus the Kaplan-Meier estimate, with pointwise "
        "95% intervals (none where no trial or every trial is solved). An unsolved trial is censored at its last "
        "iteration, a diverged one at the last one of its cell. A curve ends at the last observation."
    )
    if any(len(members) == 1 for _, members in panels) and curves > 1:
        text += " Grey: the curves of the other panels."
    if unknown:
        text += f" Left out, since some of their times are unknown: {words.count_of(unknown, 'row')}."
    return text
