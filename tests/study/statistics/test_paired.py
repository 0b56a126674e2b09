"""Statistics of paired seeds agree with reference implementations, and exact ones are exact."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from study import statistics


@pytest.mark.parametrize(("first_only", "second_only"), [(0, 0), (5, 0), (6, 0), (1, 7), (20, 33), (400, 460)])
def test_mcnemar_is_the_binomial_test_of_the_discordant_seeds(first_only, second_only):
    """McNemar's test equals the two-sided binomial test with probability one half."""
    n = first_only + second_only
    expected = stats.binomtest(first_only, n).pvalue if n else 1.0
    assert statistics.mcnemar(first_only, second_only) == pytest.approx(expected, rel=1e-9)


def test_five_seeds_can_not_tell_and_six_can():
    """The minimal number of discordant seeds is the smallest with p below 5%."""
    n = statistics.LEAST_DISCORDANT
    assert statistics.mcnemar(n, 0) <= 0.05 < statistics.mcnemar(n - 1, 0)
    assert statistics.sign_flip([1.0] * n).p_value <= 0.05 < statistics.sign_flip([1.0] * (n - 1)).p_value


@pytest.mark.parametrize("n", [1, 6, 13, 40])
def test_the_interval_of_rates_excludes_zero_exactly_where_the_test_rejects(n):
    """Interval and test agree for all counts of n seeds."""
    for first_only in range(n + 1):
        for second_only in range(n + 1 - first_only):
            low, high = statistics.mcnemar_interval(first_only, second_only, n)
            assert (low > 0 or high < 0) == (statistics.mcnemar(first_only, second_only) <= 0.05)
            assert low - 1e-9 <= (first_only - second_only) / n <= high + 1e-9


@pytest.mark.parametrize("n", [5, 10, 30])
def test_the_interval_of_rates_holds_the_difference_at_all_rates(n):
    """The coverage, summed over all counts, is at least 95% at all computed rates."""
    counts = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    bounds = np.array([statistics.mcnemar_interval(b, c, n) for b, c in counts])
    for first_only, second_only in itertools.product((0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.95), repeat=2):
        if first_only + second_only <= 1:
            shares = [first_only, second_only, 1 - first_only - second_only]
            weights = np.array([stats.multinomial.pmf([b, c, n - b - c], n, shares) for b, c in counts])
            difference = first_only - second_only
            holds = (bounds[:, 0] <= difference + 1e-9) & (difference - 1e-9 <= bounds[:, 1])
            assert weights[holds].sum() >= 0.95


def test_the_interval_of_rates_is_that_of_drawn_beta_variables():
    """The interval's ends are quantiles of a product of beta variables, here of a million draws."""
    first_only, second_only, n = 12, 5, 40
    rng, discordant = np.random.default_rng(0), first_only + second_only
    rates = {end: rng.beta(discordant + end, n - discordant + 1 - end, 1_000_000) for end in (0, 1)}
    for sign, count, other in ((1, first_only, second_only), (-1, second_only, first_only)):
        gap = 2 * rng.beta(count, other + 1, 1_000_000) - 1
        expected = np.quantile(gap * np.where(gap > 0, rates[0], rates[1]), 0.025)
        end = statistics.mcnemar_interval(first_only, second_only, n)[0 if sign > 0 else 1]
        assert sign * end == pytest.approx(expected, abs=0.003)


def test_the_interval_of_rates_mirrors_and_reaches_the_ends():
    """Exchanged methods have the mirrored interval; without discordant seeds, the end is Clopper and Pearson's."""
    low, high = statistics.mcnemar_interval(9, 4, 30)
    assert statistics.mcnemar_interval(4, 9, 30) == pytest.approx((-high, -low))
    assert statistics.mcnemar_interval(20, 0, 20)[1] == pytest.approx(1.0)
    assert statistics.mcnemar_interval(0, 0, 20)[1] == pytest.approx(1 - 0.025 ** (1 / 20))
    assert statistics.mcnemar_interval(0, 0, 0) == pytest.approx((-1.0, 1.0))


