"""Aggregation of trials to one row a cell, or one row a group."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import table_cells
from study.errors import InputError
from study.interface.declarations import Metric
from study.records import Cell, Labels, Outcome
from study.statistics import AsPublished
from study.statistics import as_published as as_published_of
from study.summaries import questions
from study.summaries.dependence import with_dependence
from study.summaries.metrics import MetricSummary, averaged
from study.summaries.summary import WILSON, RateIntervals, Summary, can_be_judged, meant_to_run, summarise
from study.trials.table import COLUMNS, ENDED, Trials, TrialTable

_NEEDED = ("trial_id", "cell_id", "task", "model", *COLUMNS)


@dataclass(frozen=True, kw_only=True)
class CellSummary(Summary):
    """The results of a cell's trials.

    Args:
        cell: the cell.
    """

    cell: Cell

    @property
    def cell_id(self) -> str:
        """The cell's id."""
        return self.cell.id

    @property
    def key(self) -> tuple[str, ...]:
        """The key of its trials in a table that is grouped by cells."""
        return (self.cell_id,)


@dataclass(frozen=True, kw_only=True)
class GroupSummary(Summary):
    """The results of the trials with equal values in the grouping columns.

    Args:
        values: the group's values, in the order of the columns; None for a missing value.
        as_published: the numbers of the published estimators, if requested.
    """

    values: tuple[Any, ...]
    as_published: AsPublished | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of its trials in a table that is grouped by these columns."""
        return self.values


def aggregate(
    trials: TrialTable,
    *,
    planned: Mapping[Cell, int] | None = None,
    rates: RateIntervals = WILSON,
    labels: Labels | None = None,
    question_fields: Collection[str] = (),
    is_judged: bool | None = None,
) -> list[CellSummary]:
    """Summarise each cell's trials.

    Args:
        trials: one row a trial, by cells, with the columns of `study.arrow.EMPTY_RESULTS`.
        planned: the number of seeds of each planned cell, to count pending trials; None if no trial is pending.
        rates: the intervals of success rates.
        labels: the names of points on axes of the grid, which separate a question from the methods that it compares.
        question_fields: hyperparameters that are declared to belong to the question.
        is_judged: True if the study has a success criterion; None to infer it with `can_be_judged`.

    Returns:
        The planned cells in their order, then other cells in the order of their first rows.

    Raises:
        InputError: if a column is missing, a trial has two rows, an outcome is null or isn't one of `Outcome`, a cell's
            id doesn't match its columns, a package's vocabulary can't be imported, or two packages offer one of the
            same name.
        ValueError: if a text in a column of numbers isn't a number, an integer there is beyond ±2**53, a time to
            success or of censoring is negative, a hyperparameter's text can't be decoded, or a negative seed encodes
            no seeds of sources.
        ValueError, TypeError, OverflowError: if `whole_numbers` names a value that can't be an integer, such as NaN.

    Example:
        >>> from study.arrow import results_table
        >>> aggregate(TrialTable(results_table([])))
        []
    """
    _check(trials.results)
    cells = _first_cells(trials)
    seeds = {cell.id: count for cell, count in (planned or {}).items()}
    order = {cell.id: cell for cell in [*(planned or {}), *cells]} | {cell.id: cell for cell in planned or ()}
    until = _untils(list(order.values()), labels or {}, question_fields)
    untils = np.array([until[cell.id] for cell in cells])
    is_judged = can_be_judged(trials) if is_judged is None else is_judged
    fields = summarise(trials, list(trials.rows_of.values()), untils, rates, is_judged=is_judged)
    summaries = {
        cell.id: with_dependence(CellSummary(cell=order[cell.id], **numbers), trials.cell(cell.id))
        for cell, numbers in zip(cells, fields, strict=True)
    }
    none: dict[str, Any] = {
        "is_judged": is_judged,
        "metrics": {name: MetricSummary(metric=metric) for name, metric in averaged(trials.metrics).items()},
    }
    empty = {cell_id: CellSummary(cell=cell, seeds=0, **none) for cell_id, cell in order.items()}
    return [_count_pending(summaries.get(i, empty[i]), seeds.get(i, 0)) for i in order]


def _untils(cells: Sequence[Cell], labels: Labels, question_fields: Collection[str]) -> dict[str, float]:
    """Return, by cell id, the fewest iterations of any cell that has the same question."""
    iterations = [cell.iterations for cell in cells]
    # The questions of thousands of cells are slow to compute, and needed only if iterations differ.
    cell_questions = (
        questions.cell_questions(cells, labels, question_fields) if len(set(iterations)) > 1 else [()] * len(cells)
    )
    least: dict[Hashable, float] = {}
    for question, count in zip(cell_questions, iterations, strict=True):
        least[question] = float(min(count, least.get(question, count)))
    return {cell.id: least[question] for cell, question in zip(cells, cell_questions, strict=True)}


def aggregate_by(trials: TrialTable, *, as_published: bool = False) -> list[GroupSummary]:
    """Summarise the trials of each group of a table.

    Args:
        trials: one row a trial, grouped by any columns.
        as_published: apply the published estimators, too.

    Returns:
        The groups in the order of their columns' values: numbers ascending after None, others in the order of their
        first rows.

    Raises:
        InputError: if the published estimators have no error (`published_error`), or lack a solved trial's error or
            iteration of success; or if a package's vocabulary can't be imported, or two packages offer one of the same
            name.
        KeyError: if the table lacks a grouping column, `outcome` or `stopped_early`.
        ValueError: if an outcome isn't one of `Outcome`, a text in a column of numbers isn't a number, an integer there
            is beyond ±2**53, a time to success or of censoring is negative, a negative seed encodes no seeds of
            sources, or the published estimators get a negative number.

    Example:
        >>> table = pa.table({"model": ["NMU", "NMU", "NAU"], "outcome": ["solved", "unsolved", "solved"],
        ...     "solved_at_iteration": [7000, None, 9000], "training_s": [None] * 3, "trained_iterations": [None] * 3,
        ...     "stopped_early": [None] * 3, "seed": [0, 1, 0]})
        >>> [(group.values, group.solved, group.seeds) for group in aggregate_by(TrialTable(table, by=("model",)))]
        [(('NMU',), 1, 2), (('NAU',), 1, 1)]
    """
    keys, rows = list(trials.rows_of), list(trials.rows_of.values())
    group_questions = questions.questions(trials.by, keys, questions.methods(trials.by))
    fields = summarise(trials, rows, meant_to_run(trials, rows, group_questions), is_judged=can_be_judged(trials))
    return [
        with_dependence(
            GroupSummary(
                values=keys[group],
                as_published=_published(trials.select(rows[group])) if as_published else None,
                **fields[group],
            ),
            trials.select(rows[group]),
        )
        for group in _order(keys)
    ]


def _order(keys: Sequence[tuple[Any, ...]]) -> Sequence[int]:
    """Return the places of the groups in the order of their values' `_ranks`, column by column."""
    ranks = [_ranks(column) for column in zip(*keys, strict=True)]
    return sorted(
        range(len(keys)), key=lambda group: [rank[value] for rank, value in zip(ranks, keys[group], strict=True)]
    )


