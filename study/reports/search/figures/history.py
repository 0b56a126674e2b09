"""The course of a search: each candidate's values, in the order of suggestion."""

from __future__ import annotations

import math
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.lines import Line2D

from study.reports.figures.multiples import MOST_TIPS, grid
from study.reports.figures.style import INK, RULE, STYLE, Drawn, Tips
from study.reports.search import names as search_names
from study.reports.search.figures import axes as search_axes
from study.reports.search.figures.axes import CAUTION, MOST_DOTS
from study.summaries.rows import ResultRows
from study.summaries.search import Objective, SearchFindings

_ALONE_IN, _BESIDE_IN = 2.3, 1.6
"""The height of a panel."""
_X = "candidate, in the order of suggestion"
_MOST_ROUNDS = 60
"""The most rounds separated by lines."""


def plot(search: SearchFindings | None, rows: ResultRows) -> Drawn | None:
    """Draw candidates' values by number, the best so far, and the estimates by fresh seeds, for each objective.

    Returns:
        The figure; None without a search, or without candidates.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    if search is None or not search.candidates:
        return None
    candidates = search_names.selected(search, MOST_DOTS // len(search.objectives))
    height = _ALONE_IN if len(search.objectives) == 1 else _BESIDE_IN
    handles = [
        *search_axes.sizes([candidate.seeds for candidate in candidates]),
        Line2D([], [], color=INK, linewidth=0.9, label="best so far"),
        *search_axes.confirmed_handles(search, with_fresh=True),
    ]
    starts = [b.number - 0.5 for a, b in pairwise(search.candidates) if b.round != a.round]
    count = len(search.objectives)
    scales = search_axes.objective_scales(search, rows)
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure, panels = grid([""] * count, height, handles, across=1, x=_X, sharey=False)
        for i, (axes, scale) in enumerate(zip(panels, scales, strict=True)):
            for start in starts if len(starts) < _MOST_ROUNDS else ():
                axes.axvline(start, color=RULE, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
            search_axes.dots(
                axes, candidates, [c.number for c in candidates], [scale.at(c.values[i]) for c in candidates], 0.6
            )
            best = best_so_far(search.objectives[i], np.array([c.values[i] for c in search.candidates]))
            line, numbers = [scale.at(value) for value in best], [c.number for c in search.candidates]
            axes.step(numbers, line, where="post", color=INK, linewidth=0.9, zorder=2)
            for candidate, row in search_names.confirmed(search):
                search_axes.mark_confirmed(axes, [candidate.number], [scale.at(candidate.values[i])])
                place, ends = search_axes.fresh_place(search, rows, row, i, scale)
                if math.isfinite(place):
                    search_axes.mark_fresh(axes, candidate.number, place, None, ends)
            scale.up(axes, height)
            search_axes.add_tips(axes, search, rows, candidates, {i: scale}, tips, MOST_TIPS // count)
        axes.set_xlim(-1, search.candidates[-1].number + 1)
    return Drawn("search-history", "Course of the search", _caption(search, rows, len(candidates)), figure, tips)


def best_so_far(objective: Objective, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return, for each value, the best of the values up to it; NaN from the first NaN on.

    Example:
        >>> best_so_far(Objective(name="solved_at", title="", is_higher_better=False), np.array([3.0, 4.0, 2.0]))
        array([3., 3., 2.])
    """
    best = np.maximum if objective.is_higher_better else np.minimum
    return best.accumulate(values)


def _caption(search: SearchFindings, rows: ResultRows, count: int) -> str:
    sentences = [
        "Candidates in the order in which they were suggested. Dashed lines separate the rounds: candidates were "
        "compared within a round.",
        CAUTION,
    ]
    fresh = (
        "Diamonds are estimates by fresh seeds, with 95% intervals: they say how good a candidate is. They may lie "
        "above the search's value of the same candidate, which is the end of an interval."
    )
    sentences += search_axes.confirmed_notes(search, rows, fresh)
    numbers = search.candidates[-1].number + 1
    if numbers > len(search.candidates):
        sentences.append("A number without a dot was an impossible suggestion, or a repeated one.")
    return " ".join(sentences + search_axes.part_of(search, count))
