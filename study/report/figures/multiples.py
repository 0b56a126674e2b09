"""Small multiples: many panels with the same axes, as many as one reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from study.analysis.rows import ResultRows
from study.report.figures import axes as axes_of
from study.report.figures.style import STYLE, WIDTH_IN, plain

Floats = npt.NDArray[np.floating]

MOST_PANELS = 12
MOST_CURVES = 24
"""As many as colours and dashes tell apart."""
MOST_TIPS = 600
"""Points of a figure that tell their values: more make a page slow."""

_MOST_COLUMNS = 4
_TITLE_PT = STYLE["xtick.labelsize"]
_LEFT_IN, _RIGHT_IN, _BETWEEN_IN = 0.5, 0.08, 0.16
_ABOVE_IN, _LINE_IN = 0.12, 0.115
"""Of a panel, and of each line of its title."""
_BELOW_IN = 0.4
"""For the x axis."""
_LEVELS = 80
"""Colours of a map."""
_SQUARE = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
_MOST_LINES = 3


def columns(count: int, most: int = _MOST_COLUMNS) -> int:
    """Choose how many panels stand side by side.

    Example:
        >>> [columns(count) for count in (1, 4, 5, 9, 10, 12)]
        [1, 4, 3, 3, 4, 4]
    """
    rows = -(-count // most)
    return -(-count // rows)


def panels(titles: Sequence[str], handles: Sequence[Artist], *, height_in: float) -> tuple[Figure, list[Axes]]:
    """Begin a figure of panels that share both axes, with its legend.

    Args:
        titles: of each panel; empty for none.
        handles: the legend's.
        height_in: of a panel with its title.
    """
    # Placed by hand: matplotlib's layout measures every label of every panel twice, which takes as long as all else.
    across = columns(len(titles))
    down = -(-len(titles) // across)
    width = (WIDTH_IN - _LEFT_IN - _RIGHT_IN - (across - 1) * _BETWEEN_IN) / across
    above = _ABOVE_IN + max(title_in(title, width) for title in titles)
    height = height_in * down + _BELOW_IN + axes_of.legend_in(handles)
    figure = Figure(figsize=(WIDTH_IN, height))
    grid: list[Axes] = []
    for number, title in enumerate(titles):
        left = _LEFT_IN + number % across * (width + _BETWEEN_IN)
        top = number // across * height_in + above
        axes = place(figure, left, top, width, height_in - above, grid[0] if grid else None)
        axes.tick_params(labelleft=number % across == 0, labelbottom=number + across >= len(titles))
        heading(axes, title, width)
        grid.append(axes)
    axes_of.legend(figure, handles)
    return figure, grid


def place(figure: Figure, left: float, top: float, width: float, height: float, like: Axes | None = None) -> Axes:
    """Put axes into a figure, by inches from its upper left.

    Args:
        figure: of its final size.
        left: of the axes' frame.
        top: of it.
        width: of it.
        height: of it.
        like: axes to share x and y with.
    """
    wide, high = figure.get_size_inches()
    box = (left / wide, 1 - (top + height) / high, width / wide, height / high)
    return figure.add_axes(box, sharex=like, sharey=like)


def fields(axes: Axes, values: Floats, colours: Colormap, ends: tuple[float, float], **border: Any) -> None:
    """Draw a matrix as coloured squares around whole numbers, row 0 at y = 0; nothing where it is no number.

    Args:
        axes: to draw into.
        values: shape [rows, columns].
        colours: from one end to the other, in `_LEVELS` steps.
        ends: what is at either end, or beyond, has its colour.
        border: how squares are bordered.
    """
    # All squares of a colour are one path: a path each makes big files, and images are not shown in the page.
    low, high = ends
    levels = np.round((np.clip(values, low, high) - low) / (high - low) * _LEVELS)
    for level in np.unique(levels[np.isfinite(levels)]):
        centres = np.argwhere(levels == level)[:, None, ::-1]
        path = Path.make_compound_path_from_polys(centres + _SQUARE)
        colour = colours(level / _LEVELS)
        # Without a border, what is behind would shine through between neighbours.
        axes.add_patch(PathPatch(path, facecolor=colour, **({"edgecolor": colour, "linewidth": 0.4} | border)))


def colour_scale(axes: Axes, colours: Colormap, ends: tuple[float, float], name: str) -> None:
    """Show what colours mean, from one end to the other, in tall and narrow axes."""
    low, high = ends
    fields(axes, np.linspace(low, high, _LEVELS)[:, None], colours, ends)
    axes.set_xlim(-0.5, 0.5)
    axes.set_ylim(-0.5, _LEVELS - 0.5)
    ticks = [f"{tick:.3g}".replace("-", "−") for tick in (low, (low + high) / 2, high)]
    axes.set_xticks([])
    axes.set_yticks([-0.5, _LEVELS / 2 - 0.5, _LEVELS - 0.5], ticks)
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.set_ylabel(name, labelpad=2)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def label(grid: Sequence[Axes], x: str, y: str, across: int | None = None) -> None:
    """Name the axes, once a column and once a row; of so many columns, or as many as `columns` chooses."""
    across = across or columns(len(grid))
    for axes in grid[-across:]:
        axes.set_xlabel(x)
    for axes in grid[::across]:
        axes.set_ylabel(y)


def heading(axes: Axes, title: str, width_in: float) -> None:
    """Write a panel's title, in three lines at most, no wider than it may be."""
    if title:
        text = "\n".join(_lines(title, width_in))
        axes.set_title(text, loc="left", fontweight="bold", fontsize=_TITLE_PT, pad=3)


