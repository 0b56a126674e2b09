"""Trials of cells and groups by their seeds, and differences between them seed by seed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study import statistics
from study.analysis.aggregate import CellSummary, GroupSummary, group_codes, rows_by
from study.analysis.summary import Columns, Floats, Summary, columns
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
        self._results, self._by = results, by

    @cached_property
    def _rows(self) -> dict[Hashable, Rows]:
        if self._by is None:
            ids = self._results["cell_id"].combine_chunks().dictionary_encode()
            names: list[Hashable] = ids.dictionary.to_pylist()
            return dict(zip(names, rows_by(np.asarray(ids.indices), len(names)), strict=True))
        codes = group_codes(self._results, self._by)
        first = pa.array(np.unique(codes, return_index=True)[1])
        columns = [self._results[name].take(first).to_pylist() for name in self._by]
        names = list(zip(*columns, strict=True)) or [()] * len(first)
        return dict(zip(names, rows_by(codes, len(names)), strict=True))

    @cached_property
    def _seeds(self) -> Rows:
        return np.asarray(self._results["seed"]).astype(np.int64)

    @cached_property
    def _columns(self) -> Columns:
        return columns(self._results)

    def shared(self, summaries: Sequence[Summary]) -> list[Rows] | None:
        """Find the trials of the seeds that some rows of a report have in common.

        Args:
            summaries: those of the rows.

        Returns:
            Of each its trials' places in the table, one a seed, in the same order for all. None where they have less
            than half of the seeds of the smallest of them in common, or one has several trials of a seed: then they
            are samples of their own.
        """
        rows = [self._rows.get(_name_of(summary), np.empty(0, np.int64)) for summary in summaries]
        seeds = [self._seeds[of_cell] for of_cell in rows]
        if any(np.unique(of_cell).size < of_cell.size for of_cell in seeds):
            return None
        common = seeds[0]
        for of_cell in seeds[1:]:
            common = np.intersect1d(common, of_cell)
        if not common.size or 2 * common.size < min(of_cell.size for of_cell in seeds):
            return None
        return [
            of_cell[np.argsort(here, kind="stable")][np.isin(np.sort(here), common)]
            for of_cell, here in zip(rows, seeds, strict=True)
        ]

    def judged(self, rows: Sequence[Rows]) -> list[Rows]:
        """Select of shared seeds those whose trials were all judged: solved, unsolved or diverged."""
        outcome = self._columns["outcome"]
        are_judged = np.all([np.isin(outcome[of_cell], _JUDGED) for of_cell in rows], axis=0)
        return [of_cell[are_judged] for of_cell in rows]

    def solved(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return whether trials were solved."""
        return np.asarray(self._columns["outcome"][rows] == str(Outcome.SOLVED), bool)

    def times(self, rows: Rows) -> tuple[Floats, Flags]:
        """Return the iterations at which trials were solved, or until which they were observed, and which it was."""
        solved = self.solved(rows)
        at = np.where(solved, self._columns["solved_at_iteration"][rows], self._columns["last_iteration"][rows])
        return at, solved

    def values(self, rows: Rows, metric: str) -> Floats:
        """Return a metric's values; NaN where a trial has none."""
        if metric not in self._results.column_names:
            return np.full(rows.size, np.nan)
        column = self._results[metric].take(pa.array(rows))
        return np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan))


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
