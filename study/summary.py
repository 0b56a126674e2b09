"""What a set of trials came to: the counts and statistics of one row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study import statistics
from study.records import Interval, Outcome

Columns = Mapping[str, npt.NDArray[Any]]
"""What summaries are made of, an array a column: what `columns` gives."""

COLUMNS = ("outcome", "solved_at_iteration", "sparsity_error", "training_s", "stopped_early")
_NUMBERS = ("solved_at_iteration", "sparsity_error", "training_s")

# As many rows as there are, there are few pairs of counts among them.
_wilson = cache(statistics.wilson)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What trials came to. None means that there is no such number.

    Args:
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
    def finished(self) -> int:
        """Count the trials that ran to a result: the denominator of the success rate."""
        return self.solved + self.unsolved + self.diverged

    @property
    def complete(self) -> bool:
        """Say whether every planned trial is in the denominator."""
        return self.failed == 0 and self.pending == 0


def columns(results: pa.Table) -> Columns:
    """Take the columns of `COLUMNS` as arrays: numbers with NaN for null, an outcome that is null as ''."""
    outcome = results["outcome"].combine_chunks().dictionary_encode()
    names = np.asarray([*outcome.dictionary.to_pylist(), ""], dtype=object)
    return {
        "outcome": names[np.asarray(pc.fill_null(outcome.indices, len(names) - 1))],
        "stopped_early": np.asarray(pc.fill_null(pc.cast(results["stopped_early"], pa.bool_()), False)),
        **{n: np.asarray(pc.fill_null(pc.cast(results[n], pa.float64()), np.nan)) for n in _NUMBERS},
    }


def solved_values(columns: Columns, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], ...]:
    """Give the solved trials' solved-at and sparsity error, without what isn't there."""
    solved = rows[columns["outcome"][rows] == str(Outcome.SOLVED)]
    return _present(columns["solved_at_iteration"][solved]), _present(columns["sparsity_error"][solved])


def summarise(columns: Columns, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Compute the fields of a `Summary` over some rows.

    Args:
        columns: what `columns` gave.
        rows: indices into them; an outcome of '' is a pending trial.
    """
    outcome = columns["outcome"][rows]
    solved, unsolved, diverged, failed = (int(np.count_nonzero(outcome == str(name))) for name in Outcome)
    finished = solved + unsolved + diverged
    solved_at, sparsity_error = solved_values(columns, rows)
    is_finished = (outcome != str(Outcome.FAILED)) & (outcome != "")
    return {
        "seeds": len(rows),
        "solved": solved,
        "unsolved": unsolved,
        "diverged": diverged,
        "failed": failed,
        "pending": len(rows) - finished - failed,
        "success_rate": solved / finished if finished else None,
        "success_rate_interval": _wilson(solved, finished) if finished else None,
        "solved_at_median": statistics.median(solved_at),
        "solved_at_mean": statistics.mean(solved_at),
        "solved_at_interval": statistics.gamma_mean_interval(solved_at),
        "sparsity_error_mean": statistics.mean(sparsity_error),
        "sparsity_error_interval": statistics.beta_mean_interval(sparsity_error),
        "training_s_mean": statistics.mean(_present(columns["training_s"][rows[is_finished]])),
        "stopped_early": int(np.count_nonzero(columns["stopped_early"][rows])),
    }


def _present(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return values[np.isfinite(values)]
