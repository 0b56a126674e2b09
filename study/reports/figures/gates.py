"""Histograms of the gates of gated units at the end of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.patches import Patch

from study.reports.figures.multiples import MOST_PANELS, MOST_TIPS, grid, left_out, part_of, sampled
from study.reports.figures.style import PALETTE, STYLE, Drawn, Tips
from study.summaries.rows import ResultRows
from study.summaries.trial_details import Gates

_BINS = 20
_OUTCOMES = ((True, "solved", PALETTE[0], 1.0), (False, "not solved", PALETTE[1], 0.45))
"""Names, colours and opacities, which differ in grey, too."""


def plot(rows: ResultRows, gates: Sequence[Gates]) -> Drawn | None:
    """Draw histograms of mean gates in [0, 1], solved trials below the others; each row and layer has a panel.

    Returns:
        The figure, of the first `MOST_PANELS` rows and layers; None without finite gates.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    present = [gate for gate in gates if np.isfinite(gate.values).any()]
    if not present:
        return None
    first = present[:MOST_PANELS]
    tips = Tips()
    with mpl.rc_context(STYLE):
        titles = [f"{rows.name(gate.row)}, {gate.layer}" for gate in first]
        handles = [Patch(color=colour, alpha=alpha, linewidth=0, label=name) for _, name, colour, alpha in _OUTCOMES]
        height = 1.9 if len(first) < 4 else 1.4
        figure, panels = grid(titles, height, handles, x="mean gate (1: adds)", y="share of gates")
        edges = np.linspace(0, 1, _BINS + 1)
        for axes, title, gate in zip(panels, titles, first, strict=True):
            foot = np.zeros(_BINS)
            total = np.isfinite(gate.values).sum()
            for is_solved, name, colour, alpha in _OUTCOMES:
                counts = count(gate, is_solved=is_solved)
                look: dict[str, Any] = {"fill": True, "color": colour, "alpha": alpha, "linewidth": 0}
                axes.stairs(foot + counts / total, edges, baseline=foot, **look)
                for i in np.flatnonzero(counts) if len(tips.marks) < MOST_TIPS else ():
                    text = f"{title}, gates from {edges[i]:.2f} to {edges[i + 1]:.2f}: {counts[i]} of {total}, {name}"
                    tips.add_field(axes, edges[i], foot[i], edges[i + 1], foot[i] + counts[i] / total, text)
                foot = foot + counts / total
        panels[0].set_xlim(-0.02, 1.02)
        panels[0].set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        panels[0].set_ylim(0, None)
    caption = _caption(first) + part_of(rows, (gate.row for gate in first)) + left_out(len(first), len(present))
    return Drawn("gates", "Gates", caption, figure, tips)


def count(gates: Gates, *, is_solved: bool) -> npt.NDArray[np.int64]:
    """Count the finite gates of the solved trials, or of the others, in each of 20 equal bins of [0, 1]."""
    values = gates.values[gates.solved == is_solved]
    return np.histogram(values[np.isfinite(values)], _BINS, (0, 1))[0]


def _caption(gates: Sequence[Gates]) -> str:
    over = max(gate.validation_rows for gate in gates)
    text = (
        f"Histograms of gates at the end of training, each the mean over the first {over:,} validation rows for one "
        "output of one trial; solved trials are stacked below the others. A gate of 1 adds, a gate of 0 multiplies."
    )
    missing = sum(int((~np.isfinite(gate.values)).sum()) for gate in gates)
    text += f" Omitted: {missing:,} gates of diverged trials." if missing else ""
    return text + sampled((gate.trials, gate.total) for gate in gates)