def test_impossible_counts_are_refused():
    """Negative counts, and more discordant seeds than seeds, are errors that show the values."""
    with pytest.raises(ValueError, match="counts must be >= 0, but got -1, 3"):
        statistics.mcnemar(-1, 3)
    with pytest.raises(ValueError, match=r"got 3 \+ 4, n = 6"):
        statistics.mcnemar_interval(3, 4, 6)


def test_more_seeds_are_extrapolated_by_the_share_that_differ():
    """Two discordant of 10 seeds: 30 seeds have six. Without any, the number is unknown."""
    assert statistics.more_seeds(1, 1, 10) == 20
    assert statistics.more_seeds(3, 3, 10) == 0
    assert statistics.more_seeds(0, 0, 10) is None
    assert statistics.more_seeds(3, 3, 10, level=0.05 / 100) == 10


@pytest.mark.parametrize("level", [0.5, 0.05, 1 / 32, 0.05 / 819, 0.05 / 820, 1e-9])
def test_seeds_needed_reach_the_level_and_fewer_do_not(level):
    """The smallest p-value of that many informative seeds is at most the level, and both tests attain it."""
    n = statistics.seeds_needed(level)
    assert statistics.least_p_value(n) <= level < statistics.least_p_value(n - 1)
    assert statistics.mcnemar(n, 0) == pytest.approx(statistics.least_p_value(n))
    assert statistics.sign_flip(range(1, n + 1)).p_value == pytest.approx(statistics.least_p_value(n))


def test_impossible_levels_and_numbers_of_seeds_are_refused():
    """A level is a probability, and a number of seeds isn't negative."""
    with pytest.raises(ValueError, match="0 < level < 1 must hold, but got 0"):
        statistics.seeds_needed(0)
    with pytest.raises(ValueError, match="must be >= 0, but is -1"):
        statistics.least_p_value(-1)


@pytest.mark.parametrize("n", [3, 6, 9, 13])
def test_sign_flips_are_the_permutation_test_of_all_signs(n):
    """The p-value equals that of scipy's test over all 2ⁿ sign vectors."""
    differences = np.random.default_rng(n).normal(0.4, 1.0, n).round(1)
    expected = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=math.inf, alternative="two-sided"
    )
    assert statistics.sign_flip(differences).p_value == pytest.approx(min(1.0, expected.pvalue))


def test_the_interval_is_where_the_test_does_not_reject():
    """The p-value is above 5% just within an end of the interval, and not just beyond it."""
    for n in (8, 12, 40):
        differences = np.random.default_rng(n).gamma(2.0, 1.0, n)
        low, high = statistics.sign_flip(differences).interval
        step = 1e-6 * (high - low)
        for end, inside in ((low, step), (high, -step)):
            assert statistics.sign_flip(differences - (end + inside)).p_value > 0.05
            assert statistics.sign_flip(differences - (end - inside)).p_value <= 0.05


def test_sign_flips_of_zeros_and_ones_are_mcnemar():
    """For outcomes of 0 and 1, the test of differences is the exact test of rates."""
    for wins, losses, ties in itertools.product((0, 2, 7), (0, 1, 3), (0, 3)):
        differences = [1.0] * wins + [-1.0] * losses + [0.0] * ties
        if differences:
            assert statistics.sign_flip(differences).p_value == pytest.approx(statistics.mcnemar(wins, losses))


def test_sign_flips_of_many_seeds_repeat_and_ignore_nothing():
    """The drawn subsets are deterministic, and p-value and interval are near Student's."""
    differences = np.random.default_rng(0).normal(0.3, 1.0, 60)
    test = statistics.sign_flip(differences)
    assert test == statistics.sign_flip(differences)
    assert test.p_value == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.005)
    assert test.interval == pytest.approx(tuple(stats.ttest_1samp(differences, 0).confidence_interval()), abs=0.02)


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1.0, 1e150, 1e307])
def test_the_unit_of_differences_makes_no_difference(unit):
    """p-values are equal in all units, and estimates and intervals scale."""
    differences = np.array([0.5, 1.0, 0.5, 2.0, -0.1, 0.7, 0.9, 1.1])
    test, scaled = statistics.sign_flip(differences), statistics.sign_flip(unit * differences)
    assert scaled.p_value == test.p_value
    assert scaled.estimate / unit == pytest.approx(test.estimate)
    assert [end / unit for end in scaled.interval] == pytest.approx(test.interval)


