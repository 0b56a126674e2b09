"""The trials included in each statistic: times to success, seconds, and restriction times."""

from __future__ import annotations

import pyarrow as pa
import pytest

from study import statistics
from study.statistics.samples import intervals
from tests.study.builders import summarised_by


def outcomes(**columns: list[object]) -> pa.Table:
    """Build a table of outcomes of one group."""
    n = len(columns["outcome"])
    content: dict[str, list[object]] = {
        "solved_at_iteration": [None] * n,
        "training_s": [None] * n,
        "trained_iterations": [None] * n,
        "stopped_early": [False] * n,
    }
    return pa.table(content | columns)


def summary(**columns: list[object]):
    """Return the summary of one group."""
    (result,) = summarised_by(outcomes(**columns), [])
    return result


MIXED = {
    "outcome": ["solved", "solved", "unsolved", "diverged", "failed", None],
    "solved_at_iteration": [10.0, 30.0, None, None, None, None],
    "trained_iterations": [100.0, 100.0, 100.0, 20.0, None, None],
    "training_s": [50.0, 60.0, 50.0, 4.0, None, None],
}


def test_times_are_of_all_that_finished():
    """Times are solved-at or the last iteration, for diverged trials the longest trial's; other trials are excluded."""
    result = summary(**MIXED)
    times, solved = result.times.known("iterations")
    assert times.tolist() == [10, 30, 100, 100]
    assert solved.tolist() == [True, True, False, False]
    expected = statistics.restricted_means(times, solved, until=100)
    assert (result.time_to_success_mean, result.time_to_success_until) == (60.0, 100.0)
    assert [result.time_to_success_interval] == intervals(expected.interval)


def test_seconds_until_solved_are_a_share_of_the_training():
    """Seconds are proportional to iterations: solved at 10 of 100 iterations is a tenth of the seconds."""
    result = summary(**MIXED)
    seconds, _ = result.times.known("seconds")
    assert seconds.tolist() == pytest.approx([5.0, 18.0, 50.0, 20.0])
    assert result.solved_at_s_mean == pytest.approx(11.5)
    assert result.solved_at_s_median == pytest.approx(11.5)
    assert [result.solved_at_s_interval] == intervals(statistics.gamma_mean_intervals([5.0, 18.0]))
    assert result.training_s_mean == pytest.approx(41.0)


def test_a_trial_stopped_without_success_counts_as_observed_to_the_end():
    """A trial ended by `stop: when_decided` counts as observed to the planned end, since it can't succeed later."""
    result = summary(
        outcome=["solved", "unsolved"],
        solved_at_iteration=[4000.0, None],
        sparsity_error=[0.1, None],
        trained_iterations=[5000.0, 1000.0],
        stopped_early=[False, True],
    )
    assert result.times.known("iterations")[0].tolist() == [4000, 5000]
    assert result.time_to_success_mean == 4500


def test_a_trial_runs_to_the_protocols_iterations():
    """If iterations are planned, a diverged trial has that time, and an unsolved trial its own end."""
    result = summary(**MIXED, iterations=[200] * 6)
    assert result.times.known("iterations")[0].tolist() == [10, 30, 100, 200]
    assert (result.time_to_success_until, result.ended_early) == (200, 1)


def models(*ends: list[float], **columns: list[object]) -> pa.Table:
    """Build models A, B, ... of a question: each has one trial solved at 20, and unsolved trials that end as given."""
    trials = [
        (name, outcome, at, end)
        for name, of_model in zip("ABCDEFGHIJ", ends, strict=False)
        for outcome, at, end in (("solved", 20.0, max(of_model)), *(("unsolved", None, end) for end in of_model))
    ]
    names = ("model", "outcome", "solved_at_iteration", "trained_iterations")
    return outcomes(**dict(zip(names, map(list, zip(*trials, strict=True)), strict=True)), **columns)


def test_two_rows_are_restricted_to_the_shorter_ones_end():
    """A row that ran longer than the other of its question is restricted to the common time."""
    summaries = summarised_by(models([100.0], [300.0]), ["model"])
    assert [s.time_to_success_until for s in summaries] == [100, 100]
    assert [s.time_to_success_mean for s in summaries] == [60.0, 60.0]
    assert [s.ended_early for s in summaries] == [0, 0]


def test_a_trial_that_ended_early_is_censored_in_its_row_only():
    """A single trial with few iterations restricts no row; it is censored in its own row."""
    full_length = [[100_000.0] * 3] * 4
    plain = summarised_by(models(*full_length), ["model"])
    summaries = summarised_by(models([100_000.0, 100_000.0, 8000.0], *full_length[1:]), ["model"])
    assert summaries[1:] == plain[1:]
    short = summaries[0]
    assert (short.time_to_success_until, short.ended_early) == (100_000, 1)
    times, solved = [20.0, 100_000.0, 100_000.0, 8000.0], [True, False, False, False]
    expected = statistics.restricted_means(times, solved, until=100_000)
    assert [short.time_to_success_mean] == expected.mean.tolist()
    assert [short.time_to_success_interval] == intervals(expected.interval)


