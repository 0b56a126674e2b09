"""Properties of adaptive seeds by a metric: requests depend on results only, grow monotonically, and end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study import statistics
from study.arrow import results_table
from study.errors import SpecError
from study.plan.narrow import mean_sampling
from study.plan.plan import Plan, make_plan
from study.plan.until import expected, extended, progress, rate_intervals, verdicts
from study.plan.verdict import Verdict
from study.records import Outcome, Result, Sources, Trial
from study.reports import cell_rows as rows_of
from study.reports.table import verdicts_note, verdicts_table
from study.spec import parse_spec
from study.summaries.aggregate import aggregate
from study.trials.table import TrialTable

CELLS = """
study: sure
task: {name: simple}
models: [NMU, NAC-mul]
zip: {schedule: [{sparsity_strength: 0}, {sparsity_strength: 1}]}
"""
MOST, BATCH = 120, 20
NARROW = f"{{half_width: 0.3, metric: test_mse, max: {MOST}}}"
APART = f"{{different_from: NAC-mul, metric: test_mse, max: {MOST}}}"

either = pytest.mark.parametrize("until", [NARROW, APART])
Known = Mapping[tuple[str, int], float | Outcome]
"""The metric of a trial, or its outcome if it lacks one, by cell id and seed."""


def planned(until: str) -> Plan:
    return make_plan(parse_spec(f"{CELLS}\nseeds: {{until: {until}}}", source="test"))


def table(plan: Plan, known: Known) -> TrialTable:
    """Return the table of known results."""
    cells = {cell.id: cell for cell in plan.cells}
    rows = [
        Result(trial=Trial(cells[cell_id], seed), outcome=outcome_or_value)
        if isinstance(outcome_or_value, Outcome)
        else Result(trial=Trial(cells[cell_id], seed), outcome=Outcome.UNSOLVED, metrics={"test_mse": outcome_or_value})
        for (cell_id, seed), outcome_or_value in known.items()
    ]
    return TrialTable(results_table(rows), plan.metrics)


def asked(plan: Plan) -> set[tuple[str, int]]:
    """Return the cell id and seed of each trial of a plan."""
    return {(cell.id, seed) for cell in plan.cells for seed in plan.seeds(cell)}


def drawn(
    plan: Plan, seed: int, *, failing: float = 0.0, diverging: float = 0.0
) -> dict[tuple[str, int], float | Outcome]:
    """Draw each trial's metric from its cell's normal distribution, or its failure or divergence at the given rates."""
    rng = np.random.default_rng(seed)
    truth: dict[tuple[str, int], float | Outcome] = {}
    for cell in plan.cells:
        mean, deviation = rng.normal(), rng.choice([0.1, 0.5, 1.0, 5.0])
        for n in range(MOST):
            luck, value = rng.random(), float(rng.normal(mean, deviation))
            outcome = Outcome.FAILED if luck < failing else Outcome.DIVERGED if luck > 1 - diverging else None
            truth[cell.id, n] = value if outcome is None else outcome
    return truth


def stages(plan: Plan, truth: Known) -> list[Plan]:
    """Return the successive plans until no more trials are requested; each has the results of the one before."""
    plans = [extended(plan, table(plan, {}))]
    while True:
        known = {key: truth[key] for key in asked(plans[-1])}
        following = extended(plans[-1], table(plan, known))
        if following == plans[-1]:
            return plans
        plans.append(following)


@either
def test_combined_seeds_of_an_earlier_version_are_ignored(until):
    """A metric's rule uses plain seeds only, and ignores trials with combined seeds."""
    plan = planned(until)
    truth = drawn(plan, 1)
    plain = {key: truth[key] for key in asked(extended(plan, table(plan, {})))}
    pairs_of_seeds = [Sources(init, data) for init, data in itertools.permutations(range(3), 2)]
    earlier = {(cell.id, sources.seed): 1e6 for cell in plan.cells for sources in pairs_of_seeds}
    known_table, joined = table(plan, plain), table(plan, earlier | plain)
    extension = extended(plan, known_table)
    assert extended(plan, joined) == extension
    assert repr(verdicts(extension, joined)) == repr(verdicts(extension, known_table))
    assert expected(plan, joined) == expected(plan, known_table)


