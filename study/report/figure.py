"""The three-panel figure: success rate, solved at and sparsity error against hidden units."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from study.aggregate import CellSummary
from study.records import Cell, Interval
from study.report import series, words
from study.report.compare import Comparison
from study.report.words import Labels

INK = "#262626"
PAPER = "#ffffff"
RULE = "#dcdcdc"
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK, "#A08000")
"""Okabe and Ito's colours, safe for colour-blind readers; their yellow, too pale for lines, darkened."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")

_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
    "mathtext.fontset": "dejavusans",
    "svg.hashsalt": "study",
    "svg.fonttype": "path",
    "path.simplify": False,
}
_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
_TO_SCALE = ("hidden_size", "input_size")
_LEGEND_CHARACTERS = 105
_SOLVED_AT_PANEL, _ERROR_PANEL = 1, 2
_PUBLISHED: dict[str, Any] = {
    "linestyle": (0, (3, 2)),
    "linewidth": 0.7,
    "markerfacecolor": PAPER,
    "elinewidth": 0.5,
    "capsize": 0,
    "alpha": 0.7,
    "zorder": 2,
}
"""What makes a curve a published one."""
_ZERO: dict[str, Any] = {"marker": "v", "markersize": 4, "markeredgewidth": 0.7, "linestyle": "none"}


Number = float | None
Panels = tuple[tuple[Number, Interval | None], ...]
"""What one cell shows in each panel: a value and its interval."""


def draw(summaries: Sequence[CellSummary], labels: Labels, comparison: Sequence[Comparison] = ()) -> Figure:
    """Draw a curve a model and swept hyperparameter, with 95% intervals; published ones are dashed."""
    with mpl.rc_context(_STYLE):
        return _draw(summaries, labels, {c.summary.cell_id: c for c in comparison})


def render(figure: Figure, kind: str) -> bytes:
    """Give the figure as ``png`` (200 dots an inch) or ``svg``: the same bytes for the same figure."""
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(buffer, format=kind, dpi=200, metadata=_METADATA[kind])
    return buffer.getvalue()


def _draw(summaries: Sequence[CellSummary], labels: Labels, comparison: Mapping[str, Comparison]) -> Figure:
    cells = [summary.cell for summary in summaries]
    x = series.x_axis(cells, labels)
    curves = series.split(summaries, x, labels)
    facets = list(dict.fromkeys(curve.facet for curve in curves)) or [""]
    names = list(dict.fromkeys(curve.name for curve in curves))
    positions, is_numeric = _positions(cells, x, labels)
    step = _dodge(list(positions.values()), len(names) * (2 if comparison else 1))
    unit, unit_name = _iterations_unit(summaries, comparison)
    figure = Figure(figsize=(7.2, 0.6 + 2.0 * len(facets)), layout="constrained")
    grid = figure.subplots(len(facets), 3, squeeze=False, sharex=True)
    for curve in curves:
        slot = names.index(curve.name)
        shift = (slot - (len(names) - 1) / 2) * step * (2 if comparison else 1)
        xs = [positions[s.cell_id] + shift for s in curve.cells]
        style = _curve_style(slot, is_line=is_numeric)
        row = grid[facets.index(curve.facet)]
        _draw_curve(row, [_panels(s, unit) for s in curve.cells], xs, style)
        _mark_incomplete(row, curve.cells, [_panels(s, unit) for s in curve.cells], xs, style)
        matched = [
            (at + step, comparison[s.cell_id])
            for at, s in zip(xs, curve.cells, strict=True)
            if s.cell_id in comparison
        ]
        dash = _PUBLISHED["linestyle"] if is_numeric else "none"
        published = [_published_panels(c, unit) for _, c in matched]
        _draw_curve(row, published, [at for at, _ in matched], style | _PUBLISHED | {"linestyle": dash})
    for facet, row in zip(facets, grid, strict=True):
        _dress(row, facet, unit_name)
    _limit(
        grid,
        [_panels(s, unit) for s in summaries] + [_published_panels(c, unit) for c in comparison.values()],
    )
    for axes in grid[-1]:
        _label_x(axes, cells, x, labels, positions, is_numeric)
    _legend(figure, names, summaries, comparison, is_numeric)
    return figure


def _panels(s: CellSummary, unit: float) -> Panels:
    return (
        (s.success_rate, s.success_rate_interval),
        _scaled(s.solved_at_mean, s.solved_at_interval, unit),
        (s.sparsity_error_mean, s.sparsity_error_interval),
    )


def _published_panels(c: Comparison, unit: float) -> Panels:
    return (
        (c.published_rate, c.published_interval),
        _scaled(c.published.solved_at_mean, c.published.solved_at_interval, unit),
        (c.published.sparsity_error_mean, c.published.sparsity_error_interval),
    )