@pytest.mark.parametrize("seeds", [10, 40])
@pytest.mark.parametrize(("small", "great"), [(1e-9, 1e5), (5e-324, 1.7e308)])
def test_a_method_worse_on_all_seeds_is_worse_at_any_scale(seeds, small, great):
    """A large difference beside small ones of the same sign doesn't change the exact p-value."""
    test = statistics.sign_flip([small] * (seeds - 1) + [great])
    assert test.p_value == statistics.least_p_value(seeds)
    assert 0 < test.interval[0] <= test.estimate <= great


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=10))
def test_the_interval_of_any_numbers_excludes_zero_exactly_where_the_test_rejects(differences):
    """At every level near possible p-values, p-value and interval agree."""
    for confidence in (0.5, 0.75, 0.9, 0.95):
        test = statistics.sign_flip(differences, confidence)
        assert (test.interval[0] > 0 or test.interval[1] < 0) == (test.p_value <= 1 - confidence)


def test_differences_that_cancel_are_ties():
    """A subset's sum that is 0 up to rounding counts against a difference, at any scale of the others."""
    ties = [0.1, 0.2, -0.3]
    for others in ([], [1.0] * 7, [1e9] * 7, [1e-9] * 7):
        exact = statistics.sign_flip([1.0, 2.0, -3.0, *(10 * other for other in others)])
        assert statistics.sign_flip([*ties, *others]).p_value == exact.p_value


def test_the_p_value_of_many_seeds_is_small_where_the_difference_is_clear():
    """Below the resolution of drawn subsets, p is an upper bound of the exact p-value, within a factor of 30."""
    differences = np.array([1.0] * 30 + [-1.0] * 2)
    exact = statistics.mcnemar(30, 2)
    assert exact < statistics.sign_flip(differences).p_value < 30 * exact
    assert statistics.sign_flip(-differences).p_value == statistics.sign_flip(differences).p_value


def test_equal_values_that_differ_by_rounding_are_ties_of_their_seed():
    """A difference is taken as 0 by the rounding error of its own values, not of other seeds'."""
    assert statistics.paired_differences([0.1 + 0.2, 1e9, 2e-9], [0.3, 0.0, 1e-9]).tolist() == [0.0, 1e9, 1e-9]
    with pytest.raises(ValueError, match="a value of each seed, but have 2 and 1"):
        statistics.paired_differences([1.0, 2.0], [1.0])


def test_few_seeds_have_an_infinite_interval():
    """Below six seeds the interval is infinite; without seeds the result is None."""
    assert statistics.sign_flip([]) is None
    assert statistics.sign_flip([1.0, 2.0, 3.0, 4.0, 5.0]).interval == (-math.inf, math.inf)
    with pytest.raises(ValueError, match="finite"):
        statistics.sign_flip([1.0, math.nan])


def survival(n, shift, seed):
    """Draw times of n seeds that share half of their logarithm, censored at 50."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    times = np.exp(3.0 + shift + common + rng.normal(size=n))
    return np.minimum(times, 50.0), times < 50.0


def test_scores_add_up_to_what_the_log_rank_test_compares():
    """A sample's scores sum to its observed minus expected solved trials."""
    first, second = survival(20, 0.0, 1), survival(25, 0.5, 2)
    scores = statistics.log_rank_scores(*(np.concatenate(parts) for parts in zip(first, second, strict=True)))
    table = stats.logrank(*(stats.CensoredData.right_censored(times, ~solved) for times, solved in (first, second)))
    variance = (scores[:20].sum() / table.statistic) ** 2
    assert scores.sum() == pytest.approx(0.0, abs=1e-9)
    assert scores[:20].sum() ** 2 / variance == pytest.approx(table.statistic**2)
    assert statistics.log_rank([first, second]).statistic == pytest.approx(table.statistic**2, rel=1e-6)
    assert variance == pytest.approx(_log_rank_variance(first, second), rel=1e-6)


