"""Laws of the statistics, checked against independent implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import betaln, gammaln
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from study import statistics
from study.reference.published import MODEL_NAMES, published, rows

COUNTS = st.integers(0, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def deviance_bounds(log_likelihood, start, low, high, level=0.95):
    """Bound a parameter where its profile log-likelihood is chi-squared/2 below the top: slow and plain."""
    best = optimize.minimize_scalar(lambda t: -log_likelihood(t), bounds=(low, high), method="bounded")
    top, drop = -best.fun, stats.chi2.ppf(level, 1) / 2

    def gap(t):
        return top - log_likelihood(t) - drop

    return optimize.brentq(gap, low, best.x), optimize.brentq(gap, best.x, high)


@given(COUNTS)
def test_wilson_agrees_with_statsmodels(count):
    """Wilson's interval is statsmodels' for every count."""
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


def test_wilson_repeats_every_published_interval():
    """The published Wilson intervals follow from the published seeds to 1e-9."""
    counted = {(r.operation, r.model): r for r in published() if r.table == "static_seeds"}
    summary = rows("static_summary")
    assert len(summary) == len(counted) == 20
    for row in summary:
        cell = counted[row["operation"], MODEL_NAMES[row["model"]]]
        printed = (float(row["success_rate_lower"]), float(row["success_rate_upper"]))
        assert cell.solved / cell.seeds == pytest.approx(float(row["success_rate_mean"]), abs=1e-9)
        assert statistics.wilson(cell.solved, cell.seeds) == pytest.approx(printed, abs=1e-9)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (1, 0)])
def test_impossible_counts_are_refused(k, n):
    """A count outside 0..n is an error that names both numbers."""
    with pytest.raises(ValueError, match=f"successes={k}, n={n}"):
        statistics.wilson(k, n)
    with pytest.raises(ValueError, match=f"successes={k}, n={n}"):
        statistics.fisher_exact(1, 2, k, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0, math.nan])
def test_confidence_must_be_a_probability(confidence):
    """A confidence outside (0, 1) is an error for every interval."""
    for interval in (
        lambda: statistics.wilson(1, 2, confidence),
        lambda: statistics.gamma_mean_interval([1, 2], confidence),
        lambda: statistics.beta_mean_interval([0.1, 0.2], confidence=confidence),
    ):
        with pytest.raises(ValueError, match="confidence"):
            interval()


def test_median_and_mean_of_nothing_are_none():
    """No values have no median and no mean; one value is its own."""
    assert statistics.median([]) is None
    assert statistics.mean([]) is None
    assert statistics.median([7]) == statistics.mean([7]) == 7.0
    assert statistics.median([4, 1, 2, 9]) == 3.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_no_observations_are_refused(bad):
    """NaN and infinity raise wherever they are given, rather than spread."""
    for estimate in (
        statistics.median,
        statistics.mean,
        statistics.gamma_mean_interval,
        statistics.beta_mean_interval,
    ):
        with pytest.raises(ValueError, match="finite"):
            estimate([0.1, bad])


@pytest.mark.parametrize(("shape", "n"), [(0.3, 25), (3.0, 8), (40.0, 50), (20.0, 2)])
def test_gamma_interval_is_the_profile_likelihood_one(shape, n):
    """The interval's ends are where the profile log-likelihood, maximised numerically, is down by chi2/2."""
    x = np.random.default_rng(n).gamma(shape, 5e4, n)

    def profile(log_mean):
        def negative(log_k):
            k, m = math.exp(log_k), math.exp(log_mean)
            return -float(np.sum(stats.gamma.logpdf(x, k, scale=m / k)))

        return -optimize.minimize_scalar(
            negative, bounds=(-7, 16), method="bounded", options={"xatol": 1e-9}
        ).fun

    centre = math.log(x.mean())
    low, high = deviance_bounds(profile, centre, centre - 3, centre + 12)
    assert statistics.gamma_mean_interval(x) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-5)


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=60), st.floats(1e-3, 1e6))
def test_gamma_interval_holds_the_mean_and_scales(values, scale):
    """The interval holds the sample mean, and a change of unit changes it by the same factor."""
    interval = statistics.gamma_mean_interval(values)
    if len(set(values)) == 1:
        assert interval is None
        return
    assert interval[0] < np.mean(values) < interval[1]
    assert statistics.gamma_mean_interval(np.array(values) * scale) == pytest.approx(
        (interval[0] * scale, interval[1] * scale), rel=1e-6
    )


