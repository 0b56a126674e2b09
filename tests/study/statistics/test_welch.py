"""Welch's method compared with scipy's, and with a known sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from study import statistics

SAMPLES = st.lists(st.integers(-1000, 1000), min_size=2, max_size=12).filter(lambda values: len(set(values)) > 1)


def contrast(*samples, weights=(1, -1), **more):
    """Compare samples by their means, deviations and sizes."""
    numbers = [(np.mean(values), np.std(values, ddof=1), len(values)) for values in samples]
    return statistics.contrast(weights, *zip(*numbers, strict=True), **more)


def contrast_of(*values):
    """Compare two samples by the package's own deviations."""
    sizes = [len(sample) for sample in values]
    means, deviations = [np.mean(sample) for sample in values], statistics.deviations(np.concatenate(values), sizes)
    return statistics.contrast([1, -1], means, deviations, sizes)


@given(first=SAMPLES, second=SAMPLES)
def test_the_difference_of_two_means_is_welchs(first, second):
    """Difference, interval and p-value equal scipy's t-test with unequal variances."""
    ours, theirs = contrast(first, second), stats.ttest_ind(first, second, equal_var=False)
    interval = theirs.confidence_interval()
    assert ours.estimate == pytest.approx(np.mean(first) - np.mean(second), abs=1e-9)
    assert ours.interval == pytest.approx((interval.low, interval.high), abs=1e-6)
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-9)


def test_one_sample_is_students_interval():
    """A single weight of 1 gives Student's interval of a mean."""
    values = [1.0, 2.0, 4.0, 9.0]
    ours = contrast(values, weights=[1], confidence=0.9)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert ours.interval == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("samples", [([1.0, 1.0], [2.0, 2.0]), ([1.0], [2.0, 3.0]), ([1e-300, 1e-300], [1.0, 1.0])])
def test_constant_samples_arent_tested(samples):
    """Without variance, or with one value, the result is None."""
    numbers = [(np.mean(v), np.std(v, ddof=1) if len(v) > 1 else 0.0, len(v)) for v in samples]
    assert statistics.contrast([1, -1], *zip(*numbers, strict=True)) is None


def test_the_unit_makes_no_difference():
    """Values of any size give the same p-value, without underflow or overflow of squares."""
    first, second = np.array([1.0, 2.0, 4.0]), np.array([2.0, 5.0, 5.0])
    units = np.array([1.0, 1e-307, 1e-90, 1e90, 1e307])
    tests = [contrast_of(unit * first, unit * second) for unit in units]
    assert [test.p_value for test in tests] == pytest.approx([tests[0].p_value] * 5)
    assert [test.estimate for test in tests] / units == pytest.approx([tests[0].estimate] * 5)


def test_a_difference_beyond_the_range_of_numbers_is_infinite():
    """The p-value still uses the difference in standard errors."""
    means, deviations = np.array([1.0, -1.0]), np.array([1.0, 0.1])
    test, other = (statistics.contrast([1, -1], unit * means, unit * deviations, [10, 10]) for unit in (1.5e308, 1.0))
    assert test.estimate == np.inf
    assert test.p_value == pytest.approx(other.p_value)


def test_deviations_are_numpys():
    """Standard deviations have n - 1 in the denominator; one value has none."""
    first, second, third = [1.0, 5.0, 2.0], [4.0], [7.0, 7.0]
    ours = statistics.deviations([*first, *second, *third], [3, 1, 2])
    assert ours[[0, 2]] == pytest.approx([np.std(first, ddof=1), 0.0])
    assert np.isnan(ours[1])
