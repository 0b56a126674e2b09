"""Tests of claims: decisions, sharing of the error, and exact tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from study.statistics import ClaimSample, ClaimTest, difference_p_values, mcnemar, mcnemar_interval
from study.statistics.claims import EarlierLook, Kind

LOOKS = (20, 40, 60)
NAN = math.nan


def sample(
    values: Sequence[float], bound: float = 0.5, kind: Kind = "rate", complete: int | None = None
) -> ClaimSample:
    low, high = (-1.0, 1.0) if kind == "difference" else (0.0, 1.0)
    padded = [*values, *[NAN] * (LOOKS[-1] - len(values))]
    return ClaimSample(np.array(padded, float), bound, low, high, kind, complete)


# --- the exact tests


@pytest.mark.parametrize(
    ("rates", "by"), [((0.6, 0.5), 0.1), ((0.95, 0.85), 0.1), ((0.5, 0.5), 0.0), ((0.9, 0.1), 0.8)]
)
@pytest.mark.parametrize("n", [6, 20, 45])
def test_differences_are_tested_exactly(rates: tuple[float, float], by: float, n: int) -> None:
    """Whatever the correlation of outcomes, p <= α has probability at most α if the difference is the bound."""
    first, second = rates
    wins, losses = (grid.ravel() for grid in np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"))
    possible = wins + losses <= n
    wins, losses = wins[possible], losses[possible]
    p_values = np.array([difference_p_values(int(b), int(c), n, by) for b, c in zip(wins, losses, strict=True)])
    least, most = max(by, 0.0), min(first + second, 2 - first - second)
    for discordant in np.linspace(least, most, 7):
        up, down = (discordant + by) / 2, (discordant - by) / 2
        chances = stats.multinomial.pmf(
            np.stack([wins, losses, n - wins - losses], axis=1), n, [up, down, 1 - up - down]
        )
        for level in (0.025, 0.05):
            assert np.nansum(chances[p_values[:, 0] <= level]) <= level * (1 + 1e-6)
            assert np.nansum(chances[p_values[:, 1] <= level]) <= level * (1 + 1e-6)


@given(b=st.integers(0, 30), c=st.integers(0, 30), ties=st.integers(0, 30), by=st.sampled_from([-0.3, 0.0, 0.1, 0.4]))
@settings(max_examples=60)
def test_tests_and_intervals_of_differences_agree(b: int, c: int, ties: int, by: float) -> None:
    """A number is below the lower end of the 95% interval exactly if its p is below 2.5%."""
    n = b + c + ties
    above, below = difference_p_values(b, c, n, by)
    low, high = mcnemar_interval(b, c, n)
    if abs(above - 0.025) > 1e-6:
        assert (above < 0.025) == (by < low)
    if abs(below - 0.025) > 1e-6:
        assert (below < 0.025) == (by > high)


def test_a_difference_of_0_has_mcnemars_p_value() -> None:
    """The smaller p-value of both sides is half of McNemar's."""
    assert min(difference_p_values(9, 2, 30, 0.0)) == pytest.approx(mcnemar(9, 2) / 2)
    assert difference_p_values(0, 0, 0, 0.1) == (1.0, 1.0)
    with pytest.raises(ValueError, match="-1 < difference < 1"):
        difference_p_values(1, 1, 5, 1.0)
    with pytest.raises(ValueError, match=r"first_only \+ second_only <= n and .* must hold"):
        difference_p_values(4, 4, 5, 0.0)


def test_rates_have_the_binomial_test() -> None:
    """A rate's p-values are binomial tail probabilities, and means have none."""
    solved = sample([1.0] * 15 + [0.0] * 5)
    above, below = solved.p_values or (NAN, NAN)
    assert above == pytest.approx(stats.binom.sf(14, 20, 0.5))
    assert below == pytest.approx(stats.binom.cdf(15, 20, 0.5))
    assert sample([0.0] * 20).p_values == (1.0, pytest.approx(0.5**20))
    assert sample([0.7] * 20, kind="mean").p_values is None


# --- decisions


def test_a_claim_is_decided_at_the_first_clear_look() -> None:
    """Clear seeds decide it in the first batch, whatever comes later."""
    test = ClaimTest(LOOKS)
    supported = test.follow([sample([1.0] * 20 + [0.0] * 40)])
    assert (supported.state, supported.seeds, supported.hold) == ("shown", (20,), (True,))
    refuted = test.follow([sample([0.0] * 20 + [1.0] * 40)])
    assert (refuted.state, refuted.seeds, refuted.hold) == ("refuted", (20,), (False,))


