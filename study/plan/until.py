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


@dataclass(frozen=True)
class Verdict:
    """What the results say about a cell, or about a pair of cells.

    Args:
        cell: the cell, or the first of the pair.
        versus: the cell that it is compared with; None where its rate alone is estimated.
        seeds: the number of seeds that have a result.
        is_sure: whether they are enough.
        interval: of the cell's success rate; None for a pair.
        p_value: of the sign test; None where the rate alone is estimated.
        wins: for a pair: the number of seeds that only this cell solved.
        losses: for a pair: the number of seeds that only the other cell solved.
    """

    cell: Cell
    versus: Cell | None
    seeds: int
    is_sure: bool
    interval: Interval | None = None
    p_value: float | None = None
    wins: int = 0
    losses: int = 0


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
    outcomes = _outcomes(plan.cells, until.max, results)
    if until.half_width is not None:
        return [_judge_cell(sampling(until), cell, outcomes[cell.id][: len(plan.seeds(cell))]) for cell in plan.cells]
    return [_judge_pair(until, pair, outcomes) for pair in pairs(plan.cells, str(until.different_from))]


def expected(plan: Plan, results: pa.Table) -> dict[str, int]:
    """Estimate how many seeds each cell will have needed, by its id.

    The estimate for a cell is based on its rate so far, with half a success and half a failure added; without results,
    all rates are equally likely. For two cells that are compared, it is based on how often only one of them solved a
    seed: paths are drawn at random with these rates.

    Args:
        plan: of a study with `until`.
        results: as for `extended`.
    """
    until = plan.spec.until
    assert until is not None
    outcomes = _outcomes(plan.cells, until.max, results)
    current = extended(plan, results)
    now = {cell.id: len(current.seeds(cell)) for cell in plan.cells}
    if until.half_width is not None:
        fixed_width = sampling(until)
        return {c.id: _expected_for_width(fixed_width, outcomes[c.id], now[c.id]) for c in plan.cells}
    seeds = dict(now)
    for one, other in pairs(plan.cells, str(until.different_from)):
        used = [outcomes[cell.id][: min(now[one.id], now[other.id])] for cell in (one, other)]
        if _PENDING not in used[0] and _PENDING not in used[1]:
            continue  # they differ, or there are no more seeds to add
        count = _expected_to_differ(until, outcomes[one.id], outcomes[other.id])
        for cell in (one, other):
            seeds[cell.id] = max(seeds[cell.id], count)
    return seeds


def _expected_for_width(sampling: statistics.FixedWidth, outcomes: Outcomes, now: int) -> int:
    k, n = _counts(outcomes[:now])
    if n and (_PENDING not in outcomes[:now]):
        return now
    rate = (k + 0.5) / (n + 1) if n else None
    return max(now, math.ceil(sampling.expected(rate)))


def _expected_to_differ(until: Until, one: Outcomes, other: Outcomes) -> int:
    """Draw paths of wins and losses, and return the mean number of seeds after which the two cells differ."""
    both = (one >= 0) & (other >= 0)
    _, wins, losses = _differ(one[both], other[both])
    rng = np.random.default_rng(0)
    chances = rng.dirichlet([wins + 0.5, losses + 0.5, both.sum() - wins - losses + 0.5], size=_PATHS)
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
    if until.half_width is not None:
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
