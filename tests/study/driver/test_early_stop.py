"""When a run should end because its trials fail for one reason."""

from __future__ import annotations

from collections.abc import Sequence

from study.driver.early_stop import EarlyStop
from study.plan.plan import Plan, make_plan
from study.records import Outcome, Result, Trial
from study.spec import parse_spec

GRID = "{study: s, task: {name: simple}, models: [NMU], seeds: SEEDS, grid: {hidden_size: [2, 3]}}"
SEARCH = """
study: s
task: {name: simple}
models: [NMU]
seeds: SEEDS
ranges: {hidden_size: {low: 2, high: 9}}
search: {objective: success_rate, trials: 100}
"""


def planned(seeds: int, text: str = GRID) -> Plan:
    return make_plan(parse_spec(text.replace("SEEDS", str(seeds)), source="test"))


def begun(plan: Plan, pending: Sequence[Trial] | None = None) -> EarlyStop:
    early_stop = EarlyStop()
    early_stop.begin(plan, plan.trials if pending is None else pending)
    return early_stop


def failed(trials: Sequence[Trial], error: str = "ValueError: seed {} (a.py:1)") -> list[Result]:
    return [Result(trial=trial, outcome=Outcome.FAILED, error=error.format(trial.seed)) for trial in trials]


def done(trials: Sequence[Trial]) -> list[Result]:
    return [Result(trial=trial, outcome=Outcome.UNSOLVED, iterations=1) for trial in trials]


def by_seed(plan: Plan) -> list[Trial]:
    return sorted(plan.trials, key=lambda trial: trial.seed)


def test_ten_trials_that_fail_for_one_reason_end_a_run() -> None:
    """Whatever cells they are of, and however many packs they come in; nine don't."""
    plan = planned(seeds=20)
    early_stop, trials = begun(plan), by_seed(plan)
    assert early_stop.add(failed(trials[:9])) is None
    assert early_stop.add(failed(trials[9:10])) == (
        "the first 10 trials that ended failed for the same reason: ValueError: seed 4 (a.py:1)"
    )


def test_one_result_or_another_reason_lets_a_run_go_on() -> None:
    """Then something works, or more than one thing is wrong."""
    plan = planned(seeds=20)
    trials = by_seed(plan)
    assert begun(plan).add([*done(trials[:2]), *failed(trials[2:12])]) is None
    assert begun(plan).add([*failed(trials[:2], "KeyError: 'a'"), *failed(trials[2:12])]) is None


def test_a_cell_of_which_all_trials_fail_ends_a_run() -> None:
    """Though others have results; of many seeds the first ten are enough, and two trials are too few."""
    for seeds, enough in ((2, None), (3, 3), (20, 10)):
        plan = planned(seeds)
        cell, other = ([trial for trial in plan.trials if trial.cell == cell] for cell in plan.cells)
        early_stop = begun(plan)
        assert early_stop.add(done(other)) is None
        said = [early_stop.add(failed([trial])) for trial in cell]
        assert next((count for count, why in enumerate(said, 1) if why is not None), None) == enough


def test_results_of_an_earlier_run_count() -> None:
    """A cell that has a result isn't wrong as a whole."""
    plan = planned(seeds=5)
    pending = [trial for trial in plan.trials if trial.seed]
    assert begun(plan, pending).add(failed([trial for trial in pending if trial.cell == plan.cells[0]])) is None


def test_a_pack_lost_by_its_surroundings_is_one_failure() -> None:
    """A large pack that ran out of memory says little of the others; one whose code raises says all."""
    plan = planned(seeds=20)
    assert begun(plan).add(failed(plan.trials, "MemoryError"), has_crashed=True) is None
    assert begun(plan).add(failed(plan.trials), has_crashed=True) is not None


def test_a_candidate_of_a_search_may_fail() -> None:
    """Searches try what can't work; only if several candidates fail alike is something else wrong."""
    plan = planned(20, SEARCH)
    first, second = ([Trial(cell, seed) for seed in range(20)] for cell in plan.cells[:2])
    early_stop = begun(plan)
    assert early_stop.add(failed(first)) is None
    assert early_stop.add(failed(second[:1])) is not None
