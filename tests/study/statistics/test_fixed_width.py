"""Seeds added until an interval is narrow: coverage compared with an independent simulation.

The simulation draws studies seed by seed, looks after each batch and stops by its own intervals.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from study import statistics
from study.statistics import FixedWidth
from study.statistics.fixed_width import clopper_pearsons

DEMO = FixedWidth(half_width=0.05, batch=20, most=400)
SAMPLINGS = [
    DEMO,
    FixedWidth(half_width=0.1, batch=20, most=100),
    FixedWidth(half_width=0.2, batch=7, most=30),
    FixedWidth(half_width=0.1, batch=1, most=60),
    FixedWidth(half_width=0.02, batch=20, most=400),  # reached only near the ends
]
STUDIES = 4000
Floats = npt.NDArray[np.float64]


@cache
def exact(sampling: FixedWidth, n: int) -> Floats:
    """Return Clopper and Pearson's intervals after n seeds, shape [n + 1, 2]."""
    k, error = np.arange(n + 1), 1 - sampling.nominal
    low = np.concatenate([[0.0], stats.beta.ppf(error / 2, k[1:], n - k[1:] + 1)])
    return np.column_stack([low, 1 - low[::-1]])


@cache
def wilson(sampling: FixedWidth, n: int) -> Floats:
    """Return Wilson's 95% intervals after n seeds, shape [n + 1, 2]."""
    return statistics.wilsons(np.arange(n + 1), np.full(n + 1, n))


def simulated(sampling: FixedWidth, rate: float, bounds=exact) -> tuple[float, Floats]:
    """Draw studies, each stopped at the first look with a narrow interval; return coverage and seeds used."""
    rng = np.random.default_rng(5)
    solved = np.cumsum(rng.random((STUDIES, sampling.most)) < rate, axis=1)
    running, holds, used = np.ones(STUDIES, bool), np.zeros(STUDIES, bool), np.zeros(STUDIES)
    for n in [*range(sampling.batch, sampling.most, sampling.batch), sampling.most]:
        low, high = bounds(sampling, n)[solved[:, n - 1]].T
        ends = running & (((high - low) / 2 <= sampling.half_width) | (n == sampling.most))
        holds[ends] = ((low <= rate) & (rate <= high))[ends]
        used[ends] = n
        running &= ~ends
    assert not running.any()
    return float(holds.mean()), used


