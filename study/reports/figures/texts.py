"""Measuring, breaking and cutting of texts before they are drawn."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from study.reports.figures.style import STYLE, plain

_LONGEST_TICK_IN, _BETWEEN_TICKS_IN = 1.2, 0.055


@cache
def width_of(text: str, weight: str = "normal") -> float:
    """Measure the width of a text in the figures' font, in inches."""
    letters = FontProperties(family=STYLE["font.family"], size=STYLE["font.size"], weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, letters, False)[0]) / 72


def fit(text: str, width_in: float, lines: int = 1, weight: str = "normal") -> str:
    r"""Escape a text by `plain`, break it after commas and before brackets into at most `lines` lines, and cut these.

    Lines are only broken and cut if they are wider than `width_in` inches. A cut line ends in an ellipsis, and is at
    most that wide, unless a single letter with the ellipsis is wider.

    Example:
        >>> fit("one, two, three (four)", 0.5, lines=2), fit("one", 0.5)
        ('one, two,\nthree (f…', 'one')
    """
    broken: list[str] = []
    for part in re.split(r"(?<=,) | (?=\()", plain(text)):
        joined = f"{broken[-1]} {part}" if broken else part
        if broken and (len(broken) == lines or width_of(joined, weight) <= width_in):
            broken[-1] = joined
        else:
            broken.append(part)
    return "\n".join(_cut(line, width_in, weight) for line in broken)


def _cut(line: str, width_in: float, weight: str) -> str:
    if width_of(line, weight) <= width_in:
        return line
    count = bisect_right(range(1, len(line)), width_in, key=lambda n: width_of(f"{line[:n]}…", weight))
    return f"{line[: max(1, count)]}…"


def x_ticks(axes: Axes, ticks: Mapping[float, str], width_in: float, *, is_numeric: bool) -> float:
    """Label the x axis with as many numbers as fit side by side, or with all names, upright if they don't fit.

    Args:
        axes: the axes, with limits that are already set.
        ticks: texts by position.
        width_in: the approximate width of the axes.
        is_numeric: whether texts may be left out.

    Returns:
        The height of upright names in inches; 0 if the texts are horizontal.
    """
    low, high = axes.get_xlim()
    names = {position: fit(ticks[position], _LONGEST_TICK_IN) for position in sorted(ticks)}
    side_by_side: list[float] = []
    end = -math.inf
    for position, name in names.items():
        middle, half = width_in * (position - low) / (high - low), width_of(name) / 2
        if middle - half >= end:
            side_by_side.append(position)
            end = middle + half + _BETWEEN_TICKS_IN
    is_upright = not is_numeric and len(side_by_side) < len(names)
    at = list(names) if is_upright else side_by_side
    axes.set_xticks(at, [names[position] for position in at])
    if not is_upright:
        return 0.0
    axes.tick_params(axis="x", rotation=90, labelsize=6)
    return max(map(width_of, names.values()))
