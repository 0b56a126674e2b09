"""Tests between methods: success rates or means two by two, and times to success of all at once.

Cells of a study mostly have the same seeds, and so may rows of files; then they are compared seed by seed. What has
other seeds is compared as independent samples. Each statement says which it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from study import statistics, words
from study.analysis import seed_pairs
from study.analysis.metrics import difference
from study.analysis.rows import ResultRows
from study.analysis.seed_pairs import SeedSample, SeedTrials
from study.analysis.summary import Summary
from study.records import Interval

MOST_PAIRS = 2000
"""The most pairs of rows that are tested: nobody reads more, and Holm's correction would leave nothing."""

PairTest = dict[str, Any]
"""The fields of a `Pair` but for its names."""

LEVEL = 0.05
"""Rows differ if the adjusted p-value is below this."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two methods at one question.

    Args:
        question: the question that both answer; empty if there is only one.
        first: the name of the first method.
        second: the name of the second method.
        difference: of success rates, or of a metric's means, first minus second.
        interval: 95%; None where there are too few values for one.
        p_value: of the test.
        p_adjusted: after Holm's correction over all pairs.
        test: what the p-value is of: ``McNemar`` or ``sign-flip``, seed by seed; ``Fisher`` or ``Welch`` where the
            trials are of other seeds.
        seeds: the seeds of which both trials entered; None if they aren't compared seed by seed.
        first_only: of these, those that only the first method solved, or where its value is the greater one.
        second_only: those that only the second method solved, or where its value is the greater one.
    """

    question: str
    first: str
    second: str
    difference: float
    interval: Interval | None
    p_value: float
    p_adjusted: float
    test: str
    seeds: int | None = None
    first_only: int = 0
    second_only: int = 0

    @property
    def has_verdict(self) -> bool:
        """Whether the methods differ on so many seeds that a test can tell."""
        return self.seeds is None or self.first_only + self.second_only >= statistics.LEAST_DISCORDANT

    @property
    def verdict(self) -> str:
        """What can be said: that the methods differ, that no difference was detected, or what a test would take."""
        if self.p_adjusted < LEVEL:
            return "differ"
        if self.has_verdict:
            return "no difference detected"
        more = self.more_seeds
        return f"no verdict: {words.count_of(more, 'more seed')}" if more else "no verdict: equal on all seeds"

    @property
    def more_seeds(self) -> int | None:
        """How many more seeds it may take until a test can tell; None if on no seed methods differ."""
        return 0 if self.seeds is None else statistics.more_seeds(self.first_only, self.second_only, self.seeds)


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Whether the methods of one question take equally long to succeed.

    Args:
        question: the question that they answer; empty if there is only one.
        names: the methods.
        statistic: the statistic of the log-rank test.
        degrees_of_freedom: its degrees of freedom.
        p_value: its p-value.
        p_adjusted: after Holm's correction over all questions.
        seeds: the seeds that were compared; None if trials weren't compared seed by seed.
    """

    question: str
    names: tuple[str, ...]
    statistic: float
    degrees_of_freedom: int
    p_value: float
    p_adjusted: float
    seeds: int | None = None


def pairs(rows: ResultRows, trials: SeedTrials | None, metric: str | None = None) -> tuple[list[Pair], tuple[str, ...]]:
    """Test methods two by two at each question; the p-values are not adjusted yet.

    Args:
        rows: the results.
        trials: their trials, by their seeds; None if the trials aren't known.
        metric: whose means are compared; None for success rates.

    Returns:
        The pairs, and notes on what was left out.
    """
    questions = _questions(rows)
    count = sum(math.comb(len(members), 2) for _, members in questions)
    if count > MOST_PAIRS:
        return [], (f"{count:,} pairs of rows are too many to be tested two by two.",)
    every = [(question, a, b) for question, members in questions for a, b in combinations(members, 2)]
    tests = [
        test_of_two(*two, None if trials is None else [trials.sample(one) for one in two], metric)
        for two in ((rows.summaries[a], rows.summaries[b]) for _, a, b in every)
    ]
    tested = [
        Pair(question=question, first=_method(rows, a), second=_method(rows, b), **test)
        for (question, a, b), test in zip(every, tests, strict=True)
        if test is not None
    ]
    lacking = len(every) - len(tested)
    notes = (f"{lacking:,} pairs of rows have too few values, or only equal ones, to be tested.",) if lacking else ()
    return tested, notes


def test_of_two(
    first: Summary, second: Summary, samples: Sequence[SeedSample] | None, metric: str | None
) -> PairTest | None:
    """Compare two rows, seed by seed if they share seeds.

    Args:
        first: the first row.
        second: the second row.
        samples: the trials of both; None if they aren't known.
        metric: whose means are compared; None for success rates.

    Returns:
        The fields of a `Pair` but for its names; None if nothing can be tested.
    """
    shared = None if samples is None else seed_pairs.shared(samples)
    if shared is None:
        if metric is None:
            return fisher(first.solved, first.judged, second.solved, second.judged)
        independent = difference(first.metrics.get(metric), second.metrics.get(metric))
        return None if independent is None else _of_test(independent, "Welch")
    if metric is None:
        here, there = seed_pairs.judged(shared)
        if not here.rows.size:
            return None
        both, alone = seed_pairs.rates(here.solved, there.solved)
        return _of_test(both, "McNemar") | {"seeds": here.rows.size, "first_only": alone[0], "second_only": alone[1]}
    compared = seed_pairs.means(*(of.values(metric) for of in shared))
    if compared is None:
        return None
    both, (seeds, first_only, second_only) = compared
    return _of_test(both, "sign-flip") | {"seeds": seeds, "first_only": first_only, "second_only": second_only}


def _of_test(both: statistics.Contrast, test: str) -> PairTest:
    return {
        "difference": both.estimate,
        "interval": both.interval if math.isfinite(both.interval[0]) else None,
        "p_value": both.p_value,
        "p_adjusted": both.p_value,
        "test": test,
    }


def fisher(solved: int, judged: int, other_solved: int, other_judged: int) -> PairTest:
    """Compare two rates of independent samples: Fisher's exact test, Newcombe's interval.

    Example:
        >>> fisher(20, 20, 14, 20)["test"], round(fisher(20, 20, 14, 20)["p_value"], 3)
        ('Fisher', 0.02)
    """
    counts = solved, judged, other_solved, other_judged
    estimate = solved / judged - other_solved / other_judged
    both = statistics.Contrast(estimate, statistics.newcombe(*counts), statistics.fisher_exact(*counts))
    return _of_test(both, "Fisher")


def lead(
    trials: SeedTrials | None, first: Sequence[Summary], second: Sequence[Summary], metric: str | None = None
) -> statistics.Contrast | None:
    """Compare two methods over several rows each, seed by seed: success rates, or means of a metric.

    Of each seed, the mean over the first method's rows minus that over the second's is one difference.

    Args:
        trials: their trials, by their seeds; None if the trials aren't known.
        first: the rows of the first method.
        second: those of the second.
        metric: whose means are compared; None for success rates.

    Returns:
        None where the rows have no seeds in common, or no seed has all numbers.
    """
    shared = shared_seeds(trials, (*first, *second))
    if shared is None:
        return None
    if metric is None:
        of_rows = [sample.solved.astype(np.float64) for sample in seed_pairs.judged(shared)]
    else:
        of_rows = [sample.values(metric) for sample in shared]
    here, there = (np.mean(some, axis=0) for some in (of_rows[: len(first)], of_rows[len(first) :]))
    with np.errstate(invalid="ignore"):
        differences = here - there
    return statistics.sign_flip(differences[np.isfinite(differences)])


def shared_seeds(trials: SeedTrials | None, summaries: Sequence[Summary]) -> list[SeedSample] | None:
    """Find the trials of the seeds that rows have in common; None if they are samples of their own."""
    return None if trials is None else seed_pairs.shared([trials.sample(summary) for summary in summaries])


def speeds(rows: ResultRows, trials: SeedTrials | None) -> tuple[list[Speed], tuple[str, ...]]:
    """Test at each question whether the methods take equally long to succeed; the p-values are not adjusted yet.

    Args:
        rows: the results.
        trials: their trials, by their seeds; None if the trials aren't known.

    Returns:
        The tests, and notes on what was left out.
    """
    tests, untimed = [], 0
    for question, members in _questions(rows):
        samples = [t.known("iterations") if (t := rows.summaries[row].times) else None for row in members]
        if any(sample is None for sample in samples):
            untimed += any(sample is not None for sample in samples)
            continue
        shared, seeds = shared_seeds(trials, [rows.summaries[row] for row in members]), None
        if shared is not None:
            shared = seed_pairs.judged(shared)
            seeds = shared[0].rows.size
            test = statistics.paired_log_rank([of.times for of in shared]) if seeds else None
        else:
            test = statistics.log_rank([sample for sample in samples if sample is not None])
        if test is not None:
            names = tuple(_method(rows, row) for row in members)
            of_test = vars(test) | {"p_adjusted": test.p_value, "seeds": seeds}
            tests.append(Speed(question=question, names=names, **of_test))
    notes = (f"No log-rank test at {untimed} questions: times of some rows aren't known.",) if untimed else ()
    return tests, notes


def _questions(rows: ResultRows) -> list[tuple[str, list[int]]]:
    """List the rows of each question that two or more methods answer."""
    rows_of: dict[tuple[Any, ...], list[int]] = {}
    for row, question in enumerate(rows.questions()):
        summary = rows.summaries[row]
        if summary.judged if rows.has_rates else summary.ended:
            rows_of.setdefault(question, []).append(row)
    keys = [key for key in rows.varying() if key not in rows.methods]
    return [(rows.name(members[0], keys), members) for members in rows_of.values() if len(members) > 1]


def _method(rows: ResultRows, row: int) -> str:
    return rows.name(row, [key for key in rows.varying() if key in rows.methods])
