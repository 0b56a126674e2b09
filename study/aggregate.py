"""From one row a trial to one row a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study import statistics
from study.errors import InputError
from study.records import CELL_FIELDS, Cell, Interval, Outcome, parse_range

_RANGES = ("interpolation_range", "extrapolation_range")
_NEEDED = (
    "trial_id", "cell_id", *CELL_FIELDS,
    "outcome", "solved_at_iteration", "sparsity_error", "training_s", "stopped_early",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """What a cell's trials came to. None means that there is no such number.

    Args:
        cell: which cell.
        seeds: trials planned; trials with a result, if there are more.
        solved: trials that solved the task.
        unsolved: trials that ran to the end without.
        diverged: trials whose weights became NaN or infinite.
        failed: trials that crashed: no result.
        pending: trials planned and not done.
        success_rate: solved of finished.
        success_rate_interval: Wilson, 95%.
        solved_at_median: iterations; of the solved trials, as are the next four.
        solved_at_mean: iterations; the sample mean, which is the gamma law's estimate.
        solved_at_interval: of the gamma law's mean, 95%, by profile likelihood.
        sparsity_error_mean: the sample mean.
        sparsity_error_interval: of the mean of a beta law on [0, 1/2], 95%, by profile likelihood.
        training_s_mean: seconds of training of a finished trial.
        stopped_early: trials that `stop: when_decided` ended.
    """

    cell: Cell
    seeds: int
    solved: int = 0
    unsolved: int = 0
    diverged: int = 0
    failed: int = 0
    pending: int = 0
    success_rate: float | None = None
    success_rate_interval: Interval | None = None
    solved_at_median: float | None = None
    solved_at_mean: float | None = None
    solved_at_interval: Interval | None = None
    sparsity_error_mean: float | None = None
    sparsity_error_interval: Interval | None = None
    training_s_mean: float | None = None
    stopped_early: int = 0

    @property
    def cell_id(self) -> str:
        """Name the cell."""
        return self.cell.id

    @property
    def finished(self) -> int:
        """Count the trials that ran to a result: the denominator of the success rate."""
        return self.solved + self.unsolved + self.diverged

    @property
    def complete(self) -> bool:
        """Say whether every planned trial is in the denominator."""
        return self.failed == 0 and self.pending == 0


def aggregate(results: pa.Table, *, planned: Mapping[Cell, int] | None = None) -> list[CellSummary]:
    """Summarise each cell's trials.

    Args:
        results: columns of `study.table.RESULT_SCHEMA`, one row a trial, in any order.
        planned: seeds of each planned cell, so that what is pending is counted; None: nothing is pending.

    Returns:
        The planned cells in the order planned, then other cells in the order first seen.

    Raises:
        InputError: if a column is missing, a trial has two rows or an outcome is none of `Outcome`, or a
            cell's id isn't that of its columns.

    Example:
        >>> from study.table import results_table
        >>> aggregate(results_table([]))
        []
    """
    _check(results)
    ids = results["cell_id"].combine_chunks().dictionary_encode()
    codes = np.asarray(ids.indices)
    found = _cells(results, codes, ids.dictionary.to_pylist())
    rows = _by_cell(codes, len(found))
    columns = _columns(results)
    summaries = {cell.id: _summarise(cell, columns, rows[code]) for code, cell in enumerate(found)}
    wanted = dict(planned) if planned is not None else {}
    order = {cell.id: cell for cell in [*wanted, *found]}
    seeds = {cell.id: count for cell, count in wanted.items()}
    empty = {cell_id: CellSummary(cell=cell, seeds=0) for cell_id, cell in order.items()}
    return [_count_pending(summaries.get(i, empty[i]), seeds.get(i, 0)) for i in order]


def _check(results: pa.Table) -> None:
    missing = [name for name in _NEEDED if name not in results.column_names]
    if missing:
        raise InputError(
            f"results lack the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; "
            f"a table of results must have every column of study.table.RESULT_SCHEMA"
        )
    outcomes = set(pc.unique(results["outcome"]).to_pylist())
    if foreign := outcomes - {str(outcome) for outcome in Outcome}:
        raise InputError(
            f"an outcome must be one of {', '.join(Outcome)}, but results have "
            f"{', '.join(sorted(repr(name) for name in foreign))}"
        )
    if pc.count_distinct(results["trial_id"]).as_py() != results.num_rows:
        counts = pc.value_counts(results["trial_id"].combine_chunks())
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0].as_py()
        raise InputError(
            f"trial {twice['values']!r} has {twice['counts']} rows, but a trial must have one: "
            f"keep the row of its last attempt"
        )


def _cells(results: pa.Table, codes: npt.NDArray[np.int32], ids: list[str]) -> list[Cell]:
    """Read each cell from its first row."""
    first = np.unique(codes, return_index=True)[1]
    rows = results.select(list(CELL_FIELDS)).take(pa.array(first)).to_pylist()
    cells = [Cell(**(row | {name: parse_range(row[name]) for name in _RANGES})) for row in rows]
    for written, cell in zip(ids, cells, strict=True):
        if written != cell.id:
            raise InputError(
                f"results name a cell {written!r}, but its columns make it {cell.id!r}: they were written by "
                f"another version, or changed by hand; run the study again or use the version that wrote them"
            )
    return cells


def _by_cell(codes: npt.NDArray[np.int32], count: int) -> list[npt.NDArray[np.int64]]:
    """List each cell's rows, in the order given."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1]) if count else []


