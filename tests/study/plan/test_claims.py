"""Claims judged by results: the numbers used, the seeds requested, and verdicts with their cost."""

from __future__ import annotations

import numpy as np
import pytest

from study.arrow import results_table
from study.plan.claims import ClaimVerdict, claim_verdicts
from study.plan.plan import Plan, make_plan
from study.plan.until import expected, extended, progress, rate_intervals, verdicts
from study.records import Cell, Outcome, Result, Trial
from study.spec import parse_spec
from study.trials.table import TrialTable

STUDY = """
study: claimed
task: {name: simple}
models: [NMU, NAC-mul]
protocol: {iterations: 20000}
"""
SOLVED, UNSOLVED, DIVERGED, FAILED = Outcome.SOLVED, Outcome.UNSOLVED, Outcome.DIVERGED, Outcome.FAILED
DECIDED = "{until: {claims: decided, max: 60}}"


def planned(*claims: str, seeds: str = DECIDED, study: str = STUDY) -> Plan:
    items = "".join(f"  - {claim}\n" for claim in claims)
    return make_plan(parse_spec(f"{study}seeds: {seeds}\nclaims:\n{items}", source="test"))


def result(cell: Cell, seed: int, outcome: Outcome, at: int | None = None, **metrics: float) -> Result:
    times = {"solved_at_iteration": 1000 if at is None else at} if outcome is SOLVED else {}
    return Result(trial=Trial(cell, seed), outcome=outcome, metrics=metrics, training_s=2.0, **times)


def table(plan: Plan, **outcomes: list[Outcome]) -> TrialTable:
    """Build the results of cells, given each model's outcomes in the order of seeds."""
    cell_of = {cell.model.replace("-", "_"): cell for cell in plan.cells}
    seeds = list(plan.spec.first_seeds) if plan.spec.until is None else list(range(plan.spec.until.max))
    rows = [
        result(cell_of[model], seed, outcome)
        for model, cell_outcomes in outcomes.items()
        for seed, outcome in zip(seeds, cell_outcomes, strict=False)
    ]
    return TrialTable(results_table(rows), plan.metrics)


def judged(plan: Plan, results: TrialTable) -> ClaimVerdict:
    (verdict,) = claim_verdicts(extended(plan, results), results)
    return verdict


def test_a_difference_is_judged_seed_by_seed_until_it_is_shown() -> None:
    """Both cells get 20 seeds, and 20 more if these don't decide; verdict, evidence and cost cover all of them."""
    plan = planned("{NMU: success_rate, exceeds: NAC-mul, by: 0.2}")
    clear = table(plan, NMU=[SOLVED] * 20, NAC_mul=[UNSOLVED] * 20)
    verdict = judged(plan, clear)
    assert (verdict.state, verdict.trials, verdict.training_s) == ("shown", 40, 80.0)
    (cell,) = verdict.cells
    assert (cell.cell.model, cell.versus.model, cell.seeds, cell.estimate) == ("NMU", "NAC-mul", 20, 1.0)
    assert cell.interval[0] > 0.2
    assert extended(plan, clear).trials_count == 40
    unclear = table(plan, NMU=[SOLVED] * 12 + [UNSOLVED] * 8, NAC_mul=[SOLVED] * 4 + [UNSOLVED] * 16)
    assert judged(plan, unclear).state == "open"
    assert extended(plan, unclear).trials_count == 80


def test_a_claim_is_refuted_or_undecided_out_of_seeds() -> None:
    """Equal cells refute a claimed difference of 0.5, and leave a difference of 0 undecided."""
    alike = [SOLVED, UNSOLVED] * 30
    plan = planned("{NMU: success_rate, exceeds: NAC-mul, by: 0.5}")
    assert judged(plan, table(plan, NMU=alike, NAC_mul=alike)).state == "refuted"
    plan = planned("{NMU: success_rate, exceeds: NAC-mul}")
    verdict = judged(plan, table(plan, NMU=alike, NAC_mul=alike))
    assert (verdict.state, verdict.trials, verdict.cells[0].p_values) == ("undecided", 120, (1.0, 1.0))


