"""Claims judged by the results so far, and seeds until they are decided."""

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
    """What the results say about one cell, or pair of cells, of a claim.

    Args:
        cell: the cell.
        versus: that which it is compared with; None for a number.
        seeds: how many count.
        failed: how many have a trial that failed by an error: they count against what is to be shown or refuted.
        estimate: the mean, or mean difference; of a metric without limits, the share of seeds beyond the bound.
        interval: of it, 95%, valid at any time; None without seeds.
        evidence: for the claim: what bets on it have won.
        against: what bets against it have won.
        p_values: of the exact test at the last look, for the claim and against it; None before, and without such a
            test.
        holds: whether it is shown of this cell.
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
    """A claim's verdict, with its evidence and what it cost.

    Args:
        claim: the claim.
        state: ``shown``, ``refuted``, ``undecided`` out of seeds, or ``open`` while trials are missing.
        cells: its cells.
        trials: how many trials it was judged by.
        training_s: seconds that they were trained for.
        test: the rule by which it is judged.
        error: the most that the probability of calling it shown wrongly is, and that of calling it refuted wrongly.
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
        """The number of seeds of which a trial failed by an error, over all cells."""
        return sum(cell.failed for cell in self.cells)

    @property
    def looked_before(self) -> list[int]:
        """By how many seeds the claim was judged before, if that takes some of its error."""
        if self.error <= self.test.error:
            return []
        return sorted(look.seeds for look in self.test.earlier if not self.test.is_last(look))


def claim_verdicts(plan: Plan, table: TrialTable) -> list[ClaimVerdict]:
    """Judge a study's claims.

    Where seeds are added until claims are decided, they are judged after each batch, and at the last one by an exact
    test. Where the file says how many seeds there are, they are judged once all trials have ended. Where another rule
    adds seeds, they are judged by what holds at any time. Where they were judged before the file asked for more seeds
    (`Plan.earlier_looks`), the exact test has half of the error that it had before.

    Args:
        plan: of the study, as `study.plan.until.extended` returns it.
        table: trials by cells; those of other cells are ignored.
    """
    return _Judgement(plan, table).verdicts


def final_looks(plan: Plan, table: TrialTable) -> tuple[ClaimLook, ...]:
    """Return the looks at claims that were judged by the last seeds that the study asks for.

    Args:
        plan: of the study, as `study.plan.until.extended` returns it.
        table: its trials.
    """
    return _Judgement(plan, table).final_looks


class DecidedClaims:
    """The cells of each claim get seeds until it is decided; cells that no claim is about get the first batch.

    Args:
        plan: of the study.
        until: its rule.
        table: its trials so far.
    """

    phrase = "claims are decided"

    def __init__(self, plan: Plan, until: Until, table: TrialTable) -> None:
        self._plan, self._until, self._judgement = plan, until, _Judgement(plan, table)

    def counts(self) -> Mapping[str, int]:
        """Return how many seeds each cell gets, by its id: of several claims, the most."""
        counts = {cell.id: self._until.step for cell in self._plan.cells}
        for claim, course in self._judgement.courses:
            for pair, seeds in zip(claim.compared, course.seeds, strict=True):
                for cell in pair:
                    counts[cell.id] = max(counts[cell.id], seeds)
        return counts

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Return none: claims are judged, and not cells."""
        return []

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return how many claims are decided, and how many there are."""
        states = [course.state for _, course in self._judgement.courses]
        return sum(state in ("shown", "refuted") for state in states), len(states)

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate how many seeds each cell will have needed."""
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
    """The claims of a study, each followed as far as its results go."""

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
        cells = tuple(_claimed(claim, place, samples[place], course) for place in range(len(samples)))
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
    """Return the rule by which a claim is decided; all claims of a study share the error."""
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


def _claimed(claim: Claim, place: int, sample: ClaimSample, course: Course) -> ClaimedCell:
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
