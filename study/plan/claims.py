"""Verdicts on claims by the results so far, and seeds until claims are decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from study.plan.claim_samples import ClaimedTrials, claim_samples
from study.plan.plan import ClaimLook, Plan
from study.plan.verdict import CONFIDENCE, Verdict
from study.records import Cell, Interval
from study.spec.claims import Claim, claims_of
from study.spec.seeds import Until
from study.statistics import ClaimSample, ClaimTest, Course, looks
from study.statistics.claims import EarlierLook, State
from study.trials.table import TrialTable


@dataclass(frozen=True)
class ClaimedCell:
    """Results for one cell, or pair of cells, of a claim.

    Args:
        cell: the cell.
        versus: the cell that it is compared with; None if it is compared with a number.
        seeds: the number of seeds that count.
        failed: the number of seeds with a trial that failed by an error; they count against both verdicts.
        estimate: the mean, or mean difference; for a metric without limits, the share of seeds beyond the bound.
        interval: the estimate's anytime-valid 95% interval; None without seeds.
        evidence: winnings of bets on the claim, in multiples of the stake.
        against: winnings of bets against the claim, in multiples of the stake.
        p_values: p-values of the exact test at the last look, for the claim and against it; None before the last look,
            or without an exact test.
        holds: whether the claim is shown for this cell.
    """

    cell: Cell
    versus: Cell | None
    seeds: int
    failed: int
    estimate: float | None
    interval: Interval | None
    evidence: float
    against: float
    p_values: tuple[float, float] | None
    holds: bool


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim's verdict, with its evidence and cost.

    Args:
        claim: the claim.
        state: ``shown``, ``refuted``, ``undecided`` after all seeds, or ``open`` while trials are missing.
        cells: the results of its cells.
        trials: the number of trials used.
        training_s: their seconds of training.
        test: the test of the claim.
        error: upper bound of the probability of a false ``shown``, and of a false ``refuted``.
    """

    claim: Claim
    state: State
    cells: tuple[ClaimedCell, ...]
    trials: int
    training_s: float
    test: ClaimTest
    error: float

    @property
    def failed(self) -> int:
        """The number of seeds with a trial that failed by an error, summed over cells."""
        return sum(cell.failed for cell in self.cells)

    @property
    def looked_before(self) -> list[int]:
        """The numbers of seeds at earlier looks but the last; empty unless they raised `error` above the test's."""
        if self.error <= self.test.error:
            return []
        return sorted(look.seeds for look in self.test.earlier if not self.test.is_last(look))


def claim_verdicts(plan: Plan, table: TrialTable) -> list[ClaimVerdict]:
    """Judge a study's claims, in the file's order; return an empty list without claims.

    | seeds | claims are judged |
    | --- | --- |
    | added until claims are decided | after each batch, and at the last look by an exact test |
    | a fixed number | once all trials have ended |
    | added by another rule | by anytime-valid tests, once all planned trials have ended |

    For each look before the file asked for more or fewer seeds (`Plan.earlier_looks`), the exact test gets half of its
    previous error, unless such a look had the current seeds.

    Args:
        plan: the study's plan, from `study.plan.until.extended`.
        table: trials by cells; those of other cells are ignored.

    Raises:
        InputError: if a package's vocabulary can't be imported.
    """
    return _Judgement(plan, table).verdicts


def final_looks(plan: Plan, table: TrialTable) -> tuple[ClaimLook, ...]:
    """Return the final look at each claim whose verdict took all planned seeds; other claims have none.

    Args:
        plan: the study's plan, from `study.plan.until.extended`.
        table: its trials.

    Raises:
        InputError: if a package's vocabulary can't be imported.
    """
    return _Judgement(plan, table).final_looks


