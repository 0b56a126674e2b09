"""Two objectives against each other: the Pareto front, and its estimates by fresh seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from study.reports.figures.multiples import MOST_TIPS, grid, panel_in
from study.reports.figures.style import STYLE, Drawn, Tips
from study.reports.search import names as search_names
from study.reports.search.figures import axes as search_axes
from study.reports.search.figures.axes import CANDIDATE, CAUTION, CONFIRMED, MOST_DOTS, Scale
from study.summaries.rows import ResultRows
from study.summaries.search import Candidate, SearchFindings

_HEIGHT_IN = 3.0
_FRONT: dict[str, Any] = {"color": CANDIDATE, "linewidth": 1.0, "marker": "o", "markersize": 3.2}


def plot(search: SearchFindings | None, rows: ResultRows) -> Drawn | None:
    """Draw candidates by their first two values, the front, and the confirmed candidates with their intervals.

    Returns:
        The figure; None without a search, with one objective, or without candidates.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    if search is None or len(search.objectives) < 2 or not search.candidates:
        return None
    candidates = search_names.selected(search, MOST_DOTS)
    front = sorted((c for c in search.candidates if c.number in search.front), key=lambda c: c.values[:2])
    x_scale, y_scale, *_ = scales = search_axes.objective_scales(search, rows)
    handles: list[Artist] = [
        *search_axes.sizes([candidate.seeds for candidate in candidates]),
        Line2D([], [], label="front", **_FRONT),
        *search_axes.confirmed_handles(search, with_fresh=True),
    ]
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure, (axes,) = grid([""], _HEIGHT_IN, handles)
        axes.grid(visible=True, axis="both")
        search_axes.dots(axes, candidates, *_at(candidates, scales), 0.45)
        style = _FRONT if len(search.objectives) == 2 else _FRONT | {"linestyle": "none"}
        axes.plot(*_at(front, scales), zorder=3.5, **style)
        for candidate, row in search_names.confirmed(search):
            _plot_confirmed(axes, search, rows, candidate, row, scales)
        x_scale.across(axes, panel_in(1))
        y_scale.up(axes, _HEIGHT_IN)
        search_axes.add_tips(axes, search, rows, candidates, dict(enumerate(scales[:2])), tips, MOST_TIPS)
    return Drawn("search-front", "Trade-off between objectives", _caption(search, rows, len(candidates)), figure, tips)


def _at(candidates: Sequence[Candidate], scales: Sequence[Scale]) -> tuple[list[float], list[float]]:
    return [scales[0].at(c.values[0]) for c in candidates], [scales[1].at(c.values[1]) for c in candidates]


def _plot_confirmed(
    axes: Axes, search: SearchFindings, rows: ResultRows, candidate: Candidate, row: int, scales: Sequence[Scale]
) -> None:
    """Mark a candidate's values in the search and its estimates by fresh seeds, if known, joined by a line."""
    ((before_x,), (before_y,)) = _at([candidate], scales)
    search_axes.mark_confirmed(axes, [before_x], [before_y])
    (x, across), (y, up) = (search_axes.fresh_place(search, rows, row, i, scales[i]) for i in range(2))
    if math.isfinite(x) and math.isfinite(y):
        style: Any = {"color": CONFIRMED, "linewidth": 0.6, "linestyle": (0, (3, 2)), "zorder": 4}
        axes.plot([before_x, x], [before_y, y], **style)
        search_axes.mark_fresh(axes, x, y, across, up)


def _caption(search: SearchFindings, rows: ResultRows, count: int) -> str:
    sentences = ["Candidates by their values in the search; no candidate beats one of the front in all objectives."]
    if len(search.objectives) > 2:
        others = ", ".join(objective.title for objective in search.objectives[2:])
        sentences.append(f"Other objectives ({others}) count for the front and aren't shown here.")
    fresh = (
        "Dashed lines lead from a confirmed candidate to its estimate by fresh seeds, with 95% intervals. The estimate "
        "may look better than the value in the search, which is the end of an interval."
    )
    sentences += [CAUTION, *search_axes.confirmed_notes(search, rows, fresh)]
    return " ".join(sentences + search_axes.part_of(search, count))