@either
@given(seed=st.integers(0, 10**6), failing=st.sampled_from([0.0, 0.2]), diverging=st.sampled_from([0.0, 0.05]))
@settings(max_examples=15, deadline=None)
def test_plans_only_grow_and_end(until: str, seed: int, failing: float, diverging: float) -> None:
    """Seeds are added in batches up to `max`, none is removed, and half a batch decides nothing."""
    plan = planned(until)
    truth = drawn(plan, seed, failing=failing, diverging=diverging)
    plans = stages(plan, truth)
    for before, after in itertools.pairwise(plans):
        assert asked(before) < asked(after)
        half = dict(list({key: truth[key] for key in asked(after)}.items())[: len(asked(before))])
        assert asked(extended(plan, table(plan, half))) <= asked(after)
    assert all(len(plans[-1].seeds(cell)) <= MOST for cell in plan.cells)
    assert all(len(plans[-1].seeds(cell)) % BATCH == 0 for cell in plan.cells)


def test_a_cell_stops_once_its_mean_is_known() -> None:
    """Each cell stops at the first look with a narrow Student interval; the verdict has mean and interval."""
    plan = planned(NARROW)
    first, second, third = plan.cells
    rng = np.random.default_rng(3)
    truth = {
        (cell.id, n): float(rng.normal(0, s))
        for cell, s in ((first, 0.1), (second, 1.3), (third, 9.0))
        for n in range(MOST)
    }
    end = stages(plan, truth)[-1]
    until = end.spec.until
    assert until is not None
    sampling = mean_sampling(until)
    judged = verdicts(end, table(plan, {key: truth[key] for key in asked(end)}))
    assert {verdict.is_sure for verdict in judged} == {True, False}
    for cell, verdict in zip(plan.cells, judged, strict=True):
        values = [truth[cell.id, n] for n in range(MOST)]
        stop = next((n for n in sampling.looks if sampling.is_narrow(values[:n])), MOST)
        assert len(end.seeds(cell)) == verdict.seeds == stop
        assert verdict.is_sure == sampling.is_narrow(values[:stop])
        assert verdict.interval == sampling.interval(values[:stop])
        assert verdict.mean == pytest.approx(np.mean(values[:stop]))


@pytest.mark.parametrize("outcome", [Outcome.DIVERGED, math.inf])
def test_a_trial_without_a_number_leaves_its_cell_undecided(outcome: float | Outcome) -> None:
    """A cell with a diverged trial gets `max` seeds and stays undecided; verdict and table report the trial."""
    plan = planned(NARROW)
    truth = {key: 0.01 * key[1] for key in drawn(plan, 0)}
    first, *others = plan.cells
    truth[first.id, 7] = outcome
    end = stages(plan, truth)[-1]
    assert len(end.seeds(first)) == MOST
    assert all(len(end.seeds(cell)) == 40 for cell in others)
    results = table(plan, {key: truth[key] for key in asked(end)})
    judged = verdicts(end, results)
    assert [(v.without, v.is_sure, v.interval is None) for v in judged] == [(1, False, True)] + [(0, True, False)] * 2
    laid = verdicts_table(rows_of(aggregate(results), plan.labels), judged)
    assert {len(column.texts) for column in laid.columns} == {3}
    assert laid.columns[2].texts[0] == "none: 1 without a number"
    assert "1 cell had trials that ended without a number" in verdicts_note(judged)
    assert progress(end, results).startswith("2 of 3 cells are sure")


def test_failed_trials_are_ignored() -> None:
    """A failed trial has no result: the mean covers the others."""
    plan = planned(NARROW)
    truth = {key: Outcome.FAILED if key[1] == 3 else 0.01 * key[1] for key in drawn(plan, 0)}
    end = stages(plan, truth)[-1]
    assert [v.seeds for v in verdicts(end, table(plan, {key: truth[key] for key in asked(end)}))] == [39] * 3


