"""Seeds until sure: which cells have enough seeds, and how many the others get next.

The next seeds depend on the results of those planned so far, and on nothing else: whoever evaluates them comes to the
same plan, however the work was interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from study import statistics
from study.analysis.summary import RateIntervals
from study.arrow import with_metrics
from study.plan.pairs import Pair, pairs
from study.plan.plan import Plan
from study.records import Cell, Interval, Outcome
from study.spec.tables import Until
from study.statistics.checks import Floats

CONFIDENCE = 0.95
_PENDING, _FAILED = -1, -2
_PATHS = 200
Outcomes = npt.NDArray[np.int8]
"""The outcomes of a cell's seeds, in order: 1 solved, 0 not solved, or one of the above."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A metric of a cell's seeds, in order.

    Args:
        values: NaN where a trial has no number: it diverged, failed or is pending, or it isn't solved and the metric is
            of solved trials.
        outcomes: 1 with a number, 0 without, or one of the codes above.
        sign: with which less is better: -1 or 1.
    """

    values: Floats
    outcomes: Outcomes
    sign: float

    def first(self, n: int) -> Numbers:
        """Return those of the first n seeds."""
        return replace(self, values=self.values[:n], outcomes=self.outcomes[:n])

    @property
    def is_complete(self) -> bool:
        """Whether no seed is pending."""
        return _PENDING not in self.outcomes

    @property
    def known(self) -> Floats:
        """The numbers."""
        numbers: Floats = self.values[self.outcomes == 1]
        return numbers

    @property
    def without(self) -> int:
        """How many trials ended without a number."""
        return int(np.count_nonzero(self.outcomes == 0))

    def losses(self) -> Floats:
        """Return what is less where a trial is better: infinity without a number."""
        return np.asarray(np.where(self.outcomes == 1, self.sign * self.values, np.inf))


@dataclass(frozen=True)
class Verdict:
    """What the results say about a cell, or about a pair of cells.

    Args:
        cell: the cell, or the first of the pair.
        versus: the cell that it is compared with; None where its rate alone is estimated.
        seeds: the number of seeds that have a result.
        is_sure: whether they are enough.
        interval: of the cell's success rate, or of its metric's mean; None for a pair, or if a mean has none.
        p_value: of the sign test; None for a cell alone.
        wins: for a pair: the number of seeds that only this cell solved, or at which its metric is better.
        losses: for a pair: the number of seeds that only the other cell solved, or at which its metric is better.
        metric: the metric that is judged; empty for success.
        mean: of the metric; None for a pair, or if there is none.
        without: how many trials ended without a number, so that there is no mean.
    """

    cell: Cell
    versus: Cell | None
    seeds: int
    is_sure: bool
    interval: Interval | None = None
    p_value: float | None = None
    wins: int = 0
    losses: int = 0
    metric: str = ""
    mean: float | None = None
    without: int = 0


def extended(plan: Plan, results: pa.Table) -> Plan:
    """Return the plan in which each cell has the seeds that it needs, judged by the results so far.

    Args:
        plan: the plan of a study; if its file says how many seeds there are, it stays as it is.
        results: columns of `study.arrow.RESULT_SCHEMA`, one row a trial; other trials' rows are ignored.

    Returns:
        The same cells. None gets seeds beyond the first batch with a pending result, or beyond those that are enough.

    Example:
        >>> from study.plan.plan import make_plan
        >>> from study.spec import parse_spec
        >>> from study.arrow import results_table
        >>> text = "{study: a, task: {name: simple}, models: [NMU], seeds: {until: {half_width: 0.1, max: 100}}}"
        >>> planned = make_plan(parse_spec(text, source="a.yaml"))
        >>> extended(planned, results_table([])).trials_count
        20
    """
    until = plan.spec.until
    if until is None:
        return plan
    if until.metric is not None:
        counts = _counts_by_metric(plan, until, results)
        return replace(plan, own_seeds={cell_id: range(count) for cell_id, count in counts.items()})
    outcomes = _outcomes(plan.cells, until.max, results)
    if until.half_width is not None:
        counts = {c.id: _seeds_for_width(sampling(until), outcomes[c.id]) for c in plan.cells}
    else:
        counts = _seeds_to_differ(until, pairs(plan.cells, str(until.different_from)), outcomes)
    return replace(plan, own_seeds={cell_id: range(count) for cell_id, count in counts.items()})


def verdicts(plan: Plan, results: pa.Table) -> list[Verdict]:
    """Judge for each cell, or each pair of cells, whether the seeds that have a result are enough.

    Args:
        plan: of a study with `until`, as `extended` returns it.
        results: as for `extended`.
    """
    until = plan.spec.until
    if until is None:
        return []
    if until.metric is not None:
        return _verdicts_by_metric(plan, until, results)
    outcomes = _outcomes(plan.cells, until.max, results)
    if until.half_width is not None:
        return [_judge_cell(sampling(until), cell, outcomes[cell.id][: len(plan.seeds(cell))]) for cell in plan.cells]
    return [_judge_pair(until, pair, outcomes) for pair in pairs(plan.cells, str(until.different_from))]


def expected(plan: Plan, results: pa.Table) -> dict[str, int]:
    """Estimate how many seeds each cell will have needed, by its id.

    The estimate for a cell is based on its rate so far, with half a success and half a failure added; without results,
    all rates are equally likely. That for a metric's mean is based on the deviation so far; without any, it is the most
    that a cell can get. For two cells that are compared, it is based on how often only one of them solved a
    seed, or is better at it: paths are drawn at random with these rates.

    Args:
        plan: of a study with `until`.
        results: as for `extended`.
    """
    until = plan.spec.until
    assert until is not None
    current = extended(plan, results)
    now = {cell.id: len(current.seeds(cell)) for cell in plan.cells}
    if until.metric is not None:
        return _expected_by_metric(plan, until, results, now)
    outcomes = _outcomes(plan.cells, until.max, results)
    if until.half_width is not None:
        fixed_width = sampling(until)
        return {c.id: _expected_for_width(fixed_width, outcomes[c.id], now[c.id]) for c in plan.cells}
    seeds = dict(now)
    for one, other in pairs(plan.cells, str(until.different_from)):
        used = [outcomes[cell.id][: min(now[one.id], now[other.id])] for cell in (one, other)]
        if _PENDING not in used[0] and _PENDING not in used[1]:
            continue  # they differ, or there are no more seeds to add
        both = (outcomes[one.id] >= 0) & (outcomes[other.id] >= 0)
        _, wins, losses = _differ(outcomes[one.id][both], outcomes[other.id][both])
        count = _expected_to_differ(until, wins, losses, int(both.sum()) - wins - losses)
        for cell in (one, other):
            seeds[cell.id] = max(seeds[cell.id], count)
    return seeds


def _expected_for_width(sampling: statistics.FixedWidth, outcomes: Outcomes, now: int) -> int:
    k, n = _counts(outcomes[:now])
    if n and (_PENDING not in outcomes[:now]):
        return now
    rate = (k + 0.5) / (n + 1) if n else None
    return max(now, math.ceil(sampling.expected(rate)))


def _expected_to_differ(until: Until, wins: int, losses: int, ties: int) -> int:
    """Draw paths of wins and losses, and return the mean number of seeds after which the two cells differ."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet([wins + 0.5, losses + 0.5, ties + 0.5], size=_PATHS)
    ends = [_end_of_path(until, rng, chance) for chance in chances]
    return math.ceil(float(np.mean(ends)))


