"""Counts and statistics of the trials of a row.

`study.trials.table` defines the trials that enter each number. Without a success criterion, trials end as finished, and
rows have neither a rate nor times to success.

The mean time to success is restricted to the planned iterations of a question, so that its rows can be compared. A
trial that ended earlier is censored at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from study import statistics
from study.records import Interval, Outcome
from study.statistics.samples import intervals, numbers, sums
from study.summaries.metrics import MetricSummary, Samples, averaged, summaries_of
from study.trials.table import ENDED, OUTCOME_CODES, Flags, Floats, Ints, TrialTable


@dataclass(frozen=True, kw_only=True, eq=False)
class Times:
    """Times to success, or censoring times; all arrays have shape [judged trials].

    Args:
        iterations: the iteration at which the trial was solved, or its last one; NaN if unknown.
        seconds: seconds of training up to that iteration; NaN if unknown.
        solved: True if the trial was solved, False if it is censored.
    """

    iterations: Floats
    seconds: Floats
    solved: npt.NDArray[np.bool_]

    def known(self, clock: str) -> tuple[Floats, npt.NDArray[np.bool_]] | None:
        """Return ``iterations`` or ``seconds``, and `solved`; None without trials, or if any time is unknown."""
        times: Floats = getattr(self, clock)
        return (times, self.solved) if times.size and np.all(np.isfinite(times)) else None


@dataclass(frozen=True)
class RateIntervals:
    """A method for intervals of success rates.

    Args:
        name: the method's name, as an adjective.
        compute: computes intervals, shape [rates, 2], from the numbers of solved and of judged trials.
    """

    name: str
    compute: Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], Floats]


WILSON = RateIntervals("Wilson", statistics.wilsons)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The results of a row's trials. None means that the number doesn't exist.

    Args:
        seeds: planned trials, or trials with a result if these are more.
        solved: trials that solved the task.
        unsolved: trials that ran to the end without solving it.
        finished: trials that ran to the end without a success criterion.
        diverged: trials with NaN or infinite weights or metrics.
        failed: trials that crashed and have no result.
        stopped: trials that `prune` stopped. If there are any, the row has no rate, times and metrics, since those of
            the other trials would be too optimistic.
        pending: trials that are planned and not done.
        is_judged: True with a success criterion; otherwise the row has no rate and no times to success.
        success_rate: solved / judged.
        success_rate_interval: 95% interval.
        success_rate_by: the interval's name: Wilson, unless the sample size is adaptive.
        solved_at_median: median iteration of the solved trials.
        solved_at_median_interval: interval of the distribution's median, at least 95%, for any distribution.
        solved_at_mean: sample mean of the same; the estimate for a gamma distribution.
        solved_at_interval: 95% interval of a gamma distribution's mean, by profile likelihood.
        metrics: the averaged metrics by name, in the order of their declaration.
        time_to_success_mean: restricted mean, in iterations: of min(time to success, `time_to_success_until`) over the
            judged trials.
        time_to_success_interval: 95% interval, for any distribution.
        time_to_success_until: the planned iterations of the rows of its question. If this is known, the mean is None
            unless all trials are solved or were observed for that long.
        training_s_mean: mean seconds of training of the trials that ended.
        solved_at_s_median: median seconds of training until solved, of the solved trials.
        solved_at_s_mean: sample mean of the same.
        solved_at_s_interval: 95% interval of a gamma distribution's mean, by profile likelihood.
        stopped_early: trials that `stop: when_decided` ended.
        ended_early: unsolved trials that ended before `time_to_success_until`, and so might still have been solved.
        times: the data of survival curves; ignored when summaries are compared.
    """

    seeds: int
    solved: int = 0
    unsolved: int = 0
    finished: int = 0
    diverged: int = 0
    failed: int = 0
    stopped: int = 0
    pending: int = 0
    is_judged: bool = True
    success_rate: float | None = None
    success_rate_interval: Interval | None = None
    success_rate_by: str = "Wilson"
    solved_at_median: float | None = None
    solved_at_median_interval: Interval | None = None
    solved_at_mean: float | None = None
    solved_at_interval: Interval | None = None
    metrics: Mapping[str, MetricSummary] = field(default_factory=dict)
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
    def key(self) -> tuple[Any, ...] | None:
        """The key of its trials in their table; None if unknown."""
        return None

    @property
    def ended(self) -> int:
        """The number of trials that ended as solved, unsolved, finished or diverged."""
        return self.solved + self.unsolved + self.finished + self.diverged

    @property
    def judged(self) -> int:
        """The number of judged trials: the denominator of the rate."""
        return self.solved + self.unsolved + self.diverged if self.is_judged else 0

    @property
    def complete(self) -> bool:
        """True if every planned trial has ended."""
        return self.failed == self.stopped == self.pending == 0