def test_equal_values_stop_no_cell() -> None:
    """Values without variance have no interval, so their cell gets all seeds."""
    plan = planned(NARROW)
    end = stages(plan, dict.fromkeys(drawn(plan, 0), 1.0))[-1]
    assert {len(end.seeds(cell)) for cell in plan.cells} == {MOST}


def test_pairs_are_ranked_seed_by_seed() -> None:
    """Lower is better, ties are dropped, and a diverged trial is worse than any number."""
    plan = planned(APART)
    first, alike, versus = plan.cells
    truth: dict[tuple[str, int], float | Outcome] = dict.fromkeys(drawn(plan, 0), 1.0)
    truth |= {(first.id, n): 1e9 if n % 2 else 0.5 for n in range(MOST)}
    truth |= {(versus.id, n): Outcome.DIVERGED for n in range(1, MOST, 2)}
    truth |= {(alike.id, n): truth[versus.id, n] for n in range(MOST)}
    end = stages(plan, truth)[-1]
    judged = verdicts(end, table(plan, {key: truth[key] for key in asked(end)}))
    assert [(v.cell, v.wins, v.losses, v.seeds, v.is_sure) for v in judged] == [
        (first, BATCH, 0, BATCH, True),
        (alike, 0, 0, MOST, False),
    ]
    assert judged[0].p_value == statistics.anytime_sign_test(BATCH, 0)
    assert "without ties" in verdicts_note(judged)


def test_seeds_expected_follow_from_the_deviation() -> None:
    """Expected seeds are the maximum without results, then follow from the deviation; a finished cell has its count."""
    plan = planned(NARROW)
    assert set(expected(plan, TrialTable(results_table([]))).values()) == {MOST}
    known = {(cell.id, n): float(n % 2) * 2.6 for cell in plan.cells for n in range(BATCH)}
    assert set(expected(plan, table(plan, known)).values()) == {80}
    end = stages(plan, truth := drawn(plan, 5))[-1]
    results = table(plan, {key: truth[key] for key in asked(end)})
    assert expected(plan, results) == {cell.id: len(end.seeds(cell)) for cell in plan.cells}
    apart = planned(APART)
    assert BATCH < max(expected(apart, table(apart, {})).values()) <= MOST


def test_rates_beside_a_metric_allow_for_any_rule() -> None:
    """If a metric decides on seeds, the rate's interval holds at any stopping time."""
    assert rate_intervals(planned(NARROW).spec).name == "anytime-valid"


@pytest.mark.parametrize(
    ("until", "message"),
    [
        ("{half_width: 0.3, metric: tset_mse, max: 9}", "did you mean 'test_mse'"),
        ("{half_width: 0.5, max: 9}", "must be < 0.5, but got 0.5"),
        ("{metric: test_mse, max: 9}", "must have exactly one of half_width, different_from and claims, but has none"),
        ("{half_width: 0, metric: test_mse, max: 9}", "must be > 0"),
    ],
)
def test_mistakes_are_named_with_their_rules(until: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        planned(until)


def test_pairs_and_cells_share_a_table() -> None:
    """Verdicts of both kinds, and cells without an interval, share one table with blank missing values."""
    plan = planned(NARROW)
    first, second, versus = plan.cells
    results = table(plan, {(cell.id, 0): 1.0 for cell in plan.cells})
    mixed = [
        Verdict(first, versus, 20, True, p_value=0.01, wins=9, losses=0),
        Verdict(second, None, 20, False, interval=(0.25, 0.5)),
        Verdict(versus, None, 0, False),
    ]
    laid = verdicts_table(rows_of(aggregate(results), plan.labels), mixed)
    columns = {column.title: column.texts for column in laid.columns}
    assert columns["it alone solved"] == ("9", "", "")
    assert columns["half-width"] == ("", "0.125", "")
    assert {len(texts) for texts in columns.values()} == {3}