def _end_of_path(until: Until, rng: np.random.Generator, chances: Floats) -> int:
    before, wins, losses = 0, 0, 0
    for n in statistics.looks(until.step, until.max):
        more = rng.multinomial(n - before, chances)
        before, wins, losses = n, wins + int(more[0]), losses + int(more[1])
        if statistics.anytime_sign_test(wins, losses) < 1 - CONFIDENCE:
            return n
    return until.max


def progress(plan: Plan, results: pa.Table) -> str:
    """Describe in a sentence how far a study with `until` is; the arguments are those of `verdicts`."""
    judged = verdicts(plan, results)
    what = "cells" if plan.spec.until and plan.spec.until.half_width is not None else "pairs of cells"
    sure = sum(verdict.is_sure for verdict in judged)
    outcomes = _outcomes(plan.cells, plan.spec.most_seeds, results)
    pending = sum(int(np.count_nonzero(outcomes[c.id][: len(plan.seeds(c))] == _PENDING)) for c in plan.cells)
    return f"{sure} of {len(judged)} {what} are sure" + (f"; next {pending:,} trials" if pending > 0 else "")


def sampling(until: Until) -> statistics.FixedWidth:
    """Return the sampling plan that ends when a rate is known precisely enough."""
    assert until.half_width is not None
    return statistics.FixedWidth(until.half_width, until.step, until.max, CONFIDENCE)


def rate_intervals(until: Until) -> RateIntervals:
    """Return the intervals of success rates that allow for evaluating them repeatedly."""
    if until.half_width is not None and until.metric is None:
        return RateIntervals("Clopper-Pearson (calibrated)", sampling(until).intervals)
    return RateIntervals("anytime-valid", _anytimes)


def _anytimes(solved: npt.ArrayLike, finished: npt.ArrayLike) -> Floats:
    counts = zip(np.asarray(solved).tolist(), np.asarray(finished).tolist(), strict=True)
    return np.array([statistics.anytime(k, n, CONFIDENCE) for k, n in counts]).reshape(-1, 2)


