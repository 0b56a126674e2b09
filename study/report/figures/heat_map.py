"""Success rate over two numbers that are swept together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study import words
from study.analysis import series
from study.analysis.rows import ResultRows
from study.analysis.summary import Summary
from study.report.figures.axes import count, width_pt
from study.report.figures.multiples import (
    MOST_PANELS,
    MOST_TIPS,
    colour_scale,
    columns,
    fields,
    heading,
    label,
    left_out,
    place,
    title_in,
)
from study.report.figures.style import INK, PAPER, STYLE, WIDTH_IN, Drawn, Tips, plain, text_on

_COLOURS = "viridis"
_WRITTEN_PT = 6.0
_LETTER_PT = 0.62 * _WRITTEN_PT
_SCALE_IN, _GAP_IN, _BELOW_IN = 0.6, 0.15, 0.4
_HIGHEST_IN, _WIDEST_IN = 0.28, 1.2
"""Of a field."""
_TALLEST_IN = 3.0
"""Of a panel."""
_LACKING = "†"


@dataclass(frozen=True)
class _Plane:
    """The two keys, and their values in order; None, the default, comes first."""

    x: str
    y: str
    across: tuple[Any, ...]
    up: tuple[Any, ...]

    def place(self, rows: ResultRows, row: int) -> tuple[int, int]:
        """Give the field of a row."""
        return self.across.index(rows.value(row, self.x)), self.up.index(rows.value(row, self.y))

    def names(self) -> tuple[list[str], list[str]]:
        """Write the values for people."""
        return (
            [plain(words.show_value(self.x, level)) for level in self.across],
            [plain(words.show_value(self.y, level)) for level in self.up],
        )


def draw(rows: ResultRows) -> Drawn | None:
    """Draw a field a row: how many of its trials solved the task; a panel a combination of what else varies.

    Args:
        rows: at least one.

    Returns:
        None where fewer than two numbers vary.
    """
    plane = _plane(rows)
    if plane is None:
        return None
    rest = [key for key in rows.varying() if key not in (plane.x, plane.y)]
    combinations: dict[str, list[int]] = {}
    for row in range(len(rows.summaries)):
        combinations.setdefault(rows.name(row, rest), []).append(row)
    shown = dict(list(combinations.items())[:MOST_PANELS])
    summaries = [rows.summaries[row] for members in shown.values() for row in members]
    places = len(shown) * len(plane.across) * len(plane.up)
    needed = max(len(_text(summary)) for summary in summaries) * _LETTER_PT
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure, grid, field_pt = _begin(list(shown), plane, needed)
        for axes, members in zip(grid, shown.values(), strict=True):
            _fill(axes, rows, members, plane, is_written=field_pt >= needed)
            for row in members[: MOST_TIPS - len(tips.marks)]:
                x, y = plane.place(rows, row)
                tips.add_field(axes, x - 0.5, y - 0.5, x + 0.5, y + 0.5, _tip(rows, row))
    return Drawn(
        "heat-map",
        f"Success rate over {words.title(plane.x)} and {words.title(plane.y)}",
        _caption(summaries, is_written=field_pt >= needed, is_full=len(summaries) == places)
        + left_out(len(shown), len(combinations)),
        figure,
        tips,
    )


def _plane(rows: ResultRows) -> _Plane | None:
    """Choose the two keys of numbers that have most values."""
    levels = {key: tuple(series.levels(rows, key)) for key in rows.varying()}
    numbers = [key for key, values in levels.items() if all(map(_is_number, values))]
    if len(numbers) < 2:
        return None
    x, y = sorted(numbers, key=lambda key: -len(levels[key]))[:2]
    return _Plane(x, y, levels[x], levels[y])


def _is_number(level: Any) -> bool:
    return level is None or (isinstance(level, int | float) and not isinstance(level, bool))


def _begin(titles: Sequence[str], plane: _Plane, needed_pt: float) -> tuple[Figure, list[Axes], float]:
    """Place the panels, the names of their axes and the scale; give the width of a field, too."""
    names = plane.names()
    left = 0.25 + max(map(width_pt, names[1])) / 72
    wanted_pt = max(needed_pt, 4 + max(map(width_pt, names[0])))
    across, field = _columns(len(titles), len(plane.across), wanted_pt / 72, WIDTH_IN - left - _SCALE_IN)
    width, height = field * len(plane.across), min(_HIGHEST_IN * len(plane.up), _TALLEST_IN)
    above = 0.08 + max(title_in(title, width) for title in titles)
    figure = Figure(figsize=(WIDTH_IN, -(-len(titles) // across) * (above + height) + _BELOW_IN))
    grid: list[Axes] = []
    for number, title in enumerate(titles):
        at = left + number % across * (width + _GAP_IN), number // across * (above + height) + above
        axes = place(figure, *at, width, height, grid[0] if grid else None)
        heading(axes, title, width)
        axes.spines[:].set_visible(False)
        axes.grid(False)
        axes.tick_params(length=0, labelleft=number % across == 0, labelbottom=number + across >= len(titles))
        grid.append(axes)
    grid[0].set_xlim(-0.5, len(plane.across) - 0.5)
    grid[0].set_ylim(-0.5, len(plane.up) - 0.5)
    every_x, every_y = (
        max(1, -(-int(size_pt) // int(72 * extent / len(levels) + 1)))
        for size_pt, extent, levels in ((wanted_pt, width, names[0]), (7.0, height, names[1]))
    )
    grid[0].set_xticks(range(0, len(names[0]), every_x), names[0][::every_x])
    grid[0].set_yticks(range(0, len(names[1]), every_y), names[1][::every_y])
    label(grid, plain(words.title(plane.x)), plain(words.title(plane.y)), across)
    scale = place(figure, left + across * (width + _GAP_IN), above, 0.09, max(height, 0.6))
    colour_scale(scale, mpl.colormaps[_COLOURS], (0.0, 1.0), "success rate")
    return figure, grid, 72 * field


def _columns(panels: int, levels: int, wanted: float, room: float) -> tuple[int, float]:
    """Choose how many panels stand side by side, so that the numbers fit, and how wide a field is."""
    for most in range(4, 0, -1):
        across = columns(panels, most)
        width = (room / across - _GAP_IN) / levels
        if width >= wanted:
            break
    return across, min(width, _WIDEST_IN)


def _fill(axes: Axes, rows: ResultRows, members: Sequence[int], plane: _Plane, *, is_written: bool) -> None:
    colours = mpl.colormaps[_COLOURS]
    rates = np.full((len(plane.up), len(plane.across)), np.nan)
    for row in members:
        x, y = plane.place(rows, row)
        summary = rows.summaries[row]
        rate = summary.success_rate
        rates[y, x] = np.nan if rate is None else rate
        if is_written:
            colour = INK if rate is None else text_on(colours(rate))
            text = axes.text(x, y, _text(summary), color=colour, fontsize=_WRITTEN_PT)
            text.set(horizontalalignment="center", verticalalignment="center_baseline")
    fields(axes, rates, colours, (0.0, 1.0), edgecolor=PAPER, linewidth=0.8)


def _text(summary: Summary) -> str:
    return f"{summary.solved}/{summary.finished}{'' if summary.complete else _LACKING}"


def _tip(rows: ResultRows, row: int) -> str:
    summary = rows.summaries[row]
    rate = f"{words.rate(summary.success_rate)} {words.interval(summary.success_rate_interval)}".rstrip()
    return f"{rows.name(row)}: {rate}, {count(summary)}"


def _caption(summaries: Sequence[Summary], *, is_written: bool, is_full: bool) -> str:
    text = "Success rate, and how many of how many finished trials solved the task"
    text += "." if is_written else " (the numbers are in the table)."
    if any(not s.complete for s in summaries):
        text += f" {_LACKING} trials are missing."
    return text if is_full else f"{text} A place without a field was no part of the study."