def test_gamma_interval_is_near_the_published_where_that_fit_was_right():
    """For NAC-mul-sigma, x, whose published mean is the sample mean, the interval is theirs within 1%."""
    row = next(r for r in rows("static_summary") if (r["operation"], r["model"]) == ("mul", "NAC•,σ"))
    ours = next(
        r for r in published() if (r.operation, r.model) == ("mul", "NAC-mul-sigma") and r.seeds == 100
    )
    printed = (float(row["solved_at_lower"]), float(row["solved_at_upper"]))
    assert ours.solved_at_mean == pytest.approx(float(row["solved_at_mean"]), rel=1e-6)
    assert ours.solved_at_interval == pytest.approx(printed, rel=0.01)


@pytest.mark.parametrize("values", [[], [14000.0], [14000.0] * 5, [3.0, 3.0 + 1e-9], [0.0, 1.0, 2.0]])
def test_gamma_interval_of_degenerate_values_is_none(values):
    """No, one, equal or zero values have no gamma interval."""
    assert statistics.gamma_mean_interval(values) is None


def test_negative_values_have_no_law():
    """A negative value contradicts the support of a gamma and of a beta law."""
    with pytest.raises(ValueError, match="smallest is -1"):
        statistics.gamma_mean_interval([-1.0, 2.0])
    with pytest.raises(ValueError, match="smallest is -1"):
        statistics.beta_mean_interval([-1.0, 0.2])


@pytest.mark.parametrize(
    ("mu", "phi", "n"), [(0.3, 5.0, 12), (0.9, 4.0, 60), (0.01, 40.0, 50), (0.5, 800.0, 5)]
)
def test_beta_interval_is_the_profile_likelihood_one(mu, phi, n):
    """The interval's ends are where the profile log-likelihood, maximised numerically, is down by chi2/2."""
    y = np.random.default_rng(n).beta(mu * phi, (1 - mu) * phi, n)
    log_y, log_rest = np.log(y).sum(), np.log1p(-y).sum()

    def profile(logit):
        m = 1 / (1 + math.exp(-logit))

        def negative(log_phi):
            a, b = m * math.exp(log_phi), (1 - m) * math.exp(log_phi)
            return n * betaln(a, b) - (a - 1) * log_y - (b - 1) * log_rest

        return -optimize.minimize_scalar(
            negative, bounds=(-5, 12), method="bounded", options={"xatol": 1e-10}
        ).fun

    centre = math.log(y.mean() / (1 - y.mean()))
    low, high = deviance_bounds(profile, centre, centre - 4, centre + 4)
    expected = (0.5 / (1 + math.exp(-low)), 0.5 / (1 + math.exp(-high)))
    assert statistics.beta_mean_interval(y / 2) == pytest.approx(expected, rel=1e-4)


def test_beta_interval_of_small_values_is_the_gamma_interval():
    """Far below the upper end a beta law is a gamma law, and so are the intervals, at any scale."""
    values = np.array([1.0, 2.0, 3.0, 4.0, 9.0])
    low, high = statistics.gamma_mean_interval(values)
    for scale in (1e-6, 1e-9, 1e-14):
        assert statistics.beta_mean_interval(values * scale) == pytest.approx(
            (low * scale, high * scale), rel=1e-3
        )


@given(st.lists(st.floats(0.001, 0.499), min_size=2, max_size=30))
def test_beta_interval_is_symmetric(values):
    """Measuring from the upper end mirrors the interval."""
    x = np.array(values)
    here, there = statistics.beta_mean_interval(x), statistics.beta_mean_interval(0.5 - x)
    if here is None or there is None:
        assert np.ptp(x) < 1e-5 or not (here or there)
        return
    assert (0.5 - there[1], 0.5 - there[0]) == pytest.approx(here, rel=1e-3, abs=1e-9)


