"""Properties of adaptive seeds: requests depend on results only, grow monotonically, and end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study import statistics
from study.arrow import results_table, unified
from study.plan.claims import claim_verdicts
from study.plan.pairs import pairs
from study.plan.plan import Plan, make_plan
from study.plan.until import expected, extended, progress, rate_intervals, verdicts
from study.records import Outcome, Result, Sources, Trial
from study.spec import parse_spec
from study.trials.table import TrialTable

CELLS = """
study: sure
task: {name: simple}
models: [NMU, NAC-mul]
zip: {schedule: [{sparsity_strength: 0}, {sparsity_strength: 1}]}
"""
MOST, BATCH = 24, 6
NARROW = f"{{half_width: 0.2, max: {MOST}, batch: {BATCH}}}"
APART = f"{{different_from: NAC-mul, max: {MOST}, batch: {BATCH}}}"
DECIDED = f"{{claims: decided, max: {MOST}, batch: {BATCH}}}"
CLAIMS = """
claims:
  - {NMU: success_rate, exceeds: NAC-mul, at: every sparsity_strength}
  - {NMU: success_rate, below: 0.6, at: {sparsity_strength: 1}}
"""
MANY_TO_MANY = """
study: sure
task: {name: simple}
models:
  - {name: NMU, grid: {sparsity_strength: [0, 1]}}
  - {name: NAC-mul, fixed: {optimizer: momentum}, grid: {momentum: [0.5, 0.9]}}
