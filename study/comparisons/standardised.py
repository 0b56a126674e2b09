"""Rows' success rates standardised to equal starts, by a covariate that is known for each trial's start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from study.comparisons.contrasts import Contrasts
from study.records import Interval
from study.statistics import StandardisedRate, standardised_difference, standardised_rate, wilson
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary
from study.trials.table import Floats, TrialTable

MOST_VALUES = 10
"""A covariate with at most this many distinct values has a level for each; others are cut into `BINS`."""
BINS = 5
"""The number of levels with equally many starts; five of them remove 90% of a confounder's bias (Cochran 1968)."""


@dataclass(frozen=True)
class Starts:
    """The starts of a population, with a covariate that is known without complete training.

    Args:
        name: the population's name.
        values: the covariate of each start, by the values of the row that the starts belong to.
        keys: the keys that identify these rows; none if all rows have the same starts.
    """

    name: str
    values: Mapping[tuple[Any, ...], Floats]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RowRate:
    """The success rate of a row, raw and standardised.

    Args:
        row: the row.
        trials: the number of judged trials with the covariate.
        without_number: the number of judged trials without it, which both rates leave out.
        rate: the success rate of the trials with the covariate; None without any, or if trials share seeds.
        interval: Wilson's, 95%; (0, 1) without a rate.
        standardised: the rate with the population's starts; None without trials, or if trials share seeds.
        unseen: the share of the population at levels without a trial of the row, which are merged with their
            neighbours.
    """

    row: int
    trials: int
    without_number: int
    rate: float | None
    interval: Interval
    standardised: StandardisedRate | None
    unseen: float


@dataclass(frozen=True, kw_only=True)
class RateDifference:
    """The difference of two rows' standardised rates, beside that of the rates of their finding.

    Args:
        question: the question that both answer; empty if there is only one.
        first: the name of the first row.
        second: the name of the second row.
        raw: the finding's estimate: first minus second of the rates of the tested trials.
        raw_interval: its interval, by the method that belongs to the test.
        estimate: first minus second of the standardised rates.
        interval: 95%, from the intervals of both rates as Newcombe's is from Wilson's; trials count as independent.
    """

    question: str
    first: str
    second: str
    raw: float | None
    raw_interval: Interval | None
    estimate: float
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class Standardisation:
    """Standardised rates of a report's rows.

    Args:
        covariate: the column with the covariate of each trial's start.
        levels: the levels of the covariate, in ascending order.
        population: the name of the starts that the rates are standardised to; empty for the trials of all rows.
        has_own_starts: whether each row has starts of its own there.
        rates: of the rows with judged trials.
        differences: between the rows that the report compares pairwise.
    """

    covariate: str
    levels: tuple[str, ...]
    population: str
    has_own_starts: bool
    rates: tuple[RowRate, ...]
    differences: tuple[RateDifference, ...]


def standardisation(
    rows: ResultRows, trials: TrialTable, contrasts: Contrasts, covariate: str, starts: Starts | None = None
) -> Standardisation | None:
    """Standardise the success rates of rows by a covariate that is known for each start.

    Args:
        rows: the rows.
        trials: their trials.
        contrasts: the comparisons between the rows.
        covariate: the column of trials with the covariate.
        starts: the population, for each row or for all; None for the judged trials of all rows together.

    Returns:
        None if no judged trial has the covariate, or all arrays of starts are empty.

    Raises:
        KeyError: if a row with judged trials has no starts.
        ValueError: if the covariate of a trial is a text that isn't a number, `starts` has no arrays, or the array of a
            row with judged trials, none of which share seeds, is empty and another isn't.
    """
    numbers_of_all = trials.numbers(covariate)
    samples = {row: _judged(trials, rows.summaries[row], numbers_of_all) for row in rows.judged()}
    known = [numbers[np.isfinite(numbers)] for numbers, _ in samples.values()]
    population = np.concatenate([*known, np.empty(0)] if starts is None else list(starts.values.values()))
    if not population.size or not any(numbers.size for numbers in known):
        return None
    levels = _Levels(population)

    def shares_of(row: int) -> tuple[Floats, int | None]:
        """Return the counts of a row's starts by level, and their number; None for the trials' own starts."""
        if starts is None:
            return levels.counts(population), None
        own = starts.values[tuple(rows.value(row, key) for key in starts.keys)]
        return levels.counts(own), own.size

    rates = {row: _rate(row, levels, *sample, *shares_of(row)) for row, sample in samples.items()}
    return Standardisation(
        covariate=covariate,
        levels=levels.names,
        population="" if starts is None else starts.name,
        has_own_starts=starts is not None and {*starts.keys} == {*rows.keys},
        rates=tuple(rates.values()),
        differences=tuple(_differences(rates, contrasts)),
    )


