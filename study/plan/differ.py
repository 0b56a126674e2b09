"""Seeds until two cells differ: in how often they succeed, or in which has the better value of a metric."""

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
"""Of a pair's seeds, how many the first cell wins, the second wins, and neither."""


class PairsRule:
    """Both cells of each pair get seeds until the anytime sign test tells them apart.

    Args:
        plan: of the study.
        until: its rule.
        table: its trials so far.
    """

    phrase = "pairs of cells are sure"
    _metric = ""

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        self._until, self._pairs = until, pairs(plan.cells, str(until.different_from))
        self._trials = {cell.id: table.cell(cell.id).of_seeds(range(until.max)) for cell in plan.cells}

    @abstractmethod
    def _losses(self, trials: Trials) -> Floats:
        """Return what is less where a trial is better, of trials that have ended."""

    def _is_complete(self, pair: Pair, n: int) -> bool:
        """Return whether no trial of the first n seeds is pending."""
        return not any(self._trials[cell.id].first(n).is_pending.any() for cell in pair)

    def _scores(self, pair: Pair, n: int | None) -> Scores:
        """Score the first n seeds, or all, of those that have ended in both cells."""
        one, other = (self._trials[cell.id].first(n) for cell in pair)
        both = one.are(*ENDED) & other.are(*ENDED)
        first, second = self._losses(one.select(both)), self._losses(other.select(both))
        wins, losses = int(np.count_nonzero(first < second)), int(np.count_nonzero(first > second))
        return wins, losses, int(both.sum()) - wins - losses

    def counts(self) -> Mapping[str, int]:
        """Return how many seeds each cell gets, by its id: of several pairs, the most."""
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
        """Judge each pair by its own seeds alone: a cell of several pairs may have more, for another pair."""
        return [self._verdict(pair) for pair in self._pairs]

    def _verdict(self, pair: Pair) -> Verdict:
        count = self._count(pair)
        wins, losses, ties = self._scores(pair, count)
        p_value = statistics.anytime_sign_test(wins, losses)
        is_sure = self._is_complete(pair, count) and p_value < 1 - CONFIDENCE
        seeds = wins + losses + ties
        return Verdict(*pair, seeds, is_sure, p_value=p_value, wins=wins, losses=losses, metric=self._metric)

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return how many pairs differ, and how many there are."""
        return sum(verdict.is_sure for verdict in self.verdicts(plan)), len(self._pairs)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate how many seeds each cell will have needed."""
        seeds = dict(now)
        for pair in self._pairs:
            one, other = pair
            if self._is_complete(pair, min(now[one.id], now[other.id])):
                continue  # they differ, or there are no more seeds to add
            count = self._expected(*self._scores(pair, None))
            for cell in pair:
                seeds[cell.id] = max(seeds[cell.id], count)
        return seeds

    def _expected(self, wins: int, losses: int, ties: int) -> int:
        """Draw paths of wins and losses, and return the mean number of seeds after which the two cells differ."""
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
    """A seed is won by the cell that alone solves it."""

    def _losses(self, trials: Trials) -> Floats:
        return np.where(trials.is_solved, 0.0, 1.0)


class DifferentValues(PairsRule):
    """A seed is won by the cell that has the better value of the metric that the rule names."""

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        super().__init__(plan, until, table)
        self._metric = str(until.metric)

    def _losses(self, trials: Trials) -> Floats:
        return trials.losses(self._metric)