def can_be_judged(table: TrialTable) -> bool:
    """Return True if trials seem to have a success criterion: any is solved or unsolved, or none is finished.

    A table without trials counts as having one.

    Raises:
        ValueError: if an outcome isn't one of `Outcome`.
    """
    present = np.unique(table.outcomes)
    codes = [OUTCOME_CODES[outcome] for outcome in (Outcome.SOLVED, Outcome.UNSOLVED)]
    return bool(np.isin(codes, present).any() or OUTCOME_CODES[Outcome.FINISHED] not in present)


def meant_to_run(table: TrialTable, groups: Sequence[Ints], questions: Sequence[Hashable]) -> Floats:
    """Return the planned iterations of each row's question, the limit of its restricted times to success.

    This is the least planned number of the question's trials. If the table lacks their planned numbers, a row's number
    is that of its longest unsolved trial that wasn't stopped early, and the question's number is the lower median of
    its rows. So with three or more such rows, no single trial or row that ended early or ran longer decides. Solved
    trials don't count, because training may end with success. If the question has no such unsolved trial, its number is
    the greatest `TrialTable.last_iteration` of its trials.

    Args:
        table: the trials.
        groups: the trials of each row of the report, as rows of the table.
        questions: each row's question.

    Returns:
        The iterations of each row's question; NaN unless they are known and positive.

    Raises:
        ValueError: if an outcome isn't one of `Outcome`, a text in a column of numbers isn't a number, or an integer
            there is beyond ±2**53.
    """
    is_whole = (table.outcomes == OUTCOME_CODES[Outcome.UNSOLVED]) & ~table.is_lost
    rows_of: dict[Hashable, list[int]] = {}
    for row, question in enumerate(questions):
        rows_of.setdefault(question, []).append(row)
    iterations = np.full(len(groups), np.nan)
    for rows in rows_of.values():
        trials = np.concatenate([groups[row] for row in rows])
        planned = _present(table.planned_iterations[trials])
        if planned.size:
            iterations[rows] = planned.min()
            continue
        unsolved = [_present(table.trained_iterations[groups[r][is_whole[groups[r]]]]) for r in rows]
        longest = sorted(values.max() for values in unsolved if values.size)
        if longest:
            iterations[rows] = longest[(len(longest) - 1) // 2]
        else:
            iterations[rows] = np.max(_present(table.last_iteration[trials]), initial=-np.inf)
    return np.where(iterations > 0, iterations, np.nan)


def summarise(
    table: TrialTable, groups: Sequence[Ints], untils: Floats, rates: RateIntervals = WILSON, *, is_judged: bool
) -> list[dict[str, Any]]:
    """Compute the fields of a `Summary` for many groups of trials at once.

    Args:
        table: the trials.
        groups: the trials of each group, as rows of the table.
        untils: the iterations that each group's times to success are restricted to; NaN if unknown.
        rates: the intervals of success rates.
        is_judged: True with a success criterion. A group is judged if any trial was solved or unsolved or, with a
            criterion, if none finished; but never if any was stopped. The rate of a judged group is None if no trial
            was solved, unsolved or diverged.

    Returns:
        The fields of each group, by name.

    Raises:
        ValueError: if an outcome isn't one of `Outcome`, a text in a column of numbers isn't a number, an integer there
            is beyond ±2**53, or a time to success or of censoring is negative.
    """
    if not groups:
        return []
    sizes = np.array([len(rows) for rows in groups], dtype=np.int64)
    rows, group = np.concatenate(groups), np.repeat(np.arange(len(groups)), sizes)
    outcomes = table.outcomes[rows]

    def count(mask: Flags) -> Ints:
        """Count the rows of a mask by group."""
        return np.bincount(group[mask], minlength=len(groups))

    def present(column: Floats, mask: Flags) -> Samples:
        """Select a column's finite values in the rows of a mask, and count them by group."""
        values = column[rows]
        mask = mask & np.isfinite(values)
        return values[mask], count(mask)

    is_outcome = {outcome: np.asarray(outcomes == code, bool) for outcome, code in OUTCOME_CODES.items()}
    is_solved, is_finished = is_outcome[Outcome.SOLVED], is_outcome[Outcome.FINISHED]
    by_criterion = count(is_solved | is_outcome[Outcome.UNSOLVED])
    failed, stopped = count(is_outcome[Outcome.FAILED]), count(is_outcome[Outcome.STOPPED])
    is_whole = (stopped == 0)[group]
    has_rate = ((by_criterion > 0) | (is_judged & (count(is_finished) == 0))) & (stopped == 0)
    is_ended = np.isin(outcomes, [OUTCOME_CODES[outcome] for outcome in ENDED])
    in_rate = is_ended & ~is_finished & has_rate[group]
    solved, judged, ended = count(is_solved), count(in_rate), count(is_ended)
    pending = sizes - ended - failed - stopped
    is_ended, is_solved = is_ended & is_whole, is_solved & is_whole
    bounds = np.where(judged[:, None] > 0, rates.compute(np.minimum(solved, judged), judged), np.nan)
    solved_at = present(table.solved_at, is_solved)
    solved_at_s = present(table.success_s, is_solved)
    times = _observed_times(table, rows[in_rate], judged)
    fields: dict[str, Sequence[Any]] = {
        "seeds": sizes.tolist(),
        "solved": solved.tolist(),
        "unsolved": count(is_outcome[Outcome.UNSOLVED]).tolist(),
        "finished": count(is_finished).tolist(),
        "diverged": count(is_outcome[Outcome.DIVERGED]).tolist(),
        "failed": failed.tolist(),
        "stopped": stopped.tolist(),
        "pending": pending.tolist(),
        "is_judged": has_rate.tolist(),
        "success_rate": numbers(statistics.means(is_solved[in_rate], judged)),
        "success_rate_interval": intervals(bounds),
        "success_rate_by": [rates.name] * len(groups),
        "solved_at_median": numbers(statistics.medians(*solved_at)),
        "solved_at_median_interval": intervals(statistics.median_intervals(*solved_at)),
        "solved_at_mean": numbers(statistics.means(*solved_at)),
        "solved_at_interval": intervals(statistics.gamma_mean_intervals(*solved_at)),
        "metrics": summaries_of(
            {name: (metric, present(table.values(name), is_ended)) for name, metric in averaged(table.metrics).items()},
            len(groups),
        ),
        **_time_to_success(times, untils),
        "training_s_mean": numbers(statistics.means(*present(table.training_s, is_ended))),
        "solved_at_s_median": numbers(statistics.medians(*solved_at_s)),
        "solved_at_s_mean": numbers(statistics.means(*solved_at_s)),
        "solved_at_s_interval": intervals(statistics.gamma_mean_intervals(*solved_at_s)),
        "stopped_early": count(table.stopped_early[rows]).tolist(),
        "times": times,
    }
    return [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]


def _observed_times(table: TrialTable, judged: Ints, sizes: Ints) -> list[Times]:
    """Return each group's times to success, censored for trials that weren't solved."""
    columns = table.success_iteration, table.success_s, table.outcomes == OUTCOME_CODES[Outcome.SOLVED]
    parts = (np.split(column[judged], np.cumsum(sizes)[:-1]) for column in columns)
    return [Times(iterations=i, seconds=s, solved=f) for i, s, f in zip(*parts, strict=True)]


def _time_to_success(observed: Sequence[Times], untils: Floats) -> dict[str, list[Any]]:
    """Compute the fields of the restricted mean times of all groups."""
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
        for row, *row_values in zip(timed, *values, strict=True):
            means[row], bounds[row], early[row], limits[row] = row_values
    names = ("time_to_success_mean", "time_to_success_interval", "ended_early", "time_to_success_until")
    return dict(zip(names, (means, bounds, early, limits), strict=True))


def _present(values: Floats) -> Floats:
    """Return the finite values."""
    return values[np.isfinite(values)]
