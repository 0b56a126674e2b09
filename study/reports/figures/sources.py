"""Sources of randomness: their shares of the variance of success, and the benefit of more trials."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl

from study import words
from study.comparisons.sources import MORE, SUCCESS, SourceShares
from study.records import Interval
from study.reports.figures import axes as axes_of
from study.reports.figures import texts
from study.reports.figures.multiples import grid
from study.reports.figures.style import STYLE, Drawn, Tips
from study.reports.sources import name_of
from study.summaries.rows import ResultRows

_MOST_ROWS = 20
_NAME_IN, _ROW_IN, _AROUND_IN = 1.6, 0.34, 0.3
_APART = 0.2
"""The distance between the marks of a row, in rows."""


def plot(rows: ResultRows, shares: Sequence[SourceShares]) -> Drawn | None:
    """Draw cells as rows: the sources' shares at the left, the rate's standard errors now and later at the right.

    Returns:
        The figure, with the first 20 cells whose sources can get more seeds; None if no such cell has shares of
        success.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    growing = [row_shares for row_shares in shares if row_shares.quantity == SUCCESS and row_shares.can_grow][
        :_MOST_ROWS
    ]
    if not growing:
        return None
    first, second = growing[0].sources[:2]
    labels = [*growing[0].sources, "now", f"new {first} seeds", f"new {second} seeds", "new seeds of both"]
    styles = [axes_of.curve_style(slot, is_line=False) for slot in range(len(labels))]
    handles = [axes_of.handle(label, style) for label, style in zip(labels, styles, strict=True)]
    tips, count = Tips(), len(growing[0].sources)
    with mpl.rc_context(STYLE | {"axes.grid.axis": "x"}):
        titles = ["share of the variance of success", "standard error of the success rate"]
        height = _ROW_IN * len(growing) + _AROUND_IN
        figure, [left, right] = grid(titles, height, handles, across=2, sharex=False)
        names = [name_of(rows, row_shares.row) for row_shares in growing]
        for place, (row_shares, name) in enumerate(zip(growing, names, strict=True)):
            points: list[tuple[float, Interval | None]] = [(share, interval) for _, share, interval in row_shares.parts]
            points += [
                (error, None) for error in (row_shares.estimate.standard_error, *row_shares.estimate.errors_after(MORE))
            ]
            for slot, ((value, interval), style, label) in enumerate(zip(points, styles, labels, strict=True)):
                axes, first_slot, marks = (left, 0, count) if slot < count else (right, count, len(points) - count)
                at = place + _APART * (slot - first_slot - (marks - 1) / 2)  # one below the other
                low, high = interval or (value, value)
                reach = None if interval is None else [[max(0.0, value - low)], [max(0.0, high - value)]]
                axes.errorbar([value], [at], xerr=reach, **style)
                tips.add(axes, value, at, f"{name}, {label}: {words.rate(value, interval)}")
        left.set_yticks(range(len(growing)), [texts.fit(name, _NAME_IN) for name in names])
        left.set_ylim(len(growing) - 0.4, -0.6)
        left.set_xlim(-0.02, 1.02)
        right.set_xlim(left=0)
        for axes in (left, right):
            axes.tick_params(axis="y", length=0)
    caption = (
        f"Left: shares of {first} seeds, {second} seeds and their combination in the variance of the latent number "
        "that is positive if a trial is solved, with 95% intervals. Right: the standard error of the success rate "
        f"now, and after {MORE} more trials."
    )
    return Drawn("sources", "Variance shares of the sources, and the effect of more trials", caption, figure, tips)
