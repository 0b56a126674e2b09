"""Seeds until sure: which cells have enough seeds, and how many the others get next.

What is asked for next depends on the results of the seeds asked for so far, and on nothing else: whoever looks, however
the work was interrupted, comes to the same plan.
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
"""A cell's seeds in order: 1 solved, 0 not, or one of the above."""


@dataclass(frozen=True)
class Verdict:
    """What is known of a cell, or of a pair of cells.

    Args:
        cell: which.
        versus: the cell to be told apart from; None where the rate itself is wanted.
        seeds: that have a result.
        is_sure: whether they are enough.
        interval: of the cell's success rate; None of a pair.
        p_value: of the sign test; None where the rate itself is wanted.
        wins: seeds that the cell alone solved, of a pair.
        losses: seeds that the other alone solved.
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
    """Give each cell the seeds that it needs by what is known so far.

    Args:
        plan: of a study; one whose file says how many seeds there are stays as it is.
        results: columns of `study.arrow.RESULT_SCHEMA`, one row a trial; of other trials, too.

    Returns:
        The same cells. Where a result is pending, those seeds that came before are kept; a cell with seeds enough gets
        no more.

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
    """Say of each cell, or of each pair of cells, whether the seeds that have a result are enough.

    Args:
        plan: of a study with `until`, as `grown` gives it.
        results: as for `grown`.
    """
    until = plan.spec.until
    if until is None:
        return []
    outcomes = _outcomes(plan.cells, until.max, results)
    if until.half_width is not None:
        return [
            _of_cell(sampling(until), cell, outcomes[cell.id][: len(plan.seeds(cell))]) for cell in plan.cells
        ]
    return [_of_pair(until, pair, outcomes) for pair in pairs(plan.cells, str(until.different_from))]


def expected(plan: Plan, results: pa.Table) -> dict[str, int]:
    """Estimate how many seeds each cell will have needed, by its id.

    By its rate so far, with half a success and half a failure added; without results, over all rates alike. Two cells
    to be told apart: by how often either alone was solved, from paths that are drawn.

    Args:
        plan: of a study with `until`.
        results: as for `grown`.
    """
    until = plan.spec.until
    assert until is not None
    outcomes = _outcomes(plan.cells, until.max, results)
    asked = extended(plan, results)
    now = {cell.id: len(asked.seeds(cell)) for cell in plan.cells}
    if until.half_width is not None:
        wanted = sampling(until)
        return {c.id: _expected_for_width(wanted, outcomes[c.id], now[c.id]) for c in plan.cells}
    found = dict(now)
    for one, other in pairs(plan.cells, str(until.different_from)):
        looked = [outcomes[cell.id][: min(now[one.id], now[other.id])] for cell in (one, other)]
        if _PENDING not in looked[0] and _PENDING not in looked[1]:
            continue  # told apart, or given up
        count = _expected_to_differ(until, outcomes[one.id], outcomes[other.id])
        for cell in (one, other):
            found[cell.id] = max(found[cell.id], count)
    return found


def _expected_for_width(sampling: statistics.FixedWidth, outcomes: Outcomes, now: int) -> int:
    k, n = _counted(outcomes[:now])
    if n and (_PENDING not in outcomes[:now]):
        return now
    rate = (k + 0.5) / (n + 1) if n else None
    return max(now, math.ceil(sampling.expected(rate)))


def _expected_to_differ(until: Until, one: Outcomes, other: Outcomes) -> int:
    """Draw paths of wins and losses, and take the mean of when they are told apart."""
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
    """Say in a sentence how far a study with `until` is; arguments are as for `verdicts`."""
    found = verdicts(plan, results)
    what = "cells" if plan.spec.until and plan.spec.until.half_width is not None else "pairs of cells"
    sure = sum(verdict.is_sure for verdict in found)
    outcomes = _outcomes(plan.cells, plan.spec.most_seeds, results)
    asked = sum(int(np.count_nonzero(outcomes[c.id][: len(plan.seeds(c))] == _PENDING)) for c in plan.cells)
    return f"{sure} of {len(found)} {what} are sure" + (f"; next {asked:,} trials" if asked > 0 else "")


def sampling(until: Until) -> statistics.FixedWidth:
    """Give the sampling that ends when a rate is known well enough."""
    assert until.half_width is not None
    return statistics.FixedWidth(until.half_width, until.step, until.max, CONFIDENCE)


def rate_intervals(until: Until) -> RateIntervals:
    """Give the intervals of success rates that allow for the looks."""
    if until.half_width is not None:
        return RateIntervals("Clopper-Pearson (calibrated)", sampling(until).intervals)
    return RateIntervals("anytime-valid", _anytimes)


def _anytimes(solved: npt.ArrayLike, finished: npt.ArrayLike) -> Floats:
    counted = zip(np.asarray(solved).tolist(), np.asarray(finished).tolist(), strict=True)
    return np.array([statistics.anytime(k, n, CONFIDENCE) for k, n in counted]).reshape(-1, 2)


def _seeds_for_width(sampling: statistics.FixedWidth, outcomes: Outcomes) -> int:
    for n in sampling.looks:
        looked = outcomes[:n]
        if _PENDING in looked or sampling.is_narrow(*_counted(looked)):
            return n
    return sampling.most


def _seeds_to_differ(
    until: Until, compared: Sequence[Pair], outcomes: Mapping[str, Outcomes]
) -> dict[str, int]:
    """Give both cells of a pair the same seeds, and one of several pairs those of the pair that needs most."""
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


def _counted(outcomes: Outcomes) -> tuple[int, int]:
    return int(np.count_nonzero(outcomes == 1)), int(np.count_nonzero(outcomes >= 0))


def _of_cell(sampling: statistics.FixedWidth, cell: Cell, outcomes: Outcomes) -> Verdict:
    k, n = _counted(outcomes)
    # Of a batch that is half done nothing is decided: the intervals allow for looks between batches only.
    is_sure = _PENDING not in outcomes and sampling.is_narrow(k, n)
    return Verdict(cell, None, n, is_sure, interval=sampling.interval(k, n))


def _of_pair(until: Until, pair: Pair, outcomes: Mapping[str, Outcomes]) -> Verdict:
    """Look at the seeds of the pair alone: where a cell is in several, another of them may have asked for more."""
    count = _seeds_of_pair(until, *(outcomes[cell.id] for cell in pair))
    one, other = (outcomes[cell.id][:count] for cell in pair)
    p_value, wins, losses = _differ(one, other)
    both = int(np.count_nonzero((one >= 0) & (other >= 0)))
    is_sure = _PENDING not in one and _PENDING not in other and p_value < 1 - CONFIDENCE
    return Verdict(*pair, both, is_sure, p_value=p_value, wins=wins, losses=losses)


def _outcomes(cells: Sequence[Cell], most: int, results: pa.Table) -> dict[str, Outcomes]:
    """Sort results into an array a cell."""
    found = {cell.id: np.full(most, _PENDING, np.int8) for cell in cells}
    codes = {str(Outcome.SOLVED): 1, str(Outcome.FAILED): _FAILED}
    columns = (results[name].to_pylist() for name in ("cell_id", "seed", "outcome"))
    for cell_id, seed, outcome in zip(*columns, strict=True):
        if cell_id in found and seed < most:
            found[cell_id][seed] = codes.get(outcome, 0)
    return found
