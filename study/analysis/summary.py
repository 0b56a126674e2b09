"""What a set of trials came to: the counts and statistics of one row of a table.

Which trials are included: the success rate is of those that finished (solved, unsolved, diverged). Medians and means
of solved-at, and the sparsity error, are of the solved ones. Times to success are of all that finished: a trial that
was not solved was observed until its last iteration, and one that diverged, which will never be solved, until the last
iteration that its cell's trials run to; where a file doesn't state that, until that of the file's longest trial.

The mean is restricted to the iterations that the rows of a question were planned to run, so that it can be compared
between them. A trial that ended earlier is censored at its end, and doesn't affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study import statistics
from study.records import Interval, Outcome
from study.statistics.samples import intervals, numbers, sums

Floats = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]
"""The data of summaries, an array a column, as `columns` returns it."""

COLUMNS = (
    "outcome", "solved_at_iteration", "sparsity_error", "training_s", "trained_iterations", "stopped_early",
)  # fmt: skip
_NUMBERS = ("solved_at_iteration", "sparsity_error", "training_s", "trained_iterations")

Samples = tuple[Floats, npt.NDArray[np.int64]]
"""The values of many groups, one group after the other, and how many there are of each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Times:
    """When trials were solved, or until when they were observed; all arrays have shape [finished trials].

    Args:
        iterations: the iteration at which the trial was solved, or its last; NaN where it isn't known.
        seconds: of training up to that iteration; NaN where they aren't known.
        solved: whether the trial was solved.
    """

    iterations: Floats
    seconds: Floats
    solved: npt.NDArray[np.bool_]

    def known(self, clock: str) -> tuple[Floats, npt.NDArray[np.bool_]] | None:
        """Return ``iterations`` or ``seconds``, and `solved`; None if a time isn't known, or there are no trials."""
        times: Floats = getattr(self, clock)
        return (times, self.solved) if times.size and np.all(np.isfinite(times)) else None


@dataclass(frozen=True)
class RateIntervals:
    """How success rates are bounded.

    Args:
        name: the method's name, as an adjective.
        of: computes intervals, shape [rates, 2], from the numbers of solved and of finished trials.
    """

    name: str
    of: Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], Floats]


