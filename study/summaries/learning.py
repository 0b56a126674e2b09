"""Quantiles of the learning curves of a cell's trials."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from study.arrow import metrics_of

Floats = npt.NDArray[np.float64]

MOST_POINTS = 200
"""The most evaluations of a curve: a figure can't show more."""


def learning_curve(
    row: int,
    curves: pa.Table,
    *,
    total: int | None = None,
    threshold: float | None = None,
    higher: Collection[str] = (),
    most_points: int = MOST_POINTS,
) -> LearningCurve | None:
    """Compute quantiles over trials at up to `most_points` evaluations.

    The quantile q of n trials is the smallest of their values with at least n q values at or below it. A trial that was
    stopped early keeps its last value. NaN of a diverged trial counts as the worst value: infinity, or minus infinity
    if higher is better. Evaluations are taken at equal steps from the longest trial, including its first and its last.
    A trial without an evaluation there counts with its latest earlier value, else with its first one.

    Args:
        row: the index of the row in the report.
        curves: the curves of trials of one cell, as from `study.arrow.curves_table`.
        total: the number of trials that have a curve; None if `curves` has all of them.
        threshold: the value that solves the task; None if it differs between trials.
        higher: the metrics of which higher values are better.
        most_points: the most evaluations, >= 2.

    Returns:
        The quantiles; None if no trial was evaluated.

    Raises:
        ValueError: if a trial doesn't have one value of a metric for each of its evaluations.

    Example:
        >>> from study.records import Curve
        >>> from study.arrow import curves_table, metric_columns
        >>> mse = np.float32([[9, 4, 2], [9, 3, np.nan], [9, 1, 0.5]])
        >>> metrics = [dict.fromkeys(metric_columns(), one) for one in mse]
        >>> table = curves_table(Curve(name, np.arange(3) * 100, one) for name, one in zip("abc", metrics))
        >>> curve = learning_curve(0, table)
        >>> curve.iteration.tolist(), curve.quantiles["test_mse"][2].tolist()
        ([0, 100, 200], [9.0, 3.0, 2.0])
    """
    iteration, first, length = _flat(curves, "iteration")
    first, length = first[length > 0], length[length > 0]
    if not first.size:
        return None
    last = first + length
    longest = int(np.argmax(iteration[last - 1]))
    evaluations = spread(int(length[longest]), most_points)
    at = iteration[first[longest] + evaluations]
    by_then = np.stack([np.searchsorted(iteration[a:b], at, side="right") for a, b in zip(first, last, strict=True)])
    positions = first[:, None] + np.maximum(by_then - 1, 0)
    quantiles = {}
    # The table may have metrics of other trials' curves only.
    for name in (name for name in metrics_of(curves) if curves[name].null_count < len(curves)):
        values, starts, counts = _flat(curves, name)
        if not np.array_equal(counts[counts > 0], length) or not np.array_equal(starts[counts > 0], first):
            raise ValueError(f"a curve must have a value of {name} at each of its evaluations, and no other")
        quantiles[name] = _quantiles(values[positions].astype(np.float64), -np.inf if name in higher else np.inf)
    trials = len(first)
    return LearningCurve(
        row=row,
        trials=trials,
        total=trials if total is None else total,
        iteration=at,
        quantiles=quantiles,
        threshold=threshold,
    )


def _flat(curves: pa.Table, name: str) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a column of lists as one array, with the start and the length of each list."""
    column = curves[name].combine_chunks()
    lists = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    offsets = np.asarray(lists.offsets).astype(np.int64)
    return lists.values.to_numpy(zero_copy_only=False), offsets[:-1], np.diff(offsets)


def spread(count: int, most: int) -> npt.NDArray[np.int64]:
    """Choose at most `most` of `count` indices at equal steps, including the first and the last.

    Args:
        count: the number of indices, >= 1.
        most: the most that are chosen, >= 2.

    Example:
        >>> spread(41, 6).tolist()
        [0, 8, 16, 24, 32, 40]
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _quantiles(values: Floats, worst: float) -> Floats:
    """Compute the `QUANTILES` of each column of an array [trials, points], with NaN as the worst value."""
    ascending = np.sort(np.where(np.isnan(values), worst, values), axis=0)
    ranks = [max(0, int(np.ceil(q * len(values) - 1e-9)) - 1) for q in QUANTILES]
    return ascending[ranks]


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of learning curves: the median, and the ends of two bands, 50% and 90%."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningCurve:
    """The learning curve of a row: quantiles over its trials.

    Args:
        row: the index of the row.
        trials: the number of trials that it is computed from: all with a curve, or the first of them.
        total: the number of trials that have a curve.
        iteration: the iterations of the evaluations, shape [evaluations].
        quantiles: by metric, shape [`QUANTILES`, evaluations]; infinite if the trials at that quantile have diverged.
        threshold: the value that solves the task; None if it differs between trials.
    """

    row: int
    trials: int
    total: int
    iteration: npt.NDArray[np.int64]
    quantiles: Mapping[str, Floats]
    threshold: float | None = None