class DecidedClaims:
    """Rule that adds seeds to the cells of each claim until it is decided; other cells get the first batch.

    Args:
        plan: the study's plan.
        until: the rule's settings.
        table: the trials so far.
    """

    phrase = "claims are decided"

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        self._plan, self._until, self._judgement = plan, until, _Judgement(plan, table)

    def counts(self) -> Mapping[str, int]:
        """Return the number of seeds of each cell, by its id: the maximum over claims, and at least the first batch."""
        counts = {cell.id: self._until.step for cell in self._plan.cells}
        for claim, course in self._judgement.courses:
            for pair, seeds in zip(claim.compared, course.seeds, strict=True):
                for cell in pair:
                    counts[cell.id] = max(counts[cell.id], seeds)
        return counts

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Return an empty list: this rule judges claims, not cells."""
        return []

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return the number of claims that are shown or refuted, and that of all claims."""
        states = [course.state for _, course in self._judgement.courses]
        return sum(state in ("shown", "refuted") for state in states), len(states)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate the final number of seeds of each cell, by its id, from the current numbers."""
        seeds = dict(now)
        for claim, course in self._judgement.courses:
            samples = self._judgement.samples(claim)
            for place, pair in enumerate(claim.compared if course.state == "open" else ()):
                if not course.hold[place]:
                    count = self._judgement.tests[claim.id].expected(samples[place], len(samples))
                    for cell in pair:
                        seeds[cell.id] = max(seeds[cell.id], count)
        return seeds


class _Judgement:
    """The claims of a study, each tested with the results so far."""

    def __init__(self, plan: Plan, table: TrialTable) -> None:
        claims = claims_of(plan.spec, plan.cells, plan.labels)
        self._plan = plan
        self.tests = {claim.id: _test(plan, claim, len(claims)) for claim in claims}
        self._trials = ClaimedTrials(plan, table)
        self.courses: list[tuple[Claim, Course]] = [
            (claim, self.tests[claim.id].follow(self.samples(claim))) for claim in claims
        ]

    @property
    def final_looks(self) -> tuple[ClaimLook, ...]:
        final = []
        for claim, course in self.courses:
            test = self.tests[claim.id]
            if course.state != "open" and max(course.seeds) == test.looks[-1]:
                bets, exact = test.shares(self.samples(claim)[0].kind)
                final.append(ClaimLook(claim.id, self._plan.spec.all_seeds, exact, bets))
        return tuple(final)

    def samples(self, claim: Claim) -> list[ClaimSample]:
        return claim_samples(claim, self._trials)

    @property
    def verdicts(self) -> list[ClaimVerdict]:
        return [self._verdict(claim, course) for claim, course in self.courses]

    def _verdict(self, claim: Claim, course: Course) -> ClaimVerdict:
        samples = self.samples(claim)
        cells = tuple(_claimed_cell(claim, place, samples[place], course) for place in range(len(samples)))
        used: dict[Cell, int] = {}
        for pair, seeds in zip(claim.compared, course.seeds, strict=True):
            for cell in pair:
                used[cell] = max(used.get(cell, 0), seeds)
        ended = [self._trials.ended(cell, seeds) for cell, seeds in used.items()]
        test = self.tests[claim.id]
        trials, training_s = sum(n for n, _ in ended), sum(s for _, s in ended)
        error = test.total_error(samples[0].kind)
        return ClaimVerdict(claim, course.state, cells, trials, training_s, test, error)


def _test(plan: Plan, claim: Claim, claims: int) -> ClaimTest:
    """Return the test of a claim; all claims of a study share the error."""
    error, seeds = (1 - CONFIDENCE) / claims, plan.spec.all_seeds
    earlier = tuple(
        EarlierLook(len(look.seeds), look.exact, look.bets, tuple(look.seeds) == tuple(seeds[: len(look.seeds)]))
        for look in plan.earlier_looks
        if look.claim == claim.id
    )
    until = plan.spec.until
    if until is None or until.rule != "claims":
        return ClaimTest((len(seeds),), error, is_planned=until is None, earlier=earlier)
    repeated = {look.seeds for look in earlier if look.is_of_first and look.seeds < until.max}
    return ClaimTest(tuple(sorted({*looks(until.step, until.max), *repeated})), error, earlier=earlier)


def _claimed_cell(claim: Claim, place: int, sample: ClaimSample, course: Course) -> ClaimedCell:
    cell, *others = claim.compared[place]
    used = sample.first(min(course.seeds[place], sample.values.size if sample.complete is None else sample.complete))
    mean, interval = used.mean, used.interval
    if claim.is_below and not claim.is_of_share and mean is not None:
        middle = sample.low + sample.high
        mean, interval = middle - mean, (middle - interval[1], middle - interval[0])
    evidence = course.evidence[place]
    return ClaimedCell(
        cell,
        others[0] if others else None,
        seeds=used.known.size,
        failed=used.failures,
        estimate=mean,
        interval=None if mean is None else interval,
        evidence=evidence.above,
        against=evidence.below,
        p_values=course.p_values[place],
        holds=course.hold[place],
    )
