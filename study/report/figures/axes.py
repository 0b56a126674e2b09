"""What figures share: where rows stand on the x axis, logarithmic axes, how curves look, the legend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import NullLocator

from study import words
from study.analysis import series
from study.analysis.comparison import Reference
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.report.figures.style import INK, MARKERS, PALETTE, PAPER, STYLE, WIDTH_IN, plain

Units = tuple[tuple[float, str], ...]
"""From large to small: so many, and their name."""
ITERATIONS: Units = ((1e6, "10⁶ iterations"), (1e3, "10³ iterations"), (1.0, "iterations"))

_TO_SCALE = ("hidden_size", "input_size")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST_NAME, _LONGEST_LABEL, _LONGEST_TICK = 90, 30, 24
_MOST_NAMES, _MOST_SLANTED = 20, 10
"""On the x axis of a panel."""
_HANDLE_LENGTH, _HANDLE_GAP, _COLUMN_GAP = 2.2, 0.8, 2.0
"""Of a legend, in letters' heights."""


@dataclass(frozen=True)
class Across:
    """The x axis: which key, and where each row stands.

    Args:
        key: what the rows are drawn against.
        positions: of each row; NaN of those that the axis has no place for.
        ticks: text by position.
        is_numeric: whether points may be joined by lines.
    """

    key: str
    positions: tuple[float, ...]
    ticks: Mapping[float, str]
    is_numeric: bool

    def label(self, axes: Axes, width_in: float) -> None:
        """Write the axis; of numbers, as many as fit into its width."""
        at = sorted(self.ticks)
        names = [plain(_shortened(self.ticks[position], _LONGEST_TICK)) for position in at]
        needed = sum(width_pt(name) + 4 for name in names) / (72 * width_in)
        if self.is_numeric:
            every = max(1, math.ceil(needed))
            axes.set_xticks(at[::every], names[::every])
        else:
            axes.set_xticks(at, names)
            if len(names) > _MOST_SLANTED:
                axes.tick_params(axis="x", rotation=90, labelsize=6)
            elif needed > 1:
                axes.tick_params(axis="x", rotation=40)
                for label in axes.get_xticklabels():
                    label.set_horizontalalignment("right")
        if self.key != "model":
            axes.set_xlabel(plain(_shortened(words.title(self.key), _LONGEST_LABEL)))
        spare = 0.5 * min((b - a for a, b in pairwise(at)), default=1.0)
        axes.set_xlim(at[0] - spare, at[-1] + spare)

    def dodge(self, slots: int) -> float:
        """Give the distance between neighbouring curves' points, so that intervals don't hide each other."""
        gap = min((b - a for a, b in pairwise(sorted(self.ticks))), default=1.0)
        return min(0.1, 0.56 / max(slots, 1)) * gap


def across(rows: ResultRows) -> Across:
    """Place rows on the x axis: sizes to scale, everything else at equal steps, of names the first."""
    x = series.x_axis(rows)
    levels = series.levels(rows, x)
    is_numeric = all(level is None or isinstance(level, int | float) for level in levels) and len(levels) > 1
    to_scale = x in _TO_SCALE and None not in levels
    shown = levels if is_numeric else levels[:_MOST_NAMES]
    at = {level: float(level) if to_scale else float(rank) for rank, level in enumerate(shown)}
    positions = tuple(at.get(rows.value(row, x), math.nan) for row in range(len(rows.summaries)))
    return Across(x, positions, {at[level]: words.show_value(x, level) for level in shown}, is_numeric)


def curve_style(slot: int, *, is_line: bool) -> dict[str, Any]:
    """Tell curves apart by colour, marker and dash; where colours come again, markers and dashes are others."""
    again = slot // len(PALETTE)
    dash = ("-", (0, (5, 1.5)), (0, (1, 1)))[again % 3]
    return {
        "color": PALETTE[slot % len(PALETTE)],
        "marker": MARKERS[(slot + 3 * again) % len(MARKERS)],
        "linestyle": dash if is_line else "none",
        "linewidth": 1.1,
        "markersize": 3.6,
        "markeredgewidth": 0.7,
        "elinewidth": 0.8,
        "capsize": 1.4,
        "capthick": 0.8,
        "zorder": 3,
    }