def _log_rank_variance(first, second):
    """Sum the hypergeometric variances."""
    times = np.unique(np.concatenate([first[0][first[1]], second[0][second[1]]]))
    variance = 0.0
    for t in times:
        n1, n2 = (int(np.sum(observed >= t)) for observed, _ in (first, second))
        events = sum(int(np.sum((observed == t) & solved)) for observed, solved in (first, second))
        n = n1 + n2
        if n > 1:
            variance += events * n1 / n * n2 / n * (n - events) / (n - 1)
    return variance


def test_paired_times_reveal_differences_hidden_by_seeds():
    """Methods whose times depend mostly on the seed differ in paired tests, but not as independent samples."""
    rng = np.random.default_rng(3)
    common = np.exp(rng.normal(3.0, 1.5, 30))
    samples = [(common * factor, np.ones(30, bool)) for factor in (1.0, 1.15)]
    assert statistics.paired_log_rank(samples).p_value < 1e-4 < 0.4 < statistics.log_rank(samples).p_value


def test_two_methods_have_the_exact_p_value_of_their_scores():
    """The p-value is that of sign flips of score differences; the statistic is their standardised sum."""
    first, second = survival(12, 0.0, 5), survival(12, 0.8, 6)
    scores = statistics.log_rank_scores(*(np.concatenate(parts) for parts in zip(first, second, strict=True)))
    differences = scores[:12] - scores[12:]
    test = statistics.paired_log_rank([first, second])
    assert test.p_value == statistics.sign_flip(differences).p_value
    assert test.statistic == pytest.approx(differences.sum() ** 2 / np.sum(differences**2))
    assert test.degrees_of_freedom == 1


def test_three_methods_have_about_the_p_value_of_exchanged_trials():
    """The p-value is near the share of exchanges within seeds with at least the observed statistic."""
    rng = np.random.default_rng(8)
    samples = [survival(25, shift, seed) for seed, shift in enumerate((0.0, 0.0, 0.7))]
    test = statistics.paired_log_rank(samples)
    times, solved = (np.stack(parts, axis=1) for parts in zip(*samples, strict=True))
    scores = statistics.log_rank_scores(times.ravel(), solved.ravel()).reshape(times.shape)
    drawn = rng.permuted(np.tile(scores, (4000, 1)), axis=1).reshape(4000, 25, 3).sum(axis=1)
    beyond = np.sum((drawn - drawn.mean(axis=1, keepdims=True)) ** 2, axis=1)
    own = np.sum((scores.sum(axis=0) - scores.sum() / 3) ** 2)
    assert test.degrees_of_freedom == 2
    assert 0.001 < test.p_value < 0.5
    assert test.p_value == pytest.approx(np.mean(beyond >= own * (1 - 1e-12)), abs=0.02)


def test_times_that_never_differ_arent_tested():
    """Equal trials of each seed, or no solved trials, can't be compared."""
    same = [10.0, 20.0, 30.0]
    assert statistics.paired_log_rank([(same, [True] * 3)] * 2) is None
    assert statistics.paired_log_rank([(same, [False] * 3), ([5.0, 6.0, 7.0], [False] * 3)]) is None
    with pytest.raises(ValueError, match="two or more methods"):
        statistics.paired_log_rank([(same, [True] * 3)])


