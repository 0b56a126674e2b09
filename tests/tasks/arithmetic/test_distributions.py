"""Input distributions other than the uniform one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tasks.arithmetic.distributions import Source, check_source, distribute
from tasks.arithmetic.own_family import ARITHMETIC
from tasks.arithmetic.task import single_task

UNIFORM = np.random.default_rng(0).random((10, 20_000)).astype(np.float32)
EDGES = np.array([[0.0, 1 - 2.0**-24]], np.float32)
MIXED = ((-2.0, -0.1), (0.1, 2.0))


@pytest.mark.parametrize("features", [1, 2, 5, 10])
def test_halves_come_from_one_interval_each(features):
    """The first half of a row's numbers comes from the first interval, the rest from the second."""
    x = distribute(Source(MIXED, "halves"), UNIFORM[:features])
    first = (features + 1) // 2
    for numbers, (low, high) in ((x[:first], MIXED[0]), (x[first:], MIXED[1])):
        for row in numbers:
            assert stats.kstest(row, stats.uniform(low, high - low).cdf).pvalue > 1e-3


@pytest.mark.parametrize(("mean", "deviation", "range_"), [(-1, 3, (-5, 10)), (-10, 3, (-15, -5)), (10, 1, (5, 15))])
def test_a_normal_distribution_is_cut(mean, deviation, range_):
    """Numbers have a normal distribution truncated to the range."""
    source = Source((tuple(map(float, range_)),), "normal", float(mean), float(deviation))
    low, high = range_
    expected = stats.truncnorm((low - mean) / deviation, (high - mean) / deviation, mean, deviation)
    assert stats.kstest(distribute(source, UNIFORM).ravel(), expected.cdf).pvalue > 1e-3
    assert low <= distribute(source, EDGES).min() <= distribute(source, EDGES).max() <= high


@pytest.mark.parametrize(("low", "high"), [(1, 9), (10, 99), (100, 999)])
def test_first_digits_follow_benfords_law(low, high):
    """Numbers are integers, first digits have the frequencies log10(1 + 1/d), and the remainders are uniform."""
    x = distribute(Source(((float(low), float(high)),), "benford"), UNIFORM).ravel()
    assert np.array_equal(x, np.floor(x))
    assert (x.min(), x.max()) == (low, high)
    first = (x // low).astype(int)
    expected = len(x) * np.log10(1 + 1 / np.arange(1, 10))
    assert stats.chisquare(np.bincount(first, minlength=10)[1:], expected).pvalue > 1e-3
    remainders = (x[first == 1] % low).astype(int)
    assert low == 1 or stats.chisquare(np.bincount(remainders, minlength=low)).pvalue > 1e-3
    assert distribute(Source(((float(low), float(high)),), "benford"), EDGES).tolist() == [[low, high]]


def test_a_number_depends_on_its_own_uniform_number_alone():
    """A number depends only on its own uniform number, and not on the number of others."""
    for source in (
        Source(MIXED, "halves"),
        Source(((-5.0, 10.0),), "normal", -1.0, 3.0),
        Source(((10.0, 99.0),), "benford"),
    ):
        numbers = distribute(source, UNIFORM)
        for rows in (slice(0, 1), slice(7, 20), slice(3, 1000)):
            assert np.array_equal(distribute(source, UNIFORM[:, rows]), numbers[:, rows])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Source(((1.0, 2.0),), "halves"), "two intervals"),
        (Source(MIXED, "normal", 0.0, 1.0), "one interval"),
        (Source(((1.0, 2.0),), "normal", 0.0, None), "a deviation > 0"),
        (Source(((1.0, 2.0),), "normal", None, 1.0), "interpolation_mean"),
        (Source(((10.0, 100.0),), "benford"), "[10, 99]"),
        (Source(((0.0, 9.0),), "benford"), "fixed digit count"),
        (Source(((1.0, 2.0),), "cauchy"), "halves, normal, benford"),
    ],
)
def test_unsuitable_distributions_are_refused(source, message):
    """Ranges and parameters that don't suit a distribution are refused with the rule."""
    with pytest.raises(ValueError, match="distribution") as caught:
        check_source(source)
    assert message in str(caught.value)


def test_a_task_checks_its_distribution():
    """A task checks both ranges; with such a distribution it lacks a threshold in closed form."""
    task = single_task(
        operation="div",
        distribution="halves",
        interpolation_range=MIXED,
        extrapolation_range=((-6.0, -2.0), (2.0, 6.0)),
    )
    with pytest.raises(ValueError, match=r"give success\.threshold"):
        task.threshold()
    with pytest.raises(ValueError, match="two intervals"):
        single_task(distribution="halves", interpolation_range=MIXED)
    with pytest.raises(ValueError, match=r"give success\.threshold"):
        single_task(operation="reciprocal").threshold()


def test_a_uniform_distribution_is_the_default():
    """A file that names the uniform distribution has the same cells as one without a distribution."""
    implicit, explicit = (
        ARITHMETIC.canonical("single-module", "NMU", values) for values in ({}, {"distribution": "uniform"})
    )
    assert implicit == explicit
    assert ARITHMETIC.why_without_effect("deviation", "simple", "NMU", {"distribution": ("halves",)}) == (
        "distribution must be normal for that"
    )
