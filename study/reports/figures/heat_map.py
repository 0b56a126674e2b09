"""Success rate, or the mean of a metric, over two numbers that are swept together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study import words
from study.reports.figures import texts
from study.reports.figures.axes import count
from study.reports.figures.dots import Panel, panel_of
from study.reports.figures.multiples import (
    FIELD_PT,
    MOST_PANELS,
    MOST_TIPS,
    colour_scale,
    columns,
    fields,
    grid,
    heading,
    left_out,
    write_label,
)
from study.reports.figures.scales import fences
from study.reports.figures.style import INK, PAPER, STYLE, WIDTH_IN, Drawn, Tips, plain, text_on
from study.summaries import series
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

_COLOURS = "viridis"
_LETTER_IN = 0.62 * FIELD_PT / 72
_AROUND_IN, _GAP_IN, _SCALE_IN = 0.9, 0.12, 0.09
"""The approximate space of the layout left and right of all panels, without names, and between panels."""
_HIGHEST_IN, _WIDEST_IN = 0.28, 1.2
"""The largest size of a field."""
_TALLEST_IN = 3.0
"""The largest height of a panel."""
_LINE_IN = 0.1
_LACKING = "†"


@dataclass(frozen=True)
class _Quantity(Panel):
    """The quantity of the fields: success rates, or the means of a metric; `ends` are drawn in the outer colours."""

    ends: tuple[float, float] = (0.0, 1.0)

    def text(self, summary: Summary) -> str:
        """Return the text of a row's field: solved/judged trials, or the mean; with † if trials are missing."""
        text = f"{summary.solved}/{summary.judged}" if self.metric is None else self.notation(self.point(summary)[0])
        return f"{text}{'' if summary.complete else _LACKING}"

    def share(self, summary: Summary) -> float:
        """Return the position of a row's value between the ends, in [0, 1]; NaN without a value."""
        value, (low, high) = self.point(summary)[0], self.ends
        return np.nan if value is None else float(np.clip((value - low) / (high - low), 0, 1))


def _quantity(rows: ResultRows) -> _Quantity | None:
    """Choose the quantity of the fields; None without success rates and without a mean of the main metric."""
    panel = panel_of(rows, None if rows.has_rates else rows.main_metric)
    if panel.metric is None:
        return _Quantity(**vars(panel)) if rows.has_rates else None
    means = [mean for summary in rows.summaries if (mean := panel.point(summary)[0]) is not None]
    if not means:
        return None
    least, most = fences(means, panel.metric, is_log=False)
    low, high = (pick(mean for mean in means if least <= mean <= most) for pick in (min, max))
    return _Quantity(**vars(panel), ends=(low, high) if high > low else (low, low + (abs(low) or 1.0)))


@dataclass(frozen=True)
class _Plane:
    """The keys of the two axes, and their values in order; None, the default, comes first."""

    x: str
    y: str
    across: tuple[Any, ...]
    up: tuple[Any, ...]

    def place(self, rows: ResultRows, row: int) -> tuple[int, int]:
        """Return the column and the line of a row's field."""
        return self.across.index(rows.value(row, self.x)), self.up.index(rows.value(row, self.y))


