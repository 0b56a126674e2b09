"""Two methods are compared at values chosen on other seeds, and equal methods rarely have a winner."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from study import statistics
from study.statistics import sign_flip, tuned_difference
from study.statistics.tuned import cross_fit, halved, tuned_test


def outcomes(n, *means, seed=0, scale=1.0):
    """Draw normal outcomes, shape [n, values], with these means."""
    return np.random.default_rng(seed).normal(means, scale, (n, len(means)))


def test_methods_without_alternatives_are_compared_by_sign_flips():
    """With a single value, nothing is chosen, and the result equals the plain paired test."""
    first, second = outcomes(12, 0.6, seed=1), outcomes(12, 0.0, seed=2)
    comparison, plain = tuned_difference(first, second, higher_is_better=True), sign_flip((first - second)[:, 0])
    assert (comparison.estimate, comparison.p_value) == pytest.approx((plain.estimate, plain.p_value))
    assert comparison.interval == pytest.approx(plain.interval)
    assert comparison.first.scores == pytest.approx(tuple(first[:, 0]))


def test_each_seed_is_evaluated_where_the_halves_without_it_do_best():
    """The scores equal those of a plain loop over splits, and the estimate is the difference of their means."""
    first, second, splits = outcomes(9, 0.0, 0.2, 0.1, seed=3), outcomes(9, 0.0, 0.1, seed=4), 6
    comparison = tuned_difference(first, second, higher_is_better=True, splits=splits)
    for method, values in ((comparison.first, first), (comparison.second, second)):
        scores, wins = np.zeros(9), [0] * values.shape[1]
        for half in halved(9, splits).astype(bool):
            best = int(np.argmax(values[half].mean(axis=0)))
            wins[best] += 1
            scores[~half] += values[~half, best] / splits
        assert method.scores == pytest.approx(scores)
        assert method.wins == tuple(wins)
    assert comparison.estimate == pytest.approx(np.mean(comparison.first.scores) - np.mean(comparison.second.scores))


@pytest.mark.parametrize("missing", [(), [(0, 1), (4, 2), (5, 0)]])
def test_influences_are_those_of_dropping_a_seed_and_choosing_again(missing):
    """Halves of all other seeds choose, and their complements are evaluated, with the seed in neither."""
    values, halves = outcomes(8, 0.0, 0.1, 0.3, seed=5), halved(8, 5)
    for place in missing:
        values[place] = np.nan
    dropped = []
    for seed in range(8):
        kept = np.arange(8) != seed
        evaluated = []
        for half in halves.astype(bool):
            best = int(np.argmax(np.nanmean(values[half & kept], axis=0)))
            evaluated += [value for value in values[~half & kept, best] if not math.isnan(value)]
        dropped.append(np.mean(evaluated))
    expected = 7 * (np.mean(dropped) - np.array(dropped))
    assert cross_fit(values, halves).influences == pytest.approx(expected)


@pytest.mark.parametrize("n", [6, 10, 25])
def test_p_value_interval_and_estimate_have_one_direction(n):
    """The interval excludes 0 exactly if p is at most 5%, on the estimate's side, and contains the estimate."""
    verdicts = set()
    for seed in range(60):
        first, second = outcomes(n, 0.0, 0.3, seed=seed), outcomes(n, 1.0, 0.8, -1.0, seed=100 + seed)
        comparison = tuned_difference(first, second, higher_is_better=seed % 2 == 0)
        low, high = comparison.interval
        assert low <= comparison.estimate <= high
        assert (low > 0 or high < 0) == (comparison.p_value <= 0.05)
        verdicts.add(comparison.p_value <= 0.05)
    assert verdicts == {True, False}


def test_exchanged_and_negated_methods_have_the_mirrored_difference():
    """The second minus the first, and losses instead of scores, have the same test."""
    first, second = outcomes(15, 0.0, 0.4, seed=6), outcomes(15, 0.2, seed=7)
    comparison = tuned_difference(first, second, higher_is_better=True)
    for mirrored in (
        tuned_difference(second, first, higher_is_better=True),
        tuned_difference(-first, -second, higher_is_better=False),
    ):
        assert (-mirrored.estimate, mirrored.p_value) == pytest.approx((comparison.estimate, comparison.p_value))
        assert [-end for end in reversed(mirrored.interval)] == pytest.approx(comparison.interval)


def drawn(laws, n=10, studies=400):
    """Draw normal outcomes of each method, shape [studies, n, values], around these means of its values."""
    rng = np.random.default_rng(8)
    return [rng.normal(means, 1.0, (studies, n, len(means))) for means in laws]


@pytest.mark.parametrize("counts", [(10, 1), (3, 3), (10, 10)])
def test_equal_methods_have_a_winner_in_at_most_one_of_twenty_studies(counts):
    """False winners are rare even if all values are equally good, so that the choice is most optimistic."""
    methods = drawn([[0.0] * count for count in counts])
    _, bounds, p_values = tuned_test(*(cross_fit(values, halved(10, 20)) for values in methods))
    assert np.mean(p_values <= 0.05) <= 0.05
    assert np.mean((bounds[:, 0] <= 0) & (bounds[:, 1] >= 0)) >= 0.95
    if counts == (10, 1):
        best = [values[np.arange(400), :, values.mean(axis=1).argmax(axis=1)] for values in methods]
        assert np.mean(statistics.sign_flips(best[0] - best[1])[2] <= 0.05) > 0.1