def test_a_row_of_short_trials_alone_has_no_mean():
    """A row whose trials all ended before the question's restriction time has no mean; other rows keep theirs."""
    full_length = [[100_000.0] * 3] * 4
    plain = summarised_by(models(*full_length), ["model"])
    summaries = summarised_by(models(*full_length[1:], [8000.0]), ["model"])
    assert summaries[:3] == plain[:3]
    assert (summaries[3].time_to_success_mean, summaries[3].time_to_success_interval) == (None, None)
    assert (summaries[3].time_to_success_until, summaries[3].ended_early) == (100_000, 1)


def test_a_longer_row_restricts_no_other_row():
    """A row with a trial that ran ten times as long restricts no other row."""
    summaries = summarised_by(models(*[[100.0] * 2] * 4, [100.0, 1000.0]), ["model"])
    assert [s.time_to_success_until for s in summaries] == [100] * 5


def test_training_that_stops_at_success_restricts_no_other_row():
    """If training stops at success, only unsolved trials show the planned length."""
    table = outcomes(
        outcome=["solved", "solved", "solved", "unsolved"],
        solved_at_iteration=[10.0, 20.0, 30.0, None],
        trained_iterations=[10.0, 20.0, 30.0, 100.0],
        model=["A", "A", "B", "B"],
    )
    summaries = summarised_by(table, ["model"])
    assert [s.time_to_success_until for s in summaries] == [100, 100]
    assert [s.time_to_success_mean for s in summaries] == [15.0, 65.0]
    all_solved = summarised_by(table.slice(0, 3), ["model"])
    assert [s.time_to_success_until for s in all_solved] == [30, 30]


def test_each_question_has_its_own_end():
    """Rows of another task, or of another swept protocol, are restricted to their own iterations."""
    table = models([100.0], [300.0], [300.0])
    tasks = table.append_column("task", pa.array(["x"] * 2 + ["y"] * 4))
    summaries = summarised_by(tasks, ["task", "model"])
    assert [s.time_to_success_until for s in summaries] == [100, 300, 300]
    swept = table.append_column("iterations", pa.array([100] * 2 + [300] * 4))
    summaries = summarised_by(swept, ["model", "iterations"])
    assert [s.time_to_success_until for s in summaries] == [100, 300, 300]


def test_the_shortest_plan_of_a_question_is_its_end():
    """If the table has planned lengths, the smallest of a question is its end, however long its trials ran."""
    table = models([50.0], [300.0], [300.0]).append_column("iterations", pa.array([100] * 2 + [300] * 4))
    summaries = summarised_by(table, ["model"])
    assert [s.time_to_success_until for s in summaries] == [100] * 3
    assert [s.ended_early for s in summaries] == [1, 0, 0]


def test_rows_with_unknown_iterations_dont_affect_others():
    """A file without last iterations has no restricted mean, and doesn't affect other files."""
    table = models([100.0], [100.0])
    unknown = table.slice(0, 2).drop_columns("trained_iterations").append_column("trained_iterations", pa.nulls(2))
    summaries = summarised_by(pa.concat_tables([unknown, table.slice(2)], promote_options="permissive"), ["model"])
    assert summaries[0].time_to_success_mean is None
    assert summaries[1].time_to_success_mean == 60


@pytest.mark.parametrize("missing", ["trained_iterations", "training_s"])
def test_unmeasured_statistics_are_none(missing):
    """Without last iterations survival is None, without seconds the seconds are; other statistics stay."""
    result = summary(**{**MIXED, missing: [None] * 6})
    complete = summary(**MIXED)
    assert result.solved_at_mean == complete.solved_at_mean
    assert result.solved_at_s_mean is None
    assert result.times.known("seconds") is None
    assert (result.time_to_success_mean is None) == (missing == "trained_iterations")


def test_a_zero_among_times_is_a_time():
    """A trial solved at iteration 0 has a mean and a survival, but no gamma interval."""
    result = summary(
        outcome=["solved", "solved"],
        solved_at_iteration=[0.0, 10.0],
        sparsity_error=[0.1, 0.2],
        trained_iterations=[10.0, 10.0],
        training_s=[1.0, 1.0],
    )
    assert (result.solved_at_mean, result.solved_at_interval) == (5.0, None)
    assert (result.time_to_success_mean, result.solved_at_s_mean) == (5.0, 0.5)
