"""Seeds until the interval of a cell's success rate, or of a metric's mean, is narrow enough."""

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
    """Return the sampling plan of success rates for the wanted half-width."""
    assert until.half_width is not None
    return statistics.FixedWidth(until.half_width, until.step, until.max, CONFIDENCE)


def mean_sampling(until: Until) -> statistics.MeanPrecision:
    """Return the sampling plan of a metric's means for the wanted half-width."""
    assert until.half_width is not None
    return statistics.MeanPrecision(until.half_width, until.step, until.max, CONFIDENCE)


class NarrowRates:
    """Rule that adds seeds to each cell until the interval of its success rate is narrow.

    Args:
        plan: the study's plan.
        until: the rule's settings.
        table: the trials so far.
    """

    phrase = "cells are sure"

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        self._cells, self._sampling = plan.cells, sampling(until)
        self._trials = {cell.id: table.cell(cell.id).of_seeds(range(until.max)) for cell in plan.cells}

    def counts(self) -> Mapping[str, int]:
        """Return the number of seeds that each cell needs by the results so far, by its id."""
        return {cell.id: self._count(self._trials[cell.id]) for cell in self._cells}

    def _count(self, trials: Trials) -> int:
        for n in self._sampling.looks:
            first = trials.first(n)
            if first.is_pending.any() or self._sampling.is_narrow(*_solved_and_ended(first)):
                return n
        return self._sampling.most

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Return a verdict on each cell of a plan, by its planned seeds."""
        return [self._verdict(cell, self._trials[cell.id].first(len(plan.seeds(cell)))) for cell in plan.cells]

    def _verdict(self, cell: Cell, trials: Trials) -> Verdict:
        k, n = _solved_and_ended(trials)
        # No decision within a batch: the intervals are valid for looks between batches only.
        is_sure = not trials.is_pending.any() and self._sampling.is_narrow(k, n)
        return Verdict(cell, None, n, is_sure, interval=self._sampling.interval(k, n))

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return the number of cells with enough seeds, and that of all cells."""
        return sum(verdict.is_sure for verdict in self.verdicts(plan)), len(plan.cells)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate the final number of seeds of each cell, by its id, from the current numbers."""
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
    """Rule that adds seeds to each cell until the interval of a metric's mean is narrow.

    Args:
        plan: the study's plan.
        until: the rule's settings, with the metric.
        table: the trials so far.
    """

    phrase = "cells are sure"

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        self._until, self._cells, self._sampling = until, plan.cells, mean_sampling(until)
        self._metric = str(until.metric)
        self._trials = {cell.id: table.cell(cell.id).of_seeds(range(until.max)) for cell in plan.cells}

    def counts(self) -> Mapping[str, int]:
        """Return the number of seeds that each cell needs by the results so far, by its id."""
        return {cell.id: self._count(self._trials[cell.id]) for cell in self._cells}

    def _count(self, trials: Trials) -> int:
        for n in self._sampling.looks:
            first = trials.first(n)
            known, without = self._numbers(first)
            if first.is_pending.any() or (not without and self._sampling.is_narrow(known)):
                return n
        return self._sampling.most

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Return a verdict on each cell of a plan, by its planned seeds."""
        return [self._verdict(cell, self._trials[cell.id].first(len(plan.seeds(cell)))) for cell in plan.cells]

    def _numbers(self, trials: Trials) -> tuple[Floats, int]:
        """Return the metric's finite values, and the number of trials that ended without one."""
        values = trials.values(self._metric)
        known = values[np.isfinite(values)]
        return known, trials.count(*ENDED) - known.size

    def _verdict(self, cell: Cell, trials: Trials) -> Verdict:
        seeds = trials.count(*ENDED)
        known, without = self._numbers(trials)
        if without:  # no mean without every trial's value
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
        """Return the number of cells with enough seeds, and that of all cells."""
        return sum(verdict.is_sure for verdict in self.verdicts(plan)), len(plan.cells)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate the final number of seeds of each cell, by its id, from the current numbers."""
        seeds = dict(now)
        for cell in self._cells:
            so_far = self._trials[cell.id].first(now[cell.id])
            if so_far.is_pending.any():
                known, without = self._numbers(so_far)
                count = self._until.max if without else self._sampling.expected(known)
                seeds[cell.id] = max(now[cell.id], count)
        return seeds