def test_failed_trials_decide_nothing_and_diverged_ones_are_unsolved() -> None:
    """A failed trial counts against both the claim and its refutation; a diverged trial isn't solved."""
    plan = planned("{NMU: success_rate, exceeds: NAC-mul}")
    verdict = judged(plan, table(plan, NMU=[SOLVED] * 15, NAC_mul=[DIVERGED] * 15))
    failing = judged(plan, table(plan, NMU=[FAILED] * 10 + [SOLVED] * 15, NAC_mul=[DIVERGED] * 25))
    assert failing.cells[0].evidence < 1
    assert (failing.failed, failing.cells[0].estimate, failing.state) == (10, 1.0, "open")
    assert failing.trials == 40  # trials without a result don't count
    assert verdict.failed == 0
    fixed = planned("{NMU: success_rate, exceeds: 0.9}", seeds="100")
    worst = [SOLVED] * 90 + [FAILED] * 10
    assert judged(fixed, table(fixed, NMU=worst)).state == "undecided"
    assert judged(fixed, table(fixed, NMU=[SOLVED] * 100)).state == "shown"


def test_rates_below_a_number_are_judged_by_failures() -> None:
    """`below: 0.5` is supported by unsolved trials, and the estimate is the rate itself."""
    plan = planned("{NMU: success_rate, below: 0.5}")
    verdict = judged(plan, table(plan, NMU=[UNSOLVED] * 18 + [SOLVED] * 2))
    assert (verdict.state, verdict.cells[0].estimate) == ("shown", pytest.approx(0.1))
    low, high = verdict.cells[0].interval
    assert low < 0.1 < high < 0.5
    assert judged(plan, table(plan, NMU=[SOLVED] * 20)).state == "refuted"


def test_times_cover_solved_or_all_trials() -> None:
    """solved_at excludes unsolved trials; time_to_success gives them all iterations."""
    of_solved, of_all = "{NMU: solved_at, below: 5000}", "{NMU: time_to_success, below: 5000}"
    half = [SOLVED, UNSOLVED] * 30
    plan = planned(of_solved, seeds="60")
    shown = judged(plan, table(plan, NMU=half, NAC_mul=half))
    assert (shown.state, shown.cells[0].seeds, shown.cells[0].estimate) == ("shown", 30, 1000)
    plan = planned(of_all, seeds="60")
    refuted = judged(plan, table(plan, NMU=half, NAC_mul=half))
    assert (refuted.state, refuted.cells[0].seeds, refuted.cells[0].estimate) == ("refuted", 60, 10_500)


def test_a_solved_trial_without_a_known_time_is_not_counted() -> None:
    """A function that returns its results has no time to success: such trials neither show nor refute a claim on it."""
    plan = planned("{NMU: time_to_success, below: 5000}", seeds="60")
    cell = plan.cells[0]
    rows = [Result(trial=Trial(cell, seed), outcome=SOLVED, metrics={}, training_s=2.0) for seed in range(60)]
    verdict = judged(plan, TrialTable(results_table(rows), plan.metrics))
    assert verdict.state not in ("shown", "refuted")


def test_times_of_pairs_are_differences_within_iterations() -> None:
    """The estimate of `below` is the cell's value minus the other's, so it is negative."""
    plan = planned("{NMU: time_to_success, below: NAC-mul, by: 2000}")
    verdict = judged(plan, table(plan, NMU=[SOLVED] * 20, NAC_mul=[UNSOLVED] * 20))
    assert (verdict.state, verdict.cells[0].estimate) == ("shown", -19_000)
    assert verdict.cells[0].interval[1] < -2000


def test_metrics_without_limits_are_judged_by_shares_of_seeds() -> None:
    """A pair's estimate is the share of seeds that exceed the bound; a diverged trial is worse than any."""
    plan = planned("{NMU: test_mse, below: NAC-mul, by: 0.5}", seeds="20")
    nmu, other = plan.cells
    rows = [result(nmu, seed, UNSOLVED, test_mse=1.0) for seed in range(20)]
    rows += [result(other, seed, UNSOLVED, test_mse=2.0) for seed in range(15)]
    rows += [result(other, seed, DIVERGED) for seed in range(15, 20)]
    verdict = judged(plan, TrialTable(results_table(rows), plan.metrics))
    assert (verdict.state, verdict.cells[0].estimate, verdict.cells[0].seeds) == ("shown", 1.0, 20)
    all_diverged = [result(cell, seed, DIVERGED) for cell in plan.cells for seed in range(20)]
    assert judged(plan, TrialTable(results_table(all_diverged), plan.metrics)).cells[0].estimate == 0.0
    close = [
        result(cell, seed, UNSOLVED, test_mse=1.0 + 0.4 * (cell == other)) for cell in plan.cells for seed in range(20)
    ]
    assert judged(plan, TrialTable(results_table(close), plan.metrics)).state == "refuted"


