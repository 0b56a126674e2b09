"""Interquartile means, profiles and probabilities over several cells agree with reference implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from study import statistics
from study.statistics import SeedValues


def drawn(cells=3, seeds=8, *, seed=0, first_seed=0, shift=0.0, digits=9):
    """Draw normal values, rounded to a number of digits."""
    values = (np.random.default_rng(seed).normal(size=(cells, seeds)) + shift).round(digits)
    return SeedValues({f"task {c}": {first_seed + s: float(values[c, s]) for s in range(seeds)} for c in range(cells)})


def samples(values):
    return [np.array(list(sample.values())) for sample in values.samples]


# --- interquartile means ----------------------------------------------------------------------------------------


def test_the_interquartile_mean_is_the_mean_of_the_cells():
    """Cells have equal weights, whatever their seeds. SciPy's trimmed mean is the same for multiples of four."""
    values = SeedValues({**drawn(1).by_cell, "long": dict(enumerate([9.0, 1.0, 2.0, 4.0] * 5))})
    expected = np.mean([stats.trim_mean(sample, 0.25) for sample in samples(values)])
    assert statistics.interquartile_mean_over_cells(values).value == pytest.approx(expected)


def test_one_cell_has_the_interval_of_a_cell():
    """For a single cell, the interval equals that of a report's row, to the last bit."""
    values = drawn(1, 12)
    interval = statistics.interquartile_mean_over_cells(values).interval
    assert interval == tuple(statistics.interquartile_mean_intervals(samples(values)[0])[0])


def test_seeds_in_common_make_the_interval_wider():
    """Copies of one cell add no information; cells with their own seeds do."""
    (sample,) = drawn(1, 20).samples
    copies = SeedValues(dict.fromkeys(range(8), sample))
    independent = SeedValues({cell: {(cell, seed): value for seed, value in sample.items()} for cell in range(8)})
    single, same, apart = (
        np.subtract(*reversed(statistics.interquartile_mean_over_cells(values).interval))
        for values in (SeedValues({0: sample}), copies, independent)
    )
    assert same >= single
    assert apart == pytest.approx(same / math.sqrt(8), rel=0.2)


def test_the_order_of_cells_and_seeds_does_not_matter():
    """Permuted values have the same estimates and intervals, to the last bit."""
    values = drawn(3, 9)
    turned = SeedValues({cell: dict(reversed(sample.items())) for cell, sample in reversed(values.by_cell.items())})
    for estimate in (
        statistics.interquartile_mean_over_cells,
        lambda sample_values: statistics.performance_profile(sample_values, higher_is_better=True).reach,
        lambda sample_values: statistics.probability_of_improvement(
            of=sample_values, over=drawn(seed=5), higher_is_better=True
        ),
    ):
        assert estimate(values) == estimate(turned)


def test_few_seeds_and_equal_values_have_no_interval():
    """Four seeds in a cell don't allow a valid interval; equal values have no variance."""
    assert statistics.interquartile_mean_over_cells(drawn(3, 4)).interval is None
    equal = SeedValues({"a": dict.fromkeys(range(9), 1.0), "b": dict.fromkeys(range(9), 3.0)})
    assert statistics.interquartile_mean_over_cells(equal) == statistics.MeanOverCells(2.0, None)


def test_cells_that_lack_some_seeds_have_an_interval():
    """Resamples that leave a cell without a seed don't count."""
    values = drawn(2, 12).by_cell
    incomplete = SeedValues({**values, "few": {seed: 0.1 * seed for seed in range(6, 12)}})
    estimate = statistics.interquartile_mean_over_cells(incomplete)
    assert estimate.interval[0] < estimate.value < estimate.interval[1]


def test_an_interquartile_mean_of_infinity_is_refused():
    """An infinite value raises ValueError."""
    with pytest.raises(ValueError, match="finite"):
        statistics.interquartile_mean_over_cells(SeedValues({"a": {0: math.inf, 1: 0.0}}))


# --- profiles ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_profile_is_the_share_of_better_values(higher_is_better):
    """At each threshold, the profile is the mean over cells of the share of values strictly better."""
    values = SeedValues({**drawn(2, 9, digits=1).by_cell, "bad": {0: -math.inf, 1: 0.1, 2: math.inf}})
    profile = statistics.performance_profile(values, higher_is_better=higher_is_better)
    at = np.concatenate([np.linspace(-3, 3, 121), *samples(drawn(2, 9, digits=1))])
    expected = [
        np.mean([np.mean(sample > t if higher_is_better else sample < t) for sample in samples(values)]) for t in at
    ]
    assert profile.at(at) == pytest.approx(expected)
    assert np.isfinite(profile.thresholds).all()
    assert len(profile.shares) == len(profile.thresholds) + 1


def test_the_band_of_one_cell_is_kolmogorovs():
    """The half-width of a single cell's band is the critical value of SciPy's exact Kolmogorov test."""
    for n in (1, 5, 20):
        reach = statistics.performance_profile(drawn(1, n), higher_is_better=True).reach
        at_edge = np.arange(n) / n + reach  # a uniform sample whose greatest distance is the half-width
        assert stats.kstest(at_edge.clip(0, 1), "uniform", method="exact").pvalue == pytest.approx(0.05, rel=1e-3)
    # the greatest distance must be below the remaining end
    profile = statistics.performance_profile(drawn(1, 5), higher_is_better=True)
    assert profile.low.min() == 0
    assert profile.high.max() == 1