def _seeds_for_width(sampling: statistics.FixedWidth, outcomes: Outcomes) -> int:
    for n in sampling.looks:
        first = outcomes[:n]
        if _PENDING in first or sampling.is_narrow(*_counts(first)):
            return n
    return sampling.most


def _seeds_to_differ(until: Until, compared: Sequence[Pair], outcomes: Mapping[str, Outcomes]) -> dict[str, int]:
    """Count the seeds of each cell: both cells of a pair get the same, and a cell of several pairs the most."""
    counts: dict[str, int] = {}
    for pair in compared:
        count = _seeds_of_pair(until, *(outcomes[cell.id] for cell in pair))
        for cell in pair:
            counts[cell.id] = max(count, counts.get(cell.id, 0))
    return counts


def _seeds_of_pair(until: Until, one: Outcomes, other: Outcomes) -> int:
    for n in statistics.looks(until.step, until.max):
        pending = _PENDING in one[:n] or _PENDING in other[:n]
        if pending or _differ(one[:n], other[:n])[0] < 1 - CONFIDENCE:
            return n
    return until.max


def _differ(one: Outcomes, other: Outcomes) -> tuple[float, int, int]:
    wins = int(np.count_nonzero((one == 1) & (other == 0)))
    losses = int(np.count_nonzero((one == 0) & (other == 1)))
    return statistics.anytime_sign_test(wins, losses), wins, losses


def _counts(outcomes: Outcomes) -> tuple[int, int]:
    """Count the solved and the finished seeds."""
    return int(np.count_nonzero(outcomes == 1)), int(np.count_nonzero(outcomes >= 0))


def _judge_cell(sampling: statistics.FixedWidth, cell: Cell, outcomes: Outcomes) -> Verdict:
    k, n = _counts(outcomes)
    # Nothing is decided within a batch: the intervals allow for evaluations between batches only.
    is_sure = _PENDING not in outcomes and sampling.is_narrow(k, n)
    return Verdict(cell, None, n, is_sure, interval=sampling.interval(k, n))


def _judge_pair(until: Until, pair: Pair, outcomes: Mapping[str, Outcomes]) -> Verdict:
    """Judge by the seeds of this pair alone: a cell of several pairs may have more, for another pair."""
    count = _seeds_of_pair(until, *(outcomes[cell.id] for cell in pair))
    one, other = (outcomes[cell.id][:count] for cell in pair)
    p_value, wins, losses = _differ(one, other)
    both = int(np.count_nonzero((one >= 0) & (other >= 0)))
    is_sure = _PENDING not in one and _PENDING not in other and p_value < 1 - CONFIDENCE
    return Verdict(*pair, both, is_sure, p_value=p_value, wins=wins, losses=losses)


def _outcomes(cells: Sequence[Cell], most: int, results: pa.Table) -> dict[str, Outcomes]:
    """Sort results into one array a cell."""
    outcomes = {cell.id: np.full(most, _PENDING, np.int8) for cell in cells}
    codes = {str(Outcome.SOLVED): 1, str(Outcome.FAILED): _FAILED}
    columns = (results[name].to_pylist() for name in ("cell_id", "seed", "outcome"))
    for cell_id, seed, outcome in zip(*columns, strict=True):
        if cell_id in outcomes and seed < most:
            outcomes[cell_id][seed] = codes.get(outcome, 0)
    return outcomes


# --- by a metric --------------------------------------------------------------------------------------------------


def mean_sampling(until: Until) -> statistics.MeanPrecision:
    """Return the sampling plan that ends when a metric's mean is known precisely enough."""
    assert until.half_width is not None
    return statistics.MeanPrecision(until.half_width, until.step, until.max, CONFIDENCE)


def _counts_by_metric(plan: Plan, until: Until, results: pa.Table) -> dict[str, int]:
    numbers = _numbers(plan, until, results)
    if until.half_width is not None:
        return {cell.id: _seeds_for_mean(mean_sampling(until), numbers[cell.id]) for cell in plan.cells}
    counts: dict[str, int] = {}
    for one, other in pairs(plan.cells, str(until.different_from)):
        count = _seeds_to_rank(until, numbers[one.id], numbers[other.id])
        for cell in (one, other):
            counts[cell.id] = max(count, counts.get(cell.id, 0))
    return counts


def _verdicts_by_metric(plan: Plan, until: Until, results: pa.Table) -> list[Verdict]:
    numbers = _numbers(plan, until, results)
    if until.half_width is not None:
        sampling = mean_sampling(until)
        return [
            _judge_mean(sampling, until, cell, numbers[cell.id].first(len(plan.seeds(cell)))) for cell in plan.cells
        ]
    return [
        _judge_ranks(until, pair, *(numbers[cell.id] for cell in pair))
        for pair in pairs(plan.cells, str(until.different_from))
    ]


