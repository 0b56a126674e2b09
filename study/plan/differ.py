"""Seeds until two cells differ: in their success rates, or in their values of a metric."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from study import statistics
from study.plan.pairs import Pair, pairs
from study.plan.plan import Plan
from study.plan.verdict import CONFIDENCE, Verdict
from study.spec.seeds import Until
from study.statistics.checks import Floats
from study.trials.table import ENDED, Trials, TrialTable

_PATHS = 200
Scores = tuple[int, int, int]
"""Numbers of a pair's seeds that the first cell wins, that the second wins, and of ties."""


class PairsRule:
    """Rule that adds seeds to both cells of each pair until they differ by the anytime-valid sign test.

    Args:
        plan: the study's plan.
        until: the rule's settings.
        table: the trials so far.
    """

    phrase = "pairs of cells are sure"
    _metric = ""

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        self._until, self._pairs = until, pairs(plan.cells, str(until.different_from))
        self._trials = {cell.id: table.cell(cell.id).of_seeds(range(until.max)) for cell in plan.cells}

    @abstractmethod
    def _losses(self, trials: Trials) -> Floats:
        """Return the losses of ended trials; lower is better."""

    def _is_complete(self, pair: Pair, n: int) -> bool:
        """Return True if no trial of the first n seeds is pending."""
        return not any(self._trials[cell.id].first(n).is_pending.any() for cell in pair)

    def _scores(self, pair: Pair, n: int | None) -> Scores:
        """Return the scores over the first n seeds, or all for None; only seeds that have ended in both cells count."""
        left, right = (self._trials[cell.id].first(n) for cell in pair)
        both = left.are(*ENDED) & right.are(*ENDED)
        first, second = self._losses(left.select(both)), self._losses(right.select(both))
        wins, losses = int(np.count_nonzero(first < second)), int(np.count_nonzero(first > second))
        return wins, losses, int(both.sum()) - wins - losses

    def counts(self) -> Mapping[str, int]:
        """Return the number of seeds of each cell of a pair, by its id: the maximum over its pairs."""
        counts: dict[str, int] = {}
        for pair in self._pairs:
            count = self._count(pair)
            for cell in pair:
                counts[cell.id] = max(count, counts.get(cell.id, 0))
        return counts

    def _count(self, pair: Pair) -> int:
        for n in statistics.looks(self._until.step, self._until.max):
            if not self._is_complete(pair, n) or self._p_value(pair, n) < 1 - CONFIDENCE:
                return n
        return self._until.max

    def _p_value(self, pair: Pair, n: int) -> float:
        wins, losses, _ = self._scores(pair, n)
        return statistics.anytime_sign_test(wins, losses)

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Return a verdict on each pair, by its own number of seeds; a cell may have more for another pair."""
        return [self._verdict(pair) for pair in self._pairs]

    def _verdict(self, pair: Pair) -> Verdict:
        count = self._count(pair)
        wins, losses, ties = self._scores(pair, count)
        p_value = statistics.anytime_sign_test(wins, losses)
        is_sure = self._is_complete(pair, count) and p_value < 1 - CONFIDENCE
        seeds = wins + losses + ties
        return Verdict(*pair, seeds, is_sure, p_value=p_value, wins=wins, losses=losses, metric=self._metric)

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return the number of pairs that differ, and that of all pairs."""
        return sum(verdict.is_sure for verdict in self.verdicts(plan)), len(self._pairs)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate the final number of seeds of each cell, by its id, from the current numbers."""
        seeds = dict(now)
        for pair in self._pairs:
            first, second = pair
            if self._is_complete(pair, min(now[first.id], now[second.id])):
                continue  # they differ, or have all seeds
            count = self._expected(*self._scores(pair, None))
            for cell in pair:
                seeds[cell.id] = max(seeds[cell.id], count)
        return seeds

    def _expected(self, wins: int, losses: int, ties: int) -> int:
        """Estimate the number of seeds until the cells differ, as the mean over random paths of wins and losses."""
        rng = np.random.default_rng(0)
        chances = rng.dirichlet([wins + 0.5, losses + 0.5, ties + 0.5], size=_PATHS)
        return math.ceil(float(np.mean([self._end_of_path(rng, chance) for chance in chances])))

    def _end_of_path(self, rng: np.random.Generator, chances: Floats) -> int:
        before, wins, losses = 0, 0, 0
        for n in statistics.looks(self._until.step, self._until.max):
            more = rng.multinomial(n - before, chances)
            before, wins, losses = n, wins + int(more[0]), losses + int(more[1])
            if statistics.anytime_sign_test(wins, losses) < 1 - CONFIDENCE:
                return n
        return self._until.max


class DifferentRates(PairsRule):
    """Rule by success: a cell wins a seed that only it solves."""

    def _losses(self, trials: Trials) -> Floats:
        return np.where(trials.is_solved, 0.0, 1.0)


class DifferentValues(PairsRule):
    """Rule by a metric: the cell with the better value wins a seed."""

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        super().__init__(plan, until, table)
        self._metric = str(until.metric)

    def _losses(self, trials: Trials) -> Floats:
        return trials.losses(self._metric)
