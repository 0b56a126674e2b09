"""The numbers by which claims are judged: one a seed of each cell or pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from study.plan.plan import Plan
from study.records import Cell, Outcome
from study.spec.claims import SOLVED_AT, SUCCESS_RATE, TIMES, Claim
from study.statistics import ClaimSample
from study.statistics.claims import Kind
from study.trials.table import Flags, Floats, Trials, TrialTable


class ClaimedTrials:
    """The trials of the cells that a study's claims are about, by seed.

    Args:
        plan: of the study.
        table: its trials.
    """

    def __init__(self, plan: Plan, table: TrialTable) -> None:
        self._plan, self._table, self._seeds = plan, table, plan.spec.all_seeds
        self._trials: dict[Cell, Trials] = {}

    def of(self, cell: Cell) -> Trials:
        """Return a cell's trials, in the order of the seeds."""
        if cell not in self._trials:
            self._trials[cell] = self._table.cell(cell.id).of_seeds(self._seeds)
        return self._trials[cell]

    def is_pending(self, cell: Cell) -> Flags:
        """Return which trials are missing; where references decide what success is, also those not judged yet."""
        trials, spec = self.of(cell), self._plan.spec
        is_pending = trials.is_pending
        if spec.has_success:
            is_pending = is_pending | trials.are(Outcome.FINISHED)
        return is_pending & ~self.is_unplanned(cell)

    def is_failed(self, cell: Cell) -> Flags:
        """Return which trials failed by an error, so that their numbers are unknown."""
        return self.of(cell).is_failed & ~self.is_unplanned(cell)

    def is_unplanned(self, cell: Cell) -> Flags:
        """Return which seeds another rule than claims didn't ask for."""
        is_of_claims = self._plan.spec.seed_design.rule in ("", "claims")
        planned = len(self._seeds) if is_of_claims else len(self._plan.seeds(cell))
        return np.arange(self.of(cell).rows.size) >= planned

    def ended(self, cell: Cell, seeds: int) -> tuple[int, float]:
        """Return how many of the first seeds' trials have ended, and how long they were trained."""
        trials = self.of(cell).first(seeds)
        has_ended = ~self.is_pending(cell)[:seeds] & ~self.is_unplanned(cell)[:seeds] & ~trials.is_failed
        return int(np.count_nonzero(has_ended)), float(np.nansum(trials.training_s[has_ended]))


def claim_samples(claim: Claim, trials: ClaimedTrials) -> list[ClaimSample]:
    """Return the numbers of each cell or pair of a claim, of which it says that their mean is above the bound.

    - success_rate: 1 for a solved trial, 0 for another; of a pair, the difference.
    - solved_at: iterations, of the solved trials alone.
    - time_to_success: iterations, all of the cell's where a trial wasn't solved; of a pair, the difference.
    - a metric with two limits, but without a resolution: its value, the worse limit where a trial diverged; of a pair,
      the difference.
    - any other metric: 1 where the value, or the difference, is beyond the bound, 0 where not; claimed of more than
      half of the seeds, and so of the median. A value that there isn't is worse than any.

    Of a claim that something is below, numbers and bounds are mirrored. The number of a trial that failed by an error
    is unknown: no claim is shown, or refuted, because of it.
    """
    return [_sample(claim, pair, trials) for pair in claim.compared]


def _sample(claim: Claim, pair: Sequence[Cell], claimed: ClaimedTrials) -> ClaimSample:
    trials = [claimed.of(cell) for cell in pair]
    is_pending = np.any([claimed.is_pending(cell) for cell in pair], axis=0)
    is_planned = ~is_pending & ~np.any([claimed.is_unplanned(cell) for cell in pair], axis=0)
    is_failed = is_planned & np.any([claimed.is_failed(cell) for cell in pair], axis=0)
    is_counted = is_planned & ~is_failed
    failed = is_failed if is_failed.any() else None
    complete = int(is_pending.argmax()) if is_pending.any() else None
    if claim.limits is None:
        return ClaimSample(_beyond(claim, trials, is_counted), 0.5, kind="rate", complete=complete, failed=failed)
    low, high = claim.limits
    values = [_values(claim, of_cell, low, high) for of_cell in trials]
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
    return ClaimSample(np.where(is_counted, numbers, np.nan), bound, low, high, kind, complete, failed)


def _values(claim: Claim, trials: Trials, low: float, high: float) -> Floats:
    """Return a cell's numbers within their limits."""
    if claim.quantity == SUCCESS_RATE:
        return trials.is_solved.astype(np.float64)
    if claim.quantity in TIMES:
        unsolved = np.nan if claim.quantity == SOLVED_AT else high
        solved_at = np.where(np.isnan(trials.solved_at), 0.0, trials.solved_at)
        return np.where(trials.is_solved, np.minimum(solved_at, high), unsolved)
    assert claim.metric is not None
    values = trials.values(claim.quantity)
    if claim.metric.of == "solved":
        return np.where(trials.is_solved, np.clip(values, low, high), np.nan)
    worst = low if claim.metric.higher_is_better else high
    return np.where(np.isnan(values), worst, np.clip(values, low, high))


def _beyond(claim: Claim, pair: Sequence[Trials], is_counted: Flags) -> Floats:
    """Return 1 where a metric without limits, or its difference, is beyond the bound, and 0 where it isn't."""
    assert claim.metric is not None
    worst = -np.inf if claim.metric.higher_is_better else np.inf
    values = [trials.values(claim.quantity) for trials in pair]
    if claim.metric.of == "solved":
        is_counted = is_counted & pair[0].is_solved & ~np.isnan(values[0])
    values = [np.where(np.isnan(numbers), worst, numbers) for numbers in values]
    with np.errstate(invalid="ignore"):  # neither has a value: neither is better
        numbers = values[0] if len(pair) == 1 else values[0] - values[1]
    if len(pair) == 1:
        is_beyond = numbers < claim.bound if claim.is_below else numbers > claim.bound
    else:
        is_beyond = -numbers > claim.bound if claim.is_below else numbers > claim.bound
    return np.where(is_counted, is_beyond, np.nan)
