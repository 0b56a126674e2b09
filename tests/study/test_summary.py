"""Who enters which number: times to success, seconds, and where they end."""

from __future__ import annotations

import pyarrow as pa
import pytest

from study import statistics
from study.aggregate import aggregate_by


def outcomes(**columns: list[object]) -> pa.Table:
    """Make outcomes of one group."""
    n = len(columns["outcome"])
    content: dict[str, list[object]] = {
        "solved_at_iteration": [None] * n,
        "sparsity_error": [None] * n,
        "training_s": [None] * n,
        "trained_iterations": [None] * n,
        "stopped_early": [False] * n,
    }
    return pa.table(content | columns)


def summary(**columns: list[object]):
    """Summarise one group."""
    (found,) = aggregate_by(outcomes(**columns), [])
    return found


MIXED = {
    "outcome": ["solved", "solved", "unsolved", "diverged", "failed", None],
    "solved_at_iteration": [10.0, 30.0, None, None, None, None],
    "sparsity_error": [0.1, 0.1, None, None, None, None],
    "trained_iterations": [100.0, 100.0, 100.0, 20.0, None, None],
    "training_s": [50.0, 60.0, 50.0, 4.0, None, None],
}


def test_times_are_of_all_that_finished():
    """Solved at, or watched to the last iteration; a diverged trial to the longest trial's; others don't enter."""
    found = summary(**MIXED)
    times, solved = found.times.known("iterations")
    assert times.tolist() == [10, 30, 100, 100]
    assert solved.tolist() == [True, True, False, False]
    expected = statistics.restricted_mean(times, solved, 100)
    assert (found.time_to_success_mean, found.time_to_success_until) == (60.0, 100.0)
    assert found.time_to_success_interval == expected.interval


def test_seconds_until_solved_are_a_share_of_the_training():
    """Seconds grow with iterations: solved at 10 of 100 iterations, a tenth of the seconds."""
    found = summary(**MIXED)
    seconds, _ = found.times.known("seconds")
    assert seconds.tolist() == pytest.approx([5.0, 18.0, 50.0, 20.0])
    assert found.solved_at_s_mean == pytest.approx(11.5)
    assert found.solved_at_s_median == pytest.approx(11.5)
    assert found.solved_at_s_interval == statistics.gamma_mean_interval([5.0, 18.0])
    assert found.training_s_mean == pytest.approx(41.0)


def test_a_trial_stopped_without_success_is_watched_to_the_end():
    """What `stop: when_decided` ended can't succeed any more: it isn't one that might have a moment later."""
    found = summary(
        outcome=["solved", "unsolved"],
        solved_at_iteration=[4000.0, None],
        sparsity_error=[0.1, None],
        trained_iterations=[5000.0, 1000.0],
        stopped_early=[False, True],
    )
    assert found.times.known("iterations")[0].tolist() == [4000, 5000]
    assert found.time_to_success_mean == 4500


def test_the_protocols_iterations_are_what_a_trial_runs_to():
    """Where a table says the protocol's iterations, a diverged trial is watched up to there."""
    found = summary(**MIXED, iterations=[200] * 6)
    assert found.times.known("iterations")[0].tolist() == [10, 30, 200, 200]


def test_the_horizon_is_that_of_the_shortest_protocol_in_the_table():
    """Groups that ran longer are restricted to what all were given, so that means can be compared."""
    table = outcomes(
        outcome=["unsolved", "unsolved", "solved"],
        trained_iterations=[100.0, 300.0, 300.0],
        solved_at_iteration=[None, None, 200.0],
        model=["A", "B", "B"],
    )
    found = aggregate_by(table, ["model"])
    assert [s.time_to_success_mean for s in found] == [100.0, 100.0]
    assert found[1].time_to_success_interval is None  # nothing was solved by then


@pytest.mark.parametrize("missing", ["trained_iterations", "training_s"])
def test_what_nobody_measured_is_none(missing):
    """Without last iterations there is no survival, without seconds no seconds, and nothing else changes."""
    found = summary(**{**MIXED, missing: [None] * 6})
    whole = summary(**MIXED)
    assert found.solved_at_mean == whole.solved_at_mean
    assert found.solved_at_s_mean is None
    assert found.times.known("seconds") is None
    assert (found.time_to_success_mean is None) == (missing == "trained_iterations")


def test_a_zero_among_times_is_a_time():
    """Solved at the first evaluation, before any update: a mean and a survival, no gamma interval."""
    found = summary(
        outcome=["solved", "solved"],
        solved_at_iteration=[0.0, 10.0],
        sparsity_error=[0.1, 0.2],
        trained_iterations=[10.0, 10.0],
        training_s=[1.0, 1.0],
    )
    assert (found.solved_at_mean, found.solved_at_interval) == (5.0, None)
    assert (found.time_to_success_mean, found.solved_at_s_mean) == (5.0, 0.5)
