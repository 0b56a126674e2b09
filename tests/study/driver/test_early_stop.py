"""Early stop of runs whose trials fail for one reason."""

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


def unsolved(trials: Sequence[Trial]) -> list[Result]:
    return [Result(trial=trial, outcome=Outcome.UNSOLVED, iterations=1) for trial in trials]


def by_seed(plan: Plan) -> list[Trial]:
    return sorted(plan.trials, key=lambda trial: trial.seed)


def test_ten_trials_that_fail_for_one_reason_end_a_run() -> None:
    """Ten first failures with one reason end a run, in any cells and packs; nine don't."""
    plan = planned(seeds=20)
    early_stop, trials = begun(plan), by_seed(plan)
    assert early_stop.add(failed(trials[:9])) is None
    assert early_stop.add(failed(trials[9:10])) == (
        "the first 10 trials that ended failed for the same reason: ValueError: seed 4 (a.py:1)"
    )


def test_a_result_or_a_second_reason_lets_a_run_continue() -> None:
    """A result, or a second reason, lets the run continue."""
    plan = planned(seeds=20)
    trials = by_seed(plan)
    assert begun(plan).add([*unsolved(trials[:2]), *failed(trials[2:12])]) is None
    assert begun(plan).add([*failed(trials[:2], "KeyError: 'a'"), *failed(trials[2:12])]) is None


def test_a_cell_whose_trials_all_fail_ends_a_run() -> None:
    """All failures of a cell end the run despite other results; ten of many seeds suffice, and two are too few."""
    for seeds, enough in ((2, None), (3, 3), (20, 10)):
        plan = planned(seeds)
        cell, other = ([trial for trial in plan.trials if trial.cell == cell] for cell in plan.cells)
        early_stop = begun(plan)
        assert early_stop.add(unsolved(other)) is None
        reasons = [early_stop.add(failed([trial])) for trial in cell]
        assert next((count for count, reason in enumerate(reasons, 1) if reason is not None), None) == enough


def test_results_of_an_earlier_run_count() -> None:
    """A cell with a result of an earlier run doesn't end the run."""
    plan = planned(seeds=5)
    pending = [trial for trial in plan.trials if trial.seed]
    assert begun(plan, pending).add(failed([trial for trial in pending if trial.cell == plan.cells[0]])) is None


def test_a_pack_that_ran_out_of_memory_is_one_failure() -> None:
    """A pack that ran out of memory is one failure; a pack whose code raises counts with all trials."""
    plan = planned(seeds=20)
    assert begun(plan).add(failed(plan.trials, "MemoryError"), has_crashed=True) is None
    assert begun(plan).add(failed(plan.trials), has_crashed=True) is not None


def test_a_candidate_of_a_search_may_fail() -> None:
    """One failed candidate doesn't end a search; failures of several candidates do."""
    plan = planned(20, SEARCH)
    first, second = ([Trial(cell, seed) for seed in range(20)] for cell in plan.cells[:2])
    early_stop = begun(plan)
    assert early_stop.add(failed(first)) is None
    assert early_stop.add(failed(second[:1])) is not None
