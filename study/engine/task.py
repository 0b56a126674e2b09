"""What the trials of a cell are to compute, and the test MSE to undercut."""

from __future__ import annotations

from study.records import Cell
from tasks import TASKS, ArithmeticTask


def task_of(cell: Cell) -> ArithmeticTask:
    """Build the task of the cell's trials."""
    return TASKS[cell.task](
        operation=cell.operation,
        input_size=cell.input_size,
        subset_ratio=cell.subset_ratio,
        overlap_ratio=cell.overlap_ratio,
        subsets=cell.subsets,
        interpolation_range=cell.interpolation_range,
        extrapolation_range=cell.extrapolation_range,
    )


def threshold_of(cell: Cell) -> float:
    """Compute the test MSE that a trial of the cell must undercut."""
    if cell.success_threshold is not None:
        return cell.success_threshold
    if cell.success_epsilon is None:
        raise ValueError("one of success_epsilon and success_threshold must be set, but both are None")
    return task_of(cell).threshold(cell.success_epsilon)
