"""Survival: agreement with lifelines, scipy and statsmodels, properties, and all degenerate samples."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.statistics import multivariate_logrank_test
from scipy import stats
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

from study import statistics

TRIAL = st.tuples(st.integers(1, 30), st.booleans())
TRIALS = st.lists(TRIAL, min_size=1, max_size=60)
CENSORED_AT_END = st.lists(st.integers(1, 40), min_size=1, max_size=60)


def columns(trials):
    """Turn rows into times and flags."""
    return [float(t) for t, _ in trials], [s for _, s in trials]


@given(TRIALS)
def test_kaplan_meier_agrees_with_lifelines(trials):
    """Survival, its interval where defined, and the median equal lifelines', with ties and censoring."""
    times, solved = columns(trials)
    curve, theirs = statistics.kaplan_meier(times, solved), KaplanMeierFitter().fit(times, solved)
    assert curve.survival == pytest.approx(theirs.survival_function_at_times(curve.times).to_numpy(), abs=1e-12)
    inside = (curve.survival > 0) & (curve.survival < 1)
    expected = theirs.confidence_interval_.loc[curve.times[inside]].to_numpy()
    assert curve.low[inside] == pytest.approx(expected[:, 0], abs=1e-9)
    assert curve.high[inside] == pytest.approx(expected[:, 1], abs=1e-9)
    assert np.isnan(curve.low[~inside]).all()
    assert np.isnan(curve.high[~inside]).all()
    if not np.any(np.abs(curve.survival - 0.5) < 1e-9):  # there lifelines has 0.5 or one more last bit
        assert (curve.median or math.inf) == theirs.median_survival_time_


@given(TRIALS)
def test_kaplan_meier_agrees_with_statsmodels(trials):
    """The counts and the survival at the times of success equal statsmodels'."""
    times, solved = columns(trials)
    curve = statistics.kaplan_meier(times, solved)
    if not any(solved):
        assert curve.survival.tolist() == [1.0] * len(curve.times)
        return
    theirs = SurvfuncRight(times, np.array(solved, dtype=int))
    events = curve.solved > 0
    assert curve.at_risk[events].tolist() == list(theirs.n_risk)
    assert curve.solved[events].tolist() == list(theirs.n_events)
    assert curve.survival[events] == pytest.approx(theirs.surv_prob, abs=1e-12)


def test_kaplan_meier_agrees_with_scipy():
    """The log-log interval equals scipy's."""
    rng = np.random.default_rng(4)
    times, solved = rng.gamma(3, 10, 40).round(), rng.random(40) < 0.7
    curve = statistics.kaplan_meier(times, solved)
    theirs = stats.ecdf(stats.CensoredData(uncensored=times[solved], right=times[~solved])).sf
    interval = theirs.confidence_interval(0.95, method="log-log")
    inside = (curve.survival > 0) & (curve.survival < 1)
    assert curve.low[inside] == pytest.approx(interval.low.evaluate(curve.times[inside]), abs=1e-9)
    assert curve.high[inside] == pytest.approx(interval.high.evaluate(curve.times[inside]), abs=1e-9)


@given(CENSORED_AT_END)
def test_kaplan_meier_ends_at_the_share_unsolved(ends):
    """If all trials run equally long, the curve ends at one minus the success rate."""
    times, solved = [float(min(t, 20)) for t in ends], [t < 20 for t in ends]
    curve = statistics.kaplan_meier(times, solved)
    assert curve.survival[-1] == pytest.approx(1 - sum(solved) / len(solved), abs=1e-12)


@given(st.lists(TRIALS, min_size=2, max_size=4))
def test_log_rank_agrees_with_lifelines(samples):
    """Statistic and p-value of two to four samples with ties equal lifelines'."""
    sets = [columns(trials) for trials in samples]
    test = statistics.log_rank(sets)
    times = np.concatenate([t for t, _ in sets])
    solved = np.concatenate([s for _, s in sets])
    group = np.repeat(np.arange(len(sets)), [len(t) for t, _ in sets])
    # lifelines counts a sample censored before any success as one more degree of freedom
    first = min(times[solved], default=math.inf)
    assume(test is not None and test.degrees_of_freedom == len(sets) - 1)
    assert any(t >= first for t in times)
    theirs = multivariate_logrank_test(times, group, solved)
    assert test.statistic == pytest.approx(theirs.test_statistic, rel=1e-6, abs=1e-9)
    assert test.p_value == pytest.approx(theirs.p_value, rel=1e-6, abs=1e-12)


