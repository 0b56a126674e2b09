"""Variance shares: reference values, invariances, and coverage of intervals."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from study.statistics import VarianceShares, components, shared_rate_interval, variance_shares, wilson
from study.statistics.components import _jackknife, _logits, _variances

Floats = npt.NDArray[np.float64]
NAN = math.nan


def drawn(
    shares: tuple[float, float, float], shape: tuple[int, int], seed: int = 0, *, is_nested: bool = False
) -> Floats:
    rng = np.random.default_rng(seed)
    a, b, residual = np.sqrt(shares)
    of_second = rng.normal(size=shape) if is_nested else rng.normal(size=(1, shape[1]))
    return a * rng.normal(size=(shape[0], 1)) + b * of_second + residual * rng.normal(size=shape)


def analysis_of_variance(y: Floats) -> list[float]:
    """Compute the textbook estimates from mean squares."""
    rows, columns = y.shape
    mean, of_rows, of_columns = y.mean(), y.mean(axis=1, keepdims=True), y.mean(axis=0, keepdims=True)
    first = columns * np.sum((of_rows - mean) ** 2) / (rows - 1)
    second = rows * np.sum((of_columns - mean) ** 2) / (columns - 1)
    residual = np.sum((y - of_rows - of_columns + mean) ** 2) / ((rows - 1) * (columns - 1))
    return [(first - residual) / columns, (second - residual) / rows, residual]


def test_a_complete_array_is_analysed_as_usual() -> None:
    """The products of pairs give the estimates of the analysis of variance."""
    y = drawn((0.5, 0.2, 0.3), (7, 11)) + 1e6
    assert _variances(y, np.ones(y.shape, bool), False).tolist() == pytest.approx(analysis_of_variance(y), rel=1e-4)


def test_pairs_give_the_same_one_by_one() -> None:
    """With missing numbers, the means of products cover all pairs that share a row, a column or nothing."""
    y, mask = drawn((0.4, 0.3, 0.3), (4, 5)), np.ones((4, 5), bool)
    mask[1, 2] = mask[3, 0] = False
    places, values = np.argwhere(mask), y[mask] - y[mask].mean()
    products: dict[str, list[float]] = {"row": [], "column": [], "none": []}
    for p, (i, j) in enumerate(places):
        for q, (k, m) in enumerate(places):
            if p != q:
                kind = "row" if i == k else "column" if j == m else "none"
                products[kind].append(values[p] * values[q])
    row, column, unrelated = (float(np.mean(pair_products)) for pair_products in products.values())
    residual = float(np.mean(values**2)) - row - column + unrelated
    assert _variances(np.where(mask, y, 0.0), mask, False).tolist() == pytest.approx(
        [row - unrelated, column - unrelated, residual]
    )


@pytest.mark.parametrize("is_nested", [False, True])
def test_estimates_are_right_on_average(is_nested: bool) -> None:
    """The mean over 4,000 arrays is within four standard errors of the variances."""
    shares = (0.5, 0.3, 0.2)
    arrays = np.stack([drawn(shares, (6, 5), seed, is_nested=is_nested) for seed in range(4000)])
    means = _variances(arrays, np.ones((6, 5), bool), is_nested)
    wanted = (0.5, 0.5, 0.0) if is_nested else shares
    error = means.std(axis=0) / math.sqrt(len(arrays))
    assert (np.abs(means.mean(axis=0) - wanted) <= 4 * error + 1e-12).all()


def test_order_location_and_scale_dont_change_shares() -> None:
    """Order, location and unit of the numbers don't change the shares; variances change with the unit."""
    y, rng = drawn((0.6, 0.1, 0.3), (12, 9)), np.random.default_rng(3)
    shares = variance_shares(y)
    moved = variance_shares(7 - 3 * y[rng.permutation(12)][:, rng.permutation(9)])
    assert shares is not None
    assert moved is not None
    assert moved.shares == pytest.approx(shares.shares, abs=1e-9)
    assert moved.variances == pytest.approx([9 * v for v in shares.variances], abs=1e-9)
    turned = variance_shares(y.T)
    assert turned is not None
    assert turned.shares[:2] == pytest.approx(shares.shares[1::-1])


def test_a_source_without_effect_may_have_no_share() -> None:
    """Without effect, a source's interval reaches 0, unlike the dominant source's; a zero residual has the share 0."""
    shares = variance_shares(drawn((0.7, 0.0, 0.3), (20, 20)))
    assert shares is not None
    assert shares.intervals[0][0] > 0.3
    assert shares.intervals[1][0] == 0
    decided = variance_shares(np.repeat(np.arange(10.0)[:, None], 10, axis=1))
    assert decided is not None
    assert decided.shares == pytest.approx((1, 0, 0))


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.85])
def test_success_has_the_shares_of_the_latent_numbers(rate: float) -> None:
    """With many seeds the latent shares are estimated, whatever the rate."""
    y = drawn((0.5, 0.2, 0.3), (120, 120), 5)
    shares = variance_shares((y < special.ndtri(rate)).astype(float), is_success=True)
    assert shares is not None
    assert shares.shares == pytest.approx((0.5, 0.2, 0.3), abs=0.12)
    assert sum(shares.shares) == pytest.approx(1)
    assert shares.variances[0] < 0.5 * rate * (1 - rate)  # the shares of the 0s and 1s are smaller


