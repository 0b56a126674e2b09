"""The figure of `benchmarks.moments`: simulated moments as points, exact ones and the paper's formulas as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from study.reports.figures.style import DPI, INK, MARKERS, PALETTE, STYLE, WIDTH_IN
from units import moments

PANELS = (("NMU", 2, 1.0), ("NMU", 10, 1.0), ("NAC-mul", 2, 1 / 12), ("NAC-mul", 10, 1 / 12))
"""Unit, H and v of each column."""
WEIGHT_VARIANCES = {"NMU": (1 / 48, 1 / 12), "NAC-mul": (0.01, 0.1)}
WEIGHTS = {"NMU": "uniform", "NAC-mul": "tanh σ"}
TITLES = {"NMU": "NMU", "NAC-mul": "NAC•"}
ROWS = (("E[z]", "|E[z]|"), ("Var[z]", "Var[z]"), ("Var[δ ∂z/∂z_1]", "gradient"))
_SPANS = {
    ("NMU", 2): ((1e-3, 1e1), (1e-2, 1e2), (1e-2, 1e1)),
    ("NMU", 10): ((1e-4, 1e4), (1e-5, 1e8), (1e-5, 1e7)),
    ("NAC-mul", 2): ((0.5, 1e3), (1e-5, 1e4), (1e-4, 1e17)),
    ("NAC-mul", 10): ((0.5, 1e3), (1e-4, 1e14), (1e-4, 1e27)),
}
_OPEN = {"markersize": 3, "markerfacecolor": "none", "markeredgewidth": 0.7}
_CLOSE = np.logspace(-7, -1, 121)
_LINE = np.unique(np.concatenate([np.linspace(-3, 3, 601), _CLOSE, -_CLOSE]))
"""Means of the lines: close together near 0, where equation 9 is steepest."""


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw E[z], Var[z] and the gradient over m into a file, on logarithmic axes, with a column for each unit and H.

    Args:
        rows: the rows of `benchmarks.moments`.
        path: the file; its ending is its format.

    Raises:
        KeyError: if a row lacks a column.
        ValueError: if a number in a row is missing, or the format is unknown.
        OSError: if the file can't be written.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, 5.6), layout="constrained")
        grid = figure.subplots(3, 4, sharex=True)
        for column, panel in enumerate(PANELS):
            for line, (quantity, title) in enumerate(ROWS):
                axes = grid[line, column]
                _panel(axes, rows, panel, quantity)
                axes.set_yscale("log")
                axes.set_ylim(*_SPANS[panel[:2]][line])
                axes.set_xticks(range(-3, 4))
                if column == 0:
                    axes.set_ylabel(title)
            unit, hidden, variance = panel
            grid[0, column].set_title(f"{TITLES[unit]}, H = {hidden}, v = {'1' if variance == 1 else '1/12'}")
            grid[2, column].set_xlabel("mean m of an input")
        figure.legend(handles=_legend(), loc="outside lower center", ncols=3)
        figure.savefig(path, dpi=DPI, metadata={"Software": None})


def _panel(axes: Axes, rows: Sequence[Mapping[str, Any]], panel: tuple[str, int, float], quantity: str) -> None:
    unit, hidden, v = panel
    for number, V in enumerate(WEIGHT_VARIANCES[unit]):
        color = PALETTE[number]
        mine = [
            row
            for row in rows
            if (row["unit"], row["weights"], row["quantity"]) == (unit, WEIGHTS[unit], quantity)
            and str(row["hidden"]) == str(hidden)
            and np.allclose([float(row["weight_variance"]), float(row["input_variance"])], [V, v], rtol=1e-4)
        ]
        means = [float(row["input_mean"]) for row in mine]
        values = np.abs([float(row["simulated"]) for row in mine])
        if quantity == "E[z]":  # a value below its noise is drawn at the noise
            values[values < 3 * np.array([float(row["standard_error"]) for row in mine])] = np.nan
        axes.plot(means, values, MARKERS[number], color=color, **_OPEN)
        axes.plot(means, np.abs([float(row["exact"]) for row in mine]), ":", color=color, linewidth=1)
        final = _line(panel, V, quantity)
        axes.plot(_LINE, np.where(final > 0, final, np.nan), "-", color=color, linewidth=1)
        _negative(axes, final < 0, color, number)


def _line(panel: tuple[str, int, float], V: float, quantity: str) -> Any:
    """Compute the paper's formula of a quantity at each m of `_LINE`, for a panel's unit, H and v, and the weights' V.

    Equation 10 is that of m = 0, so an NMU's line is constant.
    """
    unit, hidden, v = panel
    if unit == "NMU":
        formula = {
            "E[z]": lambda m: moments.nmu_mean(hidden),
            "Var[z]": lambda m: moments.nmu_variance(hidden, V, v),
        }.get(quantity, lambda m: moments.nmu_gradient(hidden, V, v))
    else:
        formula = {
            "E[z]": lambda m: moments.nac_mul_mean(hidden, V, m),
            "Var[z]": lambda m: moments.nac_mul_variance(hidden, V, m),
        }.get(quantity, lambda m: moments.nac_mul_gradient(hidden, V, m, v))
    return np.array([formula(m) for m in _LINE])


def _negative(axes: Axes, negative: Any, color: str, number: int) -> None:
    """Mark where the formula is negative, if anywhere, by a cross near the bottom: the interval is too narrow to see.

    `negative` has a flag for each m of `_LINE`. A greater `number`, that of the curve, puts the cross higher.
    """
    if negative.any():
        place = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 5}
        axes.plot(_LINE[negative].mean(), 0.06 + 0.1 * number, "x", color=color, markersize=6, **place)


def _legend() -> list[Any]:
    def mark(number: int, text: str) -> Line2D:
        style = {"color": PALETTE[number], "marker": MARKERS[number], "label": text}
        return Line2D([], [], linewidth=1, **_OPEN, **style)  # type: ignore[arg-type]

    return [
        mark(0, "V = 1/48 (NMU), 0.01 (NAC•)"),
        mark(1, "V = 1/12 (NMU), 0.1 (NAC•)"),
        Line2D([], [], color=INK, linestyle="none", label="simulated", **_OPEN, marker="o"),  # type: ignore[arg-type]
        Line2D([], [], color=INK, linewidth=1, label="equation 9 or 10"),
        Line2D([], [], color=INK, linewidth=1, linestyle=":", label="exact"),
        Line2D([], [], color=INK, linestyle="none", marker="x", label="equation 9 gives a negative variance here"),
    ]
