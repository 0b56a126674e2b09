"""The values of candidates, and which of them no other beats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.analysis.aggregate import aggregate
from study.arrow import results_table
from study.records import Outcome, Result, Trial
from study.search import Evidence
from study.search.objectives import OBJECTIVES, Sample, front, ranked, spread, value_of
from tests.study.builders import small_cell

NAMES = list(OBJECTIVES)
MOST = 20_000
CELL = small_cell(iterations=MOST)
MEASURED = ("solved_at_iteration", "sparsity_error")
NEVER = {"outcome": Outcome.UNSOLVED}


def solved(at, error=1e-6):
    """Return a solved trial's result."""
    return {"outcome": Outcome.SOLVED, "solved_at_iteration": at, "sparsity_error": error}


def results(trials, cell=CELL):
    """Make a table of trials from their results."""
    made = []
    for i, of in enumerate(trials):
        metrics = {name: of[name] for name in ("sparsity_error",) if name in of}
        at = of.get("solved_at_iteration")
        made.append(Result(trial=Trial(cell, i), outcome=of["outcome"], metrics=metrics, solved_at_iteration=at))
    return results_table(made)


def worth(trials):
    """Compute the value of trials by each objective."""
    solved_trials = [trial for trial in trials if trial["outcome"] is Outcome.SOLVED]
    columns = ([trial[name] for trial in solved_trials] for name in MEASURED)
    sample = Sample(len(trials), *(np.array(column, dtype=float) for column in columns))
    return dict(zip(NAMES, value_of(sample, NAMES, MOST), strict=True))


def worth_in_a_search(trials, cell=CELL):
    """Compute it as a search does, from a table of results."""
    value = Evidence(results(trials, cell)).value(cell, range(len(trials)), NAMES, MOST)
    return dict(zip(NAMES, value, strict=True))


def no_worse(trials, than):
    """Return for each objective whether some trials are worth no less than others, apart from rounding."""
    here, there = worth(trials), worth(than)
    losses = {name: (OBJECTIVES[name].loss(here[name]), OBJECTIVES[name].loss(there[name])) for name in NAMES}
    return {name: a <= b + 1e-12 * abs(b) for name, (a, b) in losses.items()}


EACH = dict.fromkeys(NAMES, True)
SOLVED = st.builds(solved, st.integers(0, MOST), st.one_of(st.just(0.0), st.floats(1e-9, 0.7)))
TRIALS = st.lists(st.one_of(SOLVED, st.sampled_from([NEVER, {"outcome": Outcome.DIVERGED}])), min_size=1, max_size=25)


@given(TRIALS)
def test_every_sample_has_values(trials):
    """Of one seed or many, whatever came of them: values are finite, and no worse than of nothing solved."""
    values = worth(trials)
    assert all(np.isfinite(value) for value in values.values())
    assert no_worse(trials, [NEVER] * len(trials)) == EACH


@given(TRIALS, st.data())
def test_better_trials_are_never_worth_less(trials, data):
    """One trial more that is solved, however late, or one solved earlier, or with less error, never ranks lower."""
    place = data.draw(st.integers(0, len(trials) - 1))
    before = trials[place]
    better = data.draw(SOLVED)
    if before["outcome"] is Outcome.SOLVED:
        better |= {name: min(before[name], better[name]) for name in MEASURED}
    assert no_worse([*trials[:place], better, *trials[place + 1 :]], trials) == EACH


@given(TRIALS, st.integers(2, 5))
def test_more_seeds_of_the_same_are_never_worth_less(trials, times):
    """A sample each of whose trials is there several times is worth no less."""
    assert no_worse(trials * times, trials) == EACH


@given(TRIALS)
def test_one_more_that_is_as_good_as_any_is_never_worth_less(trials):
    """A trial more that is solved as early as any, with as little error, never ranks its candidate lower."""
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
def test_what_is_better_is_worth_more(name):
    """Samples of which nobody would take the second are ranked so by all objectives that see a difference."""
    better, worse = PAIRS[name]
    assert no_worse(better, worse) == EACH
    assert worth(better) != worth(worse)