def test_nested_seeds_have_two_shares() -> None:
    """The second share includes the combination's, and its variance counts trials, not shared seeds."""
    shares = variance_shares(drawn((0.4, 0.3, 0.3), (30, 8), is_nested=True), is_nested=True)
    assert shares is not None
    assert shares.shares[2] == shares.variances[1] == 0
    assert shares.shares[0] == pytest.approx(0.4, abs=0.2)
    a, _, residual = shares.variances
    assert shares.standard_error == pytest.approx(math.sqrt(a / 30 + residual / 240))


def test_a_few_missing_numbers_change_little() -> None:
    """Shares are estimated from the available trials."""
    y = drawn((0.6, 0.0, 0.4), (20, 20), 8)
    complete = variance_shares(y)
    y[2, 3] = y[5, 5] = y[9, 0] = NAN
    shares = variance_shares(y)
    assert complete is not None
    assert shares is not None
    assert shares.trials == 397
    assert shares.shares == pytest.approx(complete.shares, abs=0.03)


def test_seeds_without_trials_are_ignored() -> None:
    """A study in progress has the shares of the seeds it has started."""
    y = drawn((0.5, 0.1, 0.4), (8, 6), 4)
    padded = np.pad(y, ((1, 2), (0, 3)), constant_values=NAN)
    assert variance_shares(padded) == variance_shares(y)


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("is_success", [False, True])
def test_few_trials_have_shares_or_none(is_success: bool, is_nested: bool) -> None:
    """With any missing trials, intervals within [0, 1] contain their shares, or are absent, without a warning."""
    rng, count = np.random.default_rng(9), 0
    for _ in range(150):
        shape = (int(rng.integers(2, 6)), int(rng.integers(2, 6)))
        y = drawn((0.4, 0.2, 0.4), shape, int(rng.integers(1000)))
        y = (y > 0).astype(float) if is_success else y
        y[rng.random(shape) < rng.choice([0.1, 0.4, 0.7])] = NAN
        shares = variance_shares(y, is_success=is_success, is_nested=is_nested)
        if shares is not None:
            count += 1
            assert sum(shares.shares) == pytest.approx(1)
            for share, (low, high) in zip(shares.shares, shares.intervals, strict=True):
                assert 0 <= low <= high <= 1
                assert low - 1e-9 <= share <= high + 1e-9
    assert 20 <= count <= 140


def test_seeds_are_left_out_one_at_a_time() -> None:
    """The jackknife's bounds equal those of arrays with each row and each column deleted in turn."""
    y, mask = drawn((0.4, 0.2, 0.4), (7, 6), 2), np.ones((7, 6), bool)
    mask[0, 0] = mask[4, 2] = False
    y = np.where(mask, y, 0.0)
    center, total, below = _logits(y, mask, False), np.zeros(3), np.zeros(3)
    for axis, n in enumerate(y.shape):
        estimates = [_logits(np.delete(y, k, axis), np.delete(mask, k, axis), False) for k in range(n)]
        variance = (n - 1) * np.var(estimates, axis=0)
        total, below = total + variance, below + variance**2 / (n - 1)
    reach = special.stdtrit(total**2 / below, 0.975) * np.sqrt(total)
    low, high = _jackknife(y, mask, False, 0.025)
    assert low == pytest.approx(np.maximum(1.2 * special.expit(center - reach) - 0.1, 0))
    assert high == pytest.approx(np.minimum(1.2 * special.expit(center + reach) - 0.1, 1))


def test_new_seeds_of_the_dominant_source_add_most() -> None:
    """New seeds of a source without effect add no precision, and plain seeds add the most."""
    shares = VarianceShares((1, 0, 0), ((0, 1), (0, 1), (0, 1)), (0.2, 0.0, 0.0), (10, 10), 100)
    first, second, plain = shares.errors_after(100)
    assert second == shares.standard_error
    assert plain < first < second
    assert first == pytest.approx(math.sqrt(0.2 / 20))


def test_rates_of_trials_that_share_their_seeds_are_known_less_well() -> None:
    """If one source dominates, twenty of its seeds count as about twenty trials; if none does, all trials count."""
    decided = np.repeat((np.arange(20) < 12).astype(float)[:, None], 20, axis=1)
    low, high = shared_rate_interval(decided) or (NAN, NAN)
    apart = wilson(12, 20)
    assert apart[0] - 0.02 < low < apart[0] + 0.01
    assert apart[1] - 0.01 < high < apart[1] + 0.02
    independent = (np.random.default_rng(1).random((20, 20)) < 0.6).astype(float)
    low, high = shared_rate_interval(independent) or (NAN, NAN)
    assert 0.08 < high - low < 0.16
    low, high = shared_rate_interval(np.ones((10, 20))) or (NAN, NAN)
    assert wilson(10, 10)[0] < low < wilson(200, 200)[0]
    assert high == 1
    assert shared_rate_interval(np.zeros((10, 20))) == pytest.approx((0, 1 - low), abs=0.02)
    assert shared_rate_interval(np.full((3, 3), NAN)) is None


