"""Bootstrap intervals of mean and interquartile mean: reference implementations, and independence of order."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special, stats

from study import statistics
from study.statistics import bootstrap

BOUNDS = pytest.mark.parametrize("bound", [statistics.mean_intervals, statistics.interquartile_mean_intervals])
VALUES = st.lists(st.integers(-20, 20), min_size=5, max_size=40)


class SameResamples(np.random.Generator):
    """A generator that gives SciPy the package's resamples of sorted values."""

    def integers(self, low, high=None, size=None, **_):
        """Return the indices of the values in each resample."""
        counts = np.concatenate([*bootstrap.resamples(high)], axis=1)
        assert low == 0
        assert size == counts.T.shape
        return np.array([np.repeat(np.arange(high), column) for column in counts.T])


def plain_mean(x):
    """Return the interquartile mean by repeating each value until its count is a multiple of 4."""
    repeated = np.sort(np.repeat(x, 4))
    return repeated[len(x) : 3 * len(x)].mean()


def widths(bounds):
    """Return the widths of intervals."""
    return bounds[:, 1] - bounds[:, 0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_interquartile_mean_is_that_of_the_middle_half(values):
    """The interquartile mean is the mean of the middle half of the values repeated four times."""
    assert statistics.interquartile_means(values) == pytest.approx(plain_mean(values), rel=1e-9, abs=1e-6)


@given(st.lists(st.integers(-50, 50), min_size=4, max_size=40).filter(lambda values: len(values) % 4 == 0))
def test_interquartile_mean_is_scipys_where_quarters_are_whole(values):
    """If a quarter of the sample size is an integer, the interquartile mean equals SciPy's trimmed mean."""
    assert statistics.interquartile_means(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-9)


def test_interquartile_mean_of_nothing_and_of_equal_values():
    """The interquartile mean of an empty sample is NaN; that of equal values is the value, to the last bit."""
    assert np.isnan(statistics.interquartile_means([])).all()
    assert statistics.interquartile_means([0.1] * 10, [7, 3]).tolist() == [0.1, 0.1]


@pytest.mark.parametrize("n", [5, 6, 20, 50])
def test_interquartile_interval_is_scipys_percentile_interval(n):
    """With the same resamples and the expanded confidence, SciPy's percentile bootstrap has the same ends."""
    x = np.sort(np.random.default_rng(n).lognormal(size=n))
    tail = stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1))
    theirs = stats.bootstrap(
        (x,),
        plain_mean,
        n_resamples=bootstrap.RESAMPLES,
        vectorized=False,
        method="percentile",
        confidence_level=1 - 2 * tail,
        rng=SameResamples(np.random.PCG64(0)),
    ).confidence_interval
    assert statistics.interquartile_mean_intervals(x) == pytest.approx(np.array([theirs]), rel=1e-9)


@pytest.mark.parametrize("n", [5, 6, 20, 50])
def test_mean_interval_is_the_studentised_one(n):
    """The ends equal those of a loop over resamples that divides by a standard error."""
    x = np.sort(np.random.default_rng(n).lognormal(size=n))
    error = x.std(ddof=1) / math.sqrt(n)
    t = []
    for resample in SameResamples(np.random.PCG64(0)).integers(0, n, (bootstrap.RESAMPLES, n)):
        theirs = x[resample].std(ddof=1) / math.sqrt(n)
        t.append((x[resample].mean() - x.mean()) / math.sqrt(((n - 1) * theirs**2 + error**2 / 2) / (n - 0.5)))
    expected = x.mean() - error * np.quantile(t, [0.975, 0.025])
    assert statistics.mean_intervals(x) == pytest.approx(expected[None], rel=1e-9)


def test_resamples_are_drawn_fairly():
    """A resample of n values has n, and each value's count is binomial."""
    [counts] = bootstrap.resamples(20)
    assert (counts.sum(axis=0) == 20).all()
    assert counts.mean(axis=1) == pytest.approx(np.ones(20), abs=5 * math.sqrt(0.95 / bootstrap.RESAMPLES))
    assert counts.var(axis=1) == pytest.approx(np.full(20, 0.95), abs=0.15)


def test_resamples_are_the_same_for_ever():
    """The first resamples of five values are fixed: others would change every report's intervals."""
    [counts] = bootstrap.resamples(5)
    assert counts[:, :4].T.tolist() == [[1, 1, 1, 0, 2], [2, 1, 1, 0, 1], [0, 1, 1, 1, 2], [1, 1, 1, 1, 1]]


@BOUNDS
@given(values=VALUES, seed=st.integers(0, 99))
def test_neither_order_nor_neighbours_matter(bound, values, seed):
    """A sample's interval doesn't depend on other samples, their sizes or their order, to the last bit."""
    rng = np.random.default_rng(seed)
    others = [rng.normal(size=size) for size in (len(values), 3, 17, len(values), 0)]
    parts = [rng.permutation(values), *others]
    order = rng.permutation(len(parts))
    bounds = bound(np.concatenate([parts[i] for i in order]), [len(parts[i]) for i in order])
    np.testing.assert_array_equal(bounds[np.argsort(order)[0]], bound(values)[0])


@BOUNDS
def test_many_samples_have_the_results_of_each(bound):
    """Samples beyond one block, and beyond memory, have the same intervals as alone."""
    size = bootstrap._AT_ONCE // bootstrap.RESAMPLES + 20
    rows = np.random.default_rng(3).normal(size=(size, 5))
    bounds = bound(rows.ravel(), [5] * size)
    for place in (0, 1, bootstrap._BLOCK, size - 21, size - 20, size - 1):
        np.testing.assert_array_equal(bounds[place], bound(rows[place])[0])