"""

Known = Mapping[tuple[str, int], Outcome]
"""Outcomes of trials by cell id and seed."""


def planned(until: str, cells: str = CELLS) -> Plan:
    claims = CLAIMS if until == DECIDED else ""
    return make_plan(parse_spec(f"{cells}\n{claims}seeds: {{until: {until}}}", source="test"))


def table(plan: Plan, known: Known) -> TrialTable:
    """Return the table of known results."""
    cells = {cell.id: cell for cell in plan.cells}
    rows = [Result(trial=Trial(cells[cell_id], seed), outcome=came) for (cell_id, seed), came in known.items()]
    return TrialTable(results_table(rows))


def asked(plan: Plan) -> set[tuple[str, int]]:
    """Return the cell id and seed of each trial of a plan."""
    return {(cell.id, seed) for cell in plan.cells for seed in plan.seeds(cell)}


def drawn(plan: Plan, seed: int, *, failing: float = 0.0) -> dict[tuple[str, int], Outcome]:
    """Draw each trial's outcome at its cell's random success rate; `failing` is the rate of failed trials."""
    rng = np.random.default_rng(seed)
    truth = {}
    for cell in plan.cells:
        rate = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        for n in range(MOST):
            failed, other = rng.random() < failing, rng.choice([Outcome.UNSOLVED, Outcome.DIVERGED])
            came = Outcome.SOLVED if rng.random() < rate else Outcome(other)
            truth[cell.id, n] = Outcome.FAILED if failed else came
    return truth


def rounds(plan: Plan, truth: Known) -> list[Plan]:
    """Return the successive plans until no more trials are requested; each has the results of the one before."""
    plans = [extended(plan, table(plan, {}))]
    while True:
        following = extended(plans[-1], table(plan, {key: truth[key] for key in asked(plans[-1])}))
        if following == plans[-1]:
            return plans
        plans.append(following)


either = pytest.mark.parametrize("until", [NARROW, APART, DECIDED], ids=["half_width", "different_from", "claims"])
of_cells = pytest.mark.parametrize("until", [NARROW, APART], ids=["half_width", "different_from"])
seeds_and_rates = st.builds(
    lambda seed, failing: (seed, failing), st.integers(0, 2**32), st.sampled_from([0.0, 0.0, 0.2])
)


@either
@given(seed_and_rate=seeds_and_rates, order=st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_results_in_any_order_lead_to_the_same_final_plan(until, seed_and_rate, order):
    """Results in any order and number only add seeds, and lead to the same final plan as whole batches."""
    plan = planned(until)
    truth = drawn(plan, seed_and_rate[0], failing=seed_and_rate[1])
    now, known = extended(plan, table(plan, {})), {}
    while pending := sorted(asked(now) - set(known)):
        known |= {key: truth[key] for key in order.sample(pending, order.randint(1, len(pending)))}
        after = extended(now, table(plan, known))
        assert asked(now) <= asked(after)
        now = after
    straight = rounds(plan, truth)
    assert now == straight[-1]
    assert len(straight) <= MOST // BATCH
    assert all(len(now.seeds(cell)) <= MOST and len(now.seeds(cell)) % BATCH == 0 for cell in now.cells)


@either
@given(seed_and_rate=seeds_and_rates, order=st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_the_order_of_rows_and_other_trials_have_no_effect(until, seed_and_rate, order):
    """A shuffled table, with trials of other studies and of seeds beyond `max`, gives the same plan."""
    plan = planned(until)
    truth = drawn(plan, *seed_and_rate[:1], failing=seed_and_rate[1])
    known = {key: truth[key] for key in asked(extended(plan, table(plan, {})))}
    known_table = table(plan, known)
    foreign = plan.cells[0].replace(learning_rate=0.5)
    other_trials = [Trial(foreign, 0), Trial(foreign, 1), Trial(plan.cells[0], MOST)]
    joined = unified(
        [known_table.results, results_table([Result(trial=t, outcome=Outcome.SOLVED) for t in other_trials])]
    )
    rows = list(range(len(joined)))
    order.shuffle(rows)
    assert extended(plan, TrialTable(joined.take(rows))) == extended(plan, known_table)


combined = st.builds(
    Sources, st.integers(0, 3), st.integers(0, 3), st.sampled_from([None, None, 0, 2])
).filter(lambda sources: sources.are_combined)  # fmt: skip


@either
@given(seed_and_rate=seeds_and_rates, seeds=st.lists(combined, min_size=1, max_size=5, unique=True))
@settings(max_examples=5)
def test_combined_seeds_of_an_earlier_version_are_ignored(until, seed_and_rate, seeds):
    """A study that had `seeds: {init, data}` keeps those trials, but its rule uses plain seeds only."""
    plan = planned(until)
    truth = drawn(plan, *seed_and_rate[:1], failing=seed_and_rate[1])
    known_table = table(plan, {key: truth[key] for key in asked(extended(plan, table(plan, {})))})
    earlier = [Result(trial=Trial(c, sources.seed), outcome=Outcome.SOLVED) for c in plan.cells for sources in seeds]
    joined, extension = TrialTable(unified([results_table(earlier), known_table.results])), extended(plan, known_table)
    assert extended(plan, joined) == extension
    assert repr(verdicts(extension, joined)) == repr(verdicts(extension, known_table))
    assert repr(claim_verdicts(extension, joined)) == repr(claim_verdicts(extension, known_table))
    assert progress(extension, joined) == progress(extension, known_table)


@either
@given(seed_and_rate=seeds_and_rates)
@settings(max_examples=20)
def test_repeated_requests_give_the_same_plan(until, seed_and_rate):
    """Extending a plan twice with the same results doesn't add seeds."""
    plan = planned(until)
    for stage in rounds(plan, truth := drawn(plan, *seed_and_rate[:1], failing=seed_and_rate[1])):
        results = table(plan, {key: truth[key] for key in asked(stage)})
        extension = extended(stage, results)
        assert extended(extension, results) == extension == extended(plan, results)


def test_fixed_seeds_stay():
    """A file with a fixed number of seeds isn't planned adaptively."""
    plan = make_plan(parse_spec(f"{CELLS}\nseeds: 3", source="test"))
    assert extended(plan, table(plan, {(plan.cells[0].id, 0): Outcome.SOLVED})) is plan
    assert verdicts(plan, TrialTable(results_table([]))) == []


