"""From one row a trial to one row a cell, or a group of trials."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.analysis import questions
from study.analysis.metrics import MetricSummary, averaged
from study.analysis.summary import (
    COLUMNS,
    WILSON,
    Columns,
    RateIntervals,
    Summary,
    can_be_judged,
    meant_to_run,
    solved_values,
    summarise,
)
from study.analysis.summary import columns as columns_of
from study.arrow import table_cells, with_metrics
from study.errors import InputError
from study.records import Cell, Labels, Outcome
from study.statistics import AsPublished
from study.statistics import as_published as as_published_of
from tasks.declarations import Metric

_MOST_CODES = 2**62
"""The most combinations of columns' values; beyond them, which may not fit 64 bits, the rows are renumbered first."""

_NEEDED = ("trial_id", "cell_id", "task", "model", *COLUMNS)


_NO_METRICS: Mapping[str, Metric] = {}


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


@dataclass(frozen=True, kw_only=True)
class GroupSummary(Summary):
    """The results of the trials that have equal values in some columns.

    Args:
        values: their values, in the order of the columns; None where there is none.
        as_published: the numbers of the published estimators, if requested.
    """

    values: tuple[Any, ...]
    as_published: AsPublished | None = None


def aggregate(
    results: pa.Table,
    metrics: Mapping[str, Metric] = _NO_METRICS,
    *,
    planned: Mapping[Cell, int] | None = None,
    rates: RateIntervals = WILSON,
    labels: Labels | None = None,
    question_fields: Collection[str] = (),
    is_judged: bool | None = None,
) -> list[CellSummary]:
    """Summarise each cell's trials.

    Args:
        results: as `study.arrow.results_table` makes them, one row a trial, in any order.
        metrics: the metrics that the trials report; those that are declared to be averaged are summarised.
        planned: the number of seeds of each planned cell, to count what is pending; None: nothing is pending.
        rates: how success rates are bounded.
        labels: the names of points on axes of the grid, which separate a question from the methods that it compares.
        question_fields: hyperparameters that are declared to belong to the question.
        is_judged: whether anything says what success is; None: something does unless trials finished unjudged.

    Returns:
        The planned cells in their order, then other cells in the order of their first rows.

    Raises:
        InputError: if a column is missing, a trial has two rows or an outcome is none of `Outcome`, or a
            cell's id isn't that of its columns.

    Example:
        >>> from study.arrow import results_table
        >>> aggregate(results_table([]))
        []
    """
    results = with_metrics(results, averaged(metrics))
    _check(results)
    ids = results["cell_id"].combine_chunks().dictionary_encode()
    codes = np.asarray(ids.indices)
    cells = _cells(results, codes, ids.dictionary.to_pylist())
    seeds = {cell.id: count for cell, count in (planned or {}).items()}
    order = {cell.id: cell for cell in [*(planned or {}), *cells]} | {cell.id: cell for cell in planned or ()}
    until = _untils(list(order.values()), labels or {}, question_fields)
    untils = np.array([until[cell.id] for cell in cells])
    columns = columns_of(results, averaged(metrics))
    is_judged = can_be_judged(columns["outcome"]) if is_judged is None else is_judged
    fields = summarise(columns, rows_by(codes, len(cells)), untils, metrics, rates, is_judged=is_judged)
    summaries = {cell.id: CellSummary(cell=order[cell.id], **of) for cell, of in zip(cells, fields, strict=True)}
    none: dict[str, Any] = {
        "is_judged": is_judged,
        "metrics": {name: MetricSummary(metric=metric) for name, metric in averaged(metrics).items()},
    }
    empty = {cell_id: CellSummary(cell=cell, seeds=0, **none) for cell_id, cell in order.items()}
    return [_count_pending(summaries.get(i, empty[i]), seeds.get(i, 0)) for i in order]


def _untils(cells: Sequence[Cell], labels: Labels, question_fields: Collection[str]) -> dict[str, float]:
    """Return for each cell, by its id, the fewest iterations of any cell of its question."""
    iterations = [cell.iterations for cell in cells]
    # finding the questions of thousands of cells takes long, and mostly makes no difference
    of_cells = questions.of_cells(cells, labels, question_fields) if len(set(iterations)) > 1 else [()] * len(cells)
    least: dict[Hashable, float] = {}
    for question, count in zip(of_cells, iterations, strict=True):
        least[question] = float(min(count, least.get(question, count)))
    return {cell.id: least[question] for cell, question in zip(cells, of_cells, strict=True)}