def _expected_by_metric(plan: Plan, until: Until, results: pa.Table, now: Mapping[str, int]) -> dict[str, int]:
    numbers = _numbers(plan, until, results)
    seeds = dict(now)
    if until.half_width is not None:
        sampling = mean_sampling(until)
        for cell in plan.cells:
            so_far = numbers[cell.id].first(now[cell.id])
            if not so_far.is_complete:
                count = until.max if so_far.without else sampling.expected(so_far.known)
                seeds[cell.id] = max(now[cell.id], count)
        return seeds
    for one, other in pairs(plan.cells, str(until.different_from)):
        count = min(now[one.id], now[other.id])
        used = numbers[one.id].first(count), numbers[other.id].first(count)
        if all(of.is_complete for of in used):
            continue
        _, wins, losses, ties = _rank(*used)
        count = _expected_to_differ(until, wins, losses, ties)
        for cell in (one, other):
            seeds[cell.id] = max(seeds[cell.id], count)
    return seeds


def _seeds_for_mean(sampling: statistics.MeanPrecision, numbers: Numbers) -> int:
    for n in sampling.looks:
        first = numbers.first(n)
        if not first.is_complete or (not first.without and sampling.is_narrow(first.known)):
            return n
    return sampling.most


def _seeds_to_rank(until: Until, one: Numbers, other: Numbers) -> int:
    for n in statistics.looks(until.step, until.max):
        first = one.first(n), other.first(n)
        if not all(of.is_complete for of in first) or _rank(*first)[0] < 1 - CONFIDENCE:
            return n
    return until.max


def _rank(one: Numbers, other: Numbers) -> tuple[float, int, int, int]:
    """Compare two cells seed by seed, and return the p-value of the sign test, wins, losses and ties."""
    both = (one.outcomes >= 0) & (other.outcomes >= 0)
    first, second = one.losses()[both], other.losses()[both]
    wins, losses = int(np.count_nonzero(first < second)), int(np.count_nonzero(first > second))
    return statistics.anytime_sign_test(wins, losses), wins, losses, int(both.sum()) - wins - losses


def _judge_mean(sampling: statistics.MeanPrecision, until: Until, cell: Cell, numbers: Numbers) -> Verdict:
    seeds = int(np.count_nonzero(numbers.outcomes >= 0))
    if numbers.without:  # there is no mean of what has no number
        return Verdict(cell, None, seeds, False, metric=str(until.metric), without=numbers.without)
    known = numbers.known
    return Verdict(
        cell,
        None,
        seeds,
        is_sure=numbers.is_complete and sampling.is_narrow(known),
        interval=sampling.interval(known),
        metric=str(until.metric),
        mean=float(known.mean()) if known.size else None,
    )


def _judge_ranks(until: Until, pair: Pair, one: Numbers, other: Numbers) -> Verdict:
    """Judge by the seeds of this pair alone, as `_judge_pair`."""
    count = _seeds_to_rank(until, one, other)
    one, other = one.first(count), other.first(count)
    p_value, wins, losses, ties = _rank(one, other)
    is_sure = one.is_complete and other.is_complete and p_value < 1 - CONFIDENCE
    seeds = wins + losses + ties
    return Verdict(*pair, seeds, is_sure, p_value=p_value, wins=wins, losses=losses, metric=str(until.metric))


def _numbers(plan: Plan, until: Until, results: pa.Table) -> dict[str, Numbers]:
    """Sort a metric's values into one array a cell."""
    name = str(until.metric)
    metric = plan.metrics[name]
    having = {Outcome.SOLVED} if metric.of == "solved" else {Outcome.SOLVED, Outcome.UNSOLVED, Outcome.FINISHED}
    values = {cell.id: np.full(until.max, np.nan) for cell in plan.cells}
    outcomes = {cell.id: np.full(until.max, _PENDING, np.int8) for cell in plan.cells}
    columns = (with_metrics(results, [name])[column].to_pylist() for column in ("cell_id", "seed", "outcome", name))
    for cell_id, seed, outcome, value in zip(*columns, strict=True):
        if cell_id not in values or seed >= until.max:
            continue
        if outcome == Outcome.FAILED:
            outcomes[cell_id][seed] = _FAILED
        elif outcome in having and value is not None and math.isfinite(value):
            values[cell_id][seed], outcomes[cell_id][seed] = value, 1
        else:
            outcomes[cell_id][seed] = 0
    sign = -1.0 if metric.higher_is_better else 1.0
    return {cell_id: Numbers(values[cell_id], outcomes[cell_id], sign) for cell_id in values}
