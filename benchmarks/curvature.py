"""Loss of one observation over two weights: NAC• with three epsilons, and NMU, as in the paper's figures 1 and 2.

    python -m benchmarks.curvature [--grid N] [--out benchmarks/results/curvature.csv]

There are two observations, the draft's and the paper's. Prints the loss at some points, its largest value on the grid,
and its zeros, and writes them with `--out`. Two figures beside the file, one for each observation, show the loss with
the exact solutions. Nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.measure import finish, plain_parser
from study.reports.figures.style import DPI, PALETTE, PAPER, STYLE, WIDTH_IN
from units.curvature import DRAFT, EPSILONS, FINAL, Observation, nac_mul_exact, nac_mul_loss, nmu_loss

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]

OBSERVATIONS = {"draft": DRAFT, "final": FINAL}
SECOND = (*EPSILONS, None)
"""The second layers: NAC• with an epsilon, or an NMU (None)."""
POINTS = ((1, 1), (-1, 1), (0, 1), (0.3, 0), (0.5, 0.5), (1, 0.5), (1, -1), (0, -1))
HEIGHT = 500.0
"""Upper limit of the loss in the figures, as in the published ones."""
_CONTOURS = (10, 50, 100, 150, 300)
_DESIRED, _UNDESIRED = PALETTE[5], PALETTE[1]


def name_of(epsilon: float | None) -> str:
    """Name a second layer by its epsilon; None is the NMU."""
    return "NMU" if epsilon is None else "NAC•, ε = " + ("1e-7" if epsilon == 1e-7 else f"{epsilon:g}")


def loss(w1: npt.ArrayLike, w2: npt.ArrayLike, observation: Observation, epsilon: float | None) -> Floats:
    """Compute the loss with NAC• of this epsilon as the second layer, or with an NMU if epsilon is None.

    The shapes of w1 and w2, the weights of the first and of the second layer, must broadcast.

    Raises:
        ValueError: for an NMU, unless 0 <= w2 <= 1; for NAC•, unless epsilon > 0.
    """
    return nmu_loss(w1, w2, observation) if epsilon is None else nac_mul_loss(w1, w2, observation, epsilon)


def axes_of(epsilon: float | None, grid: int) -> tuple[Floats, Floats]:
    """Return the grid's values of w1, from -1 to 1, and of w2, from -1 or for the NMU 0 to 1: [grid] each."""
    return np.linspace(-1, 1, grid), np.linspace(0 if epsilon is None else -1, 1, grid)


def surface(observation: Observation, epsilon: float | None, grid: int) -> Floats:
    """Compute the loss on a grid with `grid` values of each weight, [w2, w1]; without an epsilon, that of the NMU.

    Raises:
        ValueError: if `grid` is negative, or an epsilon isn't positive.
    """
    w1, w2 = axes_of(epsilon, grid)
    return loss(w1, w2[:, None], observation, epsilon)


# --- the table --------------------------------------------------------------------------------------------------


def rows_of(name: str, epsilon: float | None, grid: int) -> Iterator[Row]:
    """Yield the table's rows of one observation, a key of `OBSERVATIONS`, and second layer.

    They have the loss at `POINTS`, without negative w2 for the NMU, and the largest loss on the grid. For NAC• they
    also have the least loss with w2 < 0, and the |w1| of a zero loss at w2 = 1 and -1, empty if there is none.

    Raises:
        ValueError: if `grid` is less than 1, or an epsilon isn't positive.
    """
    observation = OBSERVATIONS[name]

    def row(what: str, value: float, w1: float | str = "", w2: float | str = "") -> Row:
        text = "" if math.isnan(value) else f"{value:.6g}"
        return {"observation": name, "second": name_of(epsilon), "what": what, "w1": w1, "w2": w2, "value": text}

    for w1, w2 in POINTS:
        if epsilon is not None or w2 >= 0:
            yield row("loss", float(loss(w1, w2, observation, epsilon)), w1, w2)
    values = surface(observation, epsilon, grid)
    yield row("largest loss", float(values.max()))
    if epsilon is not None:
        below = axes_of(epsilon, grid)[1] < 0
        yield row("least loss, w2 < 0", float(values[below].min()))
        for w2 in (1, -1):
            yield row("exact |w1|", float(nac_mul_exact(w2, observation, epsilon)), w2=w2)