def test_the_band_of_many_cells_is_narrower_unless_they_are_copies():
    """Cells with other seeds average out; copies add no information; equal values have no narrow band."""
    (sample,) = drawn(1, 20).samples
    single = statistics.performance_profile(SeedValues({0: sample}), higher_is_better=True).reach
    copies = SeedValues(dict.fromkeys(range(8), sample))
    assert statistics.performance_profile(copies, higher_is_better=True).reach == pytest.approx(single, rel=1e-4)
    independent = SeedValues({cell: {(cell, seed): value for seed, value in sample.items()} for cell in range(8)})
    assert 0.25 * single < statistics.performance_profile(independent, higher_is_better=True).reach < 0.5 * single
    equal = SeedValues({cell: dict.fromkeys(range(20), 1.0) for cell in range(8)})
    assert statistics.performance_profile(equal, higher_is_better=True).reach == pytest.approx(single, rel=1e-4)


def test_a_band_covers_the_true_profile_simultaneously():
    """Of 300 studies of four cells, at least 93% have a band that contains the entire true profile."""
    truth = stats.norm.sf(np.linspace(-3, 3, 601))
    held = 0
    for study in range(300):
        profile = statistics.performance_profile(drawn(4, 7, seed=study), higher_is_better=True)
        held += bool(np.all(np.abs(profile.at(np.linspace(-3, 3, 601)) - truth) <= profile.reach))
    assert held >= 279


# --- probabilities ----------------------------------------------------------------------------------------------


def test_with_seeds_of_their_own_the_probability_is_that_of_mann_and_whitney():
    """In each cell the probability is U/(m n), with ties counted half."""
    first, second = drawn(3, 9, digits=1, shift=0.4), drawn(3, 7, seed=1, first_seed=100, digits=1)
    expected = np.mean(
        [
            stats.mannwhitneyu(a, b).statistic / (a.size * b.size)
            for a, b in zip(samples(first), samples(second), strict=True)
        ]
    )
    probability = statistics.probability_of_improvement(of=first, over=second, higher_is_better=True)
    assert probability.value == pytest.approx(expected)
    lower = statistics.probability_of_improvement(of=first, over=second, higher_is_better=False)
    assert lower.value == pytest.approx(1 - expected)


def test_trials_of_one_seed_are_not_compared_with_each_other():
    """By hand: of pairs with different seeds, the first wins one and a half of two."""
    first, second = SeedValues({"a": {0: 3.0, 1: 5.0}}), SeedValues({"a": {0: 5.0, 1: 2.0}})
    assert statistics.probability_of_improvement(of=first, over=second, higher_is_better=True).value == 0.75
    assert statistics.probability_of_improvement(of=first, over=first, higher_is_better=True).value == 0.5


def test_the_two_probabilities_of_a_pair_add_up_to_one():
    """Exchanged methods have the mirrored interval."""
    a, b = drawn(3, 9, digits=1), drawn(3, 9, seed=1, digits=1, shift=0.5)
    first = statistics.probability_of_improvement(of=a, over=b, higher_is_better=True)
    second = statistics.probability_of_improvement(of=b, over=a, higher_is_better=True)
    assert first.value == pytest.approx(1 - second.value)
    assert first.interval == pytest.approx((1 - second.interval[1], 1 - second.interval[0]))


def test_the_variance_is_the_jackknifes():
    """For many seeds the interval is the normal approximation with the jackknife variance over seeds."""
    rng = np.random.default_rng(3)
    n = 150
    common = rng.normal(size=n)
    a, b = common + rng.normal(size=n) + 0.3, common + rng.normal(size=n)

    def value(keep):
        methods = [SeedValues({"a": {int(s): float(numbers[s]) for s in keep}}) for numbers in (a, b)]
        return statistics.probability_of_improvement(of=methods[0], over=methods[1], higher_is_better=True)

    left_out = [value(np.delete(np.arange(n), s)).value for s in range(n)]
    error = math.sqrt((n - 1) * np.var(left_out))
    low, high = value(np.arange(n)).interval
    assert (high - low) / 2 == pytest.approx(1.976 * error, rel=0.05)


def test_a_sweep_of_few_seeds_is_no_certainty():
    """All trials of the first are better: the interval is that of n comparisons, and wider for fewer seeds."""
    ends = []
    for n in (3, 5, 20):
        first, second = drawn(2, n, shift=99.0), drawn(2, n, seed=1)
        probability = statistics.probability_of_improvement(of=first, over=second, higher_is_better=True)
        t = stats.t.ppf(0.975, n - 1)
        assert (probability.value, probability.interval[1]) == (1.0, pytest.approx(1.0))
        assert probability.interval[0] == pytest.approx(n / (n + t * t))
        ends.append(probability.interval[0])
    assert ends == sorted(ends)


def test_a_trial_without_a_number_is_worse_than_any():
    """Infinity on the bad side loses against numbers, and ties with itself."""
    first, second = SeedValues({"a": {0: -math.inf, 1: 1.0}}), SeedValues({"a": {2: 0.0, 3: -math.inf}})
    assert statistics.probability_of_improvement(of=first, over=second, higher_is_better=True).value == (2.5) / 4


def test_methods_without_a_pair_are_refused():
    """Cells must be equal, each with two different seeds; one trial in each has no interval."""
    a, b = SeedValues({"a": {0: 1.0}}), SeedValues({"a": {1: 0.0}})
    assert statistics.probability_of_improvement(of=a, over=b, higher_is_better=True).interval is None
    with pytest.raises(ValueError, match="one has a single seed"):
        statistics.probability_of_improvement(of=a, over=a, higher_is_better=True)
    with pytest.raises(ValueError, match="both methods must have the same cells"):
        statistics.probability_of_improvement(of=a, over=SeedValues({"b": {1: 0.0}}), higher_is_better=True)
