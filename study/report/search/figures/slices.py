"""What candidates were worth against each parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from study.analysis.rows import ResultRows
from study.analysis.search import Candidate, Parameter, SearchFindings
from study.report.figures import axes as axes_of
from study.report.figures.multiples import MOST_PANELS, MOST_TIPS, columns, left_out, place
from study.report.figures.style import STYLE, WIDTH_IN, Drawn, Tips, plain
from study.report.search import names as search_names
from study.report.search.figures import axes as search_axes
from study.report.search.figures.axes import (
    CANDIDATE,
    CAUTION,
    MOST_DOTS,
    Scale,
    objective_scale,
    parameter_scale,
)

_RIGHT_IN, _ABOVE_IN, _BETWEEN_IN = 0.1, 0.1, 0.18
_TALL_IN, _LOW_IN = 1.7, 1.35
"""Height of a panel; of one among many."""
_TITLE_IN, _TICK_IN = 0.2, 0.16
"""Under a panel: its axis' title, and texts at ticks that stand upright."""
_LETTER_IN = 0.055
_MOST_LETTERS = 12
_DOT_PT2 = 13.0
_SPREAD = 0.5
"""Of a name's place, over which its candidates are spread."""
_GOLDEN = 0.6180339887


def draw(search: SearchFindings | None, rows: ResultRows) -> Drawn | None:
    """Draw each candidate's value against each parameter that it has; a panel a parameter, a group an objective.

    Args:
        search: what was tried.
        rows: of the report.

    Returns:
        None where nothing was tried.
    """
    if search is None or not search.candidates:
        return None
    found = [p for p in search.parameters if any(p.name in c.params for c in search.candidates)]
    count = len(search.objectives)
    shown = _chosen(search, found, max(1, MOST_PANELS // count))
    if not shown:
        return None
    some = search_names.selected(search, MOST_DOTS // (len(shown) * count))
    scales = {p.name: parameter_scale(p) for p in shown}
    handles = [
        *search_axes.shades(),
        *([search_axes.seen_handle()] if search_names.confirmed(search) else []),
    ]
    across = columns(len(shown))
    down = -(-len(shown) // across)
    height = _TALL_IN if down * count == 1 else _LOW_IN
    ups = [
        objective_scale(objective, [candidate.values[i] for candidate in search.candidates])
        for i, objective in enumerate(search.objectives)
    ]
    before = search_axes.left_in(ups, height)
    width = (WIDTH_IN - before - _RIGHT_IN - (across - 1) * _BETWEEN_IN) / across
    upright = {name for name, scale in scales.items() if _is_crowded(scale, width)}
    letters = max((_longest(scales[name]) for name in upright), default=0)
    each = height + _TITLE_IN + max(_TICK_IN, _LETTER_IN * letters) + _ABOVE_IN
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, down * count * each + axes_of.legend_in(handles) + 0.05))
        for i, up in enumerate(ups):
            for number, parameter in enumerate(shown):
                left = before + number % across * (width + _BETWEEN_IN)
                top = (i * down + number // across) * each + _ABOVE_IN
                axes = place(figure, left, top, width, height)
                there = [c for c in some if parameter.name in c.params]
                places = _places(parameter, scales[parameter.name], there)
                _draw_dots(axes, search, there, places, [up.at(c.values[i]) for c in there])
                up.up(axes, height)
                _dress(axes, scales[parameter.name], is_upright=parameter.name in upright)
                if number % across:
                    axes.set_ylabel("")
                    axes.tick_params(labelleft=False)
                most = MOST_TIPS // (len(shown) * count)
                for candidate, x in list(zip(there, places, strict=True))[-most:]:
                    tips.add(axes, x, up.at(candidate.values[i]), search_names.described(search, candidate))
        axes_of.legend(figure, handles)
    caption = _caption(search, shown, len(some)) + left_out(len(shown), len(found), "parameters")
    return Drawn("search-slices", "What candidates were worth, by what was chosen", caption, figure, tips)


def _chosen(search: SearchFindings, found: Sequence[Parameter], most: int) -> list[Parameter]:
    """Choose the parameters to show: all, or the most important, in their order."""
    if len(found) <= most:
        return list(found)
    ranked = sorted(found, key=lambda parameter: -search_names.importance(search, parameter.name))[:most]
    return [parameter for parameter in found if parameter in ranked]


def _places(parameter: Parameter, scale: Scale, some: Sequence[Candidate]) -> list[float]:
    """Place candidates on the axis; those of a name beside each other, where they can be told apart."""
    spread = [_SPREAD * (math.modf(c.number * _GOLDEN)[0] - 0.5) if scale.names else 0.0 for c in some]
    return [scale.at(c.params[parameter.name]) + aside for c, aside in zip(some, spread, strict=True)]


def _draw_dots(
    axes: Axes, search: SearchFindings, some: Sequence[Candidate], x: Sequence[float], y: Sequence[float]
) -> None:
    last = search.candidates[-1].number
    axes.scatter(
        x,
        y,
        s=_DOT_PT2,
        color=[to_rgba(CANDIDATE, search_axes.shade(candidate.number, last)) for candidate in some],
        linewidths=0,
        zorder=3,
    )
    confirmed = [i for i, candidate in enumerate(some) if candidate.number in search.rows]
    if confirmed:
        search_axes.seen(axes, [x[i] for i in confirmed], [y[i] for i in confirmed])


def _is_crowded(scale: Scale, width_in: float) -> bool:
    """Say whether names are too wide to stand beside each other."""
    needed: Any = sum(axes_of.width_pt(plain(text)) + 6 for text in scale.ticks.values())
    return bool(scale.names) and needed > 72 * width_in


def _longest(scale: Scale) -> int:
    return min(_MOST_LETTERS, max(map(len, scale.ticks.values())))


def _dress(axes: Axes, across: Scale, *, is_upright: bool) -> None:
    across.across(axes)
    if is_upright:
        texts = [
            text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…" for text in across.ticks.values()
        ]
        axes.set_xticks(list(across.ticks), [plain(text) for text in texts], rotation=90, fontsize=6)


def _caption(search: SearchFindings, shown: Sequence[Parameter], dots: int) -> str:
    sentences = ["Candidates against what was chosen; all else varies, too."]
    if any(p.name not in c.params for p in shown for c in search.candidates):
        sentences.append("What applies to some candidates only is shown of those.")
    if any(p.choices for p in shown):
        sentences.append("Within a name, dots are spread sideways to be told apart.")
    sentences.append(
        "The sampler goes where it found good values: that dots are many somewhere is its choice, and what they show "
        "there is no sample of the range."
    )
    sentences.append(CAUTION)
    if dots < len(search.candidates):
        sentences.append(f"{dots:,} of {len(search.candidates):,} candidates are shown, the front among them.")
    return " ".join(sentences)
