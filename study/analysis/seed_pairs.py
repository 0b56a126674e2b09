"""Trials of cells and groups by their seeds, and differences between them seed by seed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study import statistics
from study.analysis.aggregate import CellSummary, GroupSummary, group_codes, rows_by
from study.analysis.summary import Columns, Floats, Summary
from study.analysis.summary import columns as columns_of
from study.records import Outcome
from study.statistics.checks import Flags

_JUDGED = [str(outcome) for outcome in (Outcome.SOLVED, Outcome.UNSOLVED, Outcome.DIVERGED)]

Rows = npt.NDArray[np.int64]


class SeedTrials:
    """The trials of a table, by their cell, or their group, and seed; nothing is computed before it is asked for.

    Args:
        results: as `study.arrow.results_table` makes them, or with the columns of `study.outcomes.OUTCOME_SCHEMA`.
        by: the columns that tell groups apart; None for cells.
    """

    def __init__(self, results: pa.Table, by: Sequence[str] | None = None) -> None:
        self.results, self._by = results, by

    @cached_property
    def _rows(self) -> dict[Hashable, Rows]:
        if self._by is None:
            ids = self.results["cell_id"].combine_chunks().dictionary_encode()
            names: list[Hashable] = ids.dictionary.to_pylist()
            return dict(zip(names, rows_by(np.asarray(ids.indices), len(names)), strict=True))
        codes = group_codes(self.results, self._by)
        first = pa.array(np.unique(codes, return_index=True)[1])
        columns = [self.results[name].take(first).to_pylist() for name in self._by]
        names = list(zip(*columns, strict=True)) or [()] * len(first)
        return dict(zip(names, rows_by(codes, len(names)), strict=True))

    @cached_property
    def seeds(self) -> Rows:
        """The seed of each trial."""
        return np.asarray(self.results["seed"]).astype(np.int64)

    @cached_property
    def columns(self) -> Columns:
        """The data of summaries."""
        return columns_of(self.results)

    def sample(self, summary: Summary) -> SeedSample:
        """Find the trials of a row of a report; none if the table doesn't have them."""
        return SeedSample(self, self._rows.get(_name_of(summary), np.empty(0, np.int64)))


@dataclass(frozen=True, eq=False)
class SeedSample:
    """Some trials of one cell or group.

    Args:
        trials: those of the whole table.
        rows: the places of these in it.
    """

    trials: SeedTrials
    rows: Rows

    @property
    def seeds(self) -> Rows:
        """Their seeds."""
        return self.trials.seeds[self.rows]

    @property
    def are_judged(self) -> npt.NDArray[np.bool_]:
        """Whether they were judged: solved, unsolved or diverged."""
        return np.isin(self.trials.columns["outcome"][self.rows], _JUDGED)

    @property
    def solved(self) -> npt.NDArray[np.bool_]:
        """Whether they were solved."""
        return np.asarray(self.trials.columns["outcome"][self.rows] == str(Outcome.SOLVED), bool)

    @property
    def times(self) -> tuple[Floats, Flags]:
        """The iterations at which they were solved, or until which they were observed, and which it was."""
        solved, of = self.solved, self.trials.columns
        return np.where(solved, of["solved_at_iteration"][self.rows], of["last_iteration"][self.rows]), solved

    def values(self, metric: str) -> Floats:
        """Return a metric's values; NaN where a trial has none."""
        results = self.trials.results
        if metric not in results.column_names:
            return np.full(self.rows.size, np.nan)
        column = results[metric].take(pa.array(self.rows))
        return np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan))


def shared(samples: Sequence[SeedSample]) -> list[SeedSample] | None:
    """Select the trials of the seeds that samples have in common, one a seed, in the same order for all.

    Returns:
        None where they have less than half of the seeds of the smallest of them in common, or one has several trials of
        a seed: then they are samples of their own.
    """
    seeds = [sample.seeds for sample in samples]
    if any(np.unique(some).size < some.size for some in seeds):
        return None
    common = seeds[0]
    for some in seeds[1:]:
        common = np.intersect1d(common, some)
    if not common.size or 2 * common.size < min(some.size for some in seeds):
        return None
    places = [np.argsort(some, kind="stable")[np.isin(np.sort(some), common)] for some in seeds]
    return [SeedSample(one.trials, one.rows[place]) for one, place in zip(samples, places, strict=True)]


def judged(samples: Sequence[SeedSample]) -> list[SeedSample]:
    """Select of shared seeds those whose trials were all judged."""
    which = np.all([sample.are_judged for sample in samples], axis=0)
    return [SeedSample(sample.trials, sample.rows[which]) for sample in samples]


def _name_of(summary: Summary) -> Hashable:
    """Return what a row of a report is found by among the trials."""
    if isinstance(summary, CellSummary):
        return summary.cell_id
    return summary.values if isinstance(summary, GroupSummary) else None


def rates(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> tuple[statistics.Contrast, tuple[int, int]]:
    """Compare success rates seed by seed, by McNemar's exact test and the interval that belongs to it.

    Args:
        first: whether the trial of the first cell was solved, of each seed.
        second: the same of the second cell.

    Returns:
        The difference, and how many seeds only the first cell solved, and only the second.

    Example:
        >>> both, alone = rates(np.array([True] * 8 + [False] * 2), np.array([True] * 2 + [False] * 8))
        >>> both.estimate, round(both.p_value, 3), alone
        (0.6, 0.031, (6, 0))
    """
    alone = int(np.sum(first & ~second)), int(np.sum(second & ~first))
    n = first.size
    estimate = (alone[0] - alone[1]) / n if n else 0.0
    return statistics.Contrast(estimate, statistics.mcnemar_interval(*alone, n), statistics.mcnemar(*alone)), alone


def means(first: Floats, second: Floats) -> tuple[statistics.Contrast, tuple[int, int, int]] | None:
    """Compare means seed by seed, by flipping the signs of differences.

    Args:
        first: the values of the first cell, one a seed.
        second: those of the second cell; seeds of which either has no finite number are left out.

    Returns:
        The difference; and how many seeds entered, on how many the first cell's value is greater, and on how many the
        second's. None for fewer than two seeds, or where none differ.

    Example:
        >>> both, seeds = means(np.array([1.0, 3.0, 8.0, np.nan]), np.array([0.5, 2.0, 8.5, 1.0]))
        >>> round(both.estimate, 3), both.p_value, seeds
        (0.333, 0.75, (3, 2, 1))
    """
    with np.errstate(invalid="ignore"):
        differences = first - second
    differences = differences[np.isfinite(differences)]
    if differences.size < 2 or not differences.any():
        return None
    seeds = differences.size, int(np.sum(differences > 0)), int(np.sum(differences < 0))
    both = statistics.sign_flip(differences)
    return None if both is None else (both, seeds)
