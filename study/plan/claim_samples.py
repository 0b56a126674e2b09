"""Samples for the tests of claims: one number per seed of each cell or pair of cells."""

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
    """Trials of claimed cells, in the order of the study's seeds.

    Args:
        plan: the study's plan.
        table: its trials.
    """

    def __init__(self, plan: Plan, table: TrialTable) -> None:
        self._plan, self._table, self._seeds = plan, table, plan.spec.all_seeds
        self._trials: dict[Cell, Trials] = {}

    def trials_of(self, cell: Cell) -> Trials:
        """Return a cell's trial of each of the study's seeds, in their order: a pending one without a result."""
        if cell not in self._trials:
            self._trials[cell] = self._table.cell(cell.id).of_seeds(self._seeds)
        return self._trials[cell]

    def is_pending(self, cell: Cell) -> Flags:
        """Return True for each planned trial that is missing, or that references haven't judged yet."""
        trials, spec = self.trials_of(cell), self._plan.spec
        is_pending = trials.is_pending
        if spec.has_success:
            is_pending = is_pending | trials.are(Outcome.FINISHED)
        return is_pending & ~self.is_unplanned(cell)

    def is_failed(self, cell: Cell) -> Flags:
        """Return True for each planned trial that failed by an error, so that its number is unknown."""
        return self.trials_of(cell).is_failed & ~self.is_unplanned(cell)

    def is_unplanned(self, cell: Cell) -> Flags:
        """Return True for each seed that a rule other than ``claims`` hasn't planned; all False without such a rule."""
        is_claims_rule = self._plan.spec.seed_design.rule in ("", "claims")
        planned = len(self._seeds) if is_claims_rule else len(self._plan.seeds(cell))
        return np.arange(self.trials_of(cell).rows.size) >= planned

    def ended(self, cell: Cell, seeds: int) -> tuple[int, float]:
        """Return the number of ended trials, without failed ones, of the first seeds, and their seconds of training.

        Unknown seconds count as 0.
        """
        trials = self.trials_of(cell).first(seeds)
        has_ended = ~self.is_pending(cell)[:seeds] & ~self.is_unplanned(cell)[:seeds] & ~trials.is_failed
        return int(np.count_nonzero(has_ended)), float(np.nansum(trials.training_s[has_ended]))


def claim_samples(claim: Claim, trials: ClaimedTrials) -> list[ClaimSample]:
    """Return the sample of each cell or pair of a claim; the claim is that its mean is above the bound.

    | quantity | number of a seed |
    | --- | --- |
    | success_rate | 1 if solved, else 0 |
    | solved_at | the iteration, at most the claim's limit, of solved trials only |
    | time_to_success | the iteration, at most the claim's limit; that limit if unsolved |
    | metric with two different limits, without a resolution | its value, clipped to them; the worse limit without one |
    | any other metric | 1 if its value is beyond the bound, else 0; the bound of the mean is 1/2 |

    The limit of a time is the smallest number of iterations of the claim's cells (`Claim.limits`). Only solved trials
    with a value have a number for a metric of solved trials.

    For pairs, the number is the difference of the two cells' numbers; for the last kind of metric, 1 if the difference
    is beyond the bound. There, a missing value is worse than any other, and the claim is one about the median.

    Claims of the relation ``below`` have numbers mirrored and, except for pairs, the bound, too; those of the last kind
    of metric have 1 if the value is below the bound. The number of a trial that failed by an error is unknown, so it
    neither shows nor refutes a claim.
    """
    return [_sample(claim, pair, trials) for pair in claim.compared]


def _sample(claim: Claim, pair: Sequence[Cell], claimed: ClaimedTrials) -> ClaimSample:
    trials = [claimed.trials_of(cell) for cell in pair]
    is_pending = np.any([claimed.is_pending(cell) for cell in pair], axis=0)
    is_planned = ~is_pending & ~np.any([claimed.is_unplanned(cell) for cell in pair], axis=0)
    is_failed = is_planned & np.any([claimed.is_failed(cell) for cell in pair], axis=0)
    is_counted = is_planned & ~is_failed
    failed = is_failed if is_failed.any() else None
    complete = int(is_pending.argmax()) if is_pending.any() else None
    if claim.limits is None:
        return ClaimSample(_beyond(claim, trials, is_counted), 0.5, kind="rate", complete=complete, failed=failed)
    low, high = claim.limits
    values = [_values(claim, cell_trials, low, high) for cell_trials in trials]
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
    """Return the numbers of a cell's trials by the table of `claim_samples`, within the limits; NaN without one."""
    if claim.quantity == SUCCESS_RATE:
        return trials.is_solved.astype(np.float64)
    if claim.quantity in TIMES:
        unsolved = np.nan if claim.quantity == SOLVED_AT else high
        return np.where(trials.is_solved, np.minimum(trials.solved_at, high), unsolved)
    assert claim.metric is not None
    values = trials.values(claim.quantity)
    if claim.metric.of == "solved":
        return np.where(trials.is_solved, np.clip(values, low, high), np.nan)
    worst = low if claim.metric.higher_is_better else high
    return np.where(np.isnan(values), worst, np.clip(values, low, high))


def _beyond(claim: Claim, pair: Sequence[Trials], is_counted: Flags) -> Floats:
    """Return 1 where an unlimited metric, or its difference, is beyond the bound, else 0; NaN if not counted.

    A missing value counts as the worst; of a metric of solved trials, only solved ones with a value are counted.
    """
    assert claim.metric is not None
    worst = -np.inf if claim.metric.higher_is_better else np.inf
    values = [trials.values(claim.quantity) for trials in pair]
    if claim.metric.of == "solved":
        is_counted = is_counted & pair[0].is_solved & ~np.isnan(values[0])
    values = [np.where(np.isnan(numbers), worst, numbers) for numbers in values]
    with np.errstate(invalid="ignore"):  # without values, neither is better
        numbers = values[0] if len(pair) == 1 else values[0] - values[1]
    if len(pair) == 1:
        is_beyond = numbers < claim.bound if claim.is_below else numbers > claim.bound
    else:
        is_beyond = -numbers > claim.bound if claim.is_below else numbers > claim.bound
    return np.where(is_counted, is_beyond, np.nan)
