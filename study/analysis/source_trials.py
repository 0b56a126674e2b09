"""Trials of combined seeds as arrays: an axis for each source of randomness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from study.analysis.summary import Floats
from study.records import sources_of
from study.statistics.samples import Ints


@dataclass(frozen=True, eq=False)
class SourceArray:
    """Numbers of trials by the seeds of their sources.

    Args:
        sources: the names of the axes: init and data, or seed where both have the same one; and evaluation.
        values: an axis a source, NaN where a trial has no number. Where data seeds belong to init seeds, each init seed
            has a row of its own data seeds.
        is_nested: whether that is so.
    """

    sources: tuple[str, ...]
    values: Floats
    is_nested: bool = False


def source_array(seeds: Ints, values: Floats) -> SourceArray | None:
    """Sort numbers by the seeds of their sources.

    Args:
        seeds: those that stand for the trials' sources, shape [trials].
        values: shape [trials]; NaN where a trial has no number.

    Returns:
        None if no seeds are combined.

    Example:
        >>> from study.records import Sources
        >>> seeds = np.array([Sources(init, data).seed for init in (0, 1) for data in (0, 1, 2)])
        >>> of = source_array(seeds, np.arange(6.0))
        >>> of.sources, of.values.tolist(), of.is_nested
        (('init', 'data'), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], False)
    """
    of = [sources_of(int(seed)) for seed in seeds]
    if not any(one.are_combined for one in of):
        return None
    labels = {"init": [one.init for one in of], "data": [one.data for one in of]}
    if labels["init"] == labels["data"]:
        labels = {"seed": labels["init"]}
    if any(one.evaluation is not None for one in of):
        labels["evaluation"] = [-1 if one.evaluation is None else one.evaluation for one in of]
    places = [np.unique(some, return_inverse=True)[1] for some in labels.values()]
    is_nested = list(labels) == ["init", "data"] and _is_nested(*places)
    if is_nested:
        places[1] = _within(*places)
    array = np.full([int(some.max()) + 1 for some in places], np.nan)
    array[tuple(places)] = values
    return SourceArray(tuple(labels), array, is_nested)


def _is_nested(outer: Ints, inner: Ints) -> bool:
    """Return whether each inner label belongs to one outer label, and some outer label has several."""
    pairs = np.unique(np.stack([outer, inner]), axis=1)
    count = np.unique(inner).size
    return bool(pairs.shape[1] == count > np.unique(outer).size)


def _within(outer: Ints, inner: Ints) -> Ints:
    """Number inner labels from 0 within their outer label."""
    places = np.zeros(outer.size, np.int64)
    for label in np.unique(outer):
        places[outer == label] = np.unique(inner[outer == label], return_inverse=True)[1]
    return places
