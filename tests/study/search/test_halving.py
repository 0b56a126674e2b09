"""Successive halving: rungs, costs, and the surviving candidates."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.search.halving import affordable, compare, cost, rungs, survivors
from study.search.objectives import objectives_of
from study.spec.tables import Search
from tests.study.builders import small_cell

RATE = objectives_of(["success_rate"], {})
CELLS = [small_cell(learning_rate=0.001 * (i + 1)) for i in range(12)]


def table(**changes: object) -> Search:
    return Search(**({"objective": "success_rate", "trials": 600} | changes))


@given(first=st.integers(1, 50), most=st.integers(1, 500), keep=st.floats(0.05, 0.95), count=st.integers(1, 60))
def test_rungs_grow_to_the_most_and_survivors_never_vanish(first, most, keep, count):
    """Rungs grow strictly and end at the study's seeds; at least one candidate survives each rung."""
    search = table(first_seeds=first, keep=keep)
    steps = rungs(search, most)
    assert steps[-1] == most
    assert all(a < b for a, b in itertools.pairwise(steps))
    assert 1 <= survivors(search, count) <= count
    assert cost(search, most, count) <= count * most


@given(trials=st.integers(0, 2000), most=st.integers(1, 60))
def test_affordable_candidates_fit_the_remaining_trials(trials, most):
    """The affordable number of candidates is the largest one that fits the remaining trials and can be compared."""
    search = table()
    count = affordable(search, most, trials)
    assert cost(search, most, count) <= trials if count else True
    assert count == search.candidates or cost(search, most, count + 1) > trials


def test_the_cost_of_a_round_is_its_number_of_trials():
    """The cost of a comparison is known in advance, whatever its results."""
    search = table()
    comparison = compare(search, RATE, 40, CELLS, lambda cell, n: (cell.value("learning_rate") * n,))
    assert sum(comparison.seeds) == cost(search, 40, 12)
    assert sorted(comparison.seeds) == [5] * 8 + [15] * 2 + [40] * 2
    assert comparison.values is not None


def test_pending_candidates_are_waited_for():
    """While a result is pending no candidate survives, and only the first seeds of all are planned."""
    comparison = compare(table(), RATE, 40, CELLS, lambda cell, n: None if cell is CELLS[3] else (0.5,))
    assert comparison.values is None
    assert comparison.seeds == (5,) * 12


def test_the_best_go_on():
    """The best candidates survive, and ties go to those suggested first."""
    comparison = compare(table(), RATE, 40, CELLS, lambda cell, n: (cell.value("learning_rate"),))
    assert [i for i, n in enumerate(comparison.seeds) if n > 5] == [8, 9, 10, 11]
    equal = compare(table(), RATE, 40, CELLS, lambda cell, n: (0.5,))
    assert [i for i, n in enumerate(equal.seeds) if n > 5] == [0, 1, 2, 3]


@pytest.mark.parametrize("keep", [0.5, 1 / 3, 0.25])
def test_a_share_that_is_exact_is_not_rounded_up(keep):
    """A third of 12 candidates is 4, although no float is exactly a third."""
    assert survivors(table(keep=keep), 12) == round(12 * keep)
