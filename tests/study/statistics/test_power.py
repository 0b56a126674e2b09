"""The power of paired comparisons matches simulated studies, and required seeds are minimal."""

from __future__ import annotations

import numpy as np
import pytest

from study import statistics


@pytest.mark.parametrize(
    ("first_only", "second_only", "seeds", "level"),
    [
        (0.42, 0.02, 20, 0.05),
        (0.1, 0.1, 60, 0.05),
        (0.3, 0.1, 100, 0.05 / 30),
        (0.9, 0.1, 12, 0.05),
        (0.5, 0.0, 5, 0.05),
    ],
)
def test_power_is_the_share_of_simulated_studies_that_reject(first_only, second_only, seeds, level):
    """The test itself is applied to drawn counts."""
    drawn = np.random.default_rng(1).multinomial(
        seeds, [first_only, second_only, max(0.0, 1 - first_only - second_only)], 20_000
    )
    counts, often = np.unique(drawn[:, :2], axis=0, return_counts=True)
    rejected = np.array([statistics.mcnemar(int(b), int(c)) <= level for b, c in counts])
    share = float((often * rejected).sum() / often.sum())
    power = statistics.mcnemar_power(first_only, second_only, seeds, level)
    assert power == pytest.approx(share, abs=4 * np.sqrt(0.25 / 20_000))


def test_equal_methods_are_told_apart_in_at_most_the_level():
    """The test is exact, whatever the rates of discordant seeds."""
    powers = [statistics.mcnemar_power(rate, rate, n) for rate in (0.01, 0.1, 0.3, 0.5) for n in (5, 20, 100, 1000)]
    assert max(powers) <= 0.05


@pytest.mark.parametrize(("rates", "level"), [((0.42, 0.02), 0.05), ((0.2, 0.1), 0.05), ((0.06, 0.03), 0.001)])
def test_seeds_are_as_few_as_have_the_power(rates, level):
    """The number has the power, and a twentieth fewer hasn't."""
    seeds = statistics.seeds_for(*rates, power=0.8, level=level)
    assert statistics.mcnemar_power(*rates, seeds, level) >= 0.8
    assert statistics.mcnemar_power(*rates, int(seeds * 0.95) - 1, level) < 0.8


def test_the_greatest_number_of_seeds_is_a_million():
    seeds = statistics.seeds_for(0.1014, 0.1)
    assert 2**19 < seeds <= 1_000_000
    assert statistics.mcnemar_power(0.1014, 0.1, seeds) >= 0.8


def test_undetectable_differences_have_no_number_of_seeds():
    """Equal rates, and differences that need more than a million seeds, give None."""
    assert statistics.seeds_for(0.2, 0.2) is None
    assert statistics.seeds_for(0.5001, 0.4999) is None
    assert statistics.least_difference(5) is None


def test_the_least_difference_is_found_as_often_as_wanted():
    """At that difference around one half, the power is the requested one."""
    for seeds in (10, 50, 200):
        difference = statistics.least_difference(seeds)
        rates = statistics.discordant_rates(0.5 + difference / 2, 0.5 - difference / 2)
        assert statistics.mcnemar_power(*rates, seeds) == pytest.approx(0.8, abs=0.002)


def test_rates_and_correlation_give_the_discordant_rates():
    """Independent outcomes multiply, equal ones never differ, and impossible correlations are clipped."""
    assert statistics.discordant_rates(0.8, 0.5) == pytest.approx((0.4, 0.1))
    assert statistics.discordant_rates(0.5, 0.5, 1.0) == pytest.approx((0.0, 0.0))
    assert statistics.discordant_rates(0.9, 0.5, 1.0) == pytest.approx((0.4, 0.0))
    assert statistics.discordant_rates(0.9, 0.5, -1.0) == pytest.approx((0.5, 0.1))
    with pytest.raises(ValueError, match="rates must lie in"):
        statistics.discordant_rates(1.2, 0.5)
    with pytest.raises(ValueError, match="their sum <= 1"):
        statistics.mcnemar_power(0.7, 0.6, 10)
