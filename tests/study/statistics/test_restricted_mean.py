"""Restricted means: lifelines' area, Greenwood's error, intervals for any distribution, degenerate samples."""

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
    """Return the share of studies of n seeds whose interval contains the true value."""
    times, solved = draw(np.random.default_rng(n), (studies, n))
    bounds = statistics.restricted_means(times.ravel(), solved.ravel(), [n] * studies, until=until).interval
    low, high = bounds[~np.isnan(bounds[:, 0])].T
    assert len(low) > 0.6 * studies
    return np.mean((low <= truth + 1e-12) & (high >= truth - 1e-12))


def ended_at_one(at):
    """Make trials of times to success that all end at 1."""
    return np.minimum(at, 1.0), at <= 1.0


@given(TRIALS)
def test_restricted_mean_is_lifelines_area(trials):
    """The restricted mean is the area under lifelines' curve."""
    times, solved = columns(trials)
    until = max(*times, 1.0)
    [mean] = statistics.restricted_means(times, solved, until=until).mean
    theirs = restricted_mean_survival_time(KaplanMeierFitter().fit(times, solved), t=until)
    if not math.isnan(mean):
        assert mean == pytest.approx(theirs, abs=1e-9)


@given(CENSORED_AT_END, st.integers(5, 30))
def test_without_early_censoring_the_restricted_mean_is_the_sample_mean(ends, until):
    """Without earlier censoring, it is the mean of the cut times, with the standard error of a mean."""
    cut = np.minimum(np.array(ends, dtype=float), until)
    estimate = statistics.restricted_means(cut, np.array(ends) <= until, until=until)
    error = math.nan if np.all(cut == until) else cut.std() / math.sqrt(len(cut))
    assert estimate.mean == pytest.approx(cut.mean(), abs=1e-9)
    assert estimate.standard_error == pytest.approx(error, abs=1e-9, nan_ok=True)


def test_standard_error_is_the_scatter():
    """Over 2000 studies with random censoring, the standard error is the estimates' deviation within 5%."""
    rng = np.random.default_rng(2)
    success, end = rng.gamma(4, 5, (2000, 60)), rng.uniform(5, 60, (2000, 60))
    times, solved = np.minimum(success, end), success <= end
    estimates = statistics.restricted_means(times.ravel(), solved.ravel(), [60] * 2000, until=25)
    is_known = ~np.isnan(estimates.mean)
    assert is_known.sum() > 1900
    scatter = estimates.mean[is_known].std()
    assert estimates.standard_error[is_known].mean() == pytest.approx(scatter, rel=0.05)


@given(TRIALS, CONFIDENCES)
def test_interval_is_within_zero_and_until_and_holds_the_mean(trials, confidence):
    """For any trials, the interval has two ends, lies within 0 and `until`, and contains the estimate."""
    estimate = statistics.restricted_means(*columns(trials), until=UNTIL, confidence=confidence)
    [mean], [(low, high)] = estimate.mean, estimate.interval
    if not math.isnan(mean):
        assert 0 <= low <= mean <= high <= UNTIL


@given(TRIALS)
def test_more_confidence_is_a_wider_interval(trials):
    """An interval of higher confidence contains that of lower confidence."""
    low, high = np.concatenate(
        [
            statistics.restricted_means(*columns(trials), until=UNTIL, confidence=confidence).interval
            for confidence in (0.01, 0.5, 0.95, 0.999)
        ]
    ).T
    if not np.isnan(low).any():
        assert np.all(np.diff(low) <= 0)
        assert np.all(np.diff(high) >= 0)


@given(TRIALS, st.sampled_from([1e-3, 0.3, 1 / 7, 3600.0]))
def test_units_of_time_change_nothing(trials, unit):
    """In other units (seconds for iterations) mean, error and interval are the same times."""
    times, solved = columns(trials)
    means = statistics.restricted_means(times, solved, until=UNTIL)
    scaled_means = statistics.restricted_means([t * unit for t in times], solved, until=UNTIL * unit)
    for name, rel in (("mean", 1e-6), ("standard_error", 1e-6), ("interval", 1e-7)):
        expected = getattr(means, name) * unit
        assert getattr(scaled_means, name) == pytest.approx(expected, rel=rel, abs=1e-9 * unit, nan_ok=True)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), CONFIDENCES)
def test_solved_at_once_or_never_is_clopper_and_pearsons(counts, confidence):
    """If all trials are solved at 0 or never, the ends are those of the exact interval of the unsolved share."""
    solved, n = counts
    times, flags = [0.0] * solved + [UNTIL] * (n - solved), [True] * solved + [False] * (n - solved)
    estimate = statistics.restricted_means(times, flags, until=UNTIL, confidence=confidence)
    exact = stats.binomtest(n - solved, n).proportion_ci(confidence, method="exact")
    [mean] = estimate.mean
    assert estimate.interval[0] == pytest.approx(
        [min(UNTIL * exact.low, mean), max(UNTIL * exact.high, mean)], rel=1e-9, abs=1e-12
    )


