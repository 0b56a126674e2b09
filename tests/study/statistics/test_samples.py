"""Many samples at once: each has its result alone, to the last bit, whatever the others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import statistics
from study.statistics import samples

SIZES = st.sampled_from([0, 1, 2, 3, 9, 30, 200])
MANY = st.tuples(st.lists(SIZES, max_size=12), st.integers(0, 99))


def drawn(many, zeros=0.1):
    """Draw samples in [0, 1/2]; samples at odd places are much smaller, and a share `zeros` of values is 0."""
    sizes, seed = many
    rng = np.random.default_rng(seed)
    scales = [1e-4 if place % 2 else 1.0 for place in range(len(sizes))]
    return [
        np.where(rng.random(size) < zeros, 0.0, scale * rng.beta(0.5, 3.0, size) / 2)
        for size, scale in zip(sizes, scales, strict=True)
    ]


def joined(parts):
    """Concatenate samples, and return the number of values of each."""
    return np.concatenate([*parts, np.empty(0)]), [len(part) for part in parts]


@given(MANY)
@pytest.mark.parametrize("estimate", [statistics.means, statistics.medians, statistics.interquartile_means])
def test_numbers_of_many_are_those_of_each(estimate, many):
    """Means, medians and interquartile means don't depend on the other samples."""
    parts = drawn(many)
    np.testing.assert_array_equal(estimate(*joined(parts)), [estimate(part)[0] for part in parts])


@given(MANY, st.sampled_from([0.5, 0.95, 0.999]))
@pytest.mark.parametrize(
    ("bound", "zeros"),
    [(statistics.median_intervals, 0.1), (statistics.gamma_mean_intervals, 0.0), (statistics.beta_mean_intervals, 0.1)],
)
def test_intervals_of_many_are_those_of_each(bound, zeros, many, confidence):
    """Intervals don't depend on the other samples, even if these need more or fewer steps."""
    parts = drawn(many, zeros)
    together = bound(*joined(parts), confidence=confidence)
    alone = [bound(part, confidence=confidence)[0] for part in parts]
    np.testing.assert_array_equal(together, np.reshape(alone, together.shape))


def test_nan_becomes_none_in_lists():
    """NaN in arrays corresponds to None in lists."""
    nan = math.nan
    assert samples.numbers(np.array([nan, 0.5])) == [None, 0.5]
    assert samples.intervals(np.array([[nan, nan], [0.0, 0.5]])) == [None, (0.0, 0.5)]


@given(st.lists(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))))
def test_wilson_intervals_of_many_are_those_of_each(counts):
    """Wilson's interval is the same alone and among others."""
    bounds = statistics.wilsons([k for k, _ in counts], [n for _, n in counts])
    assert samples.intervals(bounds) == [statistics.wilson(*count) for count in counts]


@given(MANY, st.sampled_from([0.05, 0.3, 9.0]))
def test_restricted_means_of_many_are_those_of_each(many, until):
    """Restricted means, errors and intervals don't depend on the other samples or their sizes."""
    parts = [np.round(part, 2) for part in drawn(many)]
    times, sizes = joined(parts)
    solved = np.random.default_rng(many[1]).random(times.size) < 0.7
    estimates = statistics.restricted_means(times, solved, sizes, until=until)
    flags = np.split(solved, np.cumsum(sizes)[:-1]) if sizes else []
    alone = [statistics.restricted_means(*trial, until=until) for trial in zip(parts, flags, strict=True)]
    for name in ("mean", "standard_error", "interval"):
        together, of_each = getattr(estimates, name), [getattr(estimate, name)[0] for estimate in alone]
        np.testing.assert_array_equal(together, np.reshape(of_each, together.shape))


def test_restricted_means_have_an_end_each():
    """Each sample may have its own end."""
    times, solved = [10.0, 20.0, 10.0, 20.0], [True, False, True, False]
    estimates = statistics.restricted_means(times, solved, [2, 2], until=[20.0, 12.0])
    assert estimates.mean.tolist() == [15.0, 11.0]


@given(MANY)
def test_each_sample_is_reduced_alone(many):
    """Sums, minima and maxima are those of each sample alone; extremes of empty samples are infinite."""
    parts = drawn(many)
    values, sizes = joined(parts)
    n = samples.checked_sizes(values, sizes)
    assert samples.sums(values, n) == pytest.approx([part.sum() for part in parts], rel=1e-14)
    assert samples.least(values, n).tolist() == [min(part, default=math.inf) for part in parts]
    assert samples.greatest(values, n).tolist() == [max(part, default=-math.inf) for part in parts]


@given(st.lists(st.integers(0, 500), max_size=40))
def test_padded_rows_hold_every_sample_once(sizes):
    """Rows hold each non-empty sample once, and at most as much padding as values."""
    values = np.arange(float(sum(sizes)))
    parts = np.split(values, np.cumsum(sizes)[:-1]) if sizes else []
    rows_by_place = {}
    for places, rows in samples.padded(values, np.array(sizes, dtype=np.int64), -1.0):
        assert np.count_nonzero(rows == -1.0) <= np.count_nonzero(rows >= 0)
        for place, row in zip(places, rows, strict=True):
            assert place not in rows_by_place
            rows_by_place[place] = row[row >= 0].tolist()
    assert rows_by_place == {place: part.tolist() for place, part in enumerate(parts) if len(part)}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([2], "must add up to the number of values, 3, but add up to 2"),
        ([4, -1], "must be >= 0, but the smallest is -1"),
        ([1, 1], "must add up to the number of values, 3, but add up to 2"),
        ([[3]], "must have one axis"),
    ],
)
@pytest.mark.parametrize(
    "estimate",
    [
        statistics.means,
        statistics.medians,
        statistics.gamma_mean_intervals,
        statistics.beta_mean_intervals,
        statistics.interquartile_means,
        statistics.mean_intervals,
        statistics.interquartile_mean_intervals,
        lambda values, sizes: statistics.restricted_means(values, [True] * len(values), sizes, until=1.0),
    ],
)
def test_sizes_must_share_out_the_values(estimate, sizes, message):
    """Negative sizes, and sizes that don't add up to the values, are refused."""
    with pytest.raises(ValueError, match=message):
        estimate([0.1, 0.2, 0.3], sizes)