def _ranks(column: Sequence[Any]) -> dict[Any, int]:
    """Rank a column's distinct values: numbers ascending after None, others in the order of occurrence."""
    distinct = list(dict.fromkeys(column))
    if all(value is None or isinstance(value, int | float) for value in distinct):
        distinct.sort(key=lambda value: -np.inf if value is None else value)
    return {value: rank for rank, value in enumerate(distinct)}


def published_error(metrics: Mapping[str, Metric]) -> str | None:
    """Return the name of the first metric of solved trials with a beta interval; None without one.

    The published estimators take it as the error.
    """
    return next((name for name, metric in metrics.items() if (metric.of, metric.interval) == ("solved", "beta")), None)


def _published(trials: Trials) -> AsPublished:
    """Apply the published estimators; raise InputError if their metric or a solved trial's number is missing."""
    error, solved = published_error(trials.table.metrics), trials.select(trials.is_solved)
    solved_at, errors = solved.solved_at, solved.values(error) if error else np.empty(0)
    if error is None or not (np.isfinite(solved_at).all() and np.isfinite(errors).all()):
        raise InputError(
            f"the published estimators need the solved_at and the {error or 'error'} of every solved trial, but some "
            "have none: leave out --as-published"
        )
    return as_published_of(solved_at, errors, trials.count(*ENDED))


def _check(results: pa.Table) -> None:
    """Raise InputError if a column is missing, an outcome is unknown, or a trial has several rows."""
    missing = [name for name in _NEEDED if name not in results.column_names]
    if missing:
        raise InputError(
            f"results lack the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; "
            "a table of results must have every column of study.arrow.EMPTY_RESULTS"
        )
    outcomes = set(pc.unique(results["outcome"]).to_pylist())
    if foreign := outcomes - {str(outcome) for outcome in Outcome}:
        raise InputError(
            f"an outcome must be one of {', '.join(Outcome)}, but results have "
            f"{', '.join(sorted(repr(name) for name in foreign))}"
        )
    if pc.count_distinct(results["trial_id"]).as_py() != results.num_rows:
        counts = pc.value_counts(results["trial_id"].combine_chunks())
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))[0].as_py()
        raise InputError(
            f"trial {repeated['values']!r} has {repeated['counts']} rows, but a trial must have one: "
            f"keep the row of its last attempt"
        )


def _first_cells(trials: TrialTable) -> list[Cell]:
    """Read each cell from its first row; raise InputError if its id doesn't match its columns."""
    first = pa.array([int(rows[0]) for rows in trials.rows_of.values()], pa.int64())
    cells = table_cells(trials.results.take(first))
    for (cell_id,), cell in zip(trials.rows_of, cells, strict=True):
        if cell_id != cell.id:
            raise InputError(
                f"results have a cell id {cell_id!r}, but its columns give {cell.id!r}: they were written by "
                f"another version, or changed by hand; run the study again or use the version that wrote them"
            )
    return cells


def _count_pending(summary: CellSummary, planned: int) -> CellSummary:
    """Count the planned seeds without a trial as pending."""
    seeds = max(planned, summary.seeds)
    return replace(summary, seeds=seeds, pending=seeds - summary.seeds)
