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
"""The height of a single panel, and of one among many."""
_DOT_PT2 = 13.0
_SPREAD = 0.5
"""The share of a name's place over which its candidates are spread."""
_GOLDEN = 0.6180339887


def plot(search: SearchFindings | None, rows: ResultRows) -> Drawn | None:
    """Draw candidates' values against the most important parameters, with a panel for each objective and parameter.

    Returns:
        The figure; None without a search, candidates or parameters.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    if search is None or not search.candidates:
        return None
    parameters = [p for p in search.parameters if any(p.name in c.params for c in search.candidates)]
    count = len(search.objectives)
    # The most important parameters, in the search's order.
    ranked = sorted(parameters, key=lambda parameter: -search_names.importance(search, parameter.name))
    first = [parameter for parameter in parameters if parameter in ranked[: max(1, MOST_PANELS // count)]]
    if not first:
        return None
    selected = search_names.selected(search, MOST_DOTS // (len(first) * count))
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
                candidates = [c for c in selected if parameter.name in c.params]
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
    caption = _caption(search, first, len(selected)) + left_out(len(first), len(parameters), "parameters")
    return Drawn("search-slices", "Values of candidates by parameter", caption, figure, tips)


def _places(parameter: Parameter, scale: Scale, candidates: Sequence[Candidate]) -> list[float]:
    """Place candidates on the axis; those with the same name are spread, so that they can be distinguished."""
    spread = [
        _SPREAD * (math.modf(c.number * _GOLDEN)[0] - 0.5) if scale.parameter is not None else 0.0 for c in candidates
    ]
    return [scale.at(c.params[parameter.name]) + aside for c, aside in zip(candidates, spread, strict=True)]


def _caption(search: SearchFindings, first: Sequence[Parameter], dots: int) -> str:
    sentences = ["Candidates by their values of each parameter; the other parameters vary, too."]
    if any(p.name not in c.params for p in first for c in search.candidates):
        sentences.append("A parameter that only some candidates have is shown for those.")
    if any(p.choices for p in first):
        sentences.append("Within a name, dots are spread sideways so that they don't hide each other.")
    sentences.append(
        "The sampler concentrates on good values, so the density of dots reflects its choices: they aren't a uniform "
        "sample of the range."
    )
    sentences.append(CAUTION)
    return " ".join(sentences + search_axes.part_of(search, dots))