def test_beta_interval_is_twice_the_published_halves():
    """Published beta intervals of unscaled values are half of ours: NAC+, +, is 0.45, not 0.23."""
    row = next(r for r in rows("static_summary") if (r["operation"], r["model"]) == ("add", "NAC+"))
    ours = next(r for r in published() if (r.operation, r.model) == ("add", "NAC-add"))
    doubled = (2 * float(row["sparsity_error_lower"]), 2 * float(row["sparsity_error_upper"]))
    assert ours.sparsity_error_interval == pytest.approx(doubled, rel=0.01)


@pytest.mark.parametrize("values", [[], [0.1], [0.1] * 4, [0.0] * 9, [0.2, 0.7]])
def test_beta_interval_of_degenerate_values_is_none(values):
    """No, one or equal values, and values above the support, have no beta interval."""
    assert statistics.beta_mean_interval(values) is None


def test_beta_interval_survives_zeros_and_ones():
    """Values at the ends of the support leave a finite interval that holds the mean."""
    values = [0.0] * 20 + [1e-4, 3e-3, 2e-5, 1e-3]
    low, high = statistics.beta_mean_interval(values)
    assert 0 < low < np.mean(values) < high < 0.5
    low, high = statistics.beta_mean_interval([0.5, 0.3, 0.4])
    assert 0 < low < 0.4 < high <= 0.5


@pytest.mark.parametrize("estimate", [statistics.gamma_mean_interval, statistics.beta_mean_interval])
def test_intervals_cover_at_their_level(estimate):
    """Of 300 studies of 25 seeds about 95% have the true mean in the interval."""
    rng = np.random.default_rng(8)
    is_gamma = estimate is statistics.gamma_mean_interval
    samples = rng.gamma(5, 2, (300, 25)) if is_gamma else rng.beta(2, 8, (300, 25)) / 2
    mean = 10.0 if is_gamma else 0.1
    covered = sum(low <= mean <= high for low, high in map(estimate, samples))
    assert 270 <= covered <= 297


@given(COUNTS, COUNTS)
def test_fisher_agrees_with_its_definition(first, second):
    """The p-value is the sum of the hypergeometric probabilities that don't exceed the observed one's."""
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
    """Nothing contradicts a sample of no trials."""
    assert statistics.fisher_exact(0, 0, 3, 7) == 1.0


@pytest.mark.parametrize("n", [1, 2, 3, 10, 45])
def test_holm_agrees_with_statsmodels(n):
    """Holm's adjusted p-values are statsmodels', ties among them."""
    p_values = list(np.random.default_rng(n).integers(0, 30, n) / 200)
    expected = multipletests(p_values, method="holm")[1]
    assert statistics.holm(p_values) == pytest.approx(list(expected), abs=1e-12)


def test_holm_of_no_tests_and_of_no_probabilities():
    """An empty family has no adjusted p-values, and what is no probability is refused."""
    assert statistics.holm([]) == []
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="p-values"):
            statistics.holm([0.5, bad])


@pytest.mark.parametrize("estimate", [statistics.gamma_mean_interval, statistics.beta_mean_interval])
@pytest.mark.parametrize("spread", [1e-3, 1e-4, 1e-5])
def test_intervals_of_tight_values_are_the_normal_ones(estimate, spread):
    """Where values hardly differ both laws are normal, whose profile interval has a closed form."""
    x = 0.3 * (1 + spread * np.array([0.0, 1.0, 2.0, 3.0, 5.0]))
    half = np.std(x) * math.sqrt(math.exp(stats.chi2.ppf(0.95, 1) / len(x)) - 1)
    low, high = estimate(x)
    assert (x.mean() - low, high - x.mean()) == pytest.approx((half, half), rel=max(0.02, 20 * spread))
