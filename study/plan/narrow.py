"""Seeds until a cell's success rate, or a metric's mean, is known precisely enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from study import statistics
from study.plan.plan import Plan
from study.plan.verdict import CONFIDENCE, Verdict
from study.records import Cell, Outcome
from study.spec.seeds import Until
from study.statistics.checks import Floats
from study.trials.table import ENDED, Trials, TrialTable


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
        table: its trials so far.
    """

    phrase = "cells are sure"

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        self._cells, self._sampling = plan.cells, sampling(until)
        self._trials = {cell.id: table.cell(cell.id).of_seeds(range(until.max)) for cell in plan.cells}

    def counts(self) -> Mapping[str, int]:
        """Return how many seeds each cell gets, by its id."""
        return {cell.id: self._count(self._trials[cell.id]) for cell in self._cells}

    def _count(self, trials: Trials) -> int:
        for n in self._sampling.looks:
            first = trials.first(n)
            if first.is_pending.any() or self._sampling.is_narrow(*_solved_and_ended(first)):
                return n
        return self._sampling.most

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Judge whether each cell's seeds are enough."""
        return [self._verdict(cell, self._trials[cell.id].first(len(plan.seeds(cell)))) for cell in plan.cells]

    def _verdict(self, cell: Cell, trials: Trials) -> Verdict:
        k, n = _solved_and_ended(trials)
        # Nothing is decided within a batch: the intervals allow for evaluations between batches only.
        is_sure = not trials.is_pending.any() and self._sampling.is_narrow(k, n)
        return Verdict(cell, None, n, is_sure, interval=self._sampling.interval(k, n))

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return how many cells have enough, and how many there are."""
        return sum(verdict.is_sure for verdict in self.verdicts(plan)), len(plan.cells)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate how many seeds each cell will have needed."""
        return {cell.id: self._expected(self._trials[cell.id].first(now[cell.id])) for cell in self._cells}

    def _expected(self, now: Trials) -> int:
        k, n = _solved_and_ended(now)
        if n and not now.is_pending.any():
            return now.rows.size
        rate = (k + 0.5) / (n + 1) if n else None
        return max(now.rows.size, math.ceil(self._sampling.expected(rate)))


def _solved_and_ended(trials: Trials) -> tuple[int, int]:
    return trials.count(Outcome.SOLVED), trials.count(*ENDED)


class NarrowMeans:
    """Each cell gets seeds until the interval of a metric's mean is narrow.

    Args:
        plan: of the study.
        until: its rule, which names the metric.
        table: its trials so far.
    """

    phrase = "cells are sure"

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        self._until, self._cells, self._sampling = until, plan.cells, mean_sampling(until)
        self._metric = str(until.metric)
        self._trials = {cell.id: table.cell(cell.id).of_seeds(range(until.max)) for cell in plan.cells}

    def counts(self) -> Mapping[str, int]:
        """Return how many seeds each cell gets, by its id."""
        return {cell.id: self._count(self._trials[cell.id]) for cell in self._cells}

    def _count(self, trials: Trials) -> int:
        for n in self._sampling.looks:
            first = trials.first(n)
            known, without = self._numbers(first)
            if first.is_pending.any() or (not without and self._sampling.is_narrow(known)):
                return n
        return self._sampling.most

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Judge whether each cell's seeds are enough."""
        return [self._verdict(cell, self._trials[cell.id].first(len(plan.seeds(cell)))) for cell in plan.cells]

    def _numbers(self, trials: Trials) -> tuple[Floats, int]:
        """Return the metric's numbers, and how many trials ended without one."""
        values = trials.values(self._metric)
        known = values[np.isfinite(values)]
        return known, trials.count(*ENDED) - known.size

    def _verdict(self, cell: Cell, trials: Trials) -> Verdict:
        seeds = trials.count(*ENDED)
        known, without = self._numbers(trials)
        if without:  # there is no mean of what has no number
            return Verdict(cell, None, seeds, False, metric=self._metric, without=without)
        return Verdict(
            cell,
            None,
            seeds,
            is_sure=not trials.is_pending.any() and self._sampling.is_narrow(known),
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
            so_far = self._trials[cell.id].first(now[cell.id])
            if so_far.is_pending.any():
                known, without = self._numbers(so_far)
                count = self._until.max if without else self._sampling.expected(known)
                seeds[cell.id] = max(now[cell.id], count)
        return seeds
