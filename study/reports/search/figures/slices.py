"""The values of candidates against each parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.colors import to_rgba

from study.reports.figures.multiples import MOST_PANELS, MOST_TIPS, columns, grid, left_out, panel_in
from study.reports.figures.style import STYLE, Drawn, Tips
from study.reports.search import names as search_names
from study.reports.search.figures import axes as search_axes
from study.reports.search.figures.axes import CANDIDATE, CAUTION, MOST_DOTS, Scale, parameter_scale
from study.summaries.rows import ResultRows
from study.summaries.search import Candidate, Parameter, SearchFindings

_TALL_IN, _LOW_IN = 1.9, 1.65
"""Height of a panel that is alone, and of one among many."""
_DOT_PT2 = 13.0
_SPREAD = 0.5
"""Share of a name's place over which its candidates are spread."""
_GOLDEN = 0.6180339887


def plot(search: SearchFindings | None, rows: ResultRows) -> Drawn | None:
    """Draw each candidate's value against each parameter that it has; a panel a parameter, a group an objective.

    Returns:
        None if there is no candidate.
    """
    if search is None or not search.candidates:
        return None
    parameters = [p for p in search.parameters if any(p.name in c.params for c in search.candidates)]
    count = len(search.objectives)
    # The most important ones, in their order.
    ranked = sorted(parameters, key=lambda one: -search_names.importance(search, one.name))
    first = [one for one in parameters if one in ranked[: max(1, MOST_PANELS // count)]]
    if not first:
        return None
    some = search_names.selected(search, MOST_DOTS // (len(first) * count))
    scales = {p.name: parameter_scale(p) for p in first}
    handles = [*search_axes.shades(), *search_axes.confirmed_handles(search, with_fresh=False)]
    across, last = columns(len(first)), search.candidates[-1].number
    down = -(-len(first) // across)
    height = _TALL_IN if down * count == 1 else _LOW_IN
    titles = [*[""] * len(first), *[None] * (down * across - len(first))] * count
    upright_in = [0.0] * (count * down)
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure, panels = grid(titles, height, handles, across=across, sharex=False)
        for i, up in enumerate(search_axes.objective_scales(search)):
            for number, parameter in enumerate(first):
                axes = panels[i * len(first) + number]
                if number % across == 0:
                    up.up(axes, height)
                candidates = [c for c in some if parameter.name in c.params]
                x = _places(parameter, scales[parameter.name], candidates)
                y = [up.at(c.values[i]) for c in candidates]
                colours = [to_rgba(CANDIDATE, search_axes.shade(c.number, last)) for c in candidates]
                axes.scatter(x, y, s=_DOT_PT2, color=colours, linewidths=0, zorder=3)
                search_axes.mark_among(axes, search, candidates, x, y)
                row = i * down + number // across
                upright_in[row] = max(upright_in[row], scales[parameter.name].across(axes, panel_in(across)))
                most = MOST_TIPS // (len(first) * count)
                for candidate, at, value in list(zip(candidates, x, y, strict=True))[-most:]:
                    tips.add(axes, at, value, search_names.described(search, candidate))
        figure.set_figheight(figure.get_figheight() + sum(upright_in))
    caption = _caption(search, first, len(some)) + left_out(len(first), len(parameters), "parameters")
    return Drawn("search-slices", "What candidates were worth, by what was chosen", caption, figure, tips)


def _places(parameter: Parameter, scale: Scale, some: Sequence[Candidate]) -> list[float]:
    """Place candidates on the axis; those with the same name are spread, so that they can be distinguished."""
    spread = [_SPREAD * (math.modf(c.number * _GOLDEN)[0] - 0.5) if scale.parameter is not None else 0.0 for c in some]
    return [scale.at(c.params[parameter.name]) + aside for c, aside in zip(some, spread, strict=True)]


def _caption(search: SearchFindings, first: Sequence[Parameter], dots: int) -> str:
    sentences = ["Candidates against what was chosen; all else varies, too."]
    if any(p.name not in c.params for p in first for c in search.candidates):
        sentences.append("What applies to some candidates only is shown of those.")
    if any(p.choices for p in first):
        sentences.append("Within a name, dots are spread sideways so that they don't hide each other.")
    sentences.append(
        "The sampler goes where it found good values: that dots are many somewhere is its choice, and what they show "
        "there is no sample of the range."
    )
    sentences.append(CAUTION)
    return " ".join(sentences + search_axes.part_of(search, dots))
