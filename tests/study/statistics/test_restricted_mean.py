"""Restricted means: lifelines' area, Greenwood's error, an interval that holds any law's mean, degenerate samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time
from scipy import stats

from study import statistics

UNTIL = 20.0
TRIALS = st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=60)
CENSORED_AT_END = st.lists(st.integers(1, 40), min_size=1, max_size=60)
CONFIDENCES = st.sampled_from([0.01, 0.5, 0.8, 0.95, 0.999])


def columns(trials):
    """Turn rows into times and flags."""
    return [float(t) for t, _ in trials], [s for _, s in trials]


def coverage(draw, truth, n, studies=4000, until=1.0):
    """Give the share of studies of n seeds whose interval holds the truth."""
    times, solved = draw(np.random.default_rng(n), (studies, n))
    found = statistics.restricted_means(times.ravel(), solved.ravel(), [n] * studies, until).interval
    found = found[~np.isnan(found[:, 0])]
    assert len(found) > 0.6 * studies
    holds = (found[:, 0] <= truth + 1e-12) & (found[:, 1] >= truth - 1e-12)
    return holds.mean()


def ended_at_one(at):
    """Make trials of times to success: all end at 1."""
    return np.minimum(at, 1.0), at <= 1.0


@given(TRIALS)
def test_restricted_mean_is_lifelines_area(trials):
    """The restricted mean is the area under lifelines' curve."""
    times, solved = columns(trials)
    until = max(*times, 1.0)
    found = statistics.restricted_mean(times, solved, until)
    theirs = restricted_mean_survival_time(KaplanMeierFitter().fit(times, solved), t=until)
    if found is not None:
        assert found.mean == pytest.approx(theirs, abs=1e-9)


@given(CENSORED_AT_END, st.integers(5, 30))
def test_without_early_censoring_it_is_the_sample_mean(ends, until):
    """With no trial censored before, it is the mean of the cut times, with the plain standard error of a mean."""
    cut = np.minimum(np.array(ends, dtype=float), until)
    found = statistics.restricted_mean(cut, np.array(ends) <= until, until)
    assert found.mean == pytest.approx(cut.mean(), abs=1e-9)
    if np.all(cut == until):
        assert found.standard_error is None
        return
    assert found.standard_error == pytest.approx(cut.std() / math.sqrt(len(cut)), abs=1e-9)


def test_standard_error_is_the_scatter():
    """Over 2000 studies with trials censored at random the standard error is the estimates' scatter within 5%."""
    rng = np.random.default_rng(2)
    success, end = rng.gamma(4, 5, (2000, 60)), rng.uniform(5, 60, (2000, 60))
    times, solved = np.minimum(success, end), success <= end
    found = statistics.restricted_means(times.ravel(), solved.ravel(), [60] * 2000, 25)
    is_known = ~np.isnan(found.mean)
    assert is_known.sum() > 1900
    assert found.standard_error[is_known].mean() == pytest.approx(found.mean[is_known].std(), rel=0.05)


@given(TRIALS, CONFIDENCES)
def test_interval_is_within_zero_and_until_and_holds_the_mean(trials, confidence):
    """Whatever the trials, the interval has two ends, lies within 0 and `until`, and holds the estimate."""
    found = statistics.restricted_mean(*columns(trials), UNTIL, confidence)
    if found is not None:
        low, high = found.interval
        assert 0 <= low <= found.mean <= high <= UNTIL


@given(TRIALS)
def test_more_confidence_is_a_wider_interval(trials):
    """An interval of more confidence holds that of less."""
    found = [statistics.restricted_mean(*columns(trials), UNTIL, c) for c in (0.01, 0.5, 0.95, 0.999)]
    if found[0] is not None:
        lows, highs = zip(*(estimate.interval for estimate in found), strict=True)
        assert list(lows) == sorted(lows, reverse=True)
        assert list(highs) == sorted(highs)


@given(TRIALS, st.sampled_from([1e-3, 0.3, 1 / 7, 3600.0]))
def test_units_of_time_change_nothing(trials, unit):
    """In other units (seconds for iterations) mean, error and interval are the same times."""
    times, solved = columns(trials)
    here = statistics.restricted_mean(times, solved, UNTIL)
    there = statistics.restricted_mean([t * unit for t in times], solved, UNTIL * unit)
    assert (here is None) == (there is None)
    if here is not None:
        assert there.mean == pytest.approx(here.mean * unit)
        assert there.standard_error == (
            here.standard_error and pytest.approx(here.standard_error * unit, abs=1e-9 * unit)
        )
        assert there.interval == pytest.approx(
            [end * unit for end in here.interval], rel=1e-7, abs=1e-9 * unit
        )


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), CONFIDENCES)
def test_solved_at_once_or_never_is_clopper_and_pearsons(counts, confidence):
    """Where all are solved at 0 or not at all, the ends are those of the exact interval of the share unsolved."""
    solved, n = counts
    times, flags = [0.0] * solved + [UNTIL] * (n - solved), [True] * solved + [False] * (n - solved)
    found = statistics.restricted_mean(times, flags, UNTIL, confidence)
    exact = stats.binomtest(n - solved, n).proportion_ci(confidence, method="exact")
    assert found.interval == pytest.approx(
        (min(UNTIL * exact.low, found.mean), max(UNTIL * exact.high, found.mean)), rel=1e-9, abs=1e-12
    )


