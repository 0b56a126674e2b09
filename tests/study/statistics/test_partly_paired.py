"""Comparisons of partly shared seeds use all trials, and reduce to known tests if all or no seeds are shared."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from study import statistics
from study.statistics.exchanges import exchange_test

NONE = np.empty(0)
NO_TIMES = (NONE, np.empty(0, bool))


def flags(solved, trials):
    """Return a flag for each trial; the first `solved` flags are True."""
    return np.arange(trials) < solved


@pytest.mark.parametrize(("first_only", "second_only", "others"), [(0, 0, 4), (7, 1, 0), (6, 0, 3), (30, 12, 10)])
def test_rates_of_pairs_are_mcnemars(first_only, second_only, others):
    """Unless both methods have unpaired trials, test and interval are those of pairs."""
    pairs = first_only + second_only + others
    first, second = flags(first_only, pairs), flags(second_only, pairs)[::-1]
    for alone in ([NONE, NONE], [flags(3, 5), NONE], [NONE, flags(1, 4)]):
        test = statistics.partly_paired_rates(first, second, *alone)
        assert test.p_value == statistics.mcnemar(first_only, second_only)
        assert test.interval == statistics.mcnemar_interval(first_only, second_only, pairs)
        assert test.estimate == pytest.approx((first_only - second_only) / pairs)
        assert (test.pairs, test.first_alone, test.second_alone) == (pairs, 0, 0)


@pytest.mark.parametrize("counts", [(8, 10, 1, 10), (0, 3, 0, 2), (91, 100, 4, 10)])
def test_rates_without_pairs_are_fishers(counts):
    """Without pairs, test and interval are those of independent samples."""
    test = statistics.partly_paired_rates(NONE, NONE, flags(*counts[:2]), flags(*counts[2:]))
    assert test.p_value == statistics.fisher_exact(*counts)
    assert test.interval == statistics.newcombe(*counts)
    assert (test.pairs, test.first_alone, test.second_alone) == (0, counts[1], counts[3])


def test_the_exact_test_of_rates_sums_outcomes_up_to_the_observed_probability():
    """The sum is over all assignments of trials to methods, within pairs and among unpaired trials."""
    first, second, first_alone, second_alone = [1, 1, 1, 0], [0, 1, 0, 1], [1, 1, 0], [0, 0, 1]
    alone = np.array(first_alone + second_alone)
    totals = [
        sum(y if flip else x for flip, x, y in zip(flips, first, second, strict=True)) + int(alone[list(chosen)].sum())
        for flips in itertools.product((False, True), repeat=4)
        for chosen in itertools.combinations(range(6), 3)
    ]
    counts = np.bincount(totals)
    expected = counts[counts <= counts[sum(first) + sum(first_alone)]].sum() / len(totals)
    test = statistics.partly_paired_rates(first, second, first_alone, second_alone)
    assert test.p_value == pytest.approx(expected)


def test_a_shared_seed_more_or_less_makes_no_cliff():
    """Each shared seed less changes p by a factor of at most 20, and the interval slightly."""
    first, second = flags(95, 100), flags(0, 10)
    tests = [
        statistics.partly_paired_rates(first[:pairs], second[:pairs], first[pairs:], second[pairs:])
        for pairs in (5, 4, 3, 2, 1, 0)
    ]
    assert max(test.p_value for test in tests) < 1e-5
    for test, other in itertools.pairwise(tests):
        assert 1 / 20 < test.p_value / other.p_value < 20
        assert test.interval == pytest.approx(other.interval, abs=0.2)


def test_many_trials_are_tested_exactly():
    """Underflowing probabilities neither fail nor take long."""
    test = statistics.partly_paired_rates(flags(3000, 4000), flags(500, 4000)[::-1], flags(9000, 9999), flags(10, 9999))
    assert test.p_value == pytest.approx(0.0, abs=1e-290)
    equal = statistics.partly_paired_rates(
        flags(2000, 4000), flags(2000, 4000)[::-1], flags(900, 9999), flags(900, 9999)
    )
    assert equal.p_value == pytest.approx(1.0)


def test_means_of_pairs_are_sign_flips_and_without_pairs_welchs():
    """Fewer than two unpaired values of a method are dropped, and a single pair counts as unpaired."""
    rng = np.random.default_rng(0)
    first, second, alone, others = (rng.normal(size=8) for _ in range(4))
    flipped = statistics.sign_flip(statistics.paired_differences(first, second))
    for unpaired in ([NONE, NONE], [alone, others[:1]]):
        test = statistics.partly_paired_means(first, second, *unpaired)
        assert (test.estimate, test.interval, test.p_value) == (flipped.estimate, flipped.interval, flipped.p_value)
        assert (test.pairs, test.first_alone, test.second_alone) == (8, 0, 0)
    welch = stats.ttest_ind(alone, others, equal_var=False)
    for pairs in (0, 1):
        test = statistics.partly_paired_means(alone[:pairs], others[:pairs], alone[pairs:], others[pairs:])
        assert test.p_value == pytest.approx(welch.pvalue)
        assert (test.pairs, test.first_alone, test.second_alone) == (0, 8, 8)


def test_means_of_all_trials_tell_more_than_those_of_a_part():
    """A difference that is insignificant in pairs and in unpaired trials is significant in both together."""
    rng = np.random.default_rng(5)
    first, alone = rng.normal(1.1, 1, 8), rng.normal(1.1, 1, 8)
    second, others = rng.normal(0, 1, 8), rng.normal(0, 1, 8)
    test = statistics.partly_paired_means(first, second, alone, others)
    assert test.p_value < statistics.partly_paired_means(first, second, NONE, NONE).p_value
    assert test.p_value < statistics.partly_paired_means(NONE, NONE, alone, others).p_value
    assert test.interval[0] <= test.estimate <= test.interval[1]
    assert (test.pairs, test.first_alone, test.second_alone) == (8, 8, 8)


@pytest.mark.parametrize("unit", [1e-307, 1.0, 1e307])
def test_means_have_no_unit(unit):
    """p-values are equal in all units, without overflow."""
    parts = [np.array(values) for values in ([1.0, 9.0, 4.0], [-1.0, -9.0, 1.0], [3.0, 8.0], [-2.0, 1.0, -5.0])]
    expected = statistics.partly_paired_means(*parts)
    test = statistics.partly_paired_means(*(unit * part for part in parts))
    assert test.p_value == pytest.approx(expected.p_value)
    assert test.estimate / unit == pytest.approx(expected.estimate)


def test_ranks_without_pairs_are_mann_and_whitneys():
    """The p-value is scipy's exact one, and the estimate the share of trial pairs that the first wins."""
    rng = np.random.default_rng(1)
    first, second = rng.normal(0, 1, 6), rng.normal(1, 1, 7)
    test = statistics.partly_paired_ranks(NONE, NONE, first, second)
    expected = stats.mannwhitneyu(first, second, method="exact")
    assert test.p_value == pytest.approx(expected.pvalue)
    assert test.estimate == pytest.approx(1 - expected.statistic / 42)
    many = [rng.normal(0, 1, 2000), rng.normal(0.05, 1, 1500)]
    expected = stats.mannwhitneyu(*many, method="asymptotic", use_continuity=False)
    assert statistics.partly_paired_ranks(NONE, NONE, *many).p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("seeds", [4, 9, 30])