def near_the_jumps(sampling: FixedWidth) -> Floats:
    """Return the rates at the ends of all intervals of all looks, approached from both sides."""
    ends = np.unique(np.concatenate([exact(sampling, n).ravel() for n in sampling.looks]))
    ends = ends[(ends > 0) & (ends < 1)][:: max(1, len(ends) // 500)]
    return np.concatenate([ends * (1 - 1e-9), np.minimum(ends * (1 + 1e-9), 1)])


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_coverage_holds_at_every_rate(sampling):
    """At rates near interval ends and between them, 95% of intervals contain the rate."""
    for rates in (near_the_jumps(sampling), np.linspace(0, 1, 501)):
        assert sampling.coverage(rates).min() >= 0.95


@pytest.mark.parametrize("rate", [0.02, 0.06, 0.3, 0.5, 0.91])
@pytest.mark.parametrize("sampling", SAMPLINGS[:3])
def test_coverage_and_seeds_are_those_of_a_simulation(sampling, rate):
    """The rule's computed properties match simulated studies within four standard errors."""
    holds, used = simulated(sampling, rate)
    coverage = float(sampling.coverage(np.array([rate]))[0])
    assert holds == pytest.approx(coverage, abs=4 * np.sqrt(coverage * (1 - coverage) / STUDIES) + 1e-9)
    assert used.mean() == pytest.approx(sampling.expected(rate), abs=4 * used.std() / np.sqrt(STUDIES) + 1e-3)


@pytest.mark.parametrize("rate", [0.002, 0.09, 0.128])
def test_wilson_undercovers_under_the_same_rule(rate):
    """If studies stop at a narrow Wilson interval, more than 6% of these intervals miss the rate."""
    assert simulated(DEMO, rate, wilson)[0] < 0.94
    assert simulated(DEMO, rate)[0] >= 0.95


def test_expected_over_all_rates_is_the_mean_of_expected():
    """Without a rate, the expectation is over uniformly distributed rates."""
    rates = (np.arange(500) + 0.5) / 500
    assert DEMO.expected() == pytest.approx(np.mean([DEMO.expected(rate) for rate in rates]), rel=1e-3)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_counting_failures_mirrors_the_interval(count):
    """The failures' interval mirrors the successes', and contains the estimate."""
    k, n = count
    low, high = DEMO.interval(k, n)
    assert DEMO.interval(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert low <= k / n <= high
    assert DEMO.is_narrow(k, n) == DEMO.is_narrow(n - k, n)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@given(seed=st.integers(0, 2**32), rate=st.floats(0, 1))
def test_the_rule_ends_narrow_or_with_all_seeds(sampling, seed, rate):
    """The rule ends with a narrow interval, or with the maximum of seeds."""
    solved = np.random.default_rng(seed).random(sampling.most) < rate
    n = next(n for n in (*sampling.looks, 0) if n == 0 or sampling.is_narrow(int(solved[:n].sum()), n))
    if n:
        low, high = sampling.interval(int(solved[:n].sum()), n)
        assert (high - low) / 2 <= sampling.half_width
        assert n in sampling.looks
    else:
        assert sampling.looks[-1] == sampling.most


def test_more_seeds_allowed_than_ever_needed_change_nothing():
    """If every study ends long before, a greater `most` costs neither time nor width."""
    few, many = (FixedWidth(half_width=0.1, batch=20, most=most) for most in (200, 10**6))
    assert few.nominal == many.nominal
    assert few.expected(0.5) == many.expected(0.5) < 200


def test_one_look_costs_nothing():
    """With one look no correction is needed: the intervals are Clopper and Pearson's."""
    sampling = FixedWidth(half_width=0.05, batch=100, most=100)
    assert sampling.looks == (100,)
    assert sampling.nominal == pytest.approx(0.95)
    assert DEMO.nominal > 0.955


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.001, 0.5))
def test_clopper_and_pearson_are_scipys(count, error):
    """The vectorised intervals equal those of scipy's exact test."""
    k, n = count
    theirs = stats.binomtest(k, n).proportion_ci(1 - error, method="exact")
    (ours,) = clopper_pearsons([k], [n], error)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_the_interval_without_seeds_is_0_to_1():
    """Without results, the interval is [0, 1]."""
    assert DEMO.interval(0, 0) == (0.0, 1.0)
    assert not DEMO.is_narrow(0, 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"half_width": 0.0}, "0 < half_width < 0.5 must hold, but got 0.0"),
        ({"half_width": 0.5}, "0 < half_width < 0.5 must hold, but got 0.5"),
        ({"half_width": float("nan")}, "but got nan"),
        ({"batch": 0}, "1 <= batch <= most must hold, but got 0 and 400"),
        ({"batch": 401}, "1 <= batch <= most must hold, but got 401 and 400"),
        ({"confidence": 1.0}, "0 < confidence < 1 must hold, but got 1.0"),
    ],
)
def test_impossible_samplings_are_refused(changed, message):
    """The error shows the rule and the value given."""
    with pytest.raises(ValueError, match=message):
        FixedWidth(**{"half_width": 0.05, "batch": 20, "most": 400} | changed)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (1, 0)])
def test_impossible_counts_are_refused(k, n):
    """A count outside 0..n is an error that names both numbers."""
    with pytest.raises(ValueError, match=f"successes={k}, n={n}"):
        DEMO.interval(k, n)