def test_perfect_candidates_are_told_apart_by_what_they_cost():
    """Of candidates that always succeed the quicker is worth more, and the one with less error."""
    quick, exact = worth([solved(5000, 1e-4)] * 40), worth([solved(9000, 1e-6)] * 40)
    assert quick["success_rate"] == exact["success_rate"]
    assert quick["solved_at"] < exact["solved_at"]
    assert quick["time_to_success"] < exact["time_to_success"]
    assert quick["sparsity_error"] > exact["sparsity_error"]


@pytest.mark.parametrize(("successes", "failures"), [(0, 1), (1, 0), (5, 0), (3, 2), (17, 23), (40, 0)])
def test_the_success_rate_is_wilsons_lower_end(successes, failures):
    """The success rate is worth the end that the report shows, to the last bit."""
    trials = [solved(9000)] * successes + [NEVER] * failures
    (summary,) = aggregate(results(trials))
    assert worth_in_a_search(trials)["success_rate"] == summary.success_rate_interval[0]


def test_values_are_the_worse_ends_of_intervals():
    """Times and errors are upper ends: above the estimates themselves, with what was not solved at the worst."""
    values = worth([solved(1000 * (i + 1), 1e-5 * (i + 1)) for i in range(10)] + [NEVER] * 2)
    times = np.array([1000 * (i + 1) for i in range(10)] + [MOST] * 2)
    errors = np.array([1e-5 * (i + 1) for i in range(10)] + [0.5] * 2)
    assert np.exp(np.log(times).mean()) < values["solved_at"] < values["time_to_success"] < MOST
    assert times.mean() < values["time_to_success"]
    assert np.exp(np.log(errors).mean()) < values["sparsity_error"] < 0.5


@pytest.mark.parametrize("outcome", [Outcome.UNSOLVED, Outcome.DIVERGED, Outcome.FAILED, None])
@pytest.mark.parametrize("n", [1, 5])
def test_nothing_solved_is_the_worst_there_is(n, outcome):
    """A candidate that nothing solved, or that has no result, has the worst value of each objective."""
    assert worth_in_a_search([{"outcome": outcome}] * n if outcome else []) == {
        "success_rate": 0.0,
        "solved_at": MOST,
        "time_to_success": MOST,
        "sparsity_error": 0.5,
    }


def test_a_search_judges_by_the_results_it_has():
    """Of a table of results the solved trials' times and errors count, and how many trials finished."""
    trials = [solved(3000, 1e-3), NEVER, solved(5000, 1e-5), {"outcome": Outcome.DIVERGED}]
    assert worth_in_a_search([*trials, {"outcome": Outcome.FAILED}]) == worth(trials)


def test_what_is_not_known_of_a_solved_trial_counts_as_the_worst():
    """A solved trial without its sparsity error, as of weights that became infinite, is no gap."""
    gone = Sample(2, np.array([5000.0, 6000.0]), np.array([1e-6, np.nan]))
    there = replace(gone, sparsity_error=np.array([1e-6, 0.5]))
    assert value_of(gone, NAMES, MOST) == value_of(there, NAMES, MOST)


def test_cells_of_other_lengths_are_judged_by_one_measure():
    """Trials that never succeed count as the search's longest, so that a shorter training gains nothing."""
    assert worth_in_a_search([NEVER] * 5, CELL.replace(iterations=5000)) == worth([NEVER] * 5)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_the_front_is_what_nothing_beats(pairs):
    """A candidate is on the front if and only if no other is as good in all and better in one."""
    names = ["success_rate", "solved_at"]
    values = [(float(a), float(b)) for a, b in pairs]
    expected = {
        i for i, (a, b) in enumerate(values) if not any(x >= a and y <= b and (x, y) != (a, b) for x, y in values)
    }
    assert set(front(values, names)) == expected
    order = ranked(values, names)
    assert sorted(order) == list(range(len(values)))
    assert set(order[: len(expected)]) == expected


@given(st.lists(st.integers(), unique=True, min_size=1, max_size=30), st.integers(1, 30))
def test_a_spread_keeps_the_ends(some, most):
    """At most so many of a front are selected, its ends among them."""
    selection = spread(some, most)
    assert len(selection) == min(len(some), most)
    assert selection[0] == some[0]
    assert most == 1 or selection[-1] == some[-1]
