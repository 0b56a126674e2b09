"""How a search went: what each candidate was worth, in the order of suggestion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from study.analysis.rows import ResultRows
from study.analysis.search import Candidate, Objective, SearchFindings
from study.report.figures import axes as axes_of
from study.report.figures.multiples import MOST_TIPS, place
from study.report.figures.style import INK, RULE, STYLE, WIDTH_IN, Drawn, Tips
from study.report.search import names as search_names
from study.report.search.figures import axes as search_axes
from study.report.search.figures.axes import CAUTION, MOST_DOTS, Scale, objective_scale

_RIGHT_IN, _ABOVE_IN, _BETWEEN_IN, _BELOW_IN = 0.1, 0.1, 0.14, 0.4
_ALONE_IN, _BESIDE_IN = 2.3, 1.6
"""Height of a panel."""
_MOST_ROUNDS = 60
"""That are set apart."""


def draw(search: SearchFindings | None, rows: ResultRows) -> Drawn | None:
    """Draw each candidate's value against its number, the best so far, and what fresh seeds say; a panel an objective.

    Args:
        search: what was tried.
        rows: what fresh seeds came to.

    Returns:
        None where nothing was tried.
    """
    if search is None or not search.candidates:
        return None
    some = search_names.selected(search, MOST_DOTS // len(search.objectives))
    height = _ALONE_IN if len(search.objectives) == 1 else _BESIDE_IN
    handles = [
        *search_axes.sizes([candidate.seeds for candidate in some]),
        Line2D([], [], color=INK, linewidth=0.9, label="best so far"),
        *([search_axes.seen_handle(), search_axes.fresh_handle(search)] if search_names.confirmed(search) else []),
    ]
    below = _BELOW_IN + axes_of.legend_in(handles)
    count = len(search.objectives)
    scales = [objective_scale(o, _values(search, rows, i)) for i, o in enumerate(search.objectives)]
    left = search_axes.left_in(scales, height)
    tips = Tips()
    with mpl.rc_context(STYLE):
        tall = _ABOVE_IN + count * height + (count - 1) * _BETWEEN_IN + below
        figure = Figure(figsize=(WIDTH_IN, tall))
        for i, scale in enumerate(scales):
            top = _ABOVE_IN + i * (height + _BETWEEN_IN)
            axes = place(figure, left, top, WIDTH_IN - left - _RIGHT_IN, height)
            _part_rounds(axes, search)
            _draw_candidates(axes, search, some, i, scale)
            _draw_confirmed(axes, search, rows, i, scale)
            scale.up(axes, height)
            axes.set_xlim(-1, search.candidates[-1].number + 1)
            axes.tick_params(labelbottom=i == count - 1)
            _tell(axes, search, rows, some, i, scale, tips, MOST_TIPS // count)
        axes.set_xlabel("candidate, in the order of suggestion")
        axes_of.legend(figure, handles)
    return Drawn("search-history", "How the search went", _caption(search, len(some)), figure, tips)


def best_so_far(objective: Objective, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give the best of the values up to each.

    Example:
        >>> best_so_far(Objective(name="solved_at", title="", is_sought_high=False), np.array([3.0, 4.0, 2.0]))
        array([3., 3., 2.])
    """
    best = np.maximum if objective.is_sought_high else np.minimum
    return best.accumulate(values)


def _values(search: SearchFindings, rows: ResultRows, i: int) -> list[float]:
    """List all that a panel shows: the search's values, and the fresh seeds' with their intervals."""
    found = [candidate.values[i] for candidate in search.candidates]
    for _, row in search_names.confirmed(search):
        value, interval = search_names.MEASURED[search.objectives[i].name].of(rows.summaries[row])
        found += [one for one in (value, *(interval or ())) if one is not None]
    return found


def _part_rounds(axes: Axes, search: SearchFindings) -> None:
    starts = [b.number - 0.5 for a, b in pairwise(search.candidates) if b.round != a.round]
    for start in starts if len(starts) < _MOST_ROUNDS else ():
        axes.axvline(start, color=RULE, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)


def _draw_candidates(axes: Axes, search: SearchFindings, some: Sequence[Candidate], i: int, scale: Scale) -> None:
    places = [candidate.number for candidate in some], [scale.at(candidate.values[i]) for candidate in some]
    search_axes.dots(axes, some, *places, 0.6)
    best = best_so_far(search.objectives[i], np.array([c.values[i] for c in search.candidates]))
    line = [scale.at(value) for value in best]
    axes.step([c.number for c in search.candidates], line, where="post", color=INK, linewidth=0.9, zorder=2)


def _draw_confirmed(axes: Axes, search: SearchFindings, rows: ResultRows, i: int, scale: Scale) -> None:
    measured = search_names.MEASURED[search.objectives[i].name]
    for candidate, row in search_names.confirmed(search):
        search_axes.seen(axes, [candidate.number], [scale.at(candidate.values[i])])
        value, interval = measured.of(rows.summaries[row])
        if value is not None:
            ends = None if interval is None else (scale.at(interval[0]), scale.at(interval[1]))
            search_axes.fresh(axes, candidate.number, scale.at(value), None, ends)


def _tell(
    axes: Axes,
    search: SearchFindings,
    rows: ResultRows,
    some: Sequence[Candidate],
    i: int,
    scale: Scale,
    tips: Tips,
    most: int,
) -> None:
    told = []
    for candidate, row in search_names.confirmed(search):
        summary = rows.summaries[row]
        value, _ = search_names.MEASURED[search.objectives[i].name].of(summary)
        text = search_axes.fresh_text(search, candidate.number, summary)
        told.append((candidate.number, math.nan if value is None else scale.at(value), text))
    told += [(c.number, scale.at(c.values[i]), search_names.described(search, c)) for c in some]
    for x, y, text in told[:most]:
        tips.add(axes, x, y, text)


def _caption(search: SearchFindings, shown: int) -> str:
    sentences = [
        "Candidates in the order in which they were suggested; dashed lines part the rounds, within which they were "
        "compared.",
        CAUTION,
    ]
    if search_names.confirmed(search):
        sentences.append(
            "What fresh seeds say is an estimate with its 95% interval, and is what a candidate is worth; it isn't the "
            "end of an interval, so that it may well look better than what the search saw."
        )
        sentences += filter(None, [search_names.objectives_note(search)])
    else:
        sentences.append("No candidate has been confirmed yet.")
    numbers = search.candidates[-1].number + 1
    if numbers > len(search.candidates):
        sentences.append("A number without a dot was a suggestion that can't be, or that was known.")
    if shown < len(search.candidates):
        sentences.append(f"{shown:,} of {len(search.candidates):,} candidates are shown, the front among them.")
    return " ".join(sentences)
