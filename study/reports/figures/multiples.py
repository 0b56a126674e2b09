"""Small multiples: many panels with the same axes, up to a readable number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from study.reports.figures import texts
from study.reports.figures.style import DPI, STYLE, WIDTH_IN
from study.summaries.rows import ResultRows

Floats = npt.NDArray[np.floating]

MOST_PANELS = 12
MOST_CURVES = 24
"""The number of curves that colours and dashes can distinguish."""
MOST_TIPS = 600
"""The most points of a figure with values at a pointer; more make a page slow."""
FIELD_PT = 6.0
"""The size of letters in a field."""

_MOST_COLUMNS = 4
_LEFT_IN, _BETWEEN_IN, _PAD_IN = 0.6, 0.2, 0.06
"""The approximate space of the layout left of panels and between them, and the space around each panel."""
_X_AXIS_IN, _LEGEND_IN, _LEGEND_ROW_IN = 0.4, 0.1, 0.155
_HANDLE_IN = 4.8 * STYLE["font.size"] / 72
"""Space around each name of a legend by matplotlib's defaults: 4.8 times the font size."""
_TITLE_LINES, _TITLE_IN, _TITLE_LINE_IN = 3, 0.08, 0.115
_Y_NAME_IN = 1.4
_LEVELS, _SCALE_LEVELS = 80, 40
"""The numbers of colours in a map, and in its scale."""
_SQUARE = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])