def test_pending_trials_decide_nothing() -> None:
    """A look waits until all its seeds have ended; excluded seeds don't delay it."""
    test = ClaimTest(LOOKS)
    waiting = test.follow([sample([1.0] * 19, complete=19)])
    assert (waiting.state, waiting.seeds, waiting.evidence[0].above) == ("open", (20,), 1.0)
    assert test.follow([sample([1.0] * 19 + [NAN], complete=20)]).state == "shown"


def test_every_cell_must_be_shown_and_one_refutes() -> None:
    """Supported cells get no more seeds; the others continue, and refute or support the claim."""
    test, clear = ClaimTest(LOOKS), sample([1.0] * 60)
    open_one = sample([1.0, 0.0] * 10, complete=20)
    course = test.follow([clear, open_one])
    assert (course.state, course.seeds, course.hold) == ("open", (20, 40), (True, False))
    assert test.follow([clear, sample([1.0, 0.0] * 10 + [1.0] * 40)]).state == "shown"
    against = test.follow([clear, sample([1.0, 0.0] * 10 + [0.0] * 40)])
    assert (against.state, against.hold) == ("refuted", (True, False))


def test_the_last_look_decides_by_the_exact_test_with_the_remaining_error() -> None:
    """36 of 60 don't decide by bets; the last look has half of the error, a single look all of it, without bets."""
    values = [1.0, 0.0, 1.0, 0.0, 1.0] * 12  # 36 of 60, p = 0.077
    assert ClaimTest(LOOKS).follow([sample(values)]).state == "undecided"
    values[1] = values[3] = 1.0  # 38, p = 0.026
    single_look = ClaimTest((60,)).follow([sample(values)])
    assert (single_look.state, single_look.p_values[0] is not None) == ("shown", True)
    assert ClaimTest(LOOKS).follow([sample(values)]).state == "undecided"
    values[6] = 1.0  # 39, p = 0.014
    assert ClaimTest(LOOKS).follow([sample(values)]).state == "shown"
    assert ClaimTest(LOOKS, is_planned=False).follow([sample(values)]).state == "undecided"
    few = ClaimTest(LOOKS, error=0.05 / 4).follow([sample(values)])  # one of four claims
    assert few.state == "undecided"


def test_an_exact_test_refutes_with_its_share_of_the_cells() -> None:
    """Of five cells, one refutes the claim at a fifth of the error left for the last look."""
    above, low = sample([1.0, 1.0, 1.0, 0.0] * 15), sample([0.0, 0.0, 1.0] * 20)  # 20 of 60: p = 0.0067
    p_values = low.p_values
    assert p_values is not None
    assert 0.005 < p_values[1] < 0.025
    test = ClaimTest((30, 60))
    assert test.follow([low]).state == "refuted"
    assert test.follow([above] * 4 + [low]).state == "undecided"


def test_means_are_decided_by_bets_alone() -> None:
    """Without an exact test, bets have all of the error, also with a single look."""
    assert ClaimTest(LOOKS).shares("mean") == (0.05, 0.0)
    assert ClaimTest((60,)).shares("mean") == (0.05, 0.0)
    assert ClaimTest((60,)).follow([sample([0.9] * 60, kind="mean")]).state == "shown"


def test_an_estimate_has_its_own_scale() -> None:
    """Mean and interval have the numbers' units, whatever their limits."""
    times = ClaimSample(np.array([100.0, 300.0] * 30), 500.0, 0.0, 1000.0)
    assert times.mean == 200
    assert 100 < times.interval[0] < 200 < times.interval[1] < 350
    assert ClaimSample(np.array([NAN]), 500.0, 0.0, 1000.0).mean is None


@pytest.mark.parametrize("kind", ["rate", "difference", "mean"])
def test_clear_cells_are_expected_to_need_few_seeds(kind: Kind) -> None:
    """Results so far give the number of expected seeds; without results it lies between the extremes."""
    test = ClaimTest(LOOKS)
    worst = -1.0 if kind == "difference" else 0.0
    unknown = test.expected(sample([], 0.3, kind), 1)
    assert test.expected(sample([1.0] * 20, 0.3, kind), 1) <= unknown <= 60
    assert test.expected(sample([worst] * 20, 0.3, kind), 1) < 30
    assert test.expected(sample([1.0, worst] * 10, 0.3, kind), 1) >= unknown or kind == "difference"
    assert ClaimTest((60,)).expected(sample([], 0.3, kind), 1) == 60 or kind == "mean"


