"""The course of a search: each candidate's values, in the order of suggestion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from study.reports.figures.multiples import MOST_TIPS, grid
from study.reports.figures.style import INK, RULE, STYLE, Drawn, Tips
from study.reports.search import names as search_names
from study.reports.search.figures import axes as search_axes
from study.reports.search.figures.axes import CAUTION, MOST_DOTS, Scale
from study.summaries.rows import ResultRows
from study.summaries.search import Candidate, Objective, SearchFindings

_ALONE_IN, _BESIDE_IN = 2.3, 1.6
"""Height of a panel."""
_X = "candidate, in the order of suggestion"
_MOST_ROUNDS = 60
"""The most rounds that lines separate."""


def plot(search: SearchFindings | None, rows: ResultRows) -> Drawn | None:
    """Draw candidates' values against their numbers, the best so far, and estimates by fresh seeds, for each objective.

    Returns:
        None if there is no candidate.
    """
    if search is None or not search.candidates:
        return None
    some = search_names.selected(search, MOST_DOTS // len(search.objectives))
    height = _ALONE_IN if len(search.objectives) == 1 else _BESIDE_IN
    handles = [
        *search_axes.sizes([candidate.seeds for candidate in some]),
        Line2D([], [], color=INK, linewidth=0.9, label="best so far"),
        *search_axes.confirmed_handles(search, with_fresh=True),
    ]
    count = len(search.objectives)
    scales = search_axes.objective_scales(search, rows)
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure, panels = grid([""] * count, height, handles, across=1, x=_X, sharey=False)
        for i, (axes, scale) in enumerate(zip(panels, scales, strict=True)):
            _part_rounds(axes, search)
            _plot_candidates(axes, search, some, i, scale)
            _plot_confirmed(axes, search, rows, i, scale)
            scale.up(axes, height)
            for x, y, text in _texts(search, rows, some, i, scale)[: MOST_TIPS // count]:
                tips.add(axes, x, y, text)
        axes.set_xlim(-1, search.candidates[-1].number + 1)
    return Drawn("search-history", "How the search went", _caption(search, rows, len(some)), figure, tips)


def best_so_far(objective: Objective, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute the best of the values up to each.

    Example:
        >>> best_so_far(Objective(name="solved_at", title="", is_higher_better=False), np.array([3.0, 4.0, 2.0]))
        array([3., 3., 2.])
    """
    best = np.maximum if objective.is_higher_better else np.minimum
    return best.accumulate(values)


def _part_rounds(axes: Axes, search: SearchFindings) -> None:
    starts = [b.number - 0.5 for a, b in pairwise(search.candidates) if b.round != a.round]
    for start in starts if len(starts) < _MOST_ROUNDS else ():
        axes.axvline(start, color=RULE, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)


def _plot_candidates(axes: Axes, search: SearchFindings, some: Sequence[Candidate], i: int, scale: Scale) -> None:
    places = [candidate.number for candidate in some], [scale.at(candidate.values[i]) for candidate in some]
    search_axes.dots(axes, some, *places, 0.6)
    best = best_so_far(search.objectives[i], np.array([c.values[i] for c in search.candidates]))
    line = [scale.at(value) for value in best]
    axes.step([c.number for c in search.candidates], line, where="post", color=INK, linewidth=0.9, zorder=2)


def _plot_confirmed(axes: Axes, search: SearchFindings, rows: ResultRows, i: int, scale: Scale) -> None:
    for candidate, row in search_names.confirmed(search):
        search_axes.mark_confirmed(axes, [candidate.number], [scale.at(candidate.values[i])])
        place, ends = search_axes.fresh_place(search, rows, row, i, scale)
        if math.isfinite(place):
            search_axes.mark_fresh(axes, candidate.number, place, None, ends)


def _texts(
    search: SearchFindings, rows: ResultRows, some: Sequence[Candidate], i: int, scale: Scale
) -> list[tuple[float, float, str]]:
    """Return the places of texts and the texts, those of fresh seeds first."""
    marks: list[tuple[float, float, str]] = []
    for candidate, row in search_names.confirmed(search):
        place, _ = search_axes.fresh_place(search, rows, row, i, scale)
        text = search_axes.fresh_text(search, candidate.number, rows.summaries[row])
        marks.append((candidate.number, place, text))
    return marks + [(c.number, scale.at(c.values[i]), search_names.described(search, c)) for c in some]


def _caption(search: SearchFindings, rows: ResultRows, count: int) -> str:
    sentences = [
        "Candidates in the order in which they were suggested. Dashed lines separate the rounds: candidates were "
        "compared within a round.",
        CAUTION,
    ]
    if search_names.confirmed(search):
        sentences.append(
            "Diamonds are estimates by fresh seeds, with 95% intervals: they say how good a candidate is. They may lie "
            "above the search's value of the same candidate, which is the end of an interval."
        )
        sentences += filter(None, [search_names.objectives_note(search, rows.metrics)])
    else:
        sentences.append("No candidate has been confirmed yet.")
    numbers = search.candidates[-1].number + 1
    if numbers > len(search.candidates):
        sentences.append("A number without a dot was a suggestion that can't be, or that was known.")
    return " ".join(sentences + search_axes.part_of(search, count))