def test_errors_cover_solved_trials_only() -> None:
    """The sparsity error covers solved trials only."""
    plan = planned("{NMU: sparsity_error, below: 0.01}", seeds="20")
    nmu = plan.cells[0]
    rows = [result(nmu, seed, SOLVED, sparsity_error=1e-5) for seed in range(12)]
    rows += [result(nmu, seed, UNSOLVED, sparsity_error=0.4) for seed in range(12, 20)]
    verdict = judged(
        plan, TrialTable(results_table([*rows, *(result(plan.cells[1], n, UNSOLVED) for n in range(20))]), plan.metrics)
    )
    assert (verdict.state, verdict.cells[0].seeds, verdict.cells[0].estimate) == ("shown", 12, 1.0)


def test_a_fixed_number_of_seeds_is_judged_once_all_have_ended() -> None:
    """With fixed seeds of any numbers, a claim stays open until all have ended, however clear it is."""
    plan = planned("{NMU: success_rate, exceeds: 0.5}", seeds="[7, 3, 11, 5, 2, 9]")
    assert judged(plan, table(plan, NMU=[SOLVED] * 5)).state == "open"
    verdict = judged(plan, table(plan, NMU=[SOLVED] * 6))
    assert (verdict.state, verdict.cells[0].p_values[0]) == ("shown", pytest.approx(0.5**6))


def test_claims_under_another_rule_use_anytime_evidence() -> None:
    """If seeds are added until a rate is precise, claims use any-time valid evidence, as no last look is planned."""
    plan = planned("{NMU: success_rate, exceeds: 0.5}", seeds="{until: {half_width: 0.2, max: 40, batch: 10}}")
    few = table(plan, NMU=[SOLVED] * 3 + [UNSOLVED] * 2, NAC_mul=[UNSOLVED] * 40)
    assert judged(plan, few).state == "open"
    all_in = table(plan, NMU=[SOLVED] * 40, NAC_mul=[UNSOLVED] * 40)
    verdict = judged(plan, all_in)
    assert (verdict.state, verdict.cells[0].p_values) == ("shown", None)
    assert verdict.cells[0].seeds == len(extended(plan, all_in).seeds(plan.cells[0])) < 40


def test_several_claims_share_the_error() -> None:
    """Evidence that decides a single claim doesn't decide one of eight."""
    claim = "{NMU: success_rate, exceeds: 0.5}"
    values = [SOLVED] * 17 + [UNSOLVED] * 3
    single, among = planned(claim), planned(claim, *["{NAC-mul: success_rate, exceeds: 0.5}"] * 7)
    unsolved = [UNSOLVED] * 20
    assert judged(single, table(single, NMU=values)).state == "shown"
    results = table(among, NMU=values, NAC_mul=unsolved)
    first, *others = claim_verdicts(among, results)
    assert first.state == "open"
    assert {verdict.state for verdict in others} == {"refuted"}


def test_progress_and_expectations() -> None:
    """The progress text counts decided claims and expected seeds; cells without a claim keep their first batch."""
    plan = planned("{NMU: success_rate, exceeds: 0.5}", "{NMU: success_rate, exceeds: 0.9}")
    nothing = TrialTable(results_table([]), plan.metrics)
    before = expected(plan, nothing)
    assert 20 < before[plan.cells[0].id] <= 60
    assert before[plan.cells[1].id] == 20
    results = table(plan, NMU=[SOLVED] * 18 + [UNSOLVED] * 2, NAC_mul=[UNSOLVED] * 20)
    assert progress(extended(plan, results), results) == "1 of 2 claims are decided; next 20 trials"
    assert expected(plan, results)[plan.cells[0].id] >= 40
    assert verdicts(plan, results) == []
    assert rate_intervals(plan.spec).name == "anytime-valid"
    assert np.isclose(rate_intervals(plan.spec).compute([0], [0]), [[0, 1]]).all()