WILSON = RateIntervals("Wilson", statistics.wilsons)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The results of some trials. None means that there is no such number.

    Args:
        seeds: trials planned; if more have a result, the number of those.
        solved: trials that solved the task.
        unsolved: trials that ran to the end without solving it.
        diverged: trials whose weights became NaN or infinite.
        failed: trials that crashed and have no result.
        pending: trials that are planned and not done.
        success_rate: solved / finished.
        success_rate_interval: 95%.
        success_rate_by: the interval's name: Wilson, unless seeds were added until there were enough.
        solved_at_median: iterations; of the solved trials, as are the next five.
        solved_at_median_interval: of the distribution's median, at least 95%, for any distribution.
        solved_at_mean: iterations; the sample mean, which is the estimate for a gamma distribution.
        solved_at_interval: of a gamma distribution's mean, 95%, by profile likelihood.
        sparsity_error_mean: the sample mean.
        sparsity_error_interval: of the mean of a beta distribution on [0, 1/2], 95%, by profile likelihood.
        time_to_success_mean: iterations; the restricted mean: of min(time to success, `time_to_success_until`), of all
            that finished.
        time_to_success_interval: 95%, for any distribution.
        time_to_success_until: the iterations that the rows of its question were planned to run. The mean is None where
            this is known and the row's trials weren't observed that long, and aren't all solved.
        training_s_mean: the mean seconds of training of the finished trials.
        solved_at_s_median: seconds of training until solved; of the solved trials, as are the next two.
        solved_at_s_mean: the sample mean.
        solved_at_s_interval: of a gamma distribution's mean, 95%, by profile likelihood.
        stopped_early: trials that `stop: when_decided` ended.
        ended_early: trials that ended unsolved before `time_to_success_until`, when they might still have been solved.
        times: the data of survival curves; ignored when summaries are compared.
    """

    seeds: int
    solved: int = 0
    unsolved: int = 0
    diverged: int = 0
    failed: int = 0
    pending: int = 0
    success_rate: float | None = None
    success_rate_interval: Interval | None = None
    success_rate_by: str = "Wilson"
    solved_at_median: float | None = None
    solved_at_median_interval: Interval | None = None
    solved_at_mean: float | None = None
    solved_at_interval: Interval | None = None
    sparsity_error_mean: float | None = None
    sparsity_error_interval: Interval | None = None
    time_to_success_mean: float | None = None
    time_to_success_interval: Interval | None = None
    time_to_success_until: float | None = None
    training_s_mean: float | None = None
    solved_at_s_median: float | None = None
    solved_at_s_mean: float | None = None
    solved_at_s_interval: Interval | None = None
    stopped_early: int = 0
    ended_early: int = 0
    times: Times | None = field(default=None, compare=False, repr=False)

    @property
    def finished(self) -> int:
        """The number of trials that ran to a result: the denominator of the success rate."""
        return self.solved + self.unsolved + self.diverged

    @property
    def complete(self) -> bool:
        """Whether every planned trial is in the denominator."""
        return self.failed == 0 and self.pending == 0


def columns(results: pa.Table) -> Columns:
    """Return the columns of `COLUMNS` as arrays: numbers with NaN for null, an outcome that is null as ''.

    Three are added. `planned_iterations` is how many the cell's trials run, NaN where the table doesn't state it.
    `last_iteration` is the one until which an unsolved trial was observed: its own last, or if it diverged or was
    stopped early and so can't be solved any more, the planned last or that of the table's longest trial. `until_s` is
    the seconds until the trial was solved, or until that iteration.
    """
    outcome = results["outcome"].combine_chunks().dictionary_encode()
    names = np.asarray([*outcome.dictionary.to_pylist(), ""], dtype=object)
    arrays = {
        "outcome": names[np.asarray(pc.fill_null(outcome.indices, len(names) - 1))],
        "stopped_early": np.asarray(pc.fill_null(pc.cast(results["stopped_early"], pa.bool_()), False)),
        **{n: np.asarray(pc.fill_null(pc.cast(results[n], pa.float64()), np.nan)) for n in _NUMBERS},
    }
    return arrays | _observed(arrays, results)


def _observed(columns: Columns, results: pa.Table) -> dict[str, Floats]:
    outcome, trained = columns["outcome"], columns["trained_iterations"]
    planned = np.full(len(outcome), np.nan)
    if "iterations" in results.column_names and _is_number(results.schema.field("iterations").type):
        planned = np.asarray(pc.fill_null(pc.cast(results["iterations"], pa.float64()), np.nan))
    longest = np.max(trained, initial=-np.inf, where=np.isfinite(trained))
    whole = np.where(np.isfinite(planned), planned, longest)
    own = np.where(np.isfinite(trained), trained, planned)
    last = np.where(is_lost(columns) & np.isfinite(whole), whole, own)
    # All trials of a pack take part in every iteration, so seconds are proportional to iterations.
    until = np.where(outcome == str(Outcome.SOLVED), columns["solved_at_iteration"], last)
    share = np.divide(until, trained, out=np.full(len(until), np.nan), where=trained > 0)
    return {"planned_iterations": planned, "last_iteration": last, "until_s": columns["training_s"] * share}


def is_lost(columns: Columns) -> npt.NDArray[np.bool_]:
    """Flag the trials that can't be solved any more: those that diverged, or were stopped early without success."""
    outcome = columns["outcome"]
    stopped = columns["stopped_early"] & (outcome == str(Outcome.UNSOLVED))
    return np.asarray(stopped | (outcome == str(Outcome.DIVERGED)), bool)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def solved_values(columns: Columns, rows: npt.NDArray[np.int64]) -> tuple[Floats, ...]:
    """Return the solved trials' solved-at and sparsity error, without missing values."""
    solved = rows[columns["outcome"][rows] == str(Outcome.SOLVED)]
    return tuple(_present(columns[name][solved]) for name in ("solved_at_iteration", "sparsity_error"))