def plot(rows: ResultRows) -> Drawn | None:
    """Draw the success rate of each row as a field, with a panel for each combination of the other varying keys.

    The axes are the two numeric keys with the most values. Without success rates, the fields show the means of the main
    metric. Up to 12 panels are drawn.

    Returns:
        The figure; None if fewer than two numeric keys vary, or if no row has a success criterion or a mean of the main
        metric.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    plane, quantity = _plane(rows), _quantity(rows)
    if plane is None or quantity is None:
        return None
    other_keys = [key for key in rows.varying() if key not in (plane.x, plane.y)]
    combinations: dict[str, list[int]] = {}
    for row in range(len(rows.summaries)):
        combinations.setdefault(rows.name(row, other_keys), []).append(row)
    first = dict([*combinations.items()][:MOST_PANELS])
    summaries = [rows.summaries[row] for members in first.values() for row in members]
    places = len(first) * len(plane.across) * len(plane.up)
    text_width_in = max(len(quantity.text(summary)) for summary in summaries) * _LETTER_IN
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure, panels, field_in = _begin(rows, list(first), plane, quantity, text_width_in)
        is_written = field_in >= text_width_in
        for axes, members in zip(panels, first.values(), strict=True):
            shares = np.full((len(plane.up), len(plane.across)), np.nan)
            for row in members:
                (x, y), summary = plane.place(rows, row), rows.summaries[row]
                shares[y, x] = share = quantity.share(summary)
                if is_written:
                    colour = INK if math.isnan(share) else text_on(mpl.colormaps[_COLOURS](share))
                    write_label(axes, x, y, quantity.text(summary), colour)
                if len(tips.marks) < MOST_TIPS:
                    text = f"{rows.name(row)}: {quantity.notation(*quantity.point(summary))}, {count(summary)}"
                    tips.add_field(axes, x - 0.5, y - 0.5, x + 0.5, y + 0.5, text)
            fields(axes, shares, mpl.colormaps[_COLOURS], (0.0, 1.0), edgecolor=PAPER, linewidth=0.8)
    return Drawn(
        "heat-map",
        f"{quantity.title[:1].upper()}{quantity.title[1:]} over {rows.title(plane.x)} and {rows.title(plane.y)}",
        _caption(summaries, quantity, is_written=is_written, is_full=len(summaries) == places)
        + left_out(len(first), len(combinations)),
        figure,
        tips,
    )


def _plane(rows: ResultRows) -> _Plane | None:
    """Choose the two varying numeric keys with the most values; None without two."""
    levels = {key: tuple(series.levels(rows, key)) for key in rows.varying()}
    numbers = [
        key for key, values in levels.items() if all(value is None or type(value) in (int, float) for value in values)
    ]
    if len(numbers) < 2:
        return None
    x, y = sorted(numbers, key=lambda key: -len(levels[key]))[:2]
    return _Plane(x, y, levels[x], levels[y])


def _begin(
    rows: ResultRows, titles: Sequence[str], plane: _Plane, quantity: _Quantity, text_width_in: float
) -> tuple[Figure, list[Axes], float]:
    """Make the panels, the names of their axes and the scale; also return a field's approximate width in inches."""
    names = [
        [words.format_value(key, at) for at in values] for key, values in ((plane.x, plane.across), (plane.y, plane.up))
    ]
    room = WIDTH_IN - _AROUND_IN - max(map(texts.width_of, names[1]))
    needed_in = max(text_width_in, 0.06 + max(map(texts.width_of, names[0])))
    # Put as many panels side by side as leave space for the numbers.
    for most in range(4, 0, -1):
        across = columns(len(titles), most)
        field = (room / across - _GAP_IN) / len(plane.across)
        if field >= needed_in:
            break
    field = min(field, _WIDEST_IN)
    width, height = field * len(plane.across), min(_HIGHEST_IN * len(plane.up), _TALLEST_IN)
    figure, panels = grid([""] * len(titles), height, across=across, x=rows.title(plane.x), y=rows.title(plane.y))
    down = -(-len(titles) // across)
    above = max(heading(axes, title, width) for axes, title in zip(panels, titles, strict=True))
    figure.set_figheight(figure.get_figheight() + down * above)
    # A few fields are only as wide as their texts need, and leave space on the page.
    share = 1 - (room - across * (width + _GAP_IN)) / WIDTH_IN
    figure.set_layout_engine("constrained", rect=(0, 0, share, 1))
    for axes in panels:
        axes.spines[:].set_visible(False)
        axes.grid(False)
        axes.tick_params(length=0)
    panels[0].set_xlim(-0.5, len(plane.across) - 0.5)
    panels[0].set_ylim(-0.5, len(plane.up) - 0.5)
    texts.x_ticks(panels[0], dict(enumerate(names[0])), width, is_numeric=True)
    every = math.ceil(_LINE_IN * len(names[1]) / height)
    panels[0].set_yticks(range(0, len(names[1]), every), list(map(plain, names[1][::every])))
    bar: Any = {"ax": panels, "pad": _GAP_IN / width / across, "aspect": down * (height + above) / _SCALE_IN}
    colour_scale(figure, mpl.colormaps[_COLOURS], quantity.ends, quantity.title, **bar)
    return figure, panels, field


def _caption(summaries: Sequence[Summary], quantity: _Quantity, *, is_written: bool, is_full: bool) -> str:
    text = "Colours show the success rate, numbers solved/finished trials"
    if quantity.metric is not None:
        text = f"Mean {quantity.title} of the trials that ended with a number"
    text += "." if is_written else " (the numbers are in the table)."
    if any(not s.complete for s in summaries):
        text += f" {_LACKING} Some trials are missing."
    low, high = quantity.ends
    beyond = sum(not low <= value <= high for s in summaries if (value := quantity.point(s)[0]) is not None)
    if beyond:
        text += f" {words.count_of(beyond, 'value')} far beyond the others: the colour is that of the scale's end."
    return text if is_full else f"{text} A missing field wasn't part of the study."