@given(st.integers(1, 100), st.integers(0, 20))
def test_equal_times_have_an_interval_for_unseen_ones(n, at):
    """If all are solved at one time, the ends use the bound of a share seen in none of n trials: 1 - 0.025^(1/n)."""
    unseen = 1 - 0.025 ** (1 / n)
    estimate = statistics.restricted_means([float(at)] * n, [True] * n, until=UNTIL)
    assert estimate.interval[0] == pytest.approx([at * (1 - unseen), at + (UNTIL - at) * unseen], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", [5, 10, 50])
def test_interval_is_nearly_that_of_drawn_spacings(n):
    """Ends match 20,000 drawn means with uniform spacings as weights, and 0 or `until` added, within 1.5%."""
    rng = np.random.default_rng(n)
    times = np.minimum(rng.gamma(2, 0.4, n), 1.0)
    spacings = rng.dirichlet(np.ones(n + 1), 20_000)
    expected = (
        np.quantile(spacings[:, :n] @ times, 0.025),
        np.quantile(spacings[:, :n] @ times + spacings[:, n], 0.975),
    )
    estimate = statistics.restricted_means(times, times < 1, until=1.0)
    assert estimate.interval[0] == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("n", [5, 10, 20, 50])
def test_interval_holds_the_mean_where_most_are_solved_just_before_the_end(n):
    """Nine of ten trials are within 2% of `until`, one far below: 95% of intervals cover the mean."""

    def draw(rng, shape):
        at = np.where(rng.random(shape) < 0.9, rng.uniform(0.98, 1, shape), rng.uniform(0, 0.5, shape))
        return at, np.ones(shape, bool)

    assert coverage(draw, 0.9 * 0.99 + 0.1 * 0.25, n) >= 0.95


@pytest.mark.parametrize("n", [5, 20, 100])
@pytest.mark.parametrize(("rare", "usual"), [(0.0, 0.5), (0.02, 0.98), (2.0, 0.5), (2.0, 0.02), (0.99, 0.0)])
def test_interval_holds_the_mean_where_few_trials_are_unlike_the_rest(rare, usual, n):
    """Three of a hundred trials are at once, late or never, and may be unseen: 95% of intervals cover the mean."""

    def draw(rng, shape):
        return ended_at_one(np.where(rng.random(shape) < 0.03, rare, usual))

    assert coverage(draw, 0.03 * min(rare, 1.0) + 0.97 * usual, n) >= 0.95


@pytest.mark.parametrize("n", [10, 20, 100])
def test_interval_holds_the_mean_where_trials_ended_early(n):
    """Four of five trials end before any event: the interval doesn't overweight the fifth."""

    def draw(rng, shape):
        at = np.where(rng.random(shape) < 0.5, 0.3, 2.0)
        end = np.where(rng.random(shape) < 0.8, 0.25, 1.0)
        return np.minimum(at, end), at <= end

    assert coverage(draw, 0.5 * 0.3 + 0.5, n) >= 0.95


def test_restricted_mean_of_degenerate_samples():
    """The mean is NaN if the curve ends before `until`; without solved trials the error is NaN; all at once, 0."""
    trials = {
        "none": [],
        "one ended early": [(5.0, False), (3.0, True)],
        "all solved": [(5.0, True), (3.0, True)],
        "none solved": [(10.0, False)] * 3,
        "all at once": [(4.0, True)] * 3,
        "all at zero": [(0.0, True)] * 3,
    }
    times, solved = columns([trial for sample in trials.values() for trial in sample])
    estimates = statistics.restricted_means(times, solved, [*map(len, trials.values())], until=10)
    nan = math.nan
    np.testing.assert_array_equal(estimates.mean, [nan, nan, 4.0, 10.0, 4.0, 0.0])
    np.testing.assert_array_equal(np.isnan(estimates.interval[:, 0]), np.isnan(estimates.mean))
    np.testing.assert_array_equal(estimates.standard_error[3:], [nan, 0.0, 0.0])
    assert (estimates.interval[3, 1], estimates.interval[5, 0]) == (10.0, 0.0)


@pytest.mark.parametrize("until", [0.0, -1.0, math.nan, math.inf])
def test_restricted_mean_needs_an_end(until):
    """An end that isn't a positive number is refused."""
    with pytest.raises(ValueError, match="until"):
        statistics.restricted_means([1.0], [True], until=until)