def _columns(results: pa.Table) -> dict[str, npt.NDArray[Any]]:
    """Take the columns that a summary needs as arrays: numbers with NaN for null."""
    outcome = results["outcome"].combine_chunks().dictionary_encode()
    names = np.asarray([*outcome.dictionary.to_pylist(), ""], dtype=object)
    numbers = ("solved_at_iteration", "sparsity_error", "training_s")
    return {
        "outcome": names[np.asarray(outcome.indices)],
        "stopped_early": np.asarray(pc.fill_null(results["stopped_early"], False)),
        **{n: np.asarray(pc.fill_null(pc.cast(results[n], pa.float64()), np.nan)) for n in numbers},
    }


def _summarise(
    cell: Cell, columns: Mapping[str, npt.NDArray[Any]], rows: npt.NDArray[np.int64]
) -> CellSummary:
    outcome = columns["outcome"][rows]
    solved, unsolved, diverged, failed = (int(np.count_nonzero(outcome == str(name))) for name in Outcome)
    finished = solved + unsolved + diverged
    is_solved = rows[outcome == str(Outcome.SOLVED)]
    solved_at = _present(columns["solved_at_iteration"][is_solved])
    sparsity_error = _present(columns["sparsity_error"][is_solved])
    return CellSummary(
        cell=cell,
        seeds=len(rows),
        solved=solved,
        unsolved=unsolved,
        diverged=diverged,
        failed=failed,
        success_rate=solved / finished if finished else None,
        success_rate_interval=statistics.wilson(solved, finished) if finished else None,
        solved_at_median=statistics.median(solved_at),
        solved_at_mean=statistics.mean(solved_at),
        solved_at_interval=statistics.gamma_mean_interval(solved_at),
        sparsity_error_mean=statistics.mean(sparsity_error),
        sparsity_error_interval=statistics.beta_mean_interval(sparsity_error),
        training_s_mean=statistics.mean(
            _present(columns["training_s"][rows[outcome != str(Outcome.FAILED)]])
        ),
        stopped_early=int(np.count_nonzero(columns["stopped_early"][rows])),
    )


def _present(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return values[np.isfinite(values)]


def _count_pending(summary: CellSummary, planned: int) -> CellSummary:
    seeds = max(planned, summary.seeds)
    return replace(summary, seeds=seeds, pending=seeds - summary.seeds)
