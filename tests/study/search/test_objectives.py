"""The candidates' values, and the Pareto front."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.arrow import results_table
from study.interface.declarations import Metric
from study.records import Outcome, Result, Trial
from study.search import Evidence
from study.search.objectives import Sample, front, objectives_of, ranked, spread, value_of
from study.summaries.search import NO_NUMBER
from study.trials.table import TrialTable
from tasks.arithmetic.own_family import ARITHMETIC
from tests.study.builders import small_cell, summarised

METRICS = ARITHMETIC.metrics
NAMES = ["success_rate", "solved_at", "time_to_success", "sparsity_error"]
OBJECTIVES = dict(zip(NAMES, objectives_of(NAMES, METRICS), strict=True))
MOST = 20_000
CELL = small_cell(iterations=MOST)
MEASURED = ("solved_at_iteration", "sparsity_error")
NEVER = {"outcome": Outcome.UNSOLVED}


def solved(at, error=1e-6):
    """Return the columns of a solved trial."""
    return {"outcome": Outcome.SOLVED, "solved_at_iteration": at, "sparsity_error": error}


def results(trials, cell=CELL):
    """Build a table of results from the trials' columns."""
    rows = []
    for i, trial in enumerate(trials):
        metrics = {name: trial[name] for name in ("sparsity_error",) if name in trial}
        at = trial.get("solved_at_iteration")
        rows.append(Result(trial=Trial(cell, i), outcome=trial["outcome"], metrics=metrics, solved_at_iteration=at))
    return results_table(rows)


def worth(trials):
    """Return the value of a sample of trials by objective."""
    solved_trials = [trial for trial in trials if trial["outcome"] is Outcome.SOLVED]
    at, error = (np.array([trial[name] for trial in solved_trials], dtype=float) for name in MEASURED)
    return dict(zip(NAMES, values(Sample(len(trials), at, {"sparsity_error": error})), strict=True))


def values(sample):
    return value_of(sample, NAMES, METRICS, MOST)


def worth_in_a_search(trials, cell=CELL):
    """Return the value of trials by objective, as computed by a search from a table of results."""
    value = Evidence(TrialTable(results(trials, cell), METRICS)).value(cell, range(len(trials)), NAMES, MOST)
    return dict(zip(NAMES, value, strict=True))


def no_worse(trials, others):
    """Return, by objective, True if trials are worth at least as much as others, up to rounding."""
    own_values, other_values = worth(trials), worth(others)
    losses = {
        name: (OBJECTIVES[name].loss(own_values[name]), OBJECTIVES[name].loss(other_values[name])) for name in NAMES
    }
    return {name: a <= b + 1e-12 * abs(b) for name, (a, b) in losses.items()}


EACH = dict.fromkeys(NAMES, True)
SOLVED = st.builds(solved, st.integers(0, MOST), st.one_of(st.just(0.0), st.floats(1e-9, 0.7)))
TRIALS = st.lists(st.one_of(SOLVED, st.sampled_from([NEVER, {"outcome": Outcome.DIVERGED}])), min_size=1, max_size=25)


@given(TRIALS)
def test_every_sample_has_values(trials):
    """For any sample, values are finite, and no worse than those of a sample without solved trials."""
    assert all(np.isfinite(value) for value in worth(trials).values())
    assert no_worse(trials, [NEVER] * len(trials)) == EACH


@given(TRIALS, st.data())
def test_better_trials_are_never_worth_less(trials, data):
    """Another solved trial, an earlier success or a smaller error never lowers the rank."""
    place = data.draw(st.integers(0, len(trials) - 1))
    before = trials[place]
    better = data.draw(SOLVED)
    if before["outcome"] is Outcome.SOLVED:
        better |= {name: min(before[name], better[name]) for name in MEASURED}
    assert no_worse([*trials[:place], better, *trials[place + 1 :]], trials) == EACH


@given(TRIALS, st.integers(2, 5))
def test_repeated_trials_are_never_worth_less(trials, times):
    """A sample with each trial repeated is worth no less."""
    assert no_worse(trials * times, trials) == EACH


@given(TRIALS)
def test_another_trial_as_good_as_the_best_is_never_worth_less(trials):
    """Another trial as early and as precise as the best never lowers its candidate's rank."""
    solved_trials = [trial for trial in trials if trial["outcome"] is Outcome.SOLVED]
    best = {name: min([trial[name] for trial in solved_trials], default=0) for name in MEASURED}
    assert no_worse([*trials, {"outcome": Outcome.SOLVED} | best], trials) == EACH


