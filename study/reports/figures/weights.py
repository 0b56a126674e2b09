"""The weights of one trial when training ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure

from study import words
from study.plugins.vocabulary import vocabulary
from study.records import sources_of
from study.reports.figures.multiples import MOST_TIPS, colour_scale, fields, heading, write_label
from study.reports.figures.style import RULE, STYLE, WIDTH_IN, Drawn, Tips, text_on
from study.summaries.aggregate import CellSummary
from study.summaries.rows import ResultRows
from study.summaries.trial_details import TrialWeights

Matrix = npt.NDArray[np.float32]

_COLOURS = "RdBu"
_LEFT_IN, _RIGHT_IN, _ABOVE_IN, _BELOW_IN = 0.5, 0.2, 0.26, 0.36
"""The space around a matrix."""
_TITLE_IN = 0.9
_SCALE_IN, _SCALE_HIGH_IN = 0.75, 0.9
_FIELD_IN, _ROW_IN = 0.34, 0.22
"""The largest width and height of a field."""
_FLAT_IN, _TALL_IN = 1.0, 3.0
"""The approximate height of a matrix with narrow fields, and the largest height."""
_GATE = ", G"


@dataclass(frozen=True)
class _Box:
    """The position of a matrix, in inches from the upper left."""

    left: float
    top: float
    width: float
    height: float

    def axes(self, figure: Figure) -> Axes:
        """Create the axes in a figure that has its final size."""
        wide, high = figure.get_size_inches()
        bottom = high - self.top - self.height
        return figure.add_axes((self.left / wide, bottom / high, self.width / wide, self.height / high))


def plot(rows: ResultRows, weights: TrialWeights | None) -> Drawn | None:
    """Draw each matrix with a field for each weight: inputs across, outputs down.

    Returns:
        The figure; None without weights.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    if weights is None or not weights.matrices:
        return None
    trial_name = f"{_name(rows, weights.row)}, seed {sources_of(weights.seed)}, {weights.outcome}"
    limits = limits_of(weights.matrices)
    scales = {_scale(name): limit for name, limit in limits.items()}
    boxes = _flow([matrix.shape for matrix in weights.matrices.values()])
    height = max(box.top + box.height + _BELOW_IN for box in boxes)
    height = max(height, len(scales) * (_SCALE_HIGH_IN + _ABOVE_IN) + 0.1)
    tips = Tips()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, height))
        grid = {}
        for (name, matrix), box in zip(weights.matrices.items(), boxes, strict=True):
            grid[name] = box.axes(figure)
            _plot_matrix(grid[name], name, matrix, limits[name], box)
        right = max(box.left + max(box.width, _TITLE_IN) for box in boxes) + _RIGHT_IN
        for number, (name, limit) in enumerate(scales.items()):
            bar = _Box(right, _ABOVE_IN + number * (_SCALE_HIGH_IN + _ABOVE_IN), 0.09, _SCALE_HIGH_IN)
            colour_scale(figure, mpl.colormaps[_COLOURS], (-limit, limit), name, cax=bar.axes(figure))
        for name, matrix in sorted(weights.matrices.items(), key=lambda item: item[1].size):
            # Only the largest weights get texts if there are too many.
            greatest = np.argsort(-np.abs(matrix), axis=None, kind="stable")[: MOST_TIPS - len(tips.marks)]
            for out, into in zip(*np.unravel_index(np.sort(greatest), matrix.shape), strict=True):
                text = f"{name}, output {out + 1}, input {into + 1}: {matrix[out, into]:.6g}"
                tips.add_field(grid[name], into - 0.5, out - 0.5, into + 0.5, out + 0.5, text)
    return Drawn("weights", f"Weights: {trial_name}", _caption(trial_name, weights), figure, tips)


