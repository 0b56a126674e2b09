"""Comparisons of two methods that share some of their seeds: rates, means, ranks and times to success.

Seeds with a trial of both methods are pairs; the trials of other seeds are unpaired. With p pairs, u₁ and u₂ unpaired
trials and h = 2 u₁ u₂/(u₁ + u₂), estimates are (p D + h M)/(p + h), with the pairs' difference D and the unpaired
difference M. Each test is the paired test if no unpaired trials can be compared, and the test of two independent
samples without pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from study.statistics.checks import Flags, Floats, Values, check_confidence, finite
from study.statistics.exchanges import exchange_test, unpaired_share
from study.statistics.paired import comparable_trials, log_rank_scores, mcnemar, mcnemar_interval
from study.statistics.rates import TIE, fisher_exact, newcombe
from study.statistics.sign_flips import ROUNDING, exact_mean, paired_differences, sign_flip
from study.statistics.survival import Bools, excesses
from study.statistics.welch import Contrast, contrast, deviations

Times = tuple[Values, Flags]


@dataclass(frozen=True)
class PartlyPaired(Contrast):
    """A difference between two methods, with the numbers of trials behind it.

    Args:
        pairs: the number of seeds on which both methods were compared.
        first_alone: the number of unpaired trials of the first method.
        second_alone: the number of unpaired trials of the second method.
    """

    pairs: int
    first_alone: int
    second_alone: int


def partly_paired_rates(
    first_pairs: Flags, second_pairs: Flags, first_alone: Flags, second_alone: Flags, confidence: float = 0.95
) -> PartlyPaired | None:
    """Compare two success rates, first minus second, by an exact conditional test.

    Given the number of discordant pairs, b + c, and the k successes of the unpaired trials, b is binomial with 1/2, and
    the first method's share x of the k is hypergeometric. p is the sum of the probabilities of all b + x that don't
    exceed that of the observation: McNemar's test for pairs alone, and Fisher's without pairs. The interval combines
    that of `mcnemar_interval`, with the lower end l, and that of `newcombe`, with the lower end l'. The combined lower
    end is T - sqrt((w (D - l))² + ((1 - w) (M - l'))²), with the estimate T = w D + (1 - w) M, the pairs' difference D
    and weight w, and the unpaired difference M; the upper end is computed likewise. Zou & Donner, Statistics in
    Medicine 27 (2008) 1693-1702.

    Args:
        first_pairs: whether the first method's trial was solved, for each seed that both methods have.
        second_pairs: the same for the second method.
        first_alone: whether the first method's unpaired trials were solved.
        second_alone: the same for the second method.
        confidence: in (0, 1).

    Returns:
        None if there are neither pairs nor unpaired trials of both methods.

    Raises:
        ValueError: if the methods have different numbers of pairs, or the confidence is out of range.

    Example:
        >>> pairs, alone = ([True] * 5, [True] + [False] * 4), ([True] * 10 + [False] * 5, [True] * 3 + [False] * 12)
        >>> test = partly_paired_rates(*pairs, *alone)
        >>> round(test.estimate, 3), [round(end, 3) for end in test.interval], round(test.p_value, 5)
        (0.55, [0.191, 0.724], 0.00225)
        >>> test.pairs, test.first_alone, test.second_alone
        (5, 15, 15)
    """
    check_confidence(confidence)
    a, b, first, second = (np.asarray(flags, bool) for flags in (first_pairs, second_pairs, first_alone, second_alone))
    if a.size != b.size:
        raise ValueError(f"both methods must have a trial of each pair, but have {a.size} and {b.size}")
    discordant = int(np.sum(a & ~b)), int(np.sum(b & ~a))
    table = int(first.sum()), first.size, int(second.sum()), second.size
    share = unpaired_share(a.size, first.size, second.size)
    if not a.size and not share:
        return None
    paired = (discordant[0] - discordant[1]) / a.size if a.size else 0.0
    if not share:
        paired_interval = mcnemar_interval(*discordant, a.size, confidence)
        return PartlyPaired(paired, paired_interval, mcnemar(*discordant), a.size, 0, 0)
    alone, alone_interval = float(first.mean() - second.mean()), newcombe(*table, confidence)
    if not a.size:
        return PartlyPaired(alone, alone_interval, fisher_exact(*table), 0, first.size, second.size)
    parts = [(1 - share, paired, mcnemar_interval(*discordant, a.size, confidence)), (share, alone, alone_interval)]
    estimate = sum(weight * difference for weight, difference, _ in parts)
    low, high = (
        estimate + sign * math.hypot(*(weight * (ends[end] - difference) for weight, difference, ends in parts))
        for end, sign in enumerate((-1, 1))
    )
    return PartlyPaired(estimate, (low, high), _exact_p_value(discordant, table), a.size, first.size, second.size)


def _exact_p_value(discordant: tuple[int, int], table: tuple[int, int, int, int]) -> float:
    """Return p of `partly_paired_rates` from the counts (b, c), and the unpaired trials' (k₁, u₁, k₂, u₂)."""
    pairs = sum(discordant)
    solved, first, also_solved, second = table
    total = solved + also_solved
    b, x = np.arange(pairs + 1), np.arange(max(0, total - second), min(total, first) + 1)
    binomial = -sum(special.gammaln(count + 1.0) for count in (b, pairs - b))
    hypergeometric = -sum(special.gammaln(count + 1.0) for count in (x, first - x, total - x, second - total + x))
    (least_b, b_weights), (least_x, x_weights) = (_likely(weights) for weights in (binomial, hypergeometric))
    weights = np.convolve(b_weights, x_weights)
    place = discordant[0] - least_b + solved - int(x[0]) - least_x
    observed = weights[place] if 0 <= place < weights.size else 0.0
    return min(1.0, float(weights[weights <= observed * math.exp(TIE)].sum() / weights.sum()))


def _likely(logs: Floats) -> tuple[int, Floats]:
    """Return the first place where the weight exp(logs - max) is above 0, and the weights up to the last such place."""
    weights = np.exp(logs - logs.max())
    positive = np.flatnonzero(weights)
    return int(positive[0]), weights[positive[0] : positive[-1] + 1]


def partly_paired_means(
    first_pairs: Values, second_pairs: Values, first_alone: Values, second_alone: Values, confidence: float = 0.95
) -> PartlyPaired | None:
    """Compare two means of any numbers, first minus second.

    The test is `sign_flip` for pairs alone, and Welch's without pairs. Otherwise the weighted sum of the pairs' mean
    difference and the two unpaired means is taken to have Student's distribution, as in `contrast`. The trials of a
    single pair count as unpaired. If a method has fewer than two unpaired values, all unpaired values are left out.

    Args:
        first_pairs: the first method's values, for each seed that both methods have.
        second_pairs: the second method's values for the same seeds.
        first_alone: the first method's unpaired values.
        second_alone: the second method's unpaired values.
        confidence: in (0, 1).

    Returns:
        None if nothing can be tested: there are fewer than two pairs and fewer than two unpaired values of a method; of
        pairs alone, all are ties; or with unpaired values, neither the differences nor a method's values vary.

    Raises:
        ValueError: if a value is NaN or infinite, the methods have different numbers of pairs or, unless pairs alone
            are tested and all are ties, the confidence is out of range.

    Example:
        >>> test = partly_paired_means([1.0, 2.0, 3.0], [0.5, 1.0, 2.9], [2.5, 3.5, 4.5], [0.5, 2.0])
        >>> round(test.estimate, 3), [round(end, 2) for end in test.interval], round(test.p_value, 3)
        (1.296, [-0.23, 2.82], 0.072)
    """
    values = [finite(numbers) for numbers in (first_pairs, second_pairs, first_alone, second_alone)]
    if values[0].size < 2 and values[0].size == values[1].size:
        values = [np.empty(0), np.empty(0), np.concatenate(values[::2]), np.concatenate(values[1::2])]
    greatest = max(float(np.abs(numbers).max(initial=0.0)) for numbers in values)
    scale = 0.25 if greatest > np.finfo(np.float64).max / 4 else 1.0  # against overflow of differences
    a, b, first, second = (scale * numbers for numbers in values)
    differences = paired_differences(a, b)
    if min(first.size, second.size) < 2:
        test, sizes = sign_flip(differences, confidence) if differences.any() else None, [a.size, 0, 0]
    else:
        sizes = [a.size, first.size, second.size]
        share = unpaired_share(a.size, first.size, second.size)
        weights, parts = [1 - share, share, -share], [differences, first, second]
        used = slice(None) if a.size else slice(1, None)
        means = [exact_mean(part.tolist()) for part in parts[used]]
        spreads = deviations(np.concatenate(parts[used]), sizes[used])
        test = contrast(weights[used], means, spreads.tolist(), sizes[used], confidence)
    if test is None:
        return None
    with np.errstate(over="ignore"):
        estimate, low, high = (np.array([test.estimate, *test.interval]) / scale).tolist()
    return PartlyPaired(estimate, (low, high), test.p_value, *sizes)


def partly_paired_ranks(
    first_pairs: Values, second_pairs: Values, first_alone: Values, second_alone: Values, confidence: float = 0.95
) -> PartlyPaired | None:
    """Estimate the probability that a trial of the first method is better than one of the second, by ranks of losses.

    Losses may be infinite: a trial that diverged or failed has the worst rank, tied with all others that did. Each of
    the N compared trials has its rank; ties have their mean rank. The test is `exchange_test` of the ranks: sign flips
    for pairs alone, and Mann and Whitney's permutation test without pairs. With its estimate T of the difference of
    mean ranks, the probability is 1/2 - T/N, ties counted half. The interval's ends follow in the same way.

    Args:
        first_pairs: the first method's losses, lower is better, for each seed that both methods have.
        second_pairs: the second method's losses for the same seeds.
        first_alone: the first method's unpaired losses.
        second_alone: the second method's unpaired losses.
        confidence: in (0, 1).

    Returns:
        The probability; its interval, within [0, 1], which excludes 1/2 exactly where p <= 1 - confidence, unless it is
        [0, 1] for want of exchanges; and p for the hypothesis that trials are exchangeable. None if nothing can be
        tested: there are neither pairs nor unpaired trials of both methods, or no pair and no unpaired losses differ.

    Raises:
        ValueError: if a compared loss is NaN, the methods have different numbers of pairs, or the confidence is out of
            range.

    Example:
        >>> first, second = ([0.1, 0.2, 0.1, 0.3], [0.2, 0.1, 0.3]), ([0.4, 0.5, 0.9, math.inf], [math.inf, 0.4])
        >>> test = partly_paired_ranks(first[0], second[0], first[1], second[1])
        >>> round(test.estimate, 3), [round(end, 2) for end in test.interval], round(test.p_value, 4)
        (1.0, [0.81, 1.0], 0.0125)
    """
    a, b, first, second = _paired_and_alone(first_pairs, second_pairs, first_alone, second_alone)
    losses = np.concatenate([a, b, first, second])
    if np.isnan(losses).any():
        raise ValueError("a loss must be a number: give infinity for a trial that diverged or failed")
    ranks = np.split(_mid_ranks(losses), np.cumsum([a.size, b.size, first.size]))
    test = exchange_test(ranks[0] - ranks[1], ranks[2], ranks[3], confidence)
    if test is None:
        return None
    estimate, high, low = np.clip(0.5 - np.array([test.estimate, *test.interval]) / losses.size, 0.0, 1.0).tolist()
    return PartlyPaired(estimate, (low, high), test.p_value, a.size, first.size, second.size)


def partly_paired_times(
    first_pairs: Times, second_pairs: Times, first_alone: Times, second_alone: Times, confidence: float = 0.95
) -> PartlyPaired | None:
    """Compare times to success by log-rank scores.

    Each trial has its log-rank score among all compared trials, which are censored at the end of the common observation
    (`comparable_trials`). The estimate is the difference of mean scores (solved minus expected, per trial), first minus
    second. It is positive if the first method succeeds sooner. The test is `exchange_test`, which is that of
    `paired_log_rank` for pairs alone; without pairs it is `log_rank`.

    Args:
        first_pairs: the first method's times, >= 0, and whether each trial was solved or censored, for each seed that
            both methods have.
        second_pairs: the same for the second method.
        first_alone: the first method's unpaired trials.
        second_alone: the second method's unpaired trials.
        confidence: in (0, 1).

    Returns:
        None if nothing can be tested: there are neither pairs nor unpaired trials of both methods, nothing was solved
        while trials of both were observed, or no pair and no unpaired scores differ.

    Raises:
        ValueError: if a time is negative or not finite, a flag is neither 0 nor 1, numbers of times, flags or pairs
            differ, or the confidence is out of range.

    Example:
        >>> solved = [True] * 4
        >>> first, second = ([10, 20, 30, 30], solved), ([50, 30, 60, 90], solved)
        >>> test = partly_paired_times(first, second, ([10, 40], solved[:2]), ([70, 80], solved[:2]))
        >>> round(test.estimate, 2), [round(end, 2) for end in test.interval], round(test.p_value, 4)
        (1.14, [0.47, 2.17], 0.0208)
    """
    check_confidence(confidence)
    times = _paired_and_alone(*(sample[0] for sample in (first_pairs, second_pairs, first_alone, second_alone)))
    flags = _paired_and_alone(*(sample[1] for sample in (first_pairs, second_pairs, first_alone, second_alone)))
    pairs, *alone = (part.size for part in times[1:])
    methods = comparable_trials([(np.concatenate(times[k::2]), np.concatenate(flags[k::2])) for k in range(2)])
    if not pairs and all(alone):
        test = _log_rank_contrast(methods, confidence)
    else:
        scores = log_rank_scores(*(np.concatenate(parts) for parts in zip(*methods, strict=True)))
        first, second = np.split(scores, [methods[0][0].size])
        differences = first[:pairs] - second[:pairs]
        differences[np.abs(differences) <= ROUNDING * scores.size] = 0.0
        test = exchange_test(differences, first[pairs:], second[pairs:], confidence) if scores.any() else None
    return None if test is None else PartlyPaired(test.estimate, test.interval, test.p_value, pairs, *alone)


def _log_rank_contrast(methods: Sequence[tuple[Floats, Bools]], confidence: float) -> Contrast | None:
    """Compare the mean scores of two independent samples, with the log-rank test's variance; None if it is 0."""
    excess, covariance = excesses(methods)
    variance = float(covariance[0, 0])
    if not variance > ROUNDING:
        return None
    scale = sum(1 / times.size for times, _ in methods)
    estimate, error = scale * float(excess[0]), scale * math.sqrt(variance)
    reach = float(special.ndtri((1 + confidence) / 2)) * error
    p_value = float(special.chdtrc(1, (estimate / error) ** 2))
    return Contrast(estimate, (estimate - reach, estimate + reach), p_value)


def _paired_and_alone(*parts: Values | Flags) -> list[Floats]:
    """Return the four parts as arrays, both unpaired ones empty if either is; raise ValueError for unequal pairs."""
    a, b, first, second = (np.asarray(part, np.float64) for part in parts)
    if a.size != b.size:
        raise ValueError(f"both methods must have a trial of each pair, but have {a.size} and {b.size}")
    if not (first.size and second.size):
        first = second = np.empty(0)
    return [a, b, first, second]


def _mid_ranks(values: Floats) -> Floats:
    """Rank values from 1 on; ties have their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])