def _scaled(value: Number, interval: Interval | None, unit: float) -> tuple[Number, Interval | None]:
    if value is None:
        return None, None
    return value / unit, None if interval is None else (interval[0] / unit, interval[1] / unit)


def _iterations_unit(
    summaries: Sequence[CellSummary], comparison: Mapping[str, Comparison]
) -> tuple[float, str]:
    values = [s.solved_at_mean for s in summaries] + [c.published.solved_at_mean for c in comparison.values()]
    largest = max((value for value in values if value is not None), default=0.0)
    return (1e6, "10⁶ iterations") if largest >= 1e6 else (1e3, "10³ iterations")


def _positions(cells: Sequence[Cell], x: str, labels: Labels) -> tuple[dict[str, float], bool]:
    """Place cells on the x axis: sizes to scale, everything else at equal steps."""
    levels = series.levels(cells, x, labels)
    is_numeric = all(level is None or isinstance(level, int | float) for level in levels) and len(levels) > 1
    to_scale = x in _TO_SCALE and None not in levels
    at = {level: float(level) if to_scale else float(rank) for rank, level in enumerate(levels)}  # type: ignore[arg-type]
    return {cell.id: at[words.value(cell, x, labels)] for cell in cells}, is_numeric


def _dodge(positions: Sequence[float], slots: int) -> float:
    """Give the distance between neighbouring curves' points, so that intervals don't hide each other."""
    distinct = sorted(set(positions))
    gap = min((b - a for a, b in pairwise(distinct)), default=1.0)
    return min(0.1, 0.56 / max(slots, 1)) * gap