@BOUNDS
def test_resamples_in_parts_are_the_same(bound, monkeypatch):
    """Resamples that exceed memory are drawn in parts, and are the same."""
    x = np.random.default_rng(1).normal(size=200)
    expected = bound(x)
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 200 * 300)
    assert sum(counts.shape[1] for counts in bootstrap.resamples(200)) == bootstrap.RESAMPLES
    np.testing.assert_array_equal(bound(x), expected)


@BOUNDS
@given(values=VALUES, scale=st.floats(1e-3, 1e3), offset=st.integers(-100, 100))
def test_units_change_nothing(bound, values, scale, offset):
    """The interval is equivariant under changes of unit and zero point."""
    moved = bound([scale * value + offset for value in values])
    expected = bound(values) * scale + offset
    assert moved == pytest.approx(expected, rel=1e-6, abs=1e-6 * max(scale, 1), nan_ok=True)


@BOUNDS
def test_a_mirrored_sample_has_nearly_the_mirrored_interval(bound):
    """Negation exchanges the ends, apart from the resampling error."""
    x = np.random.default_rng(8).lognormal(size=30)
    interval, mirrored = bound(x), -bound(-x)[:, ::-1]
    assert mirrored == pytest.approx(interval, abs=0.1 * widths(interval)[0])


@given(VALUES, st.sampled_from([0.01, 0.5, 0.95, 0.999]))
@example([1, 1, 1, 1, 5], 0.5)
def test_intervals_hold_their_estimates(values, confidence):
    """Intervals of any values contain the estimate; those of interquartile means are within the sample's range."""
    for bound, estimate in (
        (statistics.mean_intervals, statistics.means),
        (statistics.interquartile_mean_intervals, statistics.interquartile_means),
    ):
        [(low, high)] = bound(values, confidence=confidence)
        if len(set(values)) > 1:
            assert low - 1e-9 <= estimate(values)[0] <= high + 1e-9
            assert bound is statistics.mean_intervals or min(values) <= low <= high <= max(values)


@BOUNDS
def test_few_and_equal_values_have_no_interval(bound):
    """Up to four values, and any number of equal ones, have no interval; of five, four may be equal."""
    values = np.random.default_rng(0).normal(size=10)
    assert np.isnan(bound(values, [0, 1, 2, 3, 4])).all()
    assert np.isnan(bound([0.1] * 5 + [0.1 + 1e-17] * 7, [5, 7])).all()
    low, high = bound([1.0, 1.0, 1.0, 1.0, 0.5])[0]
    assert math.isfinite(low)
    assert low < high


@BOUNDS
@pytest.mark.parametrize("scale", [1e-300, 1e308])
def test_values_of_all_sizes_have_finite_intervals(bound, scale):
    """The smallest and the largest floats neither overflow nor underflow."""
    x = np.array([0.1, 0.2, 0.4, 0.5, 0.9, -0.3])
    assert bound(x * scale) / scale == pytest.approx(bound(x), rel=1e-9)


def coverage(bound, quantile, truth, n, studies=2000):
    """Return the share of studies of n seeds whose interval contains the true value."""
    values = quantile(np.random.default_rng(n).random((studies, n)))
    low, high = bound(values.ravel(), [n] * studies).T
    return np.mean((low <= truth) & (truth <= high))


@pytest.mark.parametrize("n", [5, 20])
@BOUNDS
def test_intervals_of_normal_values_hold_the_centre(bound, n):
    """For normal values, at least 92.5% of intervals cover the centre, from five values on."""
    assert coverage(bound, special.ndtri, 0.0, n) >= 0.925


def test_intervals_of_tied_values_hold_the_mean():
    """If one of ten values differs, resamples of equal values are handled: coverage is 95%."""
    assert coverage(statistics.mean_intervals, lambda u: np.where(u < 0.1, 0.5, 1.0), 0.95, 50) >= 0.95


def test_resamples_of_equal_values_leave_an_end():
    """A third of these resamples have equal values and no variance; the interval still has ends."""
    [(low, high)] = statistics.mean_intervals([1.0] * 9 + [0.5])
    assert 0 < low < 0.95 < high < 1.1


@pytest.mark.parametrize("law", ["normal", "exponential", "ties"])
def test_expansions_for_many_values_agree_with_resamples(law, monkeypatch):
    """From a certain size, intervals are computed without resamples, and differ by less than 3% of their width."""
    rng = np.random.default_rng(0)
    draws = {"normal": rng.normal, "exponential": rng.exponential, "ties": partial(rng.integers, 0, 3)}
    values = np.asarray(draws[law](size=bootstrap.LARGE), float)
    for intervals in (bootstrap.mean_intervals, bootstrap.interquartile_mean_intervals):
        (expanded,) = intervals(values)
        with monkeypatch.context() as patch:
            patch.setattr(bootstrap, "LARGE", values.size + 1)
            (resampled,) = intervals(values)
        assert expanded == pytest.approx(resampled, abs=0.03 * np.ptp(resampled))
        assert (expanded != resampled).all()


def test_intervals_of_many_values_stay_within_their_range():
    """With a quarter of ones, the interval of the interquartile mean ends at the smallest value, 0."""
    values = np.repeat([0.0, 1.0], [3040, bootstrap.LARGE - 3040])
    [(low, high)] = bootstrap.interquartile_mean_intervals(values)
    assert low == 0
    assert 0.03 < high < 0.06


def test_many_skewed_values_are_resampled(monkeypatch):
    """If a single value dominates, an expansion would be wrong, so the interval uses resamples."""
    values = np.append(np.arange(float(bootstrap.LARGE)), 1e9)
    (expanded,) = bootstrap.mean_intervals(values)
    monkeypatch.setattr(bootstrap, "LARGE", values.size + 1)
    assert (expanded == bootstrap.mean_intervals(values)[0]).all()
