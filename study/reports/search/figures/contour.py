"""The values of candidates over the two most important numeric parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation

from study.reports.figures.multiples import MOST_TIPS, colour_scale, grid, panel_in
from study.reports.figures.style import STYLE, Drawn, Tips, text_on
from study.reports.search import names as search_names
from study.reports.search.figures import axes as search_axes
from study.reports.search.figures.axes import CAUTION, Scale, objective_scales, parameter_scale
from study.summaries.search import Candidate, Parameter, SearchFindings

Floats = npt.NDArray[np.float64]

_FEWEST = 10
_MOST = 800
"""The most candidates in a field: more can't be distinguished, and make files of megabytes."""
_SHARE = 0.5
"""The least share of the candidates that must have both numbers."""
_LEAST_AREA = 0.01
"""The least share of a panel that the candidates must span; with less, they lie on a line."""
_LEVELS = 12
_MOST_PANELS = 2
_ALONE_IN, _BESIDE_IN, _SCALE_IN, _BAR_IN = 2.9, 2.2, 0.56, 0.09
_DARK, _LIGHT = text_on((1.0, 1.0, 1.0)), text_on((0.0, 0.0, 0.0))
"""The colours of dots on a map, which are the same on a dark page."""


_DOT: Any = {"linestyle": "none", "marker": "o", "markeredgecolor": _LIGHT, "markeredgewidth": 0.4}


@dataclass(frozen=True)
class _Field:
    """Values of an objective over two numbers; all arrays have shape [candidates]."""

    x: Floats
    y: Floats
    z: Floats
    triangles: Triangulation


def plot(search: SearchFindings | None) -> Drawn | None:
    """Draw up to two objectives over the two most important parameters with a range: coloured fields with candidates.

    The objectives are the first two in which candidates differ. With ties, or unknown importance, the first parameters
    are taken. Up to 800 candidates are drawn.

    Returns:
        The figure, with a panel for each objective. None without a search, without two parameters that at least ten
        candidates, and at least half of all, have together, or if the drawn candidates are fewer than ten, are nearly
        on a line, or all have the same values.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    pair = None if search is None else _pair(search)
    if search is None or pair is None:
        return None
    across, up = map(parameter_scale, pair)
    candidates = [c for c in search_names.selected(search, _MOST) if all(p.name in c.params for p in pair)]
    attempts = [(i, _field(search, i, candidates, pair, across, up)) for i in range(len(search.objectives))]
    fields = [(i, field) for i, field in attempts if field is not None][:_MOST_PANELS]
    if not fields:
        return None
    height = _ALONE_IN if len(fields) == 1 else _BESIDE_IN
    is_any_confirmed = any(candidate.number in search.rows for candidate in candidates)
    handles = search_axes.confirmed_handles(search, with_fresh=False) if is_any_confirmed else []
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure, panels = grid([""] * len(fields), height, handles, sharex=False)
        for axes, (i, field) in zip(panels, fields, strict=True):
            _plot_field(figure, axes, search, i, field, height)
            axes.plot(field.x, field.y, color=_DARK, markersize=2.8, zorder=3, **_DOT)
            search_axes.mark_among(axes, search, candidates, field.x.tolist(), field.y.tolist())
            across.across(axes, panel_in(len(fields)) - _SCALE_IN)
            most = MOST_TIPS // len(fields)
            for candidate, x, y in list(zip(candidates, field.x, field.y, strict=True))[-most:]:
                tips.add(axes, float(x), float(y), search_names.described(search, candidate))
        up.up(panels[0], height)
    names = " and ".join(search_names.title(parameter) for parameter in pair)
    caption = _caption(search, len(candidates))
    return Drawn("search-contour", f"Values of candidates over {names}", caption, figure, tips)


def _pair(search: SearchFindings) -> tuple[Parameter, Parameter] | None:
    """Choose the two most important numeric parameters that enough candidates have: half of them, and at least ten.

    With ties, the first ones are chosen; None without two that enough candidates have together.
    """
    least = max(_FEWEST, _SHARE * len(search.candidates))
    numbers = [
        parameter
        for parameter in search.parameters
        if not parameter.choices and sum(parameter.name in c.params for c in search.candidates) >= least
    ]
    ranked = sorted(numbers, key=lambda parameter: -search_names.importance(search, parameter.name))
    for a, b in ((a, b) for i, b in enumerate(ranked) for a in ranked[:i]):
        if sum(a.name in c.params and b.name in c.params for c in search.candidates) >= least:
            return a, b
    return None


def _field(
    search: SearchFindings,
    i: int,
    candidates: Sequence[Candidate],
    pair: tuple[Parameter, Parameter],
    across: Scale,
    up: Scale,
) -> _Field | None:
    """Triangulate candidates over two parameters, with their values of objective `i`.

    None with fewer than ten, if they are nearly on a line, or if all have the same value.
    """
    scale = objective_scales(search)[i]
    x = np.array([across.at(c.params[pair[0].name]) for c in candidates])
    y = np.array([up.at(c.params[pair[1].name]) for c in candidates])
    z = np.array([scale.at(c.values[i]) for c in candidates])
    if len(candidates) < _FEWEST or np.ptp(z) == 0:
        return None
    # In units of the axes, so that both have equal weight in the choice of neighbours.
    unit_x = (x - across.low) / (across.high - across.low)
    unit_y = (y - up.low) / (up.high - up.low)
    try:
        triangles = Triangulation(unit_x, unit_y)
    except (RuntimeError, ValueError):  # all on a line
        return None
    corners = np.stack([unit_x, unit_y], axis=-1)[triangles.triangles]
    (a, b), (c, d) = (corners[:, 1:] - corners[:, :1]).transpose(1, 2, 0)
    if np.abs(a * d - b * c).sum() / 2 < _LEAST_AREA:
        return None
    return _Field(x, y, z, Triangulation(x, y, triangles.triangles))


def _plot_field(figure: Figure, axes: Axes, search: SearchFindings, i: int, field: _Field, height_in: float) -> None:
    # Good candidates are bright.
    colours = mpl.colormaps["viridis" if search.objectives[i].is_higher_better else "viridis_r"]
    low, high = float(field.z.min()), float(field.z.max())
    room = 1e-6 * (high - low)  # values equal to the highest level wouldn't be filled
    contours = axes.tricontourf(
        field.triangles, field.z, levels=np.linspace(low - room, high + room, _LEVELS + 1), cmap=colours
    )
    contours.set(edgecolor="face", linewidth=0.3)  # or the background shines through between levels
    axes.grid(visible=False)
    scale = objective_scales(search)[i]

    def write(place: float) -> str:
        return f"{10.0**place:.1e}".replace("e-0", "e-") if scale.is_log else f"{place:.3g}"

    where: Any = {"ax": axes, "aspect": height_in / _BAR_IN}
    colour_scale(figure, colours, (low, high), scale.lines(height_in), write, **where)


def _caption(search: SearchFindings, count: int) -> str:
    why = "The two most important numbers of" if search.importance else "The first two numbers of"
    sentences = [
        f"{why} those that most candidates have; brighter is better. Colours are interpolated linearly between "
        "neighbouring candidates (Delaunay), the dots. They show noisy observations while other parameters vary, not "
        "predictions; nothing is known outside the dots.",
        CAUTION,
    ]
    if count < len(search.candidates):
        sentences.append(f"{count:,} of {len(search.candidates):,} candidates are shown.")
    if len(search.objectives) > _MOST_PANELS:
        sentences.append(f"The first {_MOST_PANELS} of {len(search.objectives)} objectives are shown.")
    return " ".join(sentences)