def aggregate_by(
    outcomes: pa.Table, by: Sequence[str], metrics: Mapping[str, Metric] = _NO_METRICS, *, as_published: bool = False
) -> list[GroupSummary]:
    """Summarise the trials of each group: those with equal values in the columns `by`.

    Args:
        outcomes: columns of `study.outcomes.OUTCOME_SCHEMA`, of metrics and of `by`, one row a trial, in any order;
            an outcome of null is a pending trial.
        by: columns; without any, all trials are one group.
        metrics: the metrics that the trials report; those that are declared to be averaged are summarised.
        as_published: whether to apply the published estimators, too.

    Returns:
        The groups in the order of their columns' values: numbers ascending, all else in the order of the first rows.

    Raises:
        InputError: if the published estimators lack a solved trial's solved-at or error.

    Example:
        >>> table = pa.table({"model": ["NMU", "NMU", "NAU"], "outcome": ["solved", "unsolved", "solved"],
        ...     "solved_at_iteration": [7000, None, 9000], "training_s": [None] * 3, "trained_iterations": [None] * 3,
        ...     "stopped_early": [None] * 3})
        >>> [(group.values, group.solved, group.seeds) for group in aggregate_by(table, ["model"])]
        [(('NMU',), 1, 2), (('NAU',), 1, 1)]
    """
    codes = group_codes(outcomes, by)
    count = int(codes.max()) + 1 if codes.size else 0
    first = np.unique(codes, return_index=True)[1]
    values = [outcomes[name].take(pa.array(first)).to_pylist() for name in by]
    columns = columns_of(outcomes, averaged(metrics))
    rows = rows_by(codes, count)
    of_groups = questions.questions(by, list(zip(*values, strict=True)) or [()] * count, questions.methods(by))
    fields = summarise(
        columns, rows, meant_to_run(columns, rows, of_groups), metrics, is_judged=can_be_judged(columns["outcome"])
    )
    return [
        GroupSummary(
            values=tuple(column[code] for column in values),
            as_published=_published(columns, rows[code], metrics) if as_published else None,
            **fields[code],
        )
        for code in _order(values, count)
    ]


def _order(values: Sequence[Sequence[Any]], count: int) -> Sequence[int]:
    ranks = [_ranks(column) for column in values]
    return sorted(
        range(count), key=lambda code: [rank[column[code]] for rank, column in zip(ranks, values, strict=True)]
    )


def _ranks(column: Sequence[Any]) -> dict[Any, int]:
    """Rank a column's different values, None first among numbers."""
    different = list(dict.fromkeys(column))
    if all(value is None or isinstance(value, int | float) for value in different):
        different.sort(key=lambda value: -np.inf if value is None else value)
    return {value: rank for rank, value in enumerate(different)}


def group_codes(table: pa.Table, by: Sequence[str]) -> npt.NDArray[np.int64]:
    """Number the rows so that rows have equal numbers exactly where they are equal in the columns `by`.

    Returns:
        The number of each row: 0, 1, ... in the order of first occurrence.

    Example:
        >>> group_codes(pa.table({"a": [5, 5, None, 5], "b": ["x", "y", "x", "x"]}), ["a", "b"]).tolist()
        [0, 1, 2, 0]
    """
    return _renumber(_combine(table, by))


def all_differ(table: pa.Table, by: Sequence[str]) -> bool:
    """Return whether no two rows are equal in the columns `by`.

    Example:
        >>> all_differ(pa.table({"a": [5, 5, None], "b": ["x", "y", "x"]}), ["a", "b"])
        True
    """
    codes = np.sort(_combine(table, by))  # ten times as fast as numbering a million rows that differ
    return bool(np.all(codes[1:] != codes[:-1]))


def _combine(table: pa.Table, by: Sequence[str]) -> npt.NDArray[np.int64]:
    """Combine each row's values into one number."""
    codes, most = np.zeros(table.num_rows, np.int64), 1
    for name in by:
        column = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        different = max(1, len(column.dictionary))
        if most * different > _MOST_CODES:
            codes, most = _renumber(codes), table.num_rows
        codes, most = codes * different + np.asarray(column.indices), most * different
    return codes


def _renumber(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.asarray(pa.array(codes).dictionary_encode().indices).astype(np.int64)


def published_error(metrics: Mapping[str, Metric]) -> str | None:
    """Return the metric of solved trials that the published estimators are applied to; None if there is none."""
    return next((name for name, metric in metrics.items() if (metric.of, metric.interval) == ("solved", "beta")), None)


def _published(columns: Columns, rows: npt.NDArray[np.int64], metrics: Mapping[str, Metric]) -> AsPublished:
    outcome, error = columns["outcome"][rows], published_error(metrics)
    solved_at, errors = solved_values(columns, rows, "solved_at_iteration", error) if error else (np.empty(0),) * 2
    if error is None or not len(solved_at) == len(errors) == np.count_nonzero(outcome == str(Outcome.SOLVED)):
        raise InputError(
            f"the published estimators need the solved_at and the {error or 'error'} of every solved trial, but some "
            "have none: leave out --as-published"
        )
    ended = np.count_nonzero((outcome != str(Outcome.FAILED)) & (outcome != ""))
    return as_published_of(solved_at, errors, int(ended))


def _check(results: pa.Table) -> None:
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


def _cells(results: pa.Table, codes: npt.NDArray[np.int32], ids: list[str]) -> list[Cell]:
    """Read each cell from its first row."""
    first = np.unique(codes, return_index=True)[1]
    cells = table_cells(results.take(pa.array(first)))
    for cell_id, cell in zip(ids, cells, strict=True):
        if cell_id != cell.id:
            raise InputError(
                f"results name a cell {cell_id!r}, but its columns make it {cell.id!r}: they were written by "
                f"another version, or changed by hand; run the study again or use the version that wrote them"
            )
    return cells


def rows_by(codes: npt.NDArray[np.integer], count: int) -> list[npt.NDArray[np.int64]]:
    """List the rows of each code, in their order."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1]) if count else []


def _count_pending(summary: CellSummary, planned: int) -> CellSummary:
    seeds = max(planned, summary.seeds)
    return replace(summary, seeds=seeds, pending=seeds - summary.seeds)