def test_the_interval_of_ranks_excludes_a_half_exactly_where_the_test_rejects(seeds):
    """Interval and test agree for pairs, for unpaired trials and for mixtures, with failures among the losses."""
    rng = np.random.default_rng(seeds)
    for shift in np.linspace(0, 2, 15):
        parts = [rng.normal(by, 1, seeds).round(1) for by in (0, shift, 0, shift)]
        losses = [np.where(part > 1.5, math.inf, part) for part in parts]
        for samples in (losses, [*losses[:2], NONE, NONE], [NONE, NONE, *losses[2:]]):
            test = statistics.partly_paired_ranks(*samples)
            low, high = test.interval
            assert (low > 0.5 or high < 0.5) == (test.p_value <= 0.05)
            assert 0 <= low <= test.estimate <= high <= 1


def test_failed_trials_are_worst_and_tied_with_each_other():
    """A method that fails on most seeds loses, however good its other trials are; common failures are ties."""
    first, second = np.full(12, 0.5), np.where(np.arange(12) < 10, math.inf, 0.1)
    test = statistics.partly_paired_ranks(first, second, NONE, NONE)
    assert test.estimate > 0.5
    assert test.p_value < 0.05
    assert statistics.partly_paired_ranks(second, second, NONE, NONE) is None
    with pytest.raises(ValueError, match="give infinity for a trial that diverged or failed"):
        statistics.partly_paired_ranks([math.nan], [1.0], NONE, NONE)