def _curve_style(slot: int, *, is_line: bool) -> dict[str, Any]:
    dash = ("-", (0, (5, 1.5)), (0, (1, 1)))[slot // len(PALETTE) % 3]
    return {
        "color": PALETTE[slot % len(PALETTE)],
        "marker": MARKERS[slot % len(MARKERS)],
        "linestyle": dash if is_line else "none",
        "linewidth": 1.1,
        "markersize": 3.6,
        "markeredgewidth": 0.7,
        "elinewidth": 0.8,
        "capsize": 1.4,
        "capthick": 0.8,
        "zorder": 3,
    }


def _draw_curve(
    row: Sequence[Axes], cells: Sequence[Panels], xs: Sequence[float], style: Mapping[str, Any]
) -> None:
    for panel, axes in enumerate(row):
        points = [
            (x, value, interval or (value, value))
            for x, (value, interval) in zip(xs, (cell[panel] for cell in cells), strict=True)
            if value is not None
        ]
        if panel == _ERROR_PANEL:
            _draw_zeros(axes, [x for x, y, _ in points if y == 0], style)
            points = [point for point in points if point[1] > 0]
        if points:
            below = [max(0.0, y - low) for _, y, (low, _) in points]
            above = [max(0.0, high - y) for _, y, (_, high) in points]
            axes.errorbar([x for x, *_ in points], [y for _, y, _ in points], yerr=[below, above], **style)


def _draw_zeros(axes: Axes, xs: Sequence[float], style: Mapping[str, Any]) -> None:
    """Mark errors of exactly zero, which a logarithmic axis has no place for, at its foot."""
    shown = {name: style[name] for name in ("color", "zorder", "markerfacecolor", "alpha") if name in style}
    for x in xs:  # an empty line that isn't clipped would upset the layout
        axes.plot([x], [0.02], transform=axes.get_xaxis_transform(), clip_on=False, **(shown | _ZERO))


def _mark_incomplete(
    row: Sequence[Axes],
    summaries: Sequence[CellSummary],
    cells: Sequence[Panels],
    xs: Sequence[float],
    style: Mapping[str, Any],
) -> None:
    """Empty half of the markers of cells that lack trials."""
    for panel, axes in enumerate(row):
        for s, cell, x in zip(summaries, cells, xs, strict=True):
            y = cell[panel][0]
            if s.complete or y is None or (panel == _ERROR_PANEL and y == 0):
                continue
            axes.plot([x], [y], **_half_filled(style))


def _half_filled(style: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: style[name] for name in ("color", "marker", "markersize", "markeredgewidth")}
    return kept | {"linestyle": "none", "fillstyle": "left", "markerfacecoloralt": PAPER, "zorder": 4}


def _dress(row: Sequence[Axes], facet: str, unit_name: str) -> None:
    for axes, name in zip(row, ("success rate", f"solved at ({unit_name})", "sparsity error"), strict=True):
        axes.set_ylabel(name)
        axes.grid(axis="y", color=RULE, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.tick_params(length=2.5, pad=2)
    if facet:
        row[0].set_title(_plain(facet), loc="left", fontweight="bold")


def _limit(grid: npt.NDArray[Any], cells: Sequence[Panels]) -> None:
    """Give all rows the same y axes, in which all values fit and no wild interval flattens the rest."""
    solved_at = [cell[_SOLVED_AT_PANEL][0] for cell in cells]
    longest = max((y for y in solved_at if y is not None), default=1.0) or 1.0
    ends = [cell[_SOLVED_AT_PANEL][1] for cell in cells]
    highest = max([longest, *(interval[1] for interval in ends if interval is not None)])
    errors = [
        y
        for value, interval in (cell[_ERROR_PANEL] for cell in cells)
        for y in (value, *(interval or ()))
        if y
    ]
    lowest = math.floor(math.log10(min(errors, default=1e-3)) + 0.05)
    top = 10 ** (math.log10(max(errors)) + 0.3) if errors else 1.0
    for row in grid:
        row[0].set_ylim(-0.04, 1.04)
        row[0].set_yticks([0, 0.25, 0.5, 0.75, 1])
        row[1].set_ylim(0, 1.05 * min(highest, 1.6 * longest))
        row[2].set_yscale("log")
        row[2].set_ylim(10.0 ** (lowest - 0.3), max(top, 10.0 ** (lowest + 1)))
        row[2].yaxis.set_major_locator(LogLocator(numticks=6))
        row[2].yaxis.set_minor_locator(NullLocator())


def _label_x(
    axes: Axes,
    cells: Sequence[Cell],
    x: str,
    labels: Labels,
    positions: Mapping[str, float],
    is_numeric: bool,
) -> None:
    ticks = {positions[cell.id]: _plain(words.show(cell, x, labels)) for cell in cells}
    at = sorted(ticks)
    axes.set_xticks(at, [ticks[position] for position in at])
    if not is_numeric and sum(map(len, ticks.values())) > 24:
        axes.tick_params(axis="x", rotation=40)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
    if x != "model":
        axes.set_xlabel(_plain(words.title(x)))
    spare = 0.5 * min((b - a for a, b in pairwise(at)), default=1.0)
    axes.set_xlim(at[0] - spare, at[-1] + spare)


def _legend(
    figure: Figure,
    names: Sequence[str],
    summaries: Sequence[CellSummary],
    comparison: Mapping[str, Comparison],
    is_numeric: bool,
) -> None:
    styles = [_curve_style(slot, is_line=is_numeric) for slot in range(len(names))]
    handles = [_handle(name, style) for name, style in zip(names, styles, strict=True) if name]
    neutral = {"color": INK, "marker": "o", "markersize": 3.6, "markeredgewidth": 0.7, "linewidth": 1.1}
    if comparison:
        if not handles:
            handles.append(_handle("this study", styles[0]))
        dash = _PUBLISHED["linestyle"] if is_numeric else "none"
        handles.append(
            _handle("published (Madsen & Johansen 2020)", neutral | _PUBLISHED | {"linestyle": dash})
        )
    if not all(s.complete for s in summaries):
        handles.append(Line2D([], [], label="cell lacks trials", **_half_filled(neutral)))
    errors = [s.sparsity_error_mean for s in summaries]
    errors += [c.published.sparsity_error_mean for c in comparison.values()]
    if 0 in errors:
        handles.append(Line2D([], [], label="sparsity error exactly 0", color=INK, **_ZERO))
    if handles:
        columns = _legend_columns([str(handle.get_label()) for handle in handles])
        figure.legend(
            handles=handles, loc="outside lower center", ncols=columns, frameon=False, handlelength=2.2
        )


def _legend_columns(names: Sequence[str]) -> int:
    """Find the most columns that fit the page's width; a legend fills its columns top down."""
    for columns in range(len(names), 1, -1):
        rows = -(-len(names) // columns)
        widths = [max(map(len, names[i : i + rows])) + 7 for i in range(0, len(names), rows)]
        if sum(widths) <= _LEGEND_CHARACTERS:
            return columns
    return 1


def _plain(text: str) -> str:
    """Keep a name from being read as mathematics, or as one that a legend leaves out."""
    flat = " ".join(text.split()).replace("$", r"\$")
    return f" {flat}" if flat.startswith("_") else flat


def _handle(name: str, style: Mapping[str, Any]) -> Line2D:
    error_bars = ("elinewidth", "capsize", "capthick")
    return Line2D(
        [], [], label=_plain(name), **{key: value for key, value in style.items() if key not in error_bars}
    )
