"""Success rates: agreement with statsmodels and scipy, symmetries, and all edge counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from study import statistics
from tasks.arithmetic.published.rows import rows

COUNTS = st.integers(0, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_wilson_agrees_with_statsmodels(count):
    """Wilson's interval equals statsmodels' for every count."""
    k, n = count
    if n == 0:
        assert statistics.wilson(k, n) == (0.0, 1.0)
        return
    expected = proportion_confint(k, n, method="wilson")
    assert statistics.wilson(k, n) == pytest.approx(expected, abs=1e-12)


@given(COUNTS)
def test_wilson_is_symmetric(count):
    """Counting failures instead of successes mirrors the interval."""
    k, n = count
    low, high = statistics.wilson(k, n)
    assert statistics.wilson(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize("table", ["hidden_size", "hidden_size_ablation"])
def test_wilson_repeats_the_intervals_of_the_published_figures(table):
    """Intervals read off the published figures are Wilson's of their counts, to reading accuracy."""
    for row in rows(table):
        printed = (float(row["success_rate_lower"]), float(row["success_rate_upper"]))
        assert statistics.wilson(int(row["solved"]), int(row["seeds"])) == pytest.approx(printed, abs=2e-5)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (1, 0)])
def test_impossible_counts_are_refused(k, n):
    """A count outside 0..n is an error that names both numbers."""
    for refused in (
        lambda: statistics.wilson(k, n),
        lambda: statistics.fisher_exact(1, 2, k, n),
        lambda: statistics.newcombe(1, 2, k, n),
        lambda: statistics.newcombe(k, n, 1, 2),
        lambda: statistics.cochran_armitage([1, 2], [1, k], [2, n]),
        lambda: statistics.logistic_regression([[1], [2]], [1, k], [2, n]),
    ):
        with pytest.raises(ValueError, match=f"successes={k}, n={n}"):
            refused()


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0, math.nan])
def test_confidence_must_be_a_probability(confidence):
    """A confidence outside (0, 1) is an error for every interval."""
    for interval in (
        lambda: statistics.wilson(1, 2, confidence),
        lambda: statistics.newcombe(1, 2, 1, 2, confidence),
        lambda: statistics.median_intervals([1, 2], confidence=confidence),
        lambda: statistics.gamma_mean_intervals([1, 2], confidence=confidence),
        lambda: statistics.beta_mean_intervals([0.1, 0.2], confidence=confidence),
        lambda: statistics.kaplan_meier([1], [True], confidence),
        lambda: statistics.restricted_means([1], [True], until=2, confidence=confidence),
        lambda: statistics.logistic_regression([[1], [2]], [1, 1], [2, 2], confidence),
    ):
        with pytest.raises(ValueError, match="confidence"):
            interval()


@given(COUNTS, COUNTS)
def test_newcombe_agrees_with_statsmodels(first, second):
    """The interval of the difference equals statsmodels' for all counts that it supports."""
    if first[1] == 0 or second[1] == 0:
        assert statistics.newcombe(*first, *second) == (-1.0, 1.0)
        return
    expected = confint_proportions_2indep(*first, *second, method="newcomb", compare="diff")
    assert statistics.newcombe(*first, *second) == pytest.approx(expected, abs=1e-9)


def test_newcombe_repeats_its_authors_example():
    """Newcombe's table II has 0.0524 to 0.3339 for 56/70 against 48/80, and 0.1705 to 0.8090 for 9/10 against 3/10."""
    assert statistics.newcombe(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert statistics.newcombe(9, 10, 3, 10) == pytest.approx((0.1705, 0.8090), abs=5e-5)


@given(COUNTS, COUNTS)
def test_newcombe_turns_with_its_samples(first, second):
    """The reversed difference has the mirrored interval; intervals contain the difference and lie within -1 and 1."""
    low, high = statistics.newcombe(*first, *second)
    assert statistics.newcombe(*second, *first) == pytest.approx((-high, -low), abs=1e-12)
    assert low + 1e-12 >= -1
    assert high - 1e-12 <= 1
    if first[1] and second[1]:
        assert low <= first[0] / first[1] - second[0] / second[1] <= high


@given(COUNTS, COUNTS)
def test_fisher_agrees_with_its_definition(first, second):
    """The p-value is the sum of the hypergeometric probabilities up to the observed one's."""
    (k1, n1), (k2, n2) = first, second
    p = statistics.fisher_exact(k1, n1, k2, n2)
    assert p == pytest.approx(statistics.fisher_exact(k2, n2, k1, n1), rel=1e-6)
    support = np.arange(max(0, k1 + k2 - n2), min(n1, k1 + k2) + 1)

    def log_choose(n, k):
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)

    log_p = log_choose(n1, support) + log_choose(n2, k1 + k2 - support) - log_choose(n1 + n2, k1 + k2)
    observed = log_p[support == k1][0]
    assert p == pytest.approx(min(1.0, np.exp(log_p[log_p <= observed + 1e-7]).sum()), rel=1e-6, abs=1e-300)


def test_fisher_of_an_empty_sample_is_one():
    """A sample without trials has p = 1."""
    assert statistics.fisher_exact(0, 0, 3, 7) == 1.0
    assert statistics.fisher_exact(0, 0, 0, 0) == 1.0


@pytest.mark.parametrize("n", [1, 2, 3, 10, 45])
def test_holm_agrees_with_statsmodels(n):
    """Holm's adjusted p-values equal statsmodels', with ties."""
    p_values = list(np.random.default_rng(n).integers(0, 30, n) / 200)
    expected = multipletests(p_values, method="holm")[1]
    assert statistics.holm(p_values) == pytest.approx(list(expected), abs=1e-12)


def test_holm_of_no_tests_and_of_no_probabilities():
    """An empty family has no adjusted p-values, and invalid probabilities are refused."""
    assert statistics.holm([]) == []
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="p-values"):
            statistics.holm([0.5, bad])