@given(st.integers(1, 100), st.integers(0, 20))
def test_equal_times_leave_room_for_what_was_not_seen(n, at):
    """Where all are solved at one time, the ends are those of a share that none of n trials has: 1 - 0.025^(1/n)."""
    unseen = 1 - 0.025 ** (1 / n)
    found = statistics.restricted_mean([float(at)] * n, [True] * n, UNTIL)
    assert found.interval == pytest.approx(
        (at * (1 - unseen), at + (UNTIL - at) * unseen), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("n", [5, 10, 50])
def test_interval_is_nearly_that_of_drawn_spacings(n):
    """Ends are those of 20,000 drawn means, weighted by uniform spacings with 0 or `until` among them, within 1.5%."""
    rng = np.random.default_rng(n)
    times = np.minimum(rng.gamma(2, 0.4, n), 1.0)
    spacings = rng.dirichlet(np.ones(n + 1), 20_000)
    expected = (
        np.quantile(spacings[:, :n] @ times, 0.025),
        np.quantile(spacings[:, :n] @ times + spacings[:, n], 0.975),
    )
    found = statistics.restricted_mean(times, times < 1, 1.0)
    assert found.interval == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("n", [5, 10, 20, 50])
def test_interval_holds_the_mean_where_most_are_solved_just_before_the_end(n):
    """Nine of ten trials within 2% of `until`, one long before: 95% of intervals hold the mean, with any seeds."""

    def draw(rng, shape):
        at = np.where(rng.random(shape) < 0.9, rng.uniform(0.98, 1, shape), rng.uniform(0, 0.5, shape))
        return at, np.ones(shape, bool)

    assert coverage(draw, 0.9 * 0.99 + 0.1 * 0.25, n) >= 0.95


@pytest.mark.parametrize("n", [5, 20, 100])
@pytest.mark.parametrize(("rare", "usual"), [(0.0, 0.5), (0.02, 0.98), (2.0, 0.5), (2.0, 0.02), (0.99, 0.0)])
def test_interval_holds_the_mean_where_few_trials_are_unlike_the_rest(rare, usual, n):
    """Three trials of a hundred at once, late or never, which a study may not have seen: 95% of intervals hold."""

    def draw(rng, shape):
        return ended_at_one(np.where(rng.random(shape) < 0.03, rare, usual))

    assert coverage(draw, 0.03 * min(rare, 1.0) + 0.97 * usual, n) >= 0.95


@pytest.mark.parametrize("n", [10, 20, 100])
def test_interval_holds_the_mean_where_trials_ended_early(n):
    """Four trials of five end before anything happens: what the fifth says is taken for no more than it is."""

    def draw(rng, shape):
        at = np.where(rng.random(shape) < 0.5, 0.3, 2.0)
        end = np.where(rng.random(shape) < 0.8, 0.25, 1.0)
        return np.minimum(at, end), at <= end

    assert coverage(draw, 0.5 * 0.3 + 0.5, n) >= 0.95


def test_restricted_mean_of_degenerate_samples():
    """It is None where the curve isn't known so far; none solved has no error, all at once an error of zero."""
    assert statistics.restricted_mean([], [], 10) is None
    assert statistics.restricted_mean([5.0, 3.0], [False, True], 10) is None
    assert statistics.restricted_mean([5.0, 3.0], [True, True], 10).mean == 4.0
    none = statistics.restricted_mean([10.0] * 3, [False] * 3, 10)
    assert (none.mean, none.standard_error, none.interval[1]) == (10.0, None, 10.0)
    at_once = statistics.restricted_mean([4.0] * 3, [True] * 3, 10)
    assert (at_once.mean, at_once.standard_error) == (4.0, 0.0)
    at_zero = statistics.restricted_mean([0.0] * 3, [True] * 3, 10)
    assert (at_zero.mean, at_zero.interval[0]) == (0.0, 0.0)


@pytest.mark.parametrize("until", [0.0, -1.0, math.nan, math.inf])
def test_restricted_mean_needs_an_end(until):
    """An end that is not a positive number is refused."""
    with pytest.raises(ValueError, match="until"):
        statistics.restricted_mean([1.0], [True], until)