def test_a_better_method_is_found():
    """A good value among bad ones is detected like a single value."""
    methods = drawn([[-4.0, 1.5, -4.0], [-4.0, -4.0, 0.0]])
    fits = [cross_fit(values, halved(10, 20)) for values in methods]
    estimates, _, p_values = tuned_test(*fits)
    best = statistics.sign_flips(methods[0][:, :, 1] - methods[1][:, :, 2])[2]
    assert np.mean((p_values <= 0.05) & (estimates > 0)) == pytest.approx(np.mean(best <= 0.05), abs=0.02)


def test_choices_that_cost_move_the_interval():
    """Without the first method's optimism the upper end would be lower; the lower end stays."""
    first, second = (cross_fit(values, halved(10, 20)) for values in drawn([[0.0, 0.1, 0.2], [0.0]], studies=50))
    _, moved, _ = tuned_test(first, second)
    _, unmoved, _ = tuned_test(replace(first, optimism=0 * first.optimism), second)
    assert moved[:, 0] == pytest.approx(unmoved[:, 0])
    assert moved[:, 1] == pytest.approx(unmoved[:, 1] + first.optimism / 2)


def test_a_value_that_most_seeds_miss_is_not_chosen():
    """A value with few outcomes is listed as left out and never chosen, however good its outcomes are."""
    first, second = outcomes(10, 0.0, 9.0, seed=9), outcomes(10, 0.0, seed=10)
    first[:6, 1] = np.nan
    comparison = tuned_difference(first, second, higher_is_better=True)
    assert comparison.first.left_out == (1,)
    assert comparison.first.wins == (40, 0)
    alone = tuned_difference(first[:, :1], second, higher_is_better=True)
    assert comparison.first.scores == alone.first.scores
    assert comparison.interval == pytest.approx(alone.interval)


def test_seeds_without_the_chosen_values_are_left_out():
    """Only seeds with outcomes of both methods, at the chosen values, are compared."""
    first, second = outcomes(10, 0.0, 9.0, seed=11), outcomes(10, 0.0, seed=12)
    first[2, 1] = second[7, 0] = np.nan
    comparison = tuned_difference(first, second, higher_is_better=True)
    assert comparison.seeds == (0, 1, 3, 4, 5, 6, 8, 9)
    kept = list(comparison.seeds)
    assert comparison == replace(
        tuned_difference(first[kept], second[kept], higher_is_better=True), seeds=comparison.seeds
    )


def test_diverged_trials_are_worse_than_any_other():
    """Infinite losses are compared by ranks, and a method that diverges loses often."""
    first, second = outcomes(12, 0.0, 0.1, seed=13), outcomes(12, 0.0, seed=14)
    second[:9] = math.inf
    comparison = tuned_difference(first, second, higher_is_better=False)
    assert comparison.is_ranked
    assert comparison.p_value <= 0.05
    assert comparison.interval[1] < 0
    assert comparison.second.outcomes[:9] == (math.inf,) * 9
    assert 0 < min(comparison.first.scores) < max(comparison.second.scores) <= 1
    diverging = np.where([[False, True]], np.where(np.arange(12)[:, None] < 8, math.inf, first - 5), first)
    assert tuned_difference(diverging, second, higher_is_better=False).first.wins == (40, 0)


def test_ranks_ignore_the_scale():
    """With an infinite outcome, any increasing function of the others leaves the test unchanged."""
    first, second = outcomes(12, 0.0, 0.1, seed=15), outcomes(12, 0.5, seed=16)
    second[0] = math.inf
    comparison = tuned_difference(first, second, higher_is_better=False)
    rescaled = tuned_difference(np.exp(first), np.exp(second), higher_is_better=False)
    assert (comparison.estimate, comparison.interval, comparison.p_value) == (
        rescaled.estimate,
        rescaled.interval,
        rescaled.p_value,
    )


def test_too_few_seeds_and_equal_scores_have_no_test():
    """Three seeds can't be halved and dropped; equal scores have an estimate and no test."""
    assert tuned_difference(outcomes(3, 0.0), outcomes(3, 0.0), higher_is_better=True) is None
    equal = tuned_difference(np.ones((8, 2)), np.ones((8, 3)), higher_is_better=True)
    assert (equal.estimate, equal.interval, equal.p_value) == (0.0, None, None)
    five = tuned_difference(np.ones((5, 2)), np.zeros((5, 1)), higher_is_better=True)
    assert five.interval == (-math.inf, math.inf)
    assert five.p_value > 0.05


def test_impossible_outcomes_are_refused():
    """Other shapes, other seeds, and infinitely good outcomes are refused."""
    with pytest.raises(ValueError, match=r"shape \[seeds, values\], but got \(4,\)"):
        tuned_difference([1.0, 2, 3, 4], [[1.0]] * 4, higher_is_better=True)
    with pytest.raises(ValueError, match="same seeds, but got 4 and 5"):
        tuned_difference([[1.0]] * 4, [[1.0]] * 5, higher_is_better=True)
    with pytest.raises(ValueError, match="must be the worst, but got inf"):
        tuned_difference([[1.0], [math.inf]], [[1.0]] * 2, higher_is_better=True)
    with pytest.raises(ValueError, match="splits must be >= 1, but got 0"):
        tuned_difference([[1.0]] * 4, [[1.0]] * 4, higher_is_better=True, splits=0)
