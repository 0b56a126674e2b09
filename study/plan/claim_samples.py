"""The numbers by which claims are judged: one a seed of each cell or pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import with_metrics
from study.plan.plan import Plan
from study.records import Outcome
from study.spec.claims import SOLVED_AT, SUCCESS_RATE, TIMES, Claim
from study.statistics import ClaimSample
from study.statistics.checks import Floats
from study.statistics.claims import Kind

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CellTrials:
    """The trials of a cell by seed, in order; NaN where there is no number.

    Args:
        is_pending: whether the trial has no result.
        is_failed: whether it failed by an error, or isn't planned, so that it counts for nothing.
        solved_at: iterations; NaN where the trial wasn't solved.
        training_s: seconds of training; 0 where there is no result.
        metrics: values by name.
    """

    is_pending: Flags
    is_failed: Flags
    solved_at: Floats
    training_s: Floats
    metrics: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def is_solved(self) -> Flags:
        """Whether the trial was solved."""
        return ~np.isnan(self.solved_at)


def trials_of(plan: Plan, claims: Sequence[Claim], results: pa.Table, most: int) -> dict[str, CellTrials]:
    """Sort the results of all cells that claims are about by seed, by the cell's id.

    Args:
        plan: of the study.
        claims: its claims.
        results: columns of `study.arrow.RESULT_SCHEMA`, one row a trial.
        most: how many seeds each cell has at most. Where the file lists seeds, they are in the file's order.
    """
    until, cells = (
        plan.spec.until,
        list(dict.fromkeys(cell for claim in claims for pair in claim.compared for cell in pair)),
    )
    place_of = {seed: place for place, seed in enumerate(plan.spec.first_seeds if until is None else range(most))}
    names = list(dict.fromkeys(claim.quantity for claim in claims if claim.metric is not None))
    trials = {cell.id: _blank(most, names) for cell in cells}
    if until is not None and until.claims is None:
        for cell in cells:
            trials[cell.id].is_failed[len(plan.seeds(cell)) :] = True
            trials[cell.id].is_pending[len(plan.seeds(cell)) :] = False
    rows = results.filter(pc.is_in(results["cell_id"], value_set=pa.array([cell.id for cell in cells], pa.string())))
    columns = ("cell_id", "seed", "outcome", "solved_at_iteration", "training_s", *names)
    table = with_metrics(rows, names)
    for cell_id, seed, outcome, solved_at, training_s, *values in zip(
        *(table[name].to_pylist() for name in columns), strict=True
    ):
        place = place_of.get(seed)
        if place is None or not trials[cell_id].is_pending[place]:
            continue
        if outcome == Outcome.FINISHED and plan.spec.has_success:
            continue  # what solves it isn't known before the other trials have ended
        of = trials[cell_id]
        of.is_pending[place], of.is_failed[place] = False, outcome == Outcome.FAILED
        of.training_s[place] = training_s or 0.0
        if outcome == Outcome.SOLVED:
            of.solved_at[place] = 0 if solved_at is None else solved_at
        for name, value in zip(names, values, strict=True):
            if outcome not in (Outcome.FAILED, Outcome.DIVERGED) and value is not None and np.isfinite(value):
                of.metrics[name][place] = value
    return trials


def _blank(most: int, names: Sequence[str]) -> CellTrials:
    return CellTrials(
        np.ones(most, bool),
        np.zeros(most, bool),
        np.full(most, np.nan),
        np.zeros(most),
        {name: np.full(most, np.nan) for name in names},
    )


def claim_samples(claim: Claim, trials: Mapping[str, CellTrials]) -> list[ClaimSample]:
    """Return the numbers of each cell or pair of a claim, of which it says that their mean is above the bound.

    - success_rate: 1 for a solved trial, 0 for another; of a pair, the difference.
    - solved_at: iterations, of the solved trials alone.
    - time_to_success: iterations, all of the cell's where a trial wasn't solved; of a pair, the difference.
    - a metric with two limits, but without a resolution: its value, the worse limit where a trial diverged; of a pair,
      the difference.
    - any other metric: 1 where the value, or the difference, is beyond the bound, 0 where not; claimed of more than
      half of the seeds, and so of the median. A value that there isn't is worse than any.

    Of a claim that something is below, numbers and bounds are mirrored.
    """
    return [_sample(claim, [trials[cell.id] for cell in pair]) for pair in claim.compared]


def _sample(claim: Claim, pair: Sequence[CellTrials]) -> ClaimSample:
    is_pending = np.any([of.is_pending for of in pair], axis=0)
    is_counted = ~is_pending & ~np.any([of.is_failed for of in pair], axis=0)
    complete = int(is_pending.argmax()) if is_pending.any() else None
    if claim.limits is None:
        return ClaimSample(_beyond(claim, pair, is_counted), 0.5, kind="rate", complete=complete)
    low, high = claim.limits
    values = [_values(claim, of, low, high) for of in pair]
    numbers, bound = values[0], claim.bound
    if len(pair) > 1:
        numbers, low, high = values[0] - values[1], low - high, high - low
    elif claim.is_below:
        bound = low + high - bound
    if claim.is_below:
        numbers = low + high - numbers
    kind: Kind = "mean"
    if claim.quantity == SUCCESS_RATE:
        kind = "rate" if len(pair) == 1 else "difference"
    return ClaimSample(np.where(is_counted, numbers, np.nan), bound, low, high, kind, complete)


def _values(claim: Claim, of: CellTrials, low: float, high: float) -> Floats:
    """Return a cell's numbers within their limits."""
    if claim.quantity == SUCCESS_RATE:
        return of.is_solved.astype(np.float64)
    if claim.quantity in TIMES:
        unsolved = np.nan if claim.quantity == SOLVED_AT else high
        return np.where(of.is_solved, np.minimum(of.solved_at, high), unsolved)
    assert claim.metric is not None
    values = of.metrics[claim.quantity]
    if claim.metric.of == "solved":
        return np.where(of.is_solved, np.clip(values, low, high), np.nan)
    worst = low if claim.metric.higher_is_better else high
    return np.where(np.isnan(values), worst, np.clip(values, low, high))


def _beyond(claim: Claim, pair: Sequence[CellTrials], is_counted: npt.NDArray[np.bool_]) -> Floats:
    """Return 1 where a metric without limits, or its difference, is beyond the bound, and 0 where it isn't."""
    assert claim.metric is not None
    worst = -np.inf if claim.metric.higher_is_better else np.inf
    values = [of.metrics[claim.quantity] for of in pair]
    if claim.metric.of == "solved":
        is_counted = is_counted & pair[0].is_solved & ~np.isnan(values[0])
    values = [np.where(np.isnan(of), worst, of) for of in values]
    with np.errstate(invalid="ignore"):  # neither has a value: neither is better
        numbers = values[0] if len(pair) == 1 else values[0] - values[1]
    if len(pair) == 1:
        is_beyond = numbers < claim.bound if claim.is_below else numbers > claim.bound
    else:
        is_beyond = -numbers > claim.bound if claim.is_below else numbers > claim.bound
    return np.where(is_counted, is_beyond, np.nan)
