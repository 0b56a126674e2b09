"""Two objectives against each other: the Pareto front, and what fresh seeds say of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from study.analysis.rows import ResultRows
from study.analysis.search import Candidate, SearchFindings
from study.records import Interval
from study.report.figures import axes as axes_of
from study.report.figures.multiples import MOST_TIPS, place
from study.report.figures.style import STYLE, WIDTH_IN, Drawn, Tips
from study.report.search import names as search_names
from study.report.search.figures import axes as search_axes
from study.report.search.figures.axes import CANDIDATE, CAUTION, CONFIRMED, MOST_DOTS, Scale, objective_scale

_RIGHT_IN, _ABOVE_IN, _BELOW_IN, _HEIGHT_IN = 0.1, 0.1, 0.4, 3.0

_FRONT: dict[str, Any] = {"color": CANDIDATE, "linewidth": 1.0, "marker": "o", "markersize": 3.2}


def draw(search: SearchFindings | None, rows: ResultRows) -> Drawn | None:
    """Draw candidates by their first two values, the front among them, and those confirmed with their intervals.

    Args:
        search: what was tried.
        rows: what fresh seeds came to.

    Returns:
        None where one thing was sought, or nothing was tried.
    """
    if search is None or len(search.objectives) < 2 or not search.candidates:
        return None
    some = search_names.selected(search, MOST_DOTS)
    front = _front(search)
    confirmed = search_names.confirmed(search)
    scales = _scales(search, rows)
    handles: list[Artist] = [
        *search_axes.sizes([candidate.seeds for candidate in some]),
        Line2D([], [], label="front", **_FRONT),
        *([search_axes.seen_handle(), search_axes.fresh_handle(search)] if confirmed else []),
    ]
    tips = Tips()
    with mpl.rc_context(STYLE):
        tall = _ABOVE_IN + _HEIGHT_IN + _BELOW_IN + axes_of.legend_in(handles)
        figure = Figure(figsize=(WIDTH_IN, tall))
        left = search_axes.left_in(scales[1:], _HEIGHT_IN)
        axes = place(figure, left, _ABOVE_IN, WIDTH_IN - left - _RIGHT_IN, _HEIGHT_IN)
        axes.grid(visible=True, axis="both")
        _draw_candidates(axes, some, front, scales, is_plane=len(search.objectives) == 2)
        for candidate, row in confirmed:
            _draw_confirmed(axes, search, rows, candidate, row, scales)
        scales[0].across(axes)
        scales[1].up(axes, _HEIGHT_IN)
        for x, y, text in _told(search, rows, some, scales)[:MOST_TIPS]:
            tips.add(axes, x, y, text)
        axes_of.legend(figure, handles)
    return Drawn("search-front", "What can be had together", _caption(search, len(some)), figure, tips)


def _front(search: SearchFindings) -> list[Candidate]:
    front = [candidate for candidate in search.candidates if candidate.number in search.front]
    return sorted(front, key=lambda candidate: candidate.values[:2])


def _scales(search: SearchFindings, rows: ResultRows) -> tuple[Scale, Scale]:
    """Lay out both axes, with room for what fresh seeds say."""
    made = []
    for i, objective in enumerate(search.objectives[:2]):
        values = [candidate.values[i] for candidate in search.candidates]
        for _, row in search_names.confirmed(search):
            value, interval = search_names.MEASURED[objective.name].of(rows.summaries[row])
            values += [one for one in (value, *(interval or ())) if one is not None]
        made.append(objective_scale(objective, values))
    return made[0], made[1]


def _draw_candidates(
    axes: Axes,
    some: Sequence[Candidate],
    front: Sequence[Candidate],
    scales: tuple[Scale, Scale],
    *,
    is_plane: bool,
) -> None:
    search_axes.dots(axes, some, *_at(some, scales), 0.45)
    style: Any = _FRONT if is_plane else _FRONT | {"linestyle": "none"}
    axes.plot(*_at(front, scales), zorder=3.5, **style)


def _at(some: Sequence[Candidate], scales: tuple[Scale, Scale]) -> tuple[list[float], list[float]]:
    return [scales[0].at(c.values[0]) for c in some], [scales[1].at(c.values[1]) for c in some]


def _draw_confirmed(
    axes: Axes,
    search: SearchFindings,
    rows: ResultRows,
    candidate: Candidate,
    row: int,
    scales: tuple[Scale, Scale],
) -> None:
    """Lead from what the search saw to what fresh seeds say."""
    ((before_x,), (before_y,)) = _at([candidate], scales)
    search_axes.seen(axes, [before_x], [before_y])
    (x, across), (y, up) = (_fresh(search, rows, row, i, scales[i]) for i in range(2))
    if x is not None and y is not None:
        style: Any = {"color": CONFIRMED, "linewidth": 0.6, "linestyle": (0, (3, 2)), "zorder": 4}
        axes.plot([before_x, x], [before_y, y], **style)
        search_axes.fresh(axes, x, y, across, up)


def _fresh(
    search: SearchFindings, rows: ResultRows, row: int, i: int, scale: Scale
) -> tuple[float | None, Interval | None]:
    value, interval = search_names.MEASURED[search.objectives[i].name].of(rows.summaries[row])
    at = None if value is None else scale.at(value)
    return at, None if interval is None else (scale.at(interval[0]), scale.at(interval[1]))


def _told(
    search: SearchFindings, rows: ResultRows, some: Sequence[Candidate], scales: tuple[Scale, Scale]
) -> list[tuple[float, float, str]]:
    told = []
    for candidate, row in search_names.confirmed(search):
        (x, _), (y, _) = (_fresh(search, rows, row, i, scales[i]) for i in range(2))
        text = search_axes.fresh_text(search, candidate.number, rows.summaries[row])
        told.append((math.nan if x is None else x, math.nan if y is None else y, text))
    at = zip(some, *_at(some, scales), strict=True)
    return told + [(x, y, search_names.described(search, candidate)) for candidate, x, y in at]


def _caption(search: SearchFindings, shown: int) -> str:
    sentences = [
        "Candidates by what they were worth in the search; none is better in all respects than one of the front."
    ]
    if len(search.objectives) > 2:
        rest = ", ".join(objective.title for objective in search.objectives[2:])
        sentences.append(f"What else was sought ({rest}) counts for the front and isn't seen here.")
    sentences.append(CAUTION)
    if search_names.confirmed(search):
        sentences.append(
            "Dashes lead from a confirmed candidate to what fresh seeds say of it, an estimate with its 95% intervals: "
            "as an estimate it may look better than the end of an interval did."
        )
        sentences += filter(None, [search_names.objectives_note(search)])
    else:
        sentences.append("No candidate has been confirmed yet.")
    if shown < len(search.candidates):
        sentences.append(f"{shown:,} of {len(search.candidates):,} candidates are shown, the front among them.")
    return " ".join(sentences)