def test_log_rank_agrees_with_statsmodels_and_scipy():
    """Three samples have statsmodels' statistic; two have scipy's p-value."""
    rng = np.random.default_rng(6)
    sets = [(rng.gamma(3, scale, 30).round(), rng.random(30) < 0.8) for scale in (8, 10, 16)]
    times, solved = (np.concatenate(part) for part in zip(*sets, strict=True))
    statistic, p_value = survdiff(times, solved.astype(int), np.repeat([0, 1, 2], 30))
    test = statistics.log_rank(sets)
    assert (test.statistic, test.p_value) == pytest.approx((statistic, p_value), rel=1e-9)
    data = [stats.CensoredData(uncensored=t[s], right=t[~s]) for t, s in sets[:2]]
    assert statistics.log_rank(sets[:2]).p_value == pytest.approx(stats.logrank(*data).pvalue, rel=1e-9)


def test_log_rank_of_many_distinct_times_needs_little_memory():
    """Two samples of 25,000 trials with distinct times: a flag for each pair of trial and time would take 2 GB."""
    times = np.random.default_rng(7).permutation(50_000) + 1.0
    solved, first = times % 5 > 0, times < 30_000
    tracemalloc.start()
    try:
        test = statistics.log_rank([(times[first], solved[first]), (times[~first], solved[~first])])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    expected, _ = survdiff(times, solved.astype(int), first.astype(int))
    assert test.statistic == pytest.approx(expected, rel=1e-9)


def test_log_rank_ignores_uninformative_samples():
    """An empty sample, and one censored before any success, change nothing."""
    quick, slow = ([1.0, 2.0, 3.0, 4.0], [True] * 4), ([3.0, 5.0, 6.0, 9.0], [True, True, True, False])
    test = statistics.log_rank([quick, slow])
    assert test.degrees_of_freedom == 1
    for nothing in (([], []), ([0.5, 0.5], [False, False])):
        with_uninformative = statistics.log_rank([quick, nothing, slow])
        assert with_uninformative.degrees_of_freedom == 1
        assert with_uninformative.statistic == pytest.approx(test.statistic, rel=1e-9)
    assert statistics.log_rank([quick, quick]).p_value == pytest.approx(1.0)


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [([], [])],
        [([], []), ([], [])],
        [([1.0, 2.0], [True, True])],
        [([1.0, 2.0], [True, True]), ([], [])],
        [([5.0, 5.0], [False, False]), ([5.0], [False])],
        [([1.0], [False]), ([2.0, 3.0], [True, True])],
        [([1.0], [True]), ([1.0], [True])],
    ],
    ids=["none", "empty", "all empty", "one", "one and empty", "all censored", "never at risk together", "all at once"],
)
def test_log_rank_of_degenerate_samples_is_none(samples):
    """Without two samples to compare, or without an event while both are at risk, the result is None."""
    assert statistics.log_rank(samples) is None


def test_kaplan_meier_of_degenerate_samples():
    """Without trials the result is None; for one trial, or if all are censored or solved at once, intervals are NaN."""
    assert statistics.kaplan_meier([], []) is None
    single = statistics.kaplan_meier([7.0], [True])
    assert (single.survival.tolist(), single.median) == ([0.0], 7.0)
    unsolved = statistics.kaplan_meier([9.0] * 5, [False] * 5)
    assert (unsolved.survival.tolist(), unsolved.at_risk.tolist(), unsolved.median) == ([1.0], [5.0], None)
    at_once = statistics.kaplan_meier([0.0] * 5, [True] * 5)
    assert (at_once.times.tolist(), at_once.survival.tolist()) == ([0.0], [0.0])
    for curve in (single, unsolved, at_once):
        assert np.isnan(curve.low).all()
        assert np.isnan(curve.high).all()


def test_flags_must_be_flags():
    """Each time has one flag, true or false; NaN is invalid."""
    with pytest.raises(ValueError, match="1 times and 2 flags"):
        statistics.kaplan_meier([1.0], [True, False])
    with pytest.raises(ValueError, match="true or false"):
        statistics.kaplan_meier([1.0, 2.0], [1.0, math.nan])
