"""Seeds until a cell's success rate, or a metric's mean, is known precisely enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from study import statistics
from study.plan.plan import Plan
from study.plan.seed_results import PENDING, Numbers, Outcomes, numbers_of, outcomes_of
from study.plan.verdict import CONFIDENCE, Verdict
from study.records import Cell
from study.spec.seeds import Until


def sampling(until: Until) -> statistics.FixedWidth:
    """Return the sampling plan that ends when a rate is known precisely enough."""
    assert until.half_width is not None
    return statistics.FixedWidth(until.half_width, until.step, until.max, CONFIDENCE)


def mean_sampling(until: Until) -> statistics.MeanPrecision:
    """Return the sampling plan that ends when a metric's mean is known precisely enough."""
    assert until.half_width is not None
    return statistics.MeanPrecision(until.half_width, until.step, until.max, CONFIDENCE)


class NarrowRates:
    """Each cell gets seeds until the interval of its success rate is narrow.

    Args:
        plan: of the study.
        until: its rule.
        results: its results so far.
    """

    phrase = "cells are sure"

    def __init__(self, plan: Plan, until: Until, results: pa.Table) -> None:
        self._cells, self._sampling = plan.cells, sampling(until)
        self._outcomes = outcomes_of(plan.cells, until.max, results)

    def counts(self) -> Mapping[str, int]:
        """Return how many seeds each cell gets, by its id."""
        return {cell.id: self._count(self._outcomes[cell.id]) for cell in self._cells}

    def _count(self, outcomes: Outcomes) -> int:
        for n in self._sampling.looks:
            first = outcomes[:n]
            if PENDING in first or self._sampling.is_narrow(*_solved_and_finished(first)):
                return n
        return self._sampling.most

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Judge whether each cell's seeds are enough."""
        return [self._verdict(cell, self._outcomes[cell.id][: len(plan.seeds(cell))]) for cell in plan.cells]

    def _verdict(self, cell: Cell, outcomes: Outcomes) -> Verdict:
        k, n = _solved_and_finished(outcomes)
        # Nothing is decided within a batch: the intervals allow for evaluations between batches only.
        is_sure = PENDING not in outcomes and self._sampling.is_narrow(k, n)
        return Verdict(cell, None, n, is_sure, interval=self._sampling.interval(k, n))

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return how many cells have enough, and how many there are."""
        return sum(verdict.is_sure for verdict in self.verdicts(plan)), len(plan.cells)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate how many seeds each cell will have needed."""
        return {cell.id: self._expected(self._outcomes[cell.id], now[cell.id]) for cell in self._cells}

    def _expected(self, outcomes: Outcomes, now: int) -> int:
        k, n = _solved_and_finished(outcomes[:now])
        if n and (PENDING not in outcomes[:now]):
            return now
        rate = (k + 0.5) / (n + 1) if n else None
        return max(now, math.ceil(self._sampling.expected(rate)))


def _solved_and_finished(outcomes: Outcomes) -> tuple[int, int]:
    return int(np.count_nonzero(outcomes == 1)), int(np.count_nonzero(outcomes >= 0))


class NarrowMeans:
    """Each cell gets seeds until the interval of a metric's mean is narrow.

    Args:
        plan: of the study.
        until: its rule, which names the metric.
        results: its results so far.
    """

    phrase = "cells are sure"

    def __init__(self, plan: Plan, until: Until, results: pa.Table) -> None:
        self._until, self._cells, self._sampling = until, plan.cells, mean_sampling(until)
        self._metric = str(until.metric)
        self._numbers = numbers_of(plan.cells, until.max, results, self._metric, plan.metrics[self._metric])

    def counts(self) -> Mapping[str, int]:
        """Return how many seeds each cell gets, by its id."""
        return {cell.id: self._count(self._numbers[cell.id]) for cell in self._cells}

    def _count(self, numbers: Numbers) -> int:
        for n in self._sampling.looks:
            first = numbers.first(n)
            if not first.is_complete or (not first.without and self._sampling.is_narrow(first.known)):
                return n
        return self._sampling.most

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Judge whether each cell's seeds are enough."""
        return [self._verdict(cell, self._numbers[cell.id].first(len(plan.seeds(cell)))) for cell in plan.cells]

    def _verdict(self, cell: Cell, numbers: Numbers) -> Verdict:
        seeds = int(np.count_nonzero(numbers.outcomes >= 0))
        if numbers.without:  # there is no mean of what has no number
            return Verdict(cell, None, seeds, False, metric=self._metric, without=numbers.without)
        known = numbers.known
        return Verdict(
            cell,
            None,
            seeds,
            is_sure=numbers.is_complete and self._sampling.is_narrow(known),
            interval=self._sampling.interval(known),
            metric=self._metric,
            mean=float(known.mean()) if known.size else None,
        )

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return how many cells have enough, and how many there are."""
        return sum(verdict.is_sure for verdict in self.verdicts(plan)), len(plan.cells)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate how many seeds each cell will have needed."""
        seeds = dict(now)
        for cell in self._cells:
            so_far = self._numbers[cell.id].first(now[cell.id])
            if not so_far.is_complete:
                count = self._until.max if so_far.without else self._sampling.expected(so_far.known)
                seeds[cell.id] = max(now[cell.id], count)
        return seeds
