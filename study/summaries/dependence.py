"""Intervals of rows with dependent trials, that is, trials that share seeds.

Trials of combined seeds share the seed of a source. Pooled trials, such as those of several hyperparameters, share
their own seeds. The rate's interval allows for the dependence (`statistics.shared_rate_interval`). Other intervals
don't, and are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from study import statistics
from study.summaries.summary import Summary
from study.trials.table import Floats, Ints, SourceArray, Trials, source_array

DEPENDENCE_ADJUSTED = "dependence-adjusted"
"""The name of intervals of rates that allow for shared seeds."""

S = TypeVar("S", bound=Summary)


def with_dependence(summary: S, trials: Trials) -> S:
    """Adjust a summary to shared seeds: replace the rate's interval, and remove all others.

    The summary is unchanged if no seed is combined or repeated. With three sources, the rate's interval is that of the
    trials with the first evaluation rows.

    Args:
        summary: the summary of the trials.
        trials: the trials.

    Raises:
        ValueError: if a negative seed encodes no seeds of sources (`study.records.sources_of`).
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
    """Arrange values of trials by shared seeds: by sources, or by seed and trial if seeds have several trials.

    Args:
        seeds: shape [trials].
        values: shape [trials]; NaN for a missing value.

    Returns:
        The array; None if no seed is combined or repeated.

    Raises:
        ValueError: if a negative seed encodes no seeds of sources (`study.records.sources_of`).

    Example:
        >>> array = shared_seeds_array(np.array([5, 7, 5]), np.array([1.0, 2.0, 3.0]))
        >>> array.sources, array.values.tolist(), array.is_nested
        (('seed', 'trial'), [[1.0, 3.0], [2.0, nan]], True)
    """
    combined = source_array(seeds, values)
    if combined is not None:
        return combined
    distinct, row, count = np.unique(seeds, return_inverse=True, return_counts=True)
    if distinct.size == seeds.size:
        return None
    order = np.argsort(row, kind="stable")
    column = np.arange(seeds.size) - np.repeat(np.cumsum(count) - count, count)
    array = np.full((distinct.size, count.max()), np.nan)
    array[row[order], column] = values[order]
    return SourceArray(("seed", "trial"), array, is_nested=True)
