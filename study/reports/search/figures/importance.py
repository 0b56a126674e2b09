"""The importance of each parameter of a search."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.patches import Patch

from study.reports.figures import texts
from study.reports.figures.multiples import grid, left_out
from study.reports.figures.style import PALETTE, STYLE, Drawn, Tips
from study.reports.search import names as search_names
from study.summaries.search import SearchFindings

_COLOURS = (PALETTE[0], PALETTE[2], PALETTE[3], PALETTE[4])
"""The colours of objectives, without the orange of confirmed candidates."""
_MOST_PARAMETERS = 20
_BAR_IN, _GAP_IN, _NAME_IN = 0.13, 0.11, 2.5
_WRITTEN_PT = 6.5


def plot(search: SearchFindings | None) -> Drawn | None:
    """Draw a bar for each objective and each of the 20 most important parameters: its share of all importance.

    Objectives with unknown importance are left out.

    Returns:
        The figure; None without a search, or if the importance is unknown.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    parameters = [] if search is None else search_names.by_importance(search)
    if search is None or not parameters:
        return None
    first = parameters[:_MOST_PARAMETERS]
    objectives = [objective for objective in search.objectives if objective.name in search.importance]
    each = _BAR_IN * len(objectives) + _GAP_IN
    handles: list[Artist] = [
        Patch(color=_COLOURS[slot % len(_COLOURS)], linewidth=0, label=search_names.measured(objective).title)
        for slot, objective in enumerate(objectives)
        if len(objectives) > 1
    ]
    height, titles = each * len(first), [search_names.title(search.parameter(name)) for name in first]
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure, (axes,) = grid([""], height, handles, x="importance, as a share of all")
        for slot, objective in enumerate(objectives):
            colour, shares = _COLOURS[slot % len(_COLOURS)], search.importance[objective.name]
            for line, name in enumerate(first):
                share = shares.get(name, 0.0)
                at = line * each + _GAP_IN / 2 + (slot + 0.5) * _BAR_IN
                axes.barh(at, share, height=0.86 * _BAR_IN, color=colour, linewidth=0)
                axes.text(share + 0.006, at, f"{share:.2f}", va="center_baseline", fontsize=_WRITTEN_PT)
                text = f"{titles[line]}: {share:.2f} of the importance for {objective.title}"
                tips.add_field(axes, 0, at - _BAR_IN / 2, max(share, 0.01), at + _BAR_IN / 2, text)
        axes.set_ylim(height, 0)
        names = [texts.fit(title, _NAME_IN) for title in titles]
        axes.set_yticks([(line + 0.5) * each for line in range(len(first))], names)
        axes.set_xlim(0, 1.06 * max(max(by_parameter.values()) for by_parameter in search.importance.values()))
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    caption = _caption(search) + left_out(len(first), len(parameters), "parameters")
    return Drawn("search-importance", "Parameter importance", caption, figure, tips)


def _caption(search: SearchFindings) -> str:
    text = (
        "Importance by PED-ANOVA: the difference of the distributions of the best tenth and of all candidates, as a "
        "share of all such differences. It shows where good candidates are, not the effect of a change, and is rough "
        "with few candidates. Values that the sampler avoided from the start can't appear important."
    )
    lacking = len(search.parameters) - len(search_names.by_importance(search))
    return f"{text} Only parameters that all candidates have are compared." if lacking else text
