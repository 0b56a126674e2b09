"""Trends: agreement with statsmodels, properties, separation, and all degenerate tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import expit
from statsmodels.stats.contingency_tables import Table

from study import statistics

SIZES = [2, 3, 4, 5]
TABLES = st.lists(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=6
)


@given(TABLES)
def test_cochran_armitage_agrees_with_statsmodels(counts):
    """The statistic is statsmodels' z, except that its variance has N - 1 instead of N trials."""
    k, n = (np.array(part) for part in zip(*counts, strict=True))
    scores = np.arange(len(k)) ** 1.5
    trend = statistics.cochran_armitage(scores, k, n)
    if k.sum() in (0, n.sum()):
        assert trend is None
        return
    table = Table(np.column_stack([k, n - k]), shift_zeros=False)
    theirs = table.test_ordinal_association(row_scores=scores, col_scores=np.array([1, 0]))
    total = n.sum()
    assert trend.z * math.sqrt((total - 1) / total) == pytest.approx(theirs.zscore, rel=1e-9, abs=1e-9)
    assert trend.p_value == pytest.approx(2 * stats.norm.sf(abs(trend.z)), rel=1e-9)


@given(TABLES)
def test_trend_of_two_cells_is_pearsons(counts):
    """The z² of two cells is Pearson's χ² of their table, whatever the scores."""
    k, n = (np.array(part[:2]) for part in zip(*counts, strict=True))
    trend = statistics.cochran_armitage([3, 17], k, n)
    if k.sum() in (0, n.sum()):
        assert trend is None
        return
    expected = stats.chi2_contingency([k, n - k], correction=False).statistic
    assert trend.z**2 == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "k", "n"),
    [
        ([], [], []),
        ([1], [3], [5]),
        ([1, 2], [0, 0], [0, 0]),
        ([1, 2], [3, 0], [5, 0]),
        ([4, 4], [3, 1], [5, 5]),
        ([1, 2], [0, 0], [5, 5]),
        ([1, 2], [5, 5], [5, 5]),
    ],
    ids=["none", "one cell", "no trials", "one cell with trials", "one score", "none solved", "all solved"],
)
def test_trend_of_degenerate_tables_is_none(scores, k, n):
    """A single score, or rates that are all 0 or all 1, have no trend."""
    assert statistics.cochran_armitage(scores, k, n) is None


def test_lengths_must_agree():
    """Lists of different lengths are an error."""
    with pytest.raises(ValueError, match="2, 1 and 2"):
        statistics.cochran_armitage([1, 2], [1], [2, 2])
    with pytest.raises(ValueError, match="2, 2 and 1"):
        statistics.logistic_regression([[1], [2]], [1, 1], [2])
    with pytest.raises(ValueError, match=r"\[cells, hyperparameters\]"):
        statistics.logistic_regression([1, 2], [1, 1], [2, 2])


def drawn(seed: int, cells: int = 12):
    """Draw a table of two hyperparameters of different scales with successes that depend on them."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(2, 11, cells), rng.uniform(-1e-3, 1e-3, cells)]).astype(float)
    n = rng.integers(0, 40, cells)
    return x, rng.binomial(n, 1 / (1 + np.exp(-(3 - 0.5 * x[:, 0] + 600 * x[:, 1])))), n


@pytest.mark.parametrize("seed", range(8))
def test_logistic_regression_agrees_with_statsmodels(seed):
    """Estimates, standard errors, Wald intervals and p-values equal statsmodels'."""
    x, k, n = drawn(seed)
    fit, has_trials = statistics.logistic_regression(x, k, n), n > 0
    theirs = sm.GLM(
        np.column_stack([k, n - k])[has_trials], sm.add_constant(x[has_trials]), family=sm.families.Binomial()
    ).fit(tol=1e-12)
    ours = (fit.intercept, *fit.slopes)
    assert not fit.separated
    assert [c.estimate for c in ours] == pytest.approx(list(theirs.params), rel=1e-6)
    assert [c.standard_error for c in ours] == pytest.approx(list(theirs.bse), rel=1e-6)
    assert [c.p_value for c in ours] == pytest.approx(list(theirs.pvalues), rel=1e-5)
    assert np.array([c.wald_interval for c in ours]) == pytest.approx(theirs.conf_int(), rel=1e-5)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_profile_interval_is_where_the_likelihood_has_fallen(place, deviance_bounds):
    """At the ends statsmodels' likelihood, with the coefficient as an offset, is down by chi2/2."""
    x, k, n = drawn(3)
    has_trials = n > 0
    design, counts = sm.add_constant(x[has_trials]), np.column_stack([k, n - k])[has_trials]

    def profile(value):
        model = sm.GLM(
            counts, np.delete(design, place, axis=1), family=sm.families.Binomial(), offset=value * design[:, place]
        )
        return model.fit(tol=1e-12).llf

    fit = statistics.logistic_regression(x, k, n)
    coefficient = (fit.intercept, *fit.slopes)[place]
    reach = 5 * coefficient.standard_error
    low, high = deviance_bounds(profile, coefficient.estimate - reach, coefficient.estimate + reach)
    assert coefficient.profile_interval == pytest.approx((low, high), rel=1e-4)


