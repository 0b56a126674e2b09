"""How the trials of a cell learned: quantiles of their learning curves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from study.arrow import metrics_of

Floats = npt.NDArray[np.float64]

MOST_POINTS = 200
"""The most evaluations of a curve that are used: a figure shows no more."""


def learning_curve(
    row: int,
    curves: pa.Table,
    *,
    of: int | None = None,
    threshold: float | None = None,
    higher: Collection[str] = (),
    most_points: int = MOST_POINTS,
) -> LearningCurve | None:
    """Compute quantiles over trials at each of some evaluations.

    The quantile q of n trials is the least of their values that at least n q of them don't exceed: always a value that
    occurs. A trial that was stopped early keeps its last value; the NaN of a trial that diverged counts as infinite, or
    as minus infinity where more is better. The evaluations are taken at equal steps from the trial that ran longest,
    the first and the last among them; a trial that wasn't evaluated at one of them counts with its latest value before
    it.

    Args:
        row: the index of the row in the report.
        curves: as `study.arrow.curves_table` makes them: the curves of trials of one cell.
        of: the number of trials that have a curve; None: these are all.
        threshold: the value that solves the task; None if the trials have different ones.
        higher: the metrics of which more is better.
        most_points: the most evaluations used, >= 2.

    Returns:
        The quantiles; None if no trial was evaluated.

    Raises:
        ValueError: if a trial's measures are more or fewer than its evaluations.

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
    # curves of other trials, which were read together with these, may have had other metrics
    for name in (name for name in metrics_of(curves) if curves[name].null_count < len(curves)):
        values, starts, counts = _flat(curves, name)
        if not np.array_equal(counts[counts > 0], length) or not np.array_equal(starts[counts > 0], first):
            raise ValueError(f"a curve must have a value of {name} at each of its evaluations, and no other")
        quantiles[name] = _quantiles(values[positions].astype(np.float64), -np.inf if name in higher else np.inf)
    trials = len(first)
    return LearningCurve(
        row=row, trials=trials, of=trials if of is None else of, iteration=at, quantiles=quantiles, threshold=threshold
    )


def _flat(curves: pa.Table, name: str) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a column of lists as one array, with the start and the length of each list."""
    column = curves[name].combine_chunks()
    lists = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    offsets = np.asarray(lists.offsets).astype(np.int64)
    return lists.values.to_numpy(zero_copy_only=False), offsets[:-1], np.diff(offsets)


def spread(count: int, most: int) -> npt.NDArray[np.int64]:
    """Choose at most `most` of `count` indices at equal steps, the first and the last among them.

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
"""The quantiles of learning curves: the median, and the ends of a wide and a narrow band."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningCurve:
    """How a row's trials learned.

    Args:
        row: the index of the row.
        trials: the number of trials it is computed from: all that have a curve, or the first of them.
        of: the number of trials that have a curve.
        iteration: shape [evaluations].
        quantiles: by metric, shape [`QUANTILES`, evaluations]; infinite where the trials above have diverged.
        threshold: the value that solves the task; None if the trials have different ones.
    """

    row: int
    trials: int
    of: int
    iteration: npt.NDArray[np.int64]
    quantiles: Mapping[str, Floats]
    threshold: float | None = None