def test_each_cell_stops_at_a_narrow_interval():
    """A cell that always succeeds stops early, and a cell with rate one half uses all seeds."""
    plan = planned(NARROW)
    first, second, third = plan.cells
    truth = {(first.id, n): Outcome.SOLVED for n in range(MOST)}
    truth |= {(second.id, n): (Outcome.SOLVED, Outcome.UNSOLVED)[n % 2] for n in range(MOST)}
    truth |= {(third.id, n): Outcome.DIVERGED for n in range(MOST)}
    end = rounds(plan, truth)[-1]
    sampling = statistics.FixedWidth(0.2, BATCH, MOST)
    early = next(n for n in sampling.looks if sampling.is_narrow(n, n))
    assert early < MOST
    assert [len(end.seeds(cell)) for cell in end.cells] == [early, MOST, early]
    judged = verdicts(end, table(plan, {key: truth[key] for key in asked(end)}))
    assert [(v.seeds, v.is_sure) for v in judged] == [(early, True), (MOST, False), (early, True)]
    assert [v.interval for v in judged] == [
        sampling.interval(k, n) for k, n in ((early, early), (MOST // 2, MOST), (0, early))
    ]


def test_pairs_stop_when_they_are_distinguished():
    """Both cells of a pair have the pair's seeds; a cell of two pairs has those of the pair that needs more."""
    plan = planned(APART)
    apart, alike, versus = plan.cells
    truth = {(cell.id, n): Outcome.UNSOLVED for cell in plan.cells for n in range(MOST)}
    truth |= {(apart.id, n): Outcome.SOLVED for n in range(MOST)}
    end = rounds(plan, truth)[-1]
    early = next(n for n in range(BATCH, MOST, BATCH) if statistics.anytime_sign_test(n, 0) < 0.05)
    assert [len(end.seeds(cell)) for cell in (apart, alike, versus)] == [early, MOST, MOST]
    judged = verdicts(end, table(plan, {key: truth[key] for key in asked(end)}))
    assert [(v.cell, v.versus, v.seeds, v.wins, v.losses, v.is_sure) for v in judged] == [
        (apart, versus, early, early, 0, True),
        (alike, versus, MOST, 0, 0, False),
    ]
    assert judged[0].p_value == statistics.anytime_sign_test(early, 0)


def test_a_distinguished_pair_stays_decided():
    """If another pair adds seeds and the cells look alike later, the verdict from the pair's last look stays."""
    plan = planned(APART, MANY_TO_MANY)
    first, second, a, b = plan.cells
    assert len(pairs(plan.cells, "NAC-mul")) == 4
    truth = {(cell.id, n): Outcome.UNSOLVED for cell in plan.cells for n in range(MOST)}
    # one of two cells is worse at first and catches up; the other is equal, so that seeds are added
    truth |= {(cell.id, n): Outcome.SOLVED for cell in (first, b) for n in range(2 * BATCH)}
    truth |= {(a.id, n): Outcome.SOLVED for n in range(2 * BATCH, MOST)}
    end = rounds(plan, truth)[-1]
    assert [len(end.seeds(cell)) for cell in (first, a)] == [MOST, MOST]
    by_pair = {(v.cell, v.versus): v for v in verdicts(end, table(plan, truth))}
    assert (by_pair[first, a].seeds, by_pair[first, a].is_sure) == (2 * BATCH, True)
    assert (by_pair[first, b].seeds, by_pair[first, b].is_sure) == (MOST, False)
    assert (by_pair[second, a].seeds, by_pair[second, a].is_sure) == (MOST, True)


@of_cells
def test_a_batch_that_is_half_done_decides_nothing(until):
    """While results of a batch are pending, no cell is decided, however clear its results are."""
    plan = extended(planned(until), TrialTable(results_table([])))
    results = {(cell.id, n): Outcome.SOLVED for cell in plan.cells for n in range(MOST)}
    results |= {(plan.cells[2].id, n): Outcome.UNSOLVED for n in range(MOST)}
    end = rounds(plan, results)[-1]
    known = {key: results[key] for key in asked(end)}
    assert all(v.is_sure for v in verdicts(end, table(plan, known)))
    del known[plan.cells[0].id, 0]
    assert not verdicts(end, table(plan, known))[0].is_sure


@of_cells
def test_failed_trials_are_ignored_and_delay_nothing(until):
    """A cell whose trials all fail gets seeds up to `max` and stays undecided, and others continue."""
    plan = planned(until)
    truth = drawn(plan, 3) | {(plan.cells[0].id, n): Outcome.FAILED for n in range(MOST)}
    end = rounds(plan, truth)[-1]
    assert len(end.seeds(plan.cells[0])) == MOST
    verdict = verdicts(end, table(plan, {key: truth[key] for key in asked(end)}))[0]
    assert (verdict.seeds, verdict.is_sure) == (0, False)


@pytest.mark.parametrize(("most", "batch", "seeds"), [(5, 5, 5), (7, 5, 7), (3, 20, 3), (40, None, 40)])
def test_the_last_batch_is_cut(most, batch, seeds):
    """No cell gets more than `max` seeds, whatever the batch; the default batch is 20."""
    batch_setting = "" if batch is None or batch > most else f", batch: {batch}"
    plan = planned(f"{{half_width: 0.01, max: {most}{batch_setting}}}")
    first = extended(plan, TrialTable(results_table([])))
    assert {len(first.seeds(cell)) for cell in plan.cells} == {min(batch or 20, most)}
    truth = {(cell.id, n): Outcome.SOLVED for cell in plan.cells for n in range(most)}
    assert {len(rounds(plan, truth)[-1].seeds(cell)) for cell in plan.cells} == {seeds}


def test_expected_seeds_agree_with_the_actual_ones():
    """Expected seeds are the mean over all rates without results, and the actual number for a finished cell."""
    plan = planned(NARROW)
    sampling = statistics.FixedWidth(0.2, BATCH, MOST)
    assert set(expected(plan, TrialTable(results_table([]))).values()) == {math.ceil(sampling.expected())}
    truth = drawn(plan, 5)
    end = rounds(plan, truth)[-1]
    known = table(plan, {key: truth[key] for key in asked(end)})
    assert expected(plan, known) == {cell.id: len(end.seeds(cell)) for cell in plan.cells}
    half = {(cell.id, n): (Outcome.SOLVED, Outcome.UNSOLVED)[n % 2] for cell in plan.cells for n in range(BATCH)}
    assert set(expected(plan, table(plan, half)).values()) == {math.ceil(sampling.expected(0.5))}


def test_pairs_that_differ_are_expected_to_need_fewer_seeds():
    """A pair whose rates differ so far is expected to need fewer seeds than one without results or with equal rates."""
    plan = planned(APART)

    def expected_after(wins: int) -> int:
        known = {(cell.id, n): Outcome.UNSOLVED for cell in plan.cells for n in range(BATCH)}
        known |= {(plan.cells[0].id, n): Outcome.SOLVED for n in range(wins)}
        return expected(plan, table(plan, known))[plan.cells[0].id]

    unknown = expected(plan, TrialTable(results_table([])))[plan.cells[0].id]
    assert BATCH < expected_after(BATCH) < unknown < expected_after(0) <= MOST
    assert expected_after(BATCH) == expected_after(BATCH)


def test_progress_counts_decided_cells_and_next_trials():
    """The sentence counts decided cells and trials without a result, and ignores other stored trials."""
    plan = extended(planned(NARROW), TrialTable(results_table([])))
    truth = {(cell.id, n): Outcome.SOLVED for cell in plan.cells for n in range(MOST)}
    *_, before, end = rounds(plan, truth)
    known: Iterable[tuple[str, int]] = asked(before)
    assert progress(end, table(plan, {key: truth[key] for key in known})) == (
        f"0 of 3 cells are sure; next {3 * BATCH} trials"
    )
    assert progress(end, table(plan, truth)) == "3 of 3 cells are sure"
    apart = extended(planned(APART), TrialTable(results_table([])))
    assert progress(apart, TrialTable(results_table([]))) == f"0 of 2 pairs of cells are sure; next {3 * BATCH} trials"


def test_intervals_allow_for_the_looks():
    """Tables show the calibrated interval if the rule is about rates, and the anytime interval if it compares cells."""
    narrow, apart = (rate_intervals(planned(until).spec) for until in (NARROW, APART))
    k, n = np.array([0, 3, 6]), np.array([6, 12, 6])
    assert narrow.name == "Clopper-Pearson (calibrated)"
    assert narrow.compute(k, n).tolist() == statistics.FixedWidth(0.2, BATCH, MOST).intervals(k, n).tolist()
    assert apart.name == "anytime-valid"
    assert [tuple(row) for row in apart.compute(k, n)] == [statistics.anytime(*kn) for kn in zip(k, n, strict=True)]
    assert apart.compute(k[:0], n[:0]).shape == (0, 2)
