"""Sign changes of an NMU's factors for negative inputs: the critical weights, and the loss around them.

    python -m benchmarks.barrier [--out benchmarks/results/barrier.csv]

The factor of an input x is 1 + W (x - 1). For x < 0 it is 0 at W = 1 / (1 - x). Prints a row for each range of inputs,
and writes it with `--out`: that weight for the mean of the range, and the share of the published initial weights,
U[1/4, 3/4], beyond it. A figure beside the file shows the loss of two inputs of -1.5 over their weights, with the paths
of gradient descent: one panel with a target that multiplies both, one with a target that leaves out the second. Nothing
is random.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from benchmarks.measure import finish, plain_parser
from study.reports.figures.style import DPI, PALETTE, PAPER, STYLE, WIDTH_IN

Floats = npt.NDArray[np.float64]

RANGES = ((-20.0, -10.0), (-2.0, -1.0), (-1.2, -1.1), (-0.2, -0.1))
PUBLISHED_START = (0.25, 0.75)
INPUT = -1.5
_GRID = 201
_LEVELS = (0, 0.1, 0.3, 0.6, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 14.1)


def barrier(x: float) -> float:
    """Return 1 / (1 - x): with this weight W, the factor 1 + W (x - 1) of an input x < 0 is 0.

    Example:
        >>> barrier(-1.5)
        0.4
    """
    return 1 / (1 - x)


def share_beyond(weight: float) -> float:
    """Return the share of the published initial weights that are above a weight.

    Example:
        >>> round(share_beyond(0.4), 3)
        0.7
    """
    low, high = PUBLISHED_START
    return float(np.clip((high - weight) / (high - low), 0, 1))


def loss_and_slopes(target: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute the loss (y - t)² and its slopes over a grid of both weights from 0 to 1.

    y is the product of the factors of two inputs, both `INPUT`.

    Args:
        target: t.

    Returns:
        The weights, [grid]; then the loss, its derivative by the first weight, and that by the second, each [second
        weight, first weight].
    """
    weight = np.linspace(0, 1, _GRID)
    factor = 1 + weight * (INPUT - 1)
    first, second = np.meshgrid(factor, factor)
    error = first * second - target
    return weight, error**2, 2 * error * second * (INPUT - 1), 2 * error * first * (INPUT - 1)


def plot(path: Path) -> None:
    """Draw the losses of both targets, 2.25 and -1.5, over the weights into an image file.

    Lines show the paths of gradient descent, the barriers and the published initial weights; a star is the solution.

    Raises:
        OSError: if the file can't be written.
        ValueError: if its suffix isn't that of a supported image format.
    """
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(WIDTH_IN, 3.2), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        both = "both to be multiplied: t = 2.25", INPUT**2, (1, 1)
        alone = "the second to be left out: t = -1.5", INPUT, (1, 0)
        for axes, (title, target, solution) in zip(panels, (both, alone), strict=True):
            field = _panel(axes, target, solution)
            axes.set_title(title)
            axes.set_xlabel("first weight")
        panels[0].set_ylabel("second weight")
        figure.colorbar(field, ax=panels, label="loss (y - t)²", pad=0.01, aspect=30)
        figure.savefig(path, dpi=0.8 * DPI, metadata={"Software": None})  # paths compress badly


def _panel(axes: Axes, target: float, solution: tuple[int, int]) -> Any:
    weight, loss, by_first, by_second = loss_and_slopes(target)
    field = axes.contourf(weight, weight, loss, levels=_LEVELS, norm=PowerNorm(0.5, 0, 14), cmap="cividis")
    axes.streamplot(weight, weight, -by_first, -by_second, color=PAPER, linewidth=0.5, arrowsize=0.7, density=0.9)
    edge = barrier(INPUT)
    axes.axvline(edge, color=PALETTE[1], linewidth=1.2)
    axes.axhline(edge, color=PALETTE[1], linewidth=1.2)
    low, high = PUBLISHED_START
    side = high - low
    axes.add_patch(Rectangle((low, low), side, side, fill=False, edgecolor=PAPER, linestyle="--", linewidth=1.0))
    axes.plot(*solution, "*", color=PALETTE[5], markersize=9, markeredgecolor="black", clip_on=False, zorder=5)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    return field


def main(words: Sequence[str] | None = None) -> None:
    """Compute the barriers; print the table, and write it and the figure with `--out`.

    Raises:
        OSError: if a file can't be written.
    """
    arguments = plain_parser(__doc__).parse_args(words)
    rows = []
    for low, high in RANGES:
        weight = barrier((low + high) / 2)
        beyond = f"{share_beyond(weight):.4g}"
        rows.append({"low": f"{low:g}", "high": f"{high:g}", "barrier": f"{weight:.4g}", "beyond": beyond})
    finish(rows, arguments)
    if arguments.out is not None:
        plot(arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