def test_events_beyond_the_observation_of_a_method_do_not_count():
    """If one method was observed until 500 and the other until 1000, later events aren't compared."""
    short = (np.full(12, 500.0), np.zeros(12, bool))
    later = (np.linspace(600, 1000, 12), np.ones(12, bool))
    assert statistics.paired_log_rank([short, later]) is None
    assert statistics.log_rank([short, later]) is None
    earlier = (np.linspace(100, 1000, 12), np.ones(12, bool))
    cut = (np.minimum(earlier[0], 500.0), earlier[0] <= 500.0)
    assert statistics.paired_log_rank([short, earlier]) == statistics.paired_log_rank([short, cut])


def test_events_after_the_last_of_a_method_that_was_always_solved_count():
    """A method with all trials solved counts as observed for ever, so others are still compared after it."""
    quick, slow = ([10.0, 20.0], [True, True]), ([400.0, 900.0], [True, False])
    assert [times.tolist() for times, _ in statistics.comparable_trials([quick, slow])] == [quick[0], slow[0]]
    unsolved = ([10.0, 20.0], [True, False])
    assert [times.tolist() for times, _ in statistics.comparable_trials([unsolved, slow])] == [[10, 20], [20, 20]]


def test_trends_and_scores_have_no_unit():
    """A trend doesn't depend on the unit, without overflow; times may have any size."""
    outcomes = np.array([[1.0, 0.0]] * 7 + [[0.0, 1.0]])
    for unit in (1e-300, 1e308):
        assert statistics.paired_trend(unit * outcomes) == statistics.paired_trend(outcomes)
    quick, slow = np.arange(1.0, 9.0), np.arange(2.0, 10.0)
    tests = [
        statistics.paired_log_rank([(unit * t, [True] * 8) for t in (quick, slow)]) for unit in (1e-300, 1.0, 1e307)
    ]
    assert tests[0] == tests[1] == tests[2]


def test_trends_of_pairs_are_differences():
    """For two values, the test of trend is McNemar's."""
    outcomes = np.array([[1.0, 0.0]] * 7 + [[0.0, 1.0]] + [[1.0, 1.0]] * 4)
    assert statistics.paired_trend(outcomes).p_value == pytest.approx(statistics.mcnemar(7, 1))
    assert statistics.paired_trend(outcomes).z == pytest.approx(-6 / math.sqrt(8))


def test_trends_of_independent_outcomes_agree_with_cochran_and_armitage():
    """If seeds have no effect, both tests agree; if seeds have a large effect, only the paired one detects a trend."""
    rng = np.random.default_rng(4)
    outcomes = (rng.random((60, 4)) < [0.75, 0.65, 0.6, 0.5]).astype(float)
    independent = statistics.cochran_armitage(range(4), outcomes.sum(axis=0).astype(int), [60] * 4)
    paired = statistics.paired_trend(outcomes)
    assert paired.z == pytest.approx(independent.z, abs=0.4)
    assert paired.p_value == pytest.approx(independent.p_value, abs=0.06)
    alike = (rng.random(60)[:, None] < [0.58, 0.54, 0.48, 0.42]).astype(float)
    assert statistics.paired_trend(alike).p_value < 0.02
    assert statistics.cochran_armitage(range(4), alike.sum(axis=0).astype(int), [60] * 4).p_value > 0.05


def test_constant_outcomes_have_no_trend():
    """Seeds solved everywhere or nowhere don't count."""
    assert statistics.paired_trend(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])) is None


def test_very_many_seeds_are_flipped_in_blocks():
    """The p-value and interval of 50,000 seeds are near Student's, with little memory."""
    differences = np.random.default_rng(9).normal(0.01, 1.0, 50_000)
    test, expected = statistics.sign_flip(differences), stats.ttest_1samp(differences, 0)
    assert test.p_value == pytest.approx(expected.pvalue, abs=0.01)
    assert test.interval == pytest.approx(tuple(expected.confidence_interval()), abs=0.001)
    assert statistics.sign_flip(differences + 1).p_value < 1e-300
    great = statistics.sign_flip(1e307 * differences)
    assert great.p_value == test.p_value
    assert great.interval == pytest.approx(tuple(1e307 * end for end in test.interval))