def meant_to_run(columns: Columns, groups: Sequence[npt.NDArray[np.int64]], questions: Sequence[Hashable]) -> Floats:
    """Find the iterations that the rows of a question were planned to run: their times to success are restricted to it.

    This is the least number planned for any of them. Where the table doesn't state the plan, each row is represented by
    its longest unsolved trial, and the question by the lower median of its rows, so that neither one trial nor one row
    that ended early or ran longer decides for the others. Solved trials say nothing, for training may end with success.

    Args:
        columns: the data, as `columns` returns it.
        groups: the trials of each row, as indices into the columns.
        questions: the question that each row answers.

    Returns:
        The iterations of each row's question; NaN where they aren't known.
    """
    is_whole = (columns["outcome"] == str(Outcome.UNSOLVED)) & ~is_lost(columns)
    rows_of: dict[Hashable, list[int]] = {}
    for row, question in enumerate(questions):
        rows_of.setdefault(question, []).append(row)
    iterations = np.full(len(groups), np.nan)
    for rows in rows_of.values():
        trials = np.concatenate([groups[row] for row in rows])
        planned = _present(columns["planned_iterations"][trials])
        if planned.size:
            iterations[rows] = planned.min()
            continue
        unsolved = [_present(columns["trained_iterations"][groups[r][is_whole[groups[r]]]]) for r in rows]
        longest = sorted(values.max() for values in unsolved if values.size)
        if longest:
            iterations[rows] = longest[(len(longest) - 1) // 2]
        else:
            iterations[rows] = np.max(_present(columns["last_iteration"][trials]), initial=-np.inf)
    return np.where(iterations > 0, iterations, np.nan)


def summarise(
    columns: Columns, groups: Sequence[npt.NDArray[np.int64]], untils: Floats, rates: RateIntervals = WILSON
) -> list[dict[str, Any]]:
    """Compute the fields of a `Summary` for each of many groups of rows, all groups at once.

    Args:
        columns: the data, as `columns` returns it.
        groups: the rows of each group, as indices into the columns; an outcome of '' is a pending trial.
        untils: the iterations that each group's times to success are restricted to; NaN where they aren't known.
        rates: how success rates are bounded.
    """
    if not groups:
        return []
    sizes = np.array([len(rows) for rows in groups], dtype=np.int64)
    rows = np.concatenate(groups)
    group = np.repeat(np.arange(len(groups)), sizes)
    outcome = columns["outcome"][rows]
    is_solved, is_unsolved, is_diverged, is_failed, _ = (outcome == str(name) for name in Outcome)
    is_finished = is_solved | is_unsolved | is_diverged

    def count(which: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.bincount(group[which], minlength=len(groups))

    def present(name: str, which: npt.NDArray[np.bool_]) -> Samples:
        values = columns[name][rows]
        which = which & np.isfinite(values)
        return values[which], count(which)

    solved, finished, failed = count(is_solved), count(is_finished), count(is_failed)
    bounds = np.where(finished[:, None] > 0, rates.of(solved, finished), np.nan)
    solved_at = present("solved_at_iteration", is_solved)
    solved_at_s = present("until_s", is_solved)
    error = present("sparsity_error", is_solved)
    times = _observed_times(columns, rows[is_finished], finished)
    fields: dict[str, list[Any]] = {
        "seeds": sizes.tolist(),
        "solved": solved.tolist(),
        "unsolved": count(is_unsolved).tolist(),
        "diverged": count(is_diverged).tolist(),
        "failed": failed.tolist(),
        "pending": (sizes - finished - failed).tolist(),
        "success_rate": numbers(statistics.means(is_solved[is_finished], finished)),
        "success_rate_interval": intervals(bounds),
        "success_rate_by": [rates.name] * len(groups),
        "solved_at_median": numbers(statistics.medians(*solved_at)),
        "solved_at_median_interval": intervals(statistics.median_intervals(*solved_at)),
        "solved_at_mean": numbers(statistics.means(*solved_at)),
        "solved_at_interval": intervals(statistics.gamma_mean_intervals(*solved_at)),
        "sparsity_error_mean": numbers(statistics.means(*error)),
        "sparsity_error_interval": intervals(statistics.beta_mean_intervals(*error)),
        **_time_to_success(times, untils),
        "training_s_mean": numbers(statistics.means(*present("training_s", is_finished))),
        "solved_at_s_median": numbers(statistics.medians(*solved_at_s)),
        "solved_at_s_mean": numbers(statistics.means(*solved_at_s)),
        "solved_at_s_interval": intervals(statistics.gamma_mean_intervals(*solved_at_s)),
        "stopped_early": count(columns["stopped_early"][rows]).tolist(),
        "times": times,
    }
    return [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]


def _observed_times(columns: Columns, finished: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> list[Times]:
    """Return each group's times to success; those of trials that were not solved are censored."""
    solved = np.asarray(columns["outcome"][finished] == str(Outcome.SOLVED), bool)
    at = np.where(solved, columns["solved_at_iteration"][finished], columns["last_iteration"][finished])
    ends = np.cumsum(sizes)[:-1]
    parts = (np.split(values, ends) for values in (at, columns["until_s"][finished], solved))
    return [Times(iterations=i, seconds=s, solved=f) for i, s, f in zip(*parts, strict=True)]


def _time_to_success(observed: Sequence[Times], untils: Floats) -> dict[str, list[Any]]:
    timed = [row for row, t in enumerate(observed) if untils[row] > 0 and t.known("iterations") is not None]
    means, bounds, early, limits = ([absent] * len(observed) for absent in (None, None, 0, None))
    if timed:
        times = np.concatenate([observed[row].iterations for row in timed])
        solved = np.concatenate([observed[row].solved for row in timed])
        sizes = np.array([observed[row].solved.size for row in timed])
        until = untils[timed]
        restricted = statistics.restricted_means(times, solved, sizes, until=until)
        is_early = ~solved & (times < np.repeat(until, sizes))
        counts = sums(is_early.astype(np.float64), sizes).astype(int)
        values = numbers(restricted.mean), intervals(restricted.interval), counts.tolist(), until.tolist()
        for row, *of_row in zip(timed, *values, strict=True):
            means[row], bounds[row], early[row], limits[row] = of_row
    names = ("time_to_success_mean", "time_to_success_interval", "ended_early", "time_to_success_until")
    return dict(zip(names, (means, bounds, early, limits), strict=True))


def _present(values: Floats) -> Floats:
    return values[np.isfinite(values)]