def columns(count: int, most: int = _MOST_COLUMNS) -> int:
    """Choose the number of `count` >= 1 panels side by side, up to `most`, so that all rows are about equally full.

    Example:
        >>> [columns(count) for count in (1, 4, 5, 9, 10, 12)]
        [1, 4, 3, 3, 4, 4]
    """
    rows = -(-count // most)
    return -(-count // rows)


def panel_in(across: int) -> float:
    """Return the approximate width of a panel in inches, with `across` panels side by side."""
    return (WIDTH_IN - _LEFT_IN) / across - _BETWEEN_IN


def grid(
    titles: Sequence[str | None],
    height_in: float,
    handles: Sequence[Artist] = (),
    *,
    across: int | None = None,
    x: str = "",
    y: str = "",
    sharex: bool = True,
    sharey: bool = True,
) -> tuple[Figure, list[Axes]]:
    """Begin a figure of equal panels with its legend; the layout is computed when the figure is drawn.

    Args:
        titles: one title a panel; empty for none, None to leave the place empty.
        height_in: the height of a panel, with its title.
        handles: the entries of the legend.
        across: the number of panels side by side; None to choose it by `columns`.
        x: the name of the x axis, written below the last place of each column, unless its title is None.
        y: the name of the y axis, written once a row.
        sharex: whether all panels share an x axis, labelled under the lowest of each column.
        sharey: whether all panels, or those of a row if each has its own x axis, share a y axis, labelled beside the
            first.

    Returns:
        The figure and its panels, row by row, without empty places.
    """
    count, across = len(titles), across or columns(len(titles))
    down = -(-count // across)
    figure = _begin(height_in * down, handles)
    rows_share: Literal["none", "all", "row"] = "none" if not sharey else "all" if sharex else "row"
    panels = figure.subplots(down, across, squeeze=False, sharex=sharex, sharey=rows_share).ravel()
    for number, (axes, title) in enumerate(zip_longest(panels, titles)):
        if title is None:
            axes.remove()
            continue
        heading(axes, title, panel_in(across))
        if number + across >= count:
            axes.set_xlabel(texts.fit(x, panel_in(across)))
        if number % across == 0:
            axes.set_ylabel(texts.fit(y, _Y_NAME_IN))
        if sharex:
            axes.tick_params(labelbottom=number + across >= count)
        # The layout measures each axis four times. Restricted to those with texts, at the grid's rim, it is as fast as
        # placing twelve panels by numbers; otherwise it takes 40% longer.
        axes.spines[:].set_in_layout(False)
        axes.xaxis.set_in_layout(not sharex or number >= (down - 1) * across)
        axes.yaxis.set_in_layout(not sharey or number % across == 0)
    return figure, figure.axes


def _begin(height_in: float, handles: Sequence[Artist]) -> Figure:
    """Begin a figure with its legend, read row by row, in as few equally full rows as fit."""
    names = [texts.fit(str(entry.get_label()), WIDTH_IN - 2 * _HANDLE_IN) for entry in handles]
    for rows in range(1, len(names)):
        columns = -(-len(names) // rows)
        widest = [max(map(texts.width_of, names[column::columns])) for column in range(columns)]
        if sum(widest) + columns * _HANDLE_IN <= WIDTH_IN:
            break
    else:
        columns = 1
    legend_in = _LEGEND_IN + _LEGEND_ROW_IN * -(-len(names) // columns) if handles else 0.0
    layout = ConstrainedLayoutEngine(w_pad=_PAD_IN)
    figure = Figure((WIDTH_IN, height_in + _X_AXIS_IN + legend_in), DPI, layout=layout)
    if handles:
        entries = list(zip(handles, names, strict=True))
        by_column = [entry for column in range(columns) for entry in entries[column::columns]]  # as it is filled
        figure.legend(*zip(*by_column, strict=True), loc="outside lower center", ncols=columns)
    return figure


def heading(axes: Axes, title: str, width_in: float) -> float:
    """Write a panel's title in up to three lines of the given width, and return its height in inches; 0 if empty."""
    if not title:
        return 0.0
    text = texts.fit(title, width_in, _TITLE_LINES, "bold")
    # With y=1 matplotlib doesn't search for a place at each drawing.
    axes.set_title(text, loc="left", fontweight="bold", fontsize=STYLE["font.size"], y=1.0, pad=3)
    return _TITLE_IN + _TITLE_LINE_IN * (1 + text.count("\n"))


def fields(axes: Axes, values: Floats, colours: Colormap, ends: tuple[float, float], **border: Any) -> None:
    """Draw a matrix as coloured squares around integer positions, row 0 at y = 0; NaN leaves an empty place.

    Args:
        axes: the axes to draw into.
        values: shape [rows, columns].
        colours: the colour map, of which `_LEVELS` steps are used.
        ends: the values of the first and the last colour, which differ; values beyond are drawn in these colours.
        border: keyword arguments of matplotlib's patches for the squares' borders.
    """
    # All squares of a colour are one path: separate paths would make big files, and the page can't show images.
    low, high = ends
    levels = np.round((np.clip(values, low, high) - low) / (high - low) * _LEVELS)
    for level in np.unique(levels[np.isfinite(levels)]):
        centres = np.argwhere(levels == level)[:, None, ::-1]
        path = Path.make_compound_path_from_polys(centres + _SQUARE)
        colour = colours(level / _LEVELS)
        # Without a border, the background would shine through between neighbours.
        axes.add_patch(PathPatch(path, facecolor=colour, **({"edgecolor": colour, "linewidth": 0.4} | border)))


def write_label(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    """Write a text of `FIELD_PT` points at the centre (x, y) of a field, in data coordinates."""
    style: Any = {"ha": "center", "va": "center_baseline", "fontsize": FIELD_PT, "in_layout": False}
    axes.text(x, y, text, color=colour, **style)


def colour_scale(
    figure: Figure,
    colours: Colormap,
    ends: tuple[float, float],
    name: str,
    write: Callable[[float], str] = "{:.3g}".format,
    **where: Any,
) -> None:
    """Draw the scale of colours.

    Args:
        figure: the figure to draw into.
        colours: the colour map.
        ends: the values of the first and the last colour.
        name: the name of the quantity.
        write: formats a value.
        where: keyword arguments of matplotlib's colorbar for its place, such as the axes.
    """
    # A colorbar of more than 50 colours is drawn as an image, and the page may load none.
    levels = BoundaryNorm(np.linspace(*ends, _SCALE_LEVELS + 1), colours.N)
    bar = figure.colorbar(ScalarMappable(levels, colours), spacing="proportional", **where)
    ticks = (ends[0], sum(ends) / 2, ends[1])
    bar.set_ticks(ticks, labels=[write(tick).replace("-", "−") for tick in ticks])
    bar.minorticks_off()
    bar.set_label(name, labelpad=2)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    if bar.solids is not None:
        bar.solids.set(edgecolor="face", linewidth=0.4)  # or the background shines through between colours


def left_out(count: int, every: int, noun: str = "panels") -> str:
    """Return a caption's sentence with the numbers of shown and of all panels or other items; empty if all are shown.

    Example:
        >>> left_out(12, 30), left_out(9, 9)
        (' The first 12 of 30 panels are shown.', '')
    """
    return f" The first {count} of {every:,} {noun} are shown." if count < every else ""


def part_of(rows: ResultRows, members: Iterable[int]) -> str:
    """Return a caption's sentence with the number of shown rows, the distinct `members`; empty if all are shown."""
    count = len(set(members))
    return f" {count} of {len(rows.summaries):,} {rows.noun}s are shown." if count < len(rows.summaries) else ""


def sampled(counts: Iterable[tuple[int, int]]) -> str:
    """Return a caption's sentence on sampled trials, from the numbers of shown and of all trials of each panel.

    Example:
        >>> sampled([(50, 1000), (20, 20)]), sampled([(20, 20)])
        (' Some panels show a sample of their trials: at least 50 of 1,000.', '')
    """
    lacking = [(trials, total) for trials, total in counts if trials < total]
    if not lacking:
        return ""
    few, many = min(lacking)
    return f" Some panels show a sample of their trials: at least {few:,} of {many:,}."