# --- the figures ------------------------------------------------------------------------------------------------


def plot(name: str, grid: int, path: Path) -> None:
    """Draw the loss of an observation, a key of `OBSERVATIONS`, into a file: a panel for each second layer.

    Raises:
        ValueError: if `grid` is less than 1, or the file's suffix isn't that of a supported image format.
        TypeError: if `grid` is 1.
        OSError: if the file can't be written.
    """
    observation = OBSERVATIONS[name]
    scale = PowerNorm(0.5, 0, HEIGHT)  # most of the square is below 150
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(WIDTH_IN, 2.75), layout="constrained")
        panels = figure.subplots(1, len(SECOND))
        for axes, epsilon in zip(panels, SECOND, strict=True):
            w1, w2 = axes_of(epsilon, grid)
            values = np.minimum(surface(observation, epsilon, grid), HEIGHT)
            field = axes.pcolormesh(w1, w2, values, norm=scale, cmap="cividis", shading="nearest", rasterized=True)
            lines = axes.contour(w1, w2, values, levels=_CONTOURS, colors=PAPER, linewidths=0.4)
            _solutions(axes, observation, epsilon)
            axes.set_title(name_of(epsilon))
            axes.set_xlabel("w1, first layer")
            axes.set_xlim(-1.05, 1.05)
            axes.set_ylim(w2[0] - 0.025 * np.ptp(w2), 1 + 0.025 * np.ptp(w2))
        panels[0].set_ylabel("w2, second layer")
        bar = figure.colorbar(field, ax=panels, label="loss (z - t)², cut at 500", pad=0.01, aspect=30)
        bar.set_ticks([0, *_CONTOURS, int(HEIGHT)])
        bar.add_lines(lines)
        figure.legend(handles=_legend(), loc="outside lower center", ncols=2)
        figure.savefig(path, dpi=DPI, metadata={"Software": None})


def _solutions(axes: Axes, observation: Observation, epsilon: float | None) -> None:
    """Draw the zeros of the loss; undesired ones have w1 < 0 or w2 < 0."""
    if epsilon is None:  # at a w2 below 1, both are outside the square
        solutions = [(np.array([1.0]), np.array([1.0]))]
    else:
        solutions = [(nac_mul_exact(w2, observation, epsilon), w2) for w2 in (_below_zero(), np.linspace(0.5, 1, 2001))]
    for w1, w2 in solutions:
        inside = w1 <= 1 + 1e-9
        for side in (-1, 1):
            color = _DESIRED if side > 0 and w2[-1] > 0 else _UNDESIRED
            axes.plot(side * w1[inside], w2[inside], color=color, linewidth=1.2, clip_on=False)
            if w2[-1] == 1:
                marks = {"markersize": 7, "markeredgecolor": "black", "markeredgewidth": 0.5}
                axes.plot(side * w1[-1], 1, "*" if side > 0 else "X", color=color, clip_on=False, zorder=5, **marks)


def _below_zero() -> Floats:
    return np.linspace(-1, -1e-3, 2001)


def _legend() -> list[Line2D]:
    style = {"markersize": 6, "markeredgecolor": "black", "markeredgewidth": 0.5, "linewidth": 1.2}
    return [
        Line2D([], [], color=_DESIRED, marker="*", label="exact, desired", **style),  # type: ignore[arg-type]
        Line2D([], [], color=_UNDESIRED, marker="X", label="exact, undesired", **style),  # type: ignore[arg-type]
    ]


def main(words: Sequence[str] | None = None) -> None:
    """Compute the losses; print the table, and write it and the figures with `--out`.

    Raises:
        ValueError: if `--grid` is less than 1.
        TypeError: if it is 1, with `--out`.
        OSError: if a file can't be written.
    """
    known = plain_parser(__doc__)
    known.add_argument("--grid", type=int, default=201, help="values of each weight")
    arguments = known.parse_args(words)
    rows = [row for name in OBSERVATIONS for epsilon in SECOND for row in rows_of(name, epsilon, arguments.grid)]
    finish(rows, arguments)
    if arguments.out is not None:
        for name in OBSERVATIONS:
            plot(name, arguments.grid, arguments.out.with_name(f"{arguments.out.stem}-{name}.png"))


if __name__ == "__main__":
    main()
