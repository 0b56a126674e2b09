"""Targets of a cell's trials, and the test MSE to undercut."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from study.stream.stream import Purpose, uniforms
from tasks.arithmetic import ArithmeticTask
from tasks.arithmetic.cell import ArithmeticCell, task_of


def masks_of(task: ArithmeticTask, seeds: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    """Draw the places of each trial's subsets, and compute their masks, float32 [trials, subsets, n]."""
    places = uniforms(seeds, 1, 0, Purpose.OFFSET)[:, 0]
    return np.stack([task.masks(task.offset(float(place))) for place in places])


def threshold_of(cell: ArithmeticCell) -> float:
    """Return the test MSE that a trial of the cell must undercut.

    Raises:
        ValueError: if the cell has neither a success epsilon nor a threshold, or the threshold can't be computed.
    """
    if cell.success_threshold is not None:
        return cell.success_threshold
    if cell.success_epsilon is None:
        raise ValueError("one of success_epsilon and success_threshold must be set, but both are None")
    return task_of(cell).threshold(cell.success_epsilon)