PAIRS = {
    "five seeds are told apart": ([solved(9000)] * 3 + [NEVER] * 2, [solved(9000)] * 2 + [NEVER] * 3),
    "one seed is told apart": ([solved(3000)], [solved(4000)]),
    "all at one evaluation": ([solved(7000)] * 40, [solved(7000)] * 20 + [NEVER] * 20),
    "few seeds count for little": (
        [solved(7000, 1e-6)] * 36 + [NEVER] * 4,
        [solved(at, 1e-6) for at in (6000, 6500, 7000, 7500, 8000)],
    ),
    "one late is better than none": ([solved(5000)] * 3 + [solved(MOST, 0.5)], [solved(5000)] * 3 + [NEVER]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_better_samples_are_worth_more(name):
    """Objectives rank a dominated sample lower if they depend on the difference."""
    better, worse = PAIRS[name]
    assert no_worse(better, worse) == EACH
    assert worth(better) != worth(worse)


def test_perfect_candidates_are_ranked_by_cost():
    """Of candidates that always succeed, quicker ones and ones with smaller errors are worth more."""
    quick, exact = worth([solved(5000, 1e-4)] * 40), worth([solved(9000, 1e-6)] * 40)
    assert quick["success_rate"] == exact["success_rate"]
    assert quick["solved_at"] < exact["solved_at"]
    assert quick["time_to_success"] < exact["time_to_success"]
    assert quick["sparsity_error"] > exact["sparsity_error"]


@pytest.mark.parametrize(("successes", "failures"), [(0, 1), (1, 0), (5, 0), (3, 2), (17, 23), (40, 0)])
def test_the_success_rate_is_wilsons_lower_end(successes, failures):
    """The value of the success rate equals the lower end of the report's interval, to the last bit."""
    trials = [solved(9000)] * successes + [NEVER] * failures
    (summary,) = summarised(results(trials))
    assert worth_in_a_search(trials)["success_rate"] == summary.success_rate_interval[0]


def test_values_are_the_worse_ends_of_intervals():
    """Values of times and errors are upper ends: above the estimates, with unsolved trials at the worst value."""
    ends = worth([solved(1000 * (i + 1), 1e-5 * (i + 1)) for i in range(10)] + [NEVER] * 2)
    times = np.array([1000 * (i + 1) for i in range(10)] + [MOST] * 2)
    errors = np.array([1e-5 * (i + 1) for i in range(10)] + [0.5] * 2)
    assert np.exp(np.log(times).mean()) < ends["solved_at"] < ends["time_to_success"] < MOST
    assert times.mean() < ends["time_to_success"]
    assert np.exp(np.log(errors).mean()) < ends["sparsity_error"] < 0.5


@pytest.mark.parametrize("outcome", [Outcome.UNSOLVED, Outcome.DIVERGED, Outcome.FAILED, None])
@pytest.mark.parametrize("n", [1, 5])
def test_without_solved_trials_values_are_the_worst(n, outcome):
    """A candidate without solved trials or results has the worst value of each objective."""
    assert worth_in_a_search([{"outcome": outcome}] * n if outcome else []) == {
        "success_rate": 0.0,
        "solved_at": MOST,
        "time_to_success": MOST,
        "sparsity_error": 0.5,
    }


def test_a_search_judges_by_the_results_it_has():
    """Values from a table use the times and errors of solved trials and the number of finished trials."""
    trials = [solved(3000, 1e-3), NEVER, solved(5000, 1e-5), {"outcome": Outcome.DIVERGED}]
    assert worth_in_a_search([*trials, {"outcome": Outcome.FAILED}]) == worth(trials)


def test_unknown_values_of_a_solved_trial_count_as_the_worst():
    """A solved trial without a sparsity error, as with infinite weights, counts with the worst error."""
    unknown = Sample(2, np.array([5000.0, 6000.0]), {"sparsity_error": np.array([1e-6, np.nan])})
    worst = replace(unknown, metrics={"sparsity_error": np.array([1e-6, 0.5])})
    assert values(unknown) == values(worst)


def test_cells_of_other_lengths_are_judged_by_one_measure():
    """Unsolved trials count with the longest training of the search, so that shorter training isn't an advantage."""
    assert worth_in_a_search([NEVER] * 5, CELL.replace(iterations=5000)) == worth([NEVER] * 5)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_the_front_has_the_undominated_candidates(pairs):
    """A candidate is on the front if and only if no other is as good in all objectives and better in one."""
    objectives = objectives_of(["success_rate", "solved_at"], {})
    candidate_values = [(float(a), float(b)) for a, b in pairs]
    expected = {
        i
        for i, (a, b) in enumerate(candidate_values)
        if not any(x >= a and y <= b and (x, y) != (a, b) for x, y in candidate_values)
    }
    assert set(front(candidate_values, objectives)) == expected
    order = ranked(candidate_values, objectives)
    assert sorted(order) == list(range(len(candidate_values)))
    assert set(order[: len(expected)]) == expected


@given(st.lists(st.integers(), unique=True, min_size=1, max_size=30), st.integers(1, 30))
def test_a_spread_keeps_the_ends(candidates, most):
    """A limited number of the front's candidates is selected, including its ends."""
    selection = spread(candidates, most)
    assert len(selection) == min(len(candidates), most)
    assert selection[0] == candidates[0]
    assert most == 1 or selection[-1] == candidates[-1]


# --- any metric -------------------------------------------------------------------------------------------------

ANY = {
    "accuracy": Metric(higher_is_better=True, low=-1.0, high=1.0),
    "ratio": Metric(low=0.5, high=2.0, resolution=1e-3),
    "loss": Metric(),
    "score": Metric(higher_is_better=True, low=0.0),
}
NUMBER = st.one_of(st.none(), st.floats(-3, 3), st.integers(-3, 3).map(float))


def losses(numbers):
    """Return a candidate's loss by metric, from its trials' numbers; None stands for divergence."""
    known = np.array([number for number in numbers if number is not None], dtype=float)
    sample = Sample(len(numbers), np.array([]), dict.fromkeys(ANY, known))
    objectives = objectives_of(list(ANY), ANY)
    return {
        objective.name: objective.loss(v)
        for objective, v in zip(objectives, value_of(sample, list(ANY), ANY, 0), strict=True)
    }


def as_loss(name, number):
    return np.inf if number is None else -number if ANY[name].higher_is_better else number


def not_above(lower, others):
    return {name: loss <= others[name] + 1e-12 * abs(others[name]) for name, loss in lower.items()}


@given(st.lists(NUMBER, min_size=1, max_size=40), st.integers(2, 5))
def test_repeated_trials_never_lower_a_metrics_value(numbers, times):
    """Every sample has a finite value for each metric, and is worth no less if each trial is repeated."""
    single, often = losses(numbers), losses(numbers * times)
    assert all(np.isfinite(loss) for loss in single.values())
    assert all(not_above(often, single).values())
    assert all(not_above(single, losses([None] * len(numbers))).values())


@given(st.lists(NUMBER, min_size=1, max_size=40), st.data())
def test_better_trials_never_lower_a_metrics_value(numbers, data):
    """An improved trial, or another one as good as the best, never makes the value worse."""
    place, other = data.draw(st.integers(0, len(numbers) - 1)), data.draw(NUMBER)
    before = losses(numbers)
    replaced = losses([*numbers[:place], other, *numbers[place + 1 :]])
    for name in ANY:
        if as_loss(name, other) <= as_loss(name, numbers[place]):
            assert not_above(replaced, before)[name]
        best = min(numbers, key=lambda number: as_loss(name, number))
        assert not_above(losses([*numbers, best]), before)[name]


def test_candidates_without_a_number_are_ordered():
    """If the median's bound isn't finite, the share of finite trials decides; any number is better."""
    numbers = [[1e29] * 5, [1.0] * 4 + [None], [1.0] * 2 + [None] * 3, [None] * 5, [None] * 3]
    in_order = [losses(trials)["loss"] for trials in numbers]
    assert in_order == sorted(in_order)
    assert len(set(in_order)) == 4
    assert in_order[0] < NO_NUMBER <= in_order[1]
    assert losses([1e31] * 5) == losses([None] * 5) | {n: losses([1e31] * 5)[n] for n in ("accuracy", "ratio")}


def test_trials_that_failed_count_as_the_worst():
    """A failed trial costs as much as a diverged one, so searches don't prefer crashes; success rates exclude it."""
    names = ["success_rate", *ANY]
    sample = Sample(4, np.array([1.0]), dict.fromkeys(ANY, np.array([0.6, 0.7, 0.8, 0.9])))
    value, broken, diverged = (
        dict(zip(names, value_of(case, names, ANY, 10), strict=True))
        for case in (sample, replace(sample, failed=4), replace(sample, finished=8))
    )
    assert broken["success_rate"] == value["success_rate"] > diverged["success_rate"]
    assert [broken[name] for name in ANY] == [diverged[name] for name in ANY]
    assert broken["loss"] > value["loss"]


def test_recorded_values_are_the_same_bits():
    """Values equal those recorded by earlier versions, to the last bit."""
    sample = Sample(7, np.array([3000.0, 5000.0, 9000.0]), {"sparsity_error": np.array([0, 1e-5, 0.3])})
    assert [value.hex() for value in values(sample)] == [
        "0x1.4408c57f10366p-3",
        "0x1.02ff72113b3d6p+14",
        "0x1.175d62f791d20p+14",
        "0x1.62c8e93e9ece5p-3",
    ]