def test_impossible_claims_are_refused() -> None:
    """A bound at a limit, a test without looks, and an invalid error are refused."""
    with pytest.raises(ValueError, match="low < bound < high"):
        sample([1.0], bound=1.0)
    with pytest.raises(ValueError, match="there must be a look"):
        ClaimTest(())
    with pytest.raises(ValueError, match="0 < error < 1"):
        ClaimTest(LOOKS, error=0.0)


@pytest.mark.parametrize("is_true", [False, True])
def test_claims_at_their_bound_are_rarely_decided_wrongly(is_true: bool) -> None:
    """Of 1,000 studies with two cells, at the bound or just above it, at most 5% and three deviations are wrong."""
    rng, test, wrong = np.random.default_rng(2), ClaimTest(LOOKS), 0
    bound = 0.5 - 1e-9 * is_true
    for _ in range(1000):
        cells = [sample((rng.random(60) < 0.5).astype(float), bound), sample([1.0] * 60)]
        wrong += test.follow(cells).state == ("refuted" if is_true else "shown")
    assert wrong <= 1000 * 0.05 + 3 * math.sqrt(1000 * 0.05 * 0.95)


def test_more_seeds_share_the_error_with_earlier_looks() -> None:
    """Each later exact test has half of the previous one's error; the sum is the error of a verdict."""
    first = ClaimTest((20,))
    assert (first.shares("rate"), first.total_error("rate")) == ((0.0, 0.05), 0.05)
    once = ClaimTest((40,), earlier=(EarlierLook(20, 0.05),))
    assert (once.shares("rate"), once.total_error("rate")) == ((0.0, 0.025), pytest.approx(0.075))
    twice = ClaimTest((80,), earlier=(EarlierLook(20, 0.05), EarlierLook(40, 0.025)))
    assert (twice.shares("rate"), twice.total_error("rate")) == ((0.0, 0.0125), pytest.approx(0.0875))
    adaptive = ClaimTest((20, 40, 60), earlier=(EarlierLook(40, 0.025, 0.025),))
    assert (adaptive.shares("rate"), adaptive.total_error("rate")) == ((0.025, 0.0125), pytest.approx(0.0625))


def test_a_repeated_look_spends_no_error() -> None:
    """The same seeds again give the same result and spend no error; other seeds of that number are another look."""
    earlier = (EarlierLook(20, 0.05), EarlierLook(40, 0.025))
    assert ClaimTest((20,), earlier=earlier).shares("rate") == (0.0, 0.05)
    assert ClaimTest((20,), earlier=earlier).total_error("rate") == pytest.approx(0.075)
    other_seeds = (EarlierLook(20, 0.05, is_of_first=False),)
    assert ClaimTest((20,), earlier=other_seeds).shares("rate") == (0.0, 0.025)


def test_the_verdict_of_an_earlier_last_look_stays() -> None:
    """If seeds are added until claims are decided, raising the maximum doesn't undo a verdict."""
    numbers = np.array([1.0, 1.0, 1.0, 0.0] * 5 + [NAN] * 20)
    complete, partial = (ClaimSample(numbers, 0.5, kind="rate", complete=count) for count in (None, 20))
    assert ClaimTest((10, 20)).follow([complete]).state == "shown"
    raised = ClaimTest((10, 20, 30, 40), earlier=(EarlierLook(20, 0.025, 0.025),))
    course = raised.follow([complete])
    assert (course.state, course.seeds) == ("shown", (20,))
    assert ClaimTest((10, 20, 30, 40)).follow([partial]).state == "open"


@pytest.mark.parametrize("is_adaptive", [False, True])
def test_raised_seeds_keep_the_error_that_is_reported(is_adaptive: bool) -> None:
    """A rate at its bound is called above it within the stated error, though seeds are raised five times."""
    rng, shown, studies = np.random.default_rng(0), 0, 300
    for _ in range(studies):
        sample = ClaimSample((rng.random(160) < 0.5).astype(float), 0.5, kind="rate")
        earlier: tuple[EarlierLook, ...] = ()
        for seeds in (20, 40, 60, 80, 120, 160):
            looks = tuple(range(20, seeds + 1, 20)) if is_adaptive else (seeds,)
            test = ClaimTest(looks, earlier=earlier)
            course = test.follow([sample.first(seeds)])
            if course.state != "undecided":
                break
            bets, exact = test.shares("rate")
            earlier = (*earlier, EarlierLook(seeds, exact, bets))
        shown += course.state == "shown"
    assert test.total_error("rate") < 0.1
    assert shown <= stats.binom.ppf(0.999, studies, 0.05)