def test_slopes_follow_their_units():
    """Measuring a hyperparameter in thousandths scales its slope by a thousandth; a shift changes no slope."""
    x, k, n = drawn(1)
    plain = statistics.logistic_regression(x, k, n)
    scaled = statistics.logistic_regression(x * [1000, 1] + [5e4, 0], k, n)
    for ours, theirs, factor in zip(scaled.slopes, plain.slopes, (1e-3, 1), strict=True):
        assert ours.estimate == pytest.approx(theirs.estimate * factor, rel=1e-6)
        assert ours.profile_interval == pytest.approx([end * factor for end in theirs.profile_interval], rel=1e-6)


@given(TABLES)
def test_one_cell_each_is_fitted_exactly(counts):
    """Two cells determine two coefficients: fitted rates are the observed ones, unless a rate is 0 or 1."""
    (k1, n1), (k2, n2) = counts[:2]
    fit = statistics.logistic_regression([[0], [1]], [k1, k2], [n1, n2])
    if {k1, k2} & {0} or k1 == n1 or k2 == n2:
        assert fit == statistics.LogisticFit(separated=True)
        return
    first, second = math.log(k1 / (n1 - k1)), math.log(k2 / (n2 - k2))
    assert fit.intercept.estimate == pytest.approx(first, abs=1e-7)
    assert fit.slopes[0].estimate == pytest.approx(second - first, abs=1e-7)


@pytest.mark.parametrize(
    ("points", "k"),
    [
        ([[2], [3], [4]], [9, 9, 0]),
        ([[2], [3], [4]], [9, 4, 0]),
        ([[2], [3], [4]], [0, 0, 0]),
        ([[2], [3], [4]], [9, 9, 9]),
        ([[0, 0], [0, 1], [1, 0], [1, 1]], [3, 4, 9, 9]),
        ([[1e6, 0], [1e6, 1], [2e6, 0], [2e6, 1]], [0, 0, 3, 5]),
    ],
    ids=["complete", "at one point", "none solved", "all solved", "quasi, one side", "quasi, large scale"],
)
def test_separation_is_reported(points, k):
    """If the likelihood has no maximum, the fit is marked as separated and has no numbers."""
    fit = statistics.logistic_regression(points, k, [9] * len(k))
    assert fit == statistics.LogisticFit(separated=True, intercept=None, slopes=())


@given(st.integers(0, 10_000))
def test_separation_is_where_the_likelihood_grows_for_ever(seed):
    """A fit is separated exactly if the estimates grow without bound as their penalty vanishes."""
    rng = np.random.default_rng(seed)
    x, n = rng.integers(0, 3, (5, 2)).astype(float), rng.integers(1, 4, 5)
    k = rng.binomial(n, rng.random())
    design = np.column_stack([np.ones(5), x])
    fit = statistics.logistic_regression(x, k, n)
    if fit is None:
        assert np.linalg.matrix_rank(design) < 3
        return

    def estimate(penalty):
        def negative(beta):
            logit = design @ beta
            return np.sum(n * np.logaddexp(0, logit) - k * logit) + penalty * beta @ beta / 2

        def slope(beta):
            return design.T @ (n * expit(design @ beta) - k) + penalty * beta

        def curvature(beta):
            p = expit(design @ beta)
            return design.T @ ((n * p * (1 - p))[:, None] * design) + penalty * np.eye(3)

        best = optimize.minimize(
            negative, np.zeros(3), jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-10}
        )
        return np.abs(best.x).max()

    assert fit.separated == (estimate(1e-7) > 1.2 * estimate(1e-4))


@given(st.integers(0, 10_000))
def test_every_table_has_a_defined_answer(seed):
    """Any rates near 0 and 1, and any scales, give a fit around its estimates, a separated fit, or None."""
    rng = np.random.default_rng(seed)
    cells, columns = rng.integers(2, 9), rng.integers(1, 4)
    x = rng.choice([rng.integers(0, 4, (cells, columns)), 10.0 ** rng.integers(-3, 4, (cells, columns))])
    n = rng.integers(0, rng.choice([4, 100, 100_000]), cells)
    k = rng.binomial(n, expit((x - x.mean(axis=0)) @ rng.normal(0, 3, columns)))
    fit = statistics.logistic_regression(x, k, n)
    if fit is None or fit.separated:
        return
    for ours in (fit.intercept, *fit.slopes):
        low, high = ours.profile_interval
        assert -math.inf < low < ours.estimate < high < math.inf
        assert 0 < ours.standard_error < math.inf


@pytest.mark.parametrize(
    ("points", "n"),
    [
        ([], []),
        ([[1]], [9]),
        ([[1], [2]], [0, 0]),
        ([[1], [2]], [9, 0]),
        ([[3], [3]], [9, 9]),
        ([[1, 2], [2, 4], [3, 6]], [9, 9, 9]),
        ([[1, 2], [2, 3]], [9, 9]),
    ],
    ids=["none", "one cell", "no trials", "one cell with trials", "never varies", "vary together", "too few cells"],
)
def test_underdetermined_fits_are_none(points, n):
    """Cells that don't determine all coefficients have no fit."""
    assert statistics.logistic_regression(points, [min(4, count) for count in n], n) is None
