"""Intervals of rows whose trials share seeds: such trials say less than as many independent ones.

Trials of combined seeds share those of a source; trials that a row pools, such as those of several hyperparameters,
share their own. The rate's interval allows for it (`statistics.shared_rate_interval`), and other intervals, which
don't, are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from study import statistics
from study.summaries.summary import Summary
from study.trials.table import Floats, Ints, SourceArray, Trials, source_array

DEPENDENCE_ADJUSTED = "dependence-adjusted"
"""What intervals of rates are called that allow for trials that share seeds."""

S = TypeVar("S", bound=Summary)


def with_dependence(summary: S, trials: Trials) -> S:
    """Return a summary whose intervals allow for seeds that its trials share; the same if they share none.

    The rate's interval with three sources is that of the trials with the first evaluation rows.

    Args:
        summary: of some trials.
        trials: these trials.
    """
    array = shared_seeds_array(trials.seeds, trials.successes)
    if array is None:
        return summary
    interval = None
    if summary.success_rate is not None:
        values = array.values if array.values.ndim == 2 else array.values[:, :, 0]
        interval = statistics.shared_rate_interval(values, is_nested=array.is_nested)
    metrics = {
        name: replace(metric, mean_interval=None, median_interval=None, interquartile_mean_interval=None)
        for name, metric in summary.metrics.items()
    }
    return replace(
        summary,
        success_rate_interval=interval,
        success_rate_by=DEPENDENCE_ADJUSTED,
        solved_at_median_interval=None,
        solved_at_interval=None,
        time_to_success_interval=None,
        solved_at_s_interval=None,
        metrics=metrics,
    )


def shared_seeds_array(seeds: Ints, values: Floats) -> SourceArray | None:
    """Arrange numbers of trials by the seeds that they share: by sources, or by seed where a seed has several trials.

    Args:
        seeds: shape [trials].
        values: shape [trials]; NaN where a trial has no number.

    Returns:
        None if no two trials share a seed.

    Example:
        >>> array = shared_seeds_array(np.array([5, 7, 5]), np.array([1.0, 2.0, 3.0]))
        >>> array.sources, array.values.tolist(), array.is_nested
        (('seed', 'trial'), [[1.0, 3.0], [2.0, nan]], True)
    """
    combined = source_array(seeds, values)
    if combined is not None:
        return combined
    different, row, count = np.unique(seeds, return_inverse=True, return_counts=True)
    if different.size == seeds.size:
        return None
    order = np.argsort(row, kind="stable")
    column = np.arange(seeds.size) - np.repeat(np.cumsum(count) - count, count)
    array = np.full((different.size, count.max()), np.nan)
    array[row[order], column] = values[order]
    return SourceArray(("seed", "trial"), array, is_nested=True)
