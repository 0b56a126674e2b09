"""Counts and statistics of the trials of one row of a table.

Which trials enter which number is said in `study.trials.table`. Where nothing says what success is, trials end as
finished, and nothing is judged: there is no rate and no time to success.

The mean time to success is restricted to the iterations that the rows of a question were planned to run, so that it
can be compared between them. A trial that ended earlier is censored at its end, and doesn't affect the others.
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
    """When trials were solved, or until when they were observed; all arrays have shape [judged trials].

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
        of: computes intervals, shape [rates, 2], from the numbers of solved and of judged trials.
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
        finished: trials that ran to the end where nothing says what success is.
        diverged: trials whose weights or metrics became NaN or infinite.
        failed: trials that crashed and have no result.
        stopped: trials that `prune` stopped. What is known of the others would say too much good of the row, so it has
            no rate, times and metrics then.
        pending: trials that are planned and not done.
        is_judged: whether anything says what success is; if not, there are no rate and no times to success.
        success_rate: solved / judged.
        success_rate_interval: 95%.
        success_rate_by: the interval's name: Wilson, unless seeds were added until there were enough.
        solved_at_median: iterations, of the solved trials.
        solved_at_median_interval: of the distribution's median, at least 95%, for any distribution.
        solved_at_mean: of the same; the sample mean, which is the estimate for a gamma distribution.
        solved_at_interval: of a gamma distribution's mean, 95%, by profile likelihood.
        metrics: those that are averaged, by name, in the order of their declaration.
        time_to_success_mean: iterations; the restricted mean: of min(time to success, `time_to_success_until`), of all
            that were judged.
        time_to_success_interval: 95%, for any distribution.
        time_to_success_until: the iterations that the rows of its question were planned to run. The mean is None where
            this is known and the row's trials weren't observed that long, and aren't all solved.
        training_s_mean: the mean seconds of training of the trials that ended.
        solved_at_s_median: seconds of training until solved, of the solved trials.
        solved_at_s_mean: the sample mean.
        solved_at_s_interval: of a gamma distribution's mean, 95%, by profile likelihood.
        stopped_early: trials that `stop: when_decided` ended.
        ended_early: trials that ended unsolved before `time_to_success_until`, when they might still have been solved.
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
        """What its trials are found by in their table; None if they aren't known."""
        return None

    @property
    def ended(self) -> int:
        """The number of trials that ran to a result, whatever it is."""
        return self.solved + self.unsolved + self.finished + self.diverged

    @property
    def judged(self) -> int:
        """The number of trials of which it is known whether they solved the task: the denominator of the rate."""
        return self.solved + self.unsolved + self.diverged if self.is_judged else 0

    @property
    def complete(self) -> bool:
        """Whether every planned trial has ended."""
        return self.failed == self.stopped == self.pending == 0


def can_be_judged(table: TrialTable) -> bool:
    """Return whether anything says what success is: without that, trials end as finished, and none is solved or not."""
    there = np.unique(table.outcomes)
    codes = [OUTCOME_CODES[outcome] for outcome in (Outcome.SOLVED, Outcome.UNSOLVED)]
    return bool(np.isin(codes, there).any() or OUTCOME_CODES[Outcome.FINISHED] not in there)


def meant_to_run(table: TrialTable, groups: Sequence[Ints], questions: Sequence[Hashable]) -> Floats:
    """Find the iterations that the rows of a question were planned to run: their times to success are restricted to it.

    This is the least number planned for any of them. Where the table doesn't state the plan, each row is represented by
    its longest unsolved trial, and the question by the lower median of its rows, so that neither one trial nor one row
    that ended early or ran longer decides for the others. Solved trials say nothing, for training may end with success.

    Args:
        table: the trials.
        groups: the trials of each row of the report, as rows of the table.
        questions: the question that each row answers.

    Returns:
        The iterations of each row's question; NaN where they aren't known.
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
    """Compute the fields of a `Summary` for each of many groups of trials, all groups at once.

    Args:
        table: the trials.
        groups: the trials of each group, as rows of the table.
        untils: the iterations that each group's times to success are restricted to; NaN where they aren't known.
        rates: how success rates are bounded.
        is_judged: whether anything says what success is; a group without it has a rate only if a trial was judged.
    """
    if not groups:
        return []
    sizes = np.array([len(rows) for rows in groups], dtype=np.int64)
    rows, group = np.concatenate(groups), np.repeat(np.arange(len(groups)), sizes)
    outcomes = table.outcomes[rows]

    def count(which: Flags) -> Ints:
        return np.bincount(group[which], minlength=len(groups))

    def present(column: Floats, which: Flags) -> Samples:
        values = column[rows]
        which = which & np.isfinite(values)
        return values[which], count(which)

    is_of = {outcome: np.asarray(outcomes == code, bool) for outcome, code in OUTCOME_CODES.items()}
    is_solved, is_finished = is_of[Outcome.SOLVED], is_of[Outcome.FINISHED]
    of_success = count(is_solved | is_of[Outcome.UNSOLVED])
    failed, stopped = count(is_of[Outcome.FAILED]), count(is_of[Outcome.STOPPED])
    is_whole = (stopped == 0)[group]
    has_rate = ((of_success > 0) | (is_judged & (count(is_finished) == 0))) & (stopped == 0)
    is_ended = np.isin(outcomes, [OUTCOME_CODES[outcome] for outcome in ENDED])
    in_rate = is_ended & ~is_finished & has_rate[group]
    solved, judged, ended = count(is_solved), count(in_rate), count(is_ended)
    pending = sizes - ended - failed - stopped
    is_ended, is_solved = is_ended & is_whole, is_solved & is_whole
    bounds = np.where(judged[:, None] > 0, rates.of(np.minimum(solved, judged), judged), np.nan)
    solved_at = present(table.solved_at, is_solved)
    solved_at_s = present(table.success_s, is_solved)
    times = _observed_times(table, rows[in_rate], judged)
    fields: dict[str, Sequence[Any]] = {
        "seeds": sizes.tolist(),
        "solved": solved.tolist(),
        "unsolved": count(is_of[Outcome.UNSOLVED]).tolist(),
        "finished": count(is_finished).tolist(),
        "diverged": count(is_of[Outcome.DIVERGED]).tolist(),
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
    """Return each group's times to success; those of trials that were not solved are censored."""
    columns = table.success_iteration, table.success_s, table.outcomes == OUTCOME_CODES[Outcome.SOLVED]
    parts = (np.split(column[judged], np.cumsum(sizes)[:-1]) for column in columns)
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
