"""Cells as curves: what a figure and MLflow's own chart draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from study.aggregate import CellSummary
from study.records import Cell
from study.report import words
from study.report.words import Labels

MOST_CURVES = 8
"""Curves one panel can carry; more are split into facets."""

_UNNUMBERED = ("model", "operation", "interpolation_range", "extrapolation_range")


@dataclass(frozen=True)
class Series:
    """One curve.

    Args:
        name: for the legend; empty if it is the only one.
        facet: name of the row of panels it belongs to; empty if there is one row.
        cells: its points, by ascending x.
    """

    name: str
    facet: str
    cells: tuple[CellSummary, ...]


def x_axis(cells: Sequence[Cell], labels: Labels) -> str:
    """Choose what the cells are drawn against: hidden units, else the hyperparameter with most values."""
    keys = words.varying(cells, labels)
    if "hidden_size" in keys:
        return "hidden_size"
    swept = [key for key in keys if key != "model"]
    counts = {key: len({words.value(cell, key, labels) for cell in cells}) for key in swept}
    return max(swept, key=lambda key: counts[key], default="model")


def levels(cells: Sequence[Cell], key: str, labels: Labels) -> list[object]:
    """List the values of a hyperparameter: None first, numbers by size, others as first seen."""
    seen = list(dict.fromkeys(words.value(cell, key, labels) for cell in cells))
    numbers = [level for level in seen if isinstance(level, int | float)]
    if len(numbers) + seen.count(None) == len(seen):
        return [*([None] if None in seen else []), *sorted(numbers)]
    return seen


def split(summaries: Sequence[CellSummary], x: str, labels: Labels) -> list[Series]:
    """Split cells into curves over x: a curve for each combination of the other hyperparameters that vary.

    More curves than a panel can carry are split into facets: the first hyperparameters (the model leads) make
    the curves, as many as fit, and each combination of the rest a facet.
    """
    cells = [summary.cell for summary in summaries]
    keys = [key for key in words.varying(cells, labels) if key != x]
    curve_keys = keys[:1]
    for key in keys[1:]:
        if len({tuple(words.value(c, k, labels) for k in [*curve_keys, key]) for c in cells}) <= MOST_CURVES:
            curve_keys.append(key)
    facet_keys = [key for key in keys if key not in curve_keys]
    order = {level: rank for rank, level in enumerate(levels(cells, x, labels))}
    groups: dict[tuple[str, str], list[CellSummary]] = {}
    for summary in summaries:
        named = (_name(summary.cell, curve_keys, labels), _name(summary.cell, facet_keys, labels))
        groups.setdefault(named, []).append(summary)
    return [
        Series(name, facet, tuple(sorted(group, key=lambda s: order[words.value(s.cell, x, labels)])))
        for (name, facet), group in groups.items()
    ]


def chart_series(
    summaries: Sequence[CellSummary], labels: Labels | None = None
) -> list[tuple[str, int, float, float | None]]:
    """List the points of success rate and solved-at against hidden units, for a chart drawn elsewhere.

    Returns:
        (name of the curve, hidden units, success rate, median of solved-at in iterations or None) of each
        cell with a finished trial.
    """
    drawn = [summary for summary in summaries if summary.finished]
    return [
        (series.name or "all", s.cell.hidden_size, s.solved / s.finished, s.solved_at_median)
        for series in split(drawn, "hidden_size", labels or {})
        for s in series.cells
    ]


def _name(cell: Cell, keys: Sequence[str], labels: Labels) -> str:
    parts = []
    for key in keys:
        text = words.show(cell, key, labels)
        if text == words.NONE:
            continue
        is_named = key in _UNNUMBERED or isinstance(words.value(cell, key, labels), str)
        parts.append(text if is_named else f"{words.title(key)} {text}")
    return ", ".join(parts)
