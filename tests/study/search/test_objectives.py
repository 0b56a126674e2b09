"""What candidates are worth, and which of them nothing beats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import statistics
from study.aggregate import aggregate
from study.records import Outcome, Result, Trial
from study.search.objectives import OBJECTIVES, front, ranked, spread, value_of
from study.table import results_table
from tests.study.conftest import small_cell

NAMES = list(OBJECTIVES)
CELL = small_cell(iterations=20_000)


def worth(solved: int, n: int, names: list[str] = NAMES) -> dict[str, float]:
    results = [
        Result(
            trial=Trial(CELL, seed),
            outcome=Outcome.SOLVED if seed < solved else Outcome.UNSOLVED,
            solved_at_iteration=1000 * (seed + 1) if seed < solved else None,
            sparsity_error=1e-5 * (seed + 1) if seed < solved else None,
            iterations=20_000,
        )
        for seed in range(n)
    ]
    (summary,) = aggregate(results_table(results), planned={CELL: n})
    return dict(zip(names, value_of(summary, names), strict=True))


def test_few_seeds_count_for_little():
    """All of five seeds are worth less than nine tenths of forty."""
    assert worth(5, 5)["success_rate"] == pytest.approx(statistics.wilson(5, 5)[0])
    assert worth(5, 5)["success_rate"] < worth(36, 40)["success_rate"] < 0.9


def test_values_are_the_worse_ends_of_intervals():
    """Times and errors are upper ends: above the estimate itself."""
    found = worth(10, 12)
    assert 5500 < found["solved_at"] <= 20_000
    assert found["time_to_success"] > (sum(range(1000, 11_000, 1000)) + 2 * 20_000) / 12
    assert 5.5e-5 < found["sparsity_error"] < 0.5


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nothing_solved_is_the_worst_there_is(n):
    """A candidate that nothing solved, or that has no result, has the worst value of each objective."""
    assert worth(0, n) == {
        "success_rate": 0.0,
        "solved_at": 20_000.0,
        "time_to_success": 20_000.0,
        "sparsity_error": 0.5,
    }


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_the_front_is_what_nothing_beats(pairs):
    """A candidate is on the front if and only if no other is as good in all and better in one."""
    names = ["success_rate", "solved_at"]
    values = [(float(a), float(b)) for a, b in pairs]
    expected = {
        i
        for i, (a, b) in enumerate(values)
        if not any(x >= a and y <= b and (x, y) != (a, b) for x, y in values)
    }
    assert set(front(values, names)) == expected
    order = ranked(values, names)
    assert sorted(order) == list(range(len(values)))
    assert set(order[: len(expected)]) == expected


@given(st.lists(st.integers(), unique=True, min_size=1, max_size=30), st.integers(1, 30))
def test_a_spread_keeps_the_ends(some, most):
    """Of a front so many are taken, the ends among them."""
    taken = spread(some, most)
    assert len(taken) == min(len(some), most)
    assert taken[0] == some[0]
    assert most == 1 or taken[-1] == some[-1]