def _judged(trials: TrialTable, summary: Summary, numbers: Floats) -> tuple[Floats, Floats | None]:
    """Return the covariate and the success of each judged trial; no successes if trials share seeds."""
    sample = trials.group(summary.key)
    sample = sample.select(sample.is_judged)
    is_plain = not sample.repeat_seeds and not (sample.seeds < 0).any()
    return numbers[sample.rows], sample.successes if is_plain else None


class _Levels:
    """Levels of a covariate: each of its values or, if these are many, bins with equally many starts."""

    def __init__(self, population: Floats) -> None:
        values = np.unique(population)
        is_cut = values.size > MOST_VALUES
        ends = np.unique(np.quantile(population, np.arange(1, BINS) / BINS, method="lower")) if is_cut else values[:-1]
        self._ends = ends
        places = self.places(values)
        parts = [values[places == place] for place in range(ends.size + 1)]
        self.names = tuple(
            f"{part[0]:.4g}" + (f" to {part[-1]:.4g}" if part.size > 1 else "") for part in parts if part.size
        )

    def places(self, numbers: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Return the level of each number; one beyond all levels belongs to the nearest."""
        return np.searchsorted(self._ends, numbers, side="left")

    def counts(self, numbers: Floats, weights: Floats | None = None) -> Floats:
        """Count the numbers of each level, or sum their weights."""
        counted: Floats = np.bincount(self.places(numbers), weights, self._ends.size + 1).astype(np.float64)
        return counted


def _rate(
    row: int, levels: _Levels, numbers: Floats, successes: Floats | None, shares: Floats, starts: int | None
) -> RowRate:
    """Compute a row's raw and standardised rates from the covariate and success of its judged trials.

    `shares` are the counts of the population's starts by level, and `starts` is their number; see `standardised_rate`.
    """
    is_known = np.isfinite(numbers)
    judged = levels.counts(numbers[is_known])
    standardised, solved = None, None
    if successes is not None:
        by_level = levels.counts(numbers[is_known], successes[is_known])
        solved = int(by_level.sum())
        counts = [values.astype(np.int64).tolist() for values in (by_level, judged)]
        standardised = standardised_rate(counts[0], counts[1], shares.tolist(), starts)
    total = int(judged.sum())
    return RowRate(
        row=row,
        trials=total,
        without_number=int((~is_known).sum()),
        rate=solved / total if total and solved is not None else None,
        interval=(0.0, 1.0) if solved is None else wilson(solved, total),
        standardised=standardised,
        unseen=float(shares[judged == 0].sum() / shares.sum()),
    )


def _differences(rates: Mapping[int, RowRate], contrasts: Contrasts) -> list[RateDifference]:
    """Compute the differences of the rows that the findings compare, without averaged rows; empty for a metric."""
    if contrasts.plan is None or contrasts.metric is not None or not contrasts.findings:
        return []
    differences = []
    for (question, *methods), finding in zip(contrasts.plan.pairs(), contrasts.pairs, strict=True):
        both = [rates[method.rows[0]].standardised for method in methods if len(method.rows) == 1]
        if len(both) == 2 and both[0] is not None and both[1] is not None:
            differences.append(
                RateDifference(
                    question=question.name,
                    first=finding.first,
                    second=finding.second,
                    raw=finding.estimate,
                    raw_interval=finding.interval,
                    estimate=both[0].rate - both[1].rate,
                    interval=standardised_difference(both[0], both[1]),
                )
            )
    return differences