def title_in(title: str, width_in: float) -> float:
    """Give the height that a panel's title takes."""
    return _LINE_IN * len(_lines(title, width_in)) if title else 0.0


def _lines(title: str, width_in: float) -> list[str]:
    """Break a title after commas; what doesn't fit into a line, or is a line too many, is cut."""
    lines: list[list[str]] = []
    for part in plain(title).split(", "):
        fits = lines and _title_pt(", ".join([*lines[-1], part])) <= 72 * width_in
        if fits or len(lines) == _MOST_LINES:
            lines[-1].append(part)
        else:
            lines.append([part])
    ends = [*["," for _ in lines[1:]], ""]
    return [_cut(", ".join(line) + end, 72 * width_in) for line, end in zip(lines, ends, strict=True)]


def _cut(text: str, most_pt: float) -> str:
    width = _title_pt(text)
    if width <= most_pt:
        return text
    about = min(len(text) - 1, int(1.3 * len(text) * most_pt / width))
    kept = next((n for n in range(about, 1, -1) if _title_pt(f"{text[:n]}…") <= most_pt), 1)
    return f"{text[:kept]}…"


def _title_pt(text: str) -> float:
    return axes_of.width_pt(text, "bold")


def left_out(shown: int, there: int, noun: str = "panels") -> str:
    """Say in a caption what isn't there.

    Example:
        >>> left_out(12, 30), left_out(9, 9)
        (' The first 12 of 30 panels are shown.', '')
    """
    return f" The first {shown} of {there:,} {noun} are shown." if shown < there else ""


def part_of(rows: ResultRows, shown: Iterable[int]) -> str:
    """Say in a caption how many of the report's rows are shown, if not all."""
    count = len(set(shown))
    return f" {count} of {len(rows.summaries):,} {rows.noun}s are shown." if count < len(rows.summaries) else ""


def sampled(counts: Iterable[tuple[int, int]]) -> str:
    """Say in a caption that trials are left out, given how many of how many are in each panel.

    Example:
        >>> sampled([(50, 1000), (20, 20)]), sampled([(20, 20)])
        (' Not all trials are in every panel: where fewest are, 50 of 1,000.', '')
    """
    lacking = [(trials, of) for trials, of in counts if trials < of]
    if not lacking:
        return ""
    few, many = min(lacking)
    return f" Not all trials are in every panel: where fewest are, {few:,} of {many:,}."