def half_filled(style: Mapping[str, Any]) -> dict[str, Any]:
    """Empty half of a marker: that of a row that lacks trials."""
    kept = {name: style[name] for name in ("color", "marker", "markersize", "markeredgewidth")}
    return kept | {"linestyle": "none", "fillstyle": "left", "markerfacecoloralt": PAPER, "zorder": 4}


def neutral() -> dict[str, Any]:
    """Look like no curve in particular."""
    return {"color": INK, "marker": "o", "markersize": 3.6, "markeredgewidth": 0.7, "linewidth": 1.1}


def handle(name: str, style: Mapping[str, Any]) -> Line2D:
    """Make a legend's entry."""
    error_bars = ("elinewidth", "capsize", "capthick")
    return Line2D([], [], label=plain(name), **{key: value for key, value in style.items() if key not in error_bars})


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Put the legend under the figure, to be read row by row, each as long as fits; no handles, no legend."""
    if not handles:
        return
    columns = legend_columns(handles)
    # Legends are filled column by column.
    by_column = [entry for column in range(columns) for entry in handles[column::columns]]
    figure.legend(
        handles=by_column,
        labels=[_shortened(str(entry.get_label()), _LONGEST_NAME) for entry in by_column],
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=_HANDLE_LENGTH,
        handletextpad=_HANDLE_GAP,
        columnspacing=_COLUMN_GAP,
    )


def legend_columns(handles: Sequence[Artist]) -> int:
    """Find the columns that need the fewest rows of the page's width, all about equally full."""
    around = STYLE["legend.fontsize"] * (_HANDLE_LENGTH + _HANDLE_GAP + _COLUMN_GAP)
    widths = [around + width_pt(_shortened(str(entry.get_label()), _LONGEST_NAME)) for entry in handles]
    for rows in range(1, len(widths)):
        columns = -(-len(widths) // rows)
        if sum(max(widths[column::columns]) for column in range(columns)) <= 72 * WIDTH_IN:
            return columns
    return 1


def legend_in(handles: Sequence[Artist]) -> float:
    """Give the height that a legend takes."""
    return 0.08 + 0.155 * -(-len(handles) // legend_columns(handles)) if handles else 0.0


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


@cache
def width_pt(text: str, weight: str = "normal") -> float:
    """Measure a name in a legend, on an axis or, bold, over a panel."""
    letters = FontProperties(family=STYLE["font.family"], size=STYLE["legend.fontsize"], weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, letters, False)[0])


def unit(largest: float, units: Units = ITERATIONS) -> tuple[float, str]:
    """Choose what numbers up to some largest are told in."""
    return next((found for found in units if largest >= found[0]), units[-1])


def logarithmic(axes: Axes, low: float, high: float) -> None:
    """Make a y axis logarithmic, with a few powers of ten on it.

    Args:
        axes: to be changed.
        low: > 0, where the axis begins.
        high: > low, where it ends.
    """
    # The labels are letters, not mathematics, which takes longer to set than all the rest of a figure.
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, -(-(last - first) // 5))
    powers = [power for power in range(first, last + 1) if power % step == 0] or [first]
    axes.set_ylim(low, high)  # first: the scale would choose limits of its own, and warn if all is one value
    axes.set_yscale("log")
    axes.set_yticks([10.0**power for power in powers], [power_of_ten(power) for power in powers])
    axes.yaxis.set_minor_locator(NullLocator())


def power_of_ten(power: int) -> str:
    """Write a power of ten without mathematics.

    Example:
        >>> power_of_ten(-12)
        '10⁻¹²'
    """
    return "10" + str(power).translate(_SUPERSCRIPT)


def count(of: Summary | Reference) -> str:
    """Say how many of how many trials were solved, and how many there should be, if there are fewer."""
    told = f"{of.solved} of {of.finished}"
    if of.complete:
        return told
    return f"{told} so far; {of.seeds} planned" if isinstance(of, Summary) else f"{told} so far"