def limits_of(matrices: Mapping[str, Matrix]) -> dict[str, float]:
    """Return the limit of each matrix's colours: the greatest finite absolute value, at least 1.

    Gates, whose names end in ``, G``, share one limit, and all other weights another.

    Example:
        >>> half, three = np.float32([[0.5]]), np.float32([[-3]])
        >>> limits_of({"layer 1, W": half, "layer 1, G": three, "layer 2, W": half})
        {'layer 1, W': 1.0, 'layer 1, G': 3.0, 'layer 2, W': 1.0}
    """
    greatest: dict[str, float] = {}
    for name, matrix in matrices.items():
        sizes = np.abs(matrix[np.isfinite(matrix)])
        greatest[_scale(name)] = max(greatest.get(_scale(name), 1.0), float(sizes.max(initial=0.0)))
    return {name: greatest[_scale(name)] for name in matrices}


def _scale(name: str) -> str:
    return "gate's weight" if name.endswith(_GATE) else "weight"


def _name(rows: ResultRows, row: int) -> str:
    """Name the trial's cell by its model and the swept hyperparameters."""
    summary = rows.summaries[row]
    if not isinstance(summary, CellSummary):
        return rows.name(row)
    swept = [key for key in vocabulary().swept_first if key in summary.cell.names]
    named = [f"{rows.title(key)} {words.format_value(key, summary.cell.value(key))}" for key in swept]
    others = [key for key in rows.varying() if key not in ("model", *swept)]
    return ", ".join([words.symbol(summary.cell.model), *named, *([rows.name(row, others)] if others else [])])


def _flow(shapes: Sequence[tuple[int, ...]]) -> list[_Box]:
    """Place matrices of shapes (rows, columns) side by side if they fit, else below, and return their boxes."""
    room = WIDTH_IN - _SCALE_IN - _LEFT_IN - _RIGHT_IN
    boxes: list[_Box] = []
    left, top, lowest = _LEFT_IN, _ABOVE_IN, 0.0
    for down, across in shapes:
        width = min(across * _FIELD_IN, room)
        height = min(down * min(_ROW_IN, max(width / across, _FLAT_IN / down)), _TALL_IN)
        if boxes and left + width + _RIGHT_IN > WIDTH_IN - _SCALE_IN:
            left, top = _LEFT_IN, lowest + _BELOW_IN + _ABOVE_IN
        boxes.append(_Box(left, top, width, height))
        left += width + _RIGHT_IN + _LEFT_IN
        lowest = max(lowest, top + height)
    return boxes


def _plot_matrix(axes: Axes, name: str, matrix: Matrix, limit: float, box: _Box) -> None:
    colours = mpl.colormaps[_COLOURS]
    fields(axes, matrix, colours, (-limit, limit))
    down, across = matrix.shape
    axes.set_xlim(-0.5, across - 0.5)
    axes.set_ylim(down - 0.5, -0.5)
    heading(axes, name, max(box.width, _TITLE_IN))
    axes.set_xticks(*_ticks(across))
    axes.set_yticks(*_ticks(down))
    axes.set_xlabel("input", labelpad=1)
    axes.set_ylabel("output", labelpad=2)
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set(visible=True, color=RULE)
    if box.width / across >= 0.8 * _FIELD_IN and box.height / down >= 0.8 * _ROW_IN:
        for (out, into), value in np.ndenumerate(matrix):
            weight = float(value)
            if np.isfinite(weight):
                text = f"{weight:.2f}" if abs(weight) < 9.995 else f"{weight:.2g}"
                colour = text_on(to_rgb(colours(Normalize(-limit, limit)(weight))))
                write_label(axes, into, out, text.replace("-", "−"), colour)


def _ticks(count: int) -> tuple[list[int], list[str]]:
    """Return positions of ticks from 0, and their numbers from 1: at most eleven, and the first alone above 2,500."""
    step = next(step for step in (1, 5, 10, 25, 50, 100, 250, 10**9) if count <= 10 * step)
    numbers = list(range(1, count + 1)) if step == 1 else [1, *range(step, count + 1, step)]
    return [number - 1 for number in numbers], [str(number) for number in numbers]


def _caption(trial_name: str, weights: TrialWeights) -> str:
    text = (
        f"Effective weights of one trial ({trial_name}) after {weights.iteration:,} updates, with inputs across and "
        "outputs down."
    )
    if len({_scale(name) for name in weights.matrices}) > 1:
        text += " Gates have their own scale."
    if not all(np.isfinite(matrix).all() for matrix in weights.matrices.values()):
        text += " An empty field isn't a finite number."
    return text