def test_rates_of_few_seeds_count_as_the_fewest() -> None:
    """Two data seeds can't estimate their variance, so 40 trials count as two; independent trials all count."""
    solved = np.repeat([[1.0, 0.0]], 20, axis=0)
    assert shared_rate_interval(solved) == pytest.approx(clopper_pearson(1, 2), abs=1e-5)
    alone = np.array([[1.0], [0.0], [1.0], [1.0], [0.0], [1.0]])
    assert shared_rate_interval(alone, is_nested=True) == pytest.approx(clopper_pearson(4, 6), abs=1e-5)
    with pytest.raises(ValueError, match=r"values must be 1 \(success\), 0 \(failure\) or NaN \(no trial\), not 0.5"):
        shared_rate_interval(np.full((3, 3), 0.5))


def clopper_pearson(successes: int, n: int) -> tuple[float, float]:
    """Return the interval by quantiles of beta distributions."""
    low = special.betaincinv(successes, n - successes + 1, 0.025)
    return float(low), float(special.betaincinv(successes + 1, n - successes, 0.975))


@pytest.mark.parametrize(("rate", "shape"), [(0.05, (20, 20)), (0.95, (12, 4)), (0.1, (5, 12))])
def test_intervals_hold_rates_near_zero_and_one(rate: float, shape: tuple[int, int]) -> None:
    """Of 60 studies with one dominant source, at most 5% and three deviations miss the rate."""
    arrays = [drawn((0.8, 0.1, 0.1), shape, 300 + seed) < special.ndtri(rate) for seed in range(60)]
    bounds = [shared_rate_interval(array.astype(float)) or (NAN, NAN) for array in arrays]
    missed = sum(not low <= rate <= high for low, high in bounds)
    assert missed <= 60 * 0.05 + 3 * math.sqrt(60 * 0.05 * 0.95)


@pytest.mark.parametrize(
    ("shares", "is_success", "seeds"),
    [
        ((0.5, 0.0, 0.5), False, 10),
        ((0.3, 0.3, 0.4), False, 10),
        ((0.5, 0.2, 0.3), True, 10),
        ((0.8, 0.1, 0.1), True, 5),
    ],
)
def test_intervals_hold_the_shares(shares: tuple[float, float, float], is_success: bool, seeds: int) -> None:
    """Of 200 studies with these numbers of seeds, at most 5% and three deviations miss a share."""
    missed = np.zeros(3)
    for seed in range(200):
        y = drawn(shares, (seeds, seeds), 100 + seed)
        values = (y < 0).astype(float) if is_success else y
        estimate = variance_shares(values, is_success=is_success)
        assert (estimate is None) == (np.ptp(values) == 0)
        if estimate is None:
            continue
        for place, ((low, high), share) in enumerate(zip(estimate.intervals, shares, strict=True)):
            missed[place] += not low - 1e-9 <= share <= high + 1e-9
    assert missed.max() <= 200 * 0.05 + 3 * math.sqrt(200 * 0.05 * 0.95)


def test_uninformative_numbers_have_no_shares() -> None:
    """Too few seeds and equal numbers give None; infinity and counts are refused."""
    assert variance_shares(np.ones((5, 5)), is_success=True) is None
    assert variance_shares(drawn((0.5, 0, 0.5), (2, 9))) is None
    assert variance_shares(drawn((0.5, 0, 0.5), (9, 2))) is None
    assert variance_shares(drawn((0.5, 0, 0.5), (9, 2)), is_nested=True) is not None
    with pytest.raises(ValueError, match="finite"):
        variance_shares(np.array([[math.inf, 1, 2]] * 3))
    with pytest.raises(ValueError, match="0 or 1"):
        variance_shares(np.full((4, 4), 2.0), is_success=True)
    with pytest.raises(ValueError, match="confidence"):
        variance_shares(drawn((0.5, 0, 0.5), (4, 4)), confidence=1.0)


def test_counted_trials_have_the_intervals_of_listed_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many trials of a seed are drawn as a count, with equal summaries and nearly equal intervals."""
    rng = np.random.default_rng(1)
    solved = (rng.random((40, 60)) < rng.random((40, 1))).astype(float)
    mask = np.ones(solved.shape, bool)
    assert np.allclose(
        components._summary_of_counts(solved.sum(axis=1), mask.sum(axis=1).astype(float)),
        components._summary(solved, mask, is_success=True, is_nested=True),
    )
    one_by_one = shared_rate_interval(solved, is_nested=True)
    components._table.cache_clear()
    monkeypatch.setattr(components, "_MOST_DRAWN", 100)
    assert shared_rate_interval(solved, is_nested=True) == pytest.approx(one_by_one, abs=0.02)
    components._table.cache_clear()