def times(seed, seeds, factor):
    """Draw times, censored at 50."""
    drawn = factor * np.exp(np.random.default_rng(seed).normal(3.0, 1.0, seeds))
    return np.minimum(drawn, 50.0), drawn < 50.0


def test_times_of_pairs_and_without_pairs_are_log_rank_tests():
    """The extremes are the paired and the unpaired log-rank test, and the sign shows the faster method."""
    first, second = times(0, 20, 1.0), times(1, 20, 2.5)
    paired = statistics.partly_paired_times(first, second, NO_TIMES, NO_TIMES)
    assert paired.p_value == pytest.approx(statistics.paired_log_rank([first, second]).p_value)
    unpaired = statistics.partly_paired_times(NO_TIMES, NO_TIMES, first, second)
    assert unpaired.p_value == pytest.approx(statistics.log_rank([first, second]).p_value)
    combined = statistics.partly_paired_times(first, second, times(2, 15, 1.0), times(3, 10, 2.5))
    for test in (paired, unpaired, combined):
        assert test.p_value < 0.05
        assert 0 < test.interval[0] < test.estimate < test.interval[1]
    assert (combined.pairs, combined.first_alone, combined.second_alone) == (20, 15, 10)


def test_times_that_can_not_be_compared_are_not_tested():
    """No trials, none solved, and none solved while both methods were observed have no test."""
    unsolved, late = (np.full(9, 500.0), np.zeros(9, bool)), (np.full(9, 800.0), np.ones(9, bool))
    for first, second in ((NO_TIMES, NO_TIMES), (unsolved, unsolved), (unsolved, late), (late, late)):
        assert statistics.partly_paired_times(first, second, NO_TIMES, NO_TIMES) is None
        assert statistics.partly_paired_times(NO_TIMES, NO_TIMES, first, second) is None
        assert statistics.partly_paired_times(first, second, first, second) is None


@pytest.mark.parametrize("compare", [statistics.partly_paired_rates, statistics.partly_paired_means])
def test_without_trials_to_compare_there_is_no_test(compare):
    """Without pairs, and without unpaired trials of both methods, the result is None; pairs need equal lengths."""
    assert compare(NONE, NONE, NONE, NONE) is None
    assert compare(NONE, NONE, [1.0, 0.0], NONE) is None
    with pytest.raises(ValueError, match="both methods must have a"):
        compare([1.0, 0.0], [1.0], [1.0, 0.0], [0.0, 1.0])


@pytest.mark.parametrize("sizes", [(3, 3, 3), (12, 4, 5), (40, 30, 20)])
def test_exchanged_trials_have_the_interval_that_the_test_does_not_reject(sizes):
    """With scores shifted to just within an end p is above 5%, and just beyond it isn't."""
    rng = np.random.default_rng(2)
    differences, first, second = (rng.gamma(2.0, 1.0, size) for size in sizes)
    low, high = exchange_test(differences, first, second).interval
    step = 1e-6 * (high - low)
    for end, inside in ((low, step), (high, -step)):
        assert exchange_test(differences - (end + inside), first - (end + inside), second).p_value > 0.05
        assert exchange_test(differences - (end - inside), first - (end - inside), second).p_value <= 0.05


def test_the_p_value_of_many_exchanged_trials_is_near_the_exact_one():
    """Below the resolution of drawn exchanges it is an upper bound; for separate samples it is exact."""
    scores = np.arange(40.0)
    test = exchange_test(NONE, scores[20:], scores[:20])
    assert test.p_value == pytest.approx(2 / math.comb(40, 20), rel=1e-6)
    differences, first, second = (np.random.default_rng(3).normal(1.0, 1.0, size) for size in (60, 50, 50))
    test = exchange_test(differences, first, second - 1)
    assert test.p_value < 1e-8
    assert exchange_test(-differences, -first, -(second - 1)).p_value == pytest.approx(test.p_value)


@pytest.mark.parametrize("flag", [2, math.nan])
def test_flags_of_solved_trials_are_true_or_false(flag):
    sample = ([1.0, 2.0], [1.0, flag])
    with pytest.raises(ValueError, match="must be true or false"):
        statistics.partly_paired_times(sample, sample, NO_TIMES, NO_TIMES)


@pytest.mark.parametrize("place", range(3))
def test_scores_that_are_not_finite_are_refused(place):
    """A NaN difference or score raises ValueError."""
    scores = [np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.array([2.0, 4.0])]
    scores[place][0] = math.nan
    with pytest.raises(ValueError, match="finite"):
        exchange_test(*scores)
