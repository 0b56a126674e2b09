"""Average effects of many axes: a small panel for each axis, all with the same y axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from statistics import fmean

import matplotlib as mpl

from study import words
from study.reports.figures import axes as axes_of
from study.reports.figures import texts
from study.reports.figures.dots import panels_of
from study.reports.figures.multiples import grid, left_out, panel_in
from study.reports.figures.scales import Scale
from study.reports.figures.style import STYLE, Drawn, Tips
from study.summaries import series
from study.summaries.rows import ResultRows

LEAST_AXES = 4
"""The fewest axes for this figure; the curves of as many would be a tangle."""
_MOST_AXES, _MOST_LEVELS, _MOST_QUANTITIES, _HEIGHT_IN = 6, 20, 2, 1.5


def plot(rows: ResultRows) -> Drawn | None:
    """Draw the mean of rows' rates or metrics at each value of an axis, for the six axes with the largest effects.

    An axis shows its first 20 values. At most two quantities are drawn: the success rate and the first metric, or the
    first two metrics. Values far beyond all others are left out of the means.

    Returns:
        The figure; None if fewer than four axes vary, or without rates and metrics.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    every, quantities = series.by_effect(rows), [panel for panel in panels_of(rows) if panel.kind != "time"]
    if len(every) < LEAST_AXES or not quantities:
        return None
    keys, quantities, tips, clipped = every[:_MOST_AXES], quantities[:_MOST_QUANTITIES], Tips(), 0
    style = axes_of.curve_style(0, is_line=True)
    look = {name: style[name] for name in ("color", "marker", "markersize", "linewidth", "zorder")}
    with mpl.rc_context(STYLE):
        figure, panels = grid([""] * (len(keys) * len(quantities)), _HEIGHT_IN, across=len(keys), sharex=False)
        upright_in = 0.0
        for number, quantity in enumerate(quantities):
            row_values = [quantity.point(summary)[0] for summary in rows.summaries]
            fence = Scale.of_metric(quantity.metric, [(value, None) for value in row_values])
            clipped += fence.clipped
            means = [_means(rows, key, [value if fence.has(value) else None for value in row_values]) for key in keys]
            own = panels[number * len(keys) : (number + 1) * len(keys)]
            scale = Scale.of_metric(
                quantity.metric, [(mean, None) for level_means in means for mean in level_means.values()]
            )
            scale.limit(own)
            own[0].set_ylabel(texts.fit(f"mean {quantity.title}", _HEIGHT_IN))
            for axes, key, level_means in zip(own, keys, means, strict=True):
                line = "-" if rows.is_number[rows.keys.index(key)] else "none"
                axes.plot(range(len(level_means)), list(level_means.values()), linestyle=line, **look)
                axes.set_xlim(-0.5, len(level_means) - 0.5)
                axes.set_xlabel(texts.fit(rows.title(key), panel_in(len(keys))))
                names = {float(place): words.format_value(key, level) for place, level in enumerate(level_means)}
                upright_in = max(upright_in, texts.x_ticks(axes, names, panel_in(len(keys)), is_numeric=line == "-"))
                for place, (level, mean) in enumerate(level_means.items()):
                    text = f"{rows.title(key)} {words.format_value(key, level)}: mean {quantity.title}"
                    tips.add(axes, place, mean, f"{text} {quantity.notation(mean)}")
        figure.set_figheight(figure.get_figheight() + len(quantities) * upright_in)
    titles = words.join_and([panel.title for panel in quantities])
    caption = _caption(rows, titles, clipped) + left_out(len(keys), len(every), "axes")
    return Drawn("figure", f"Mean {titles} over each axis", caption, figure, tips)


def _means(rows: ResultRows, key: str, values: Sequence[float | None]) -> dict[object, float]:
    """Average the values of all rows with each of a key's first 20 values, in order; omit those without a number."""
    rows_by_level = rows.alike([key], (row for row, value in enumerate(values) if value is not None))
    levels = series.levels(rows, key)[:_MOST_LEVELS]
    return {
        level: fmean(values[row] or 0.0 for row in rows_by_level[level,])
        for level in levels
        if (level,) in rows_by_level
    }


def _caption(rows: ResultRows, titles: str, exploded: int) -> str:
    text = (
        f"{titles[:1].upper()}{titles[1:]}, averaged over all rows with the same value of one axis, and so over the "
        "values of all other axes; rows have equal weights. The axes with the largest changes come first. Intervals "
        "are omitted, since rows share seeds; the table has those of rows."
    )
    if exploded:
        text += f" Left out: {words.count_of(exploded, 'value')} far beyond all others."
    if prod(len(series.levels(rows, key)) for key in rows.varying()) == len(rows.ended()):
        return text
    return text + " The rows don't fill the grid, so the means of two values may cover different values of the others."
