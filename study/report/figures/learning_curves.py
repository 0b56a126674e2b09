"""Learning curves: errors over the iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from study import words
from study.analysis.learning import QUANTILES, LearningCurve
from study.analysis.rows import ResultRows
from study.report.figures import axes as axes_of
from study.report.figures.multiples import MOST_PANELS, MOST_TIPS, grid, part_of, sampled
from study.report.figures.style import INK, PALETTE, STYLE, Drawn, Tips

Floats = npt.NDArray[np.float64]

_TEST, _VALIDATION = PALETTE[0], PALETTE[1]
_THRESHOLD: dict[str, Any] = {"color": INK, "linewidth": 0.6, "linestyle": (0, (4, 2))}
_WIDE, _NARROW = 0.14, 0.22
"""Opacity of the bands."""
_MEASURES = ("test_mse", "validation_mse", "sparsity_error")
_MEDIAN = len(QUANTILES) // 2
_MOST_DECADES = 24
"""The most decades of an axis: beyond, an error is as good as zero or infinite."""


def draw(rows: ResultRows, learning: Sequence[LearningCurve]) -> Drawn | None:
    """Draw median and bands over trials of the test MSE, a panel a row, with the median of the validation MSE.

    Returns:
        None if there are no curves.
    """
    if not learning:
        return None
    curves = learning[:MOST_PANELS]
    longest = max(1, *(int(curve.iteration[-1]) for curve in curves))
    unit, unit_name = axes_of.unit(longest)
    low, high = _limits(curves)
    tips = Tips()
    with mpl.rc_context(STYLE):
        height = 2.3 if len(curves) == 1 else 1.75 if len(curves) < 4 else 1.5
        titles = [rows.name(curve.row) for curve in curves]
        figure, panels = grid(titles, height, _handles(curves), x=unit_name, y="MSE")
        for axes, curve in zip(panels, curves, strict=True):
            _draw_curve(axes, curve, unit, low, high)
        panels[0].set_xlim(0, 1.04 * longest / unit)
        axes_of.logarithmic(panels[0], low, high)
        for axes, curve in zip(panels, curves, strict=True):
            _add_tips(axes, rows.name(curve.row), curve, unit, low, high, tips, MOST_TIPS // len(curves) // 2)
    caption = _caption(curves) + part_of(rows, (curve.row for curve in curves))
    return Drawn("learning-curves", "Learning curves", caption, figure, tips)


def _limits(curves: Sequence[LearningCurve]) -> tuple[float, float]:
    """Choose the y axis: all small errors fit; of large ones the medians, and those at the start of training."""
    both = [curve.quantiles[name] for curve in curves for name in ("test_mse", "validation_mse")]
    every = [part.ravel() for part in both] + [np.array([curve.threshold or np.nan for curve in curves])]
    large = [part[:, 0] for part in both] + [part[_MEDIAN] for part in both]
    least = _present(every).min(initial=1.0)
    top = np.log10(_present(large).max(initial=least))
    bottom = max(np.log10(least), top - _MOST_DECADES)
    room = max(0.05 * (top - bottom), 0.15)
    return float(10 ** (bottom - room)), float(10 ** (top + room))


def _present(parts: Sequence[Floats]) -> Floats:
    values = np.concatenate(parts)
    return values[np.isfinite(values) & (values > 0)]


def _draw_curve(axes: Axes, curve: LearningCurve, unit: float, low: float, high: float) -> None:
    x = curve.iteration / unit
    test = curve.quantiles["test_mse"]
    for band, alpha in ((0, _WIDE), (1, _NARROW)):
        # Infinity and zero are beyond the axis: a band goes on to there, a line ends.
        ends = np.clip(test[[band, -1 - band]], low / 10, high * 10)
        axes.fill_between(x, *ends, color=_TEST, alpha=alpha, linewidth=0)
    validation = _finite(curve.quantiles["validation_mse"][_MEDIAN], low)
    axes.plot(x, validation, color=_VALIDATION, linewidth=0.7, zorder=2.5)
    axes.plot(x, _finite(test[_MEDIAN], low), color=_TEST, linewidth=1.2, zorder=3)
    if not np.isfinite(test[_MEDIAN, -1]):
        who = "all have" if not np.isfinite(test[0, -1]) else "half or more have"
        axes.text(0.98, 0.94, f"{who} diverged", transform=axes.transAxes, ha="right", va="top", fontsize=7)
    if curve.threshold:
        axes.axhline(curve.threshold, zorder=2, **_THRESHOLD)


def _finite(values: Floats, low: float) -> Floats:
    """Replace infinities by NaN, and zeros by the lowest value of the axis."""
    return np.where(np.isfinite(values), np.maximum(values, low), np.nan)


def _add_tips(
    axes: Axes, name: str, curve: LearningCurve, unit: float, low: float, high: float, tips: Tips, most: int
) -> None:
    """Add the quantiles of some evaluations as texts."""
    test = curve.quantiles["test_mse"]
    for i in np.unique(np.linspace(0, len(curve.iteration) - 1, most).round().astype(int)):
        median, validation, sparsity = (float(curve.quantiles[key][_MEDIAN, i]) for key in _MEASURES)
        text = (
            f"{name}, iteration {curve.iteration[i]:,}: test MSE {_error(median)} (90% of {curve.trials:,} trials in "
            f"[{_error(test[0, i])}, {_error(test[-1, i])}]), validation MSE {_error(validation)}, "
            f"sparsity error {_error(sparsity)}"
        )
        tips.add(axes, curve.iteration[i] / unit, float(np.clip(median, low, high)), text)


def _error(value: float) -> str:
    if not np.isfinite(value):
        return "∞"
    return words.error(value) if value < 100 else f"{value:,.0f}" if value < 1e6 else f"{value:.1e}".replace("e+0", "e")


def _handles(curves: Sequence[LearningCurve]) -> list[Artist]:
    handles: list[Artist] = [
        Line2D([], [], color=_TEST, linewidth=1.2, label="test MSE: median"),
        Patch(color=_TEST, alpha=1 - (1 - _WIDE) * (1 - _NARROW), linewidth=0, label="50%"),
        Patch(color=_TEST, alpha=_WIDE, linewidth=0, label="90% of the trials"),
        Line2D([], [], color=_VALIDATION, linewidth=0.7, label="validation MSE: median"),
    ]
    if any(curve.threshold for curve in curves):
        handles.append(Line2D([], [], label="success threshold", **_THRESHOLD))
    return handles


def _caption(curves: Sequence[LearningCurve]) -> str:
    test = np.concatenate([curve.quantiles["test_mse"].ravel() for curve in curves])
    sentences = [
        "Error on the test rows (extrapolation) and, its median alone, on the validation rows (interpolation), at "
        "evaluations at equal steps. Each quantile is over the trials at that iteration, the least value that so many "
        "trials don't exceed: no one trial's curve. Trials that were stopped early keep their last value."
    ]
    if not np.isfinite(test).all():
        sentences.append("Where trials have diverged a band leaves the panel, and a line ends.")
    if (test == 0).any():
        sentences.append("An error of exactly 0 is at the foot.")
    return " ".join(sentences) + sampled((curve.trials, curve.of) for curve in curves)
