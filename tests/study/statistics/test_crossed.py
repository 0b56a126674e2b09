"""Means of trials with shared seeds are tested at the level of seeds, whichever source dominates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from study import statistics


def crossed(seed, shape, shares):
    """Draw differences with these variances of the first source, the second, and their combination."""
    rng = np.random.default_rng(seed)
    a, b, residual = np.sqrt(shares)
    return a * rng.normal(size=(shape[0], 1)) + b * rng.normal(size=(1, shape[1])) + residual * rng.normal(size=shape)


@pytest.mark.parametrize("shares", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.3, 0.3, 0.4)])
@pytest.mark.parametrize("shape", [(8, 8), (20, 3), (5, 12)])
def test_equal_methods_are_rarely_called_different(shape, shares):
    """False positives are at most 5%, within the error of 400 studies, whichever source causes the differences."""
    p_values = [statistics.crossed_mean(crossed(seed, shape, shares)).p_value for seed in range(400)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 400)


def test_a_source_that_decides_alone_is_students_test_of_its_means():
    """If columns are equal, the rows are the sample, and vice versa."""
    rows = np.random.default_rng(0).normal(0.5, 1.0, 12)
    expected = stats.ttest_1samp(rows, 0)
    for d in (np.repeat(rows[:, None], 6, axis=1), np.repeat(rows[None], 6, axis=0)):
        test = statistics.crossed_mean(d)
        assert test.p_value == pytest.approx(expected.pvalue)
        assert test.interval == pytest.approx(tuple(expected.confidence_interval()))


def test_columns_that_decide_are_not_overlooked():
    """Twenty rows that agree because of three columns count as three; sign flips of rows would be significant."""
    d = crossed(1, (20, 3), (0.0, 1.0, 0.01)) + 0.5
    assert statistics.sign_flip(d.mean(axis=1)).p_value < 1e-5
    assert statistics.crossed_mean(d).p_value > 0.05


def test_nested_trials_are_flipped_by_the_first_source():
    """Row means are the sample, also if rows have different numbers of trials."""
    d = crossed(2, (9, 4), (0.5, 0.0, 0.5)) + 0.8
    d[0, 1:] = d[3, 2] = np.nan
    test = statistics.crossed_mean(d, is_nested=True)
    expected = statistics.sign_flip(np.nanmean(d, axis=1))
    assert test.p_value == expected.p_value
    assert test.interval == pytest.approx(expected.interval)
    assert test.estimate == pytest.approx(expected.estimate)


def test_missing_trials_are_left_out():
    """Rows, columns and single trials may lack a number; the estimate is the mean of the others."""
    d = crossed(3, (8, 7), (0.3, 0.3, 0.4))
    with_gaps = np.full((9, 8), np.nan)
    with_gaps[1:, :7] = d
    assert statistics.crossed_mean(with_gaps).interval == pytest.approx(statistics.crossed_mean(d).interval)
    with_gaps[4, 4] = with_gaps[2, 0] = np.nan
    assert statistics.crossed_mean(with_gaps).estimate == pytest.approx(np.nanmean(with_gaps))


def test_a_third_source_widens_the_interval():
    """With evaluation seeds as a third axis, their variance is part of the error."""
    rng = np.random.default_rng(4)
    d = crossed(4, (8, 8), (0.3, 0.3, 0.4))[:, :, None] + rng.normal(size=(1, 1, 5))
    test, without = statistics.crossed_mean(d), statistics.crossed_mean(d.mean(axis=2))
    assert test.interval[1] - test.interval[0] > without.interval[1] - without.interval[0]


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_the_interval_excludes_zero_exactly_where_the_test_rejects(confidence):
    """Interval and test agree at any level, for numbers and for differences of success."""
    for seed in range(40):
        d = crossed(seed, (8, 6), (0.3, 0.3, 0.4)) + 0.6
        for values in (d, np.sign(d.round())):
            test = statistics.crossed_mean(values, confidence=confidence)
            assert (test.interval[0] > 0 or test.interval[1] < 0) == (test.p_value <= 1 - confidence)
    test = statistics.crossed_mean(np.ones((8, 3)), confidence=confidence)
    assert (test.interval[0] > 0) == (test.p_value <= 1 - confidence)


def test_equal_differences_have_the_p_value_of_the_fewest_seeds():
    """If one method solves all trials and the other none, p is at most that with one trial different."""
    for shape in ((20, 8), (5, 5), (3, 20)):
        differences = np.ones(shape)
        test = statistics.crossed_mean(differences)
        assert test.p_value == 2 * 0.25 ** min(shape)
        differences[1, 1] = 0
        assert test.p_value <= statistics.crossed_mean(differences).p_value < 0.05
        assert statistics.crossed_mean(-differences).p_value == statistics.crossed_mean(differences).p_value


@pytest.mark.parametrize("unit", [1e-307, 1e307])
def test_differences_have_no_unit(unit):
    """p-values are equal in all units, without overflow."""
    d = crossed(5, (6, 7), (0.3, 0.3, 0.4))
    test, expected = statistics.crossed_mean(unit * d), statistics.crossed_mean(d)
    assert test.p_value == pytest.approx(expected.p_value)
    assert test.estimate / unit == pytest.approx(expected.estimate)


def test_too_few_seeds_are_not_tested():
    """Two seeds of a crossed source, a single nested one, and all-zero or missing differences aren't tested."""
    assert statistics.crossed_mean(crossed(6, (2, 9), (1, 1, 1))) is None
    assert statistics.crossed_mean(crossed(6, (9, 2), (1, 1, 1))) is None
    assert statistics.crossed_mean(crossed(6, (1, 9), (1, 1, 1)), is_nested=True) is None
    assert statistics.crossed_mean(np.zeros((8, 8))) is None
    assert statistics.crossed_mean(np.full((8, 8), np.nan)) is None
    with pytest.raises(ValueError, match="finite or NaN"):
        statistics.crossed_mean(np.full((8, 8), np.inf))
