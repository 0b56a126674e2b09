"""Paired tests of methods that are trained with the same seeds.

All tests here have one null hypothesis: within a seed, the outcomes of the methods are exchangeable. It holds if the
methods have the same distribution, however correlated the outcomes of a seed are. The tests are exact for any number of
seeds, except `paired_log_rank` of more than two methods. Seeds with equal outcomes carry no information.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics.checks import Flags, Floats, Values, check_confidence, finite
from study.statistics.sign_flips import ROUNDING, sign_flip
from study.statistics.survival import Bools, LogRank, checked_trials
from study.statistics.trends import Trend

LEAST_DISCORDANT = 6
"""The fewest discordant seeds with which an exact test can reach the 5% level: `seeds_needed(0.05)`."""

_BISECTIONS = 45

_DEVIATIONS = 10
"""Half the range of integration, in units of the greatest standard deviation that a beta variable can have."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(120)


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the two-sided p-value of McNemar's exact test that two methods succeed equally often, paired by seed.

    p = min(1, 2 P(B <= min(b, c))), B binomial with b + c and 1/2. McNemar, Psychometrika 12 (1947) 153-157.

    Args:
        first_only: b, the number of seeds that only the first method solves, >= 0.
        second_only: c, the number that only the second solves, >= 0.

    Raises:
        ValueError: if a count is negative.

    Example:
        >>> mcnemar(6, 0), mcnemar(5, 0), mcnemar(0, 0)
        (0.03125, 0.0625, 1.0)
    """
    _check_discordant(first_only, second_only)
    return min(1.0, 2 * float(special.bdtr(min(first_only, second_only), first_only + second_only, 0.5)))


def mcnemar_interval(first_only: int, second_only: int, n: int, confidence: float = 0.95) -> Interval:
    """Bound the difference of two paired success rates, first minus second, consistently with McNemar's test.

    The difference is (2 θ - 1) φ, with the rate φ of discordant seeds and the first method's share θ of them. With m =
    b + c, the lower end is the (1 - confidence)/2 quantile of that product of beta variables: θ ~ Beta(b, c + 1), and φ
    ~ Beta(m, n - m + 1) where 2 θ > 1, Beta(m + 1, n - m) elsewhere. These are the lower and upper ends of exact
    intervals. The upper end mirrors the lower one. The interval excludes 0 exactly where `mcnemar` is at most 1 -
    confidence, and its coverage is at least the confidence. Fay & Lumbard, The American Statistician 75 (2021) 261-271.

    Args:
        first_only: b, the number of seeds that only the first method solves, >= 0.
        second_only: c, the number that only the second solves, >= 0.
        n: the number of all seeds, >= b + c.
        confidence: in (0, 1).

    Returns:
        (low, high) in [-1, 1]; without seeds, (-1, 1).

    Raises:
        ValueError: if a count or the confidence is out of range.

    Example:
        >>> low, high = mcnemar_interval(12, 2, 40)
        >>> round(low, 3), round(high, 3)
        (0.045, 0.434)
    """
    check_confidence(confidence)
    _check_discordant(first_only, second_only)
    if first_only + second_only > n:
        raise ValueError(f"first_only + second_only <= n must hold, but got {first_only} + {second_only}, n = {n}")
    tail = (1 - confidence) / 2
    return (_least_difference(first_only, second_only, n, tail), -_least_difference(second_only, first_only, n, tail))


@lru_cache(maxsize=4096)
def _least_difference(b: int, c: int, n: int, tail: float) -> float:
    """Return the lower end of `mcnemar_interval`, by bisection."""
    low, high = -1.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if _share_below(b, c, n, middle) >= tail else (middle, high)
    return (low + high) / 2


def difference_p_values(first_only: int, second_only: int, n: int, difference: float) -> tuple[float, float]:
    """Return the one-sided p-values that a difference of paired success rates is above a number, and that it is below.

    p is the smallest error at which the one-sided interval of `mcnemar_interval` excludes the number. For a difference
    of 0, these are the one-sided p-values of McNemar's test.

    Args:
        first_only: b, the number of seeds that only the first method solves, >= 0.
        second_only: c, the number that only the second solves, >= 0.
        n: the number of all seeds, >= b + c.
        difference: the number, for rates first minus second, in (-1, 1).

    Returns:
        p that the difference is above the number, and p that it is below; both 1 without seeds.

    Raises:
        ValueError: if a count or the difference is out of range.

    Example:
        >>> [round(p, 4) for p in difference_p_values(12, 2, 40, 0.0)]
        [0.0065, 0.9991]
        >>> [round(p, 4) for p in difference_p_values(12, 2, 40, 0.1)]
        [0.0982, 0.9786]
    """
    _check_discordant(first_only, second_only)
    if first_only + second_only > n or not -1 < difference < 1:
        raise ValueError(
            f"first_only + second_only <= n and -1 < difference < 1 must hold, but got {first_only} + {second_only}, "
            f"n = {n}, difference = {difference:g}"
        )
    below = _share_below(first_only, second_only, n, difference)
    return below, _share_below(second_only, first_only, n, -difference)


def _share_below(b: int, c: int, n: int, difference: float) -> float:
    """Compute the probability that the product of beta variables of `mcnemar_interval` is at most a difference."""
    m = b + c
    least = abs(difference)  # with a smaller φ, the product is below a positive difference and above a negative one
    first, second = (m, n - m + 1) if difference >= 0 else (m + 1, n - m)
    if first == 0:  # no seed is discordant: φ's lower end is 0
        return 1.0
    if second == 0:  # all seeds are discordant: φ's upper end is 1
        return _beta_below(b, c + 1, (1 + difference) / 2)
    surely = _beta_below(first, second, least) if difference >= 0 else 0.0
    middle, reach = first / (first + second), _DEVIATIONS / (2 * math.sqrt(first + second + 1))
    low, high = max(least, middle - reach), min(1.0, middle + reach)
    if low >= high:
        return surely
    rates = (low + high) / 2 + (high - low) / 2 * _NODES
    logs = special.xlogy(first - 1, rates) + special.xlog1py(second - 1, -rates) - special.betaln(first, second)
    weights = _WEIGHTS * (high - low) / 2 * np.exp(logs)
    ends = np.clip((1 + difference / rates) / 2, 0.0, 1.0)
    shares = special.betainc(b, c + 1, ends) if b else np.ones_like(ends)
    return surely + float(weights @ shares)


def _beta_below(first: int, second: int, end: float) -> float:
    return float(special.betainc(first, second, min(max(end, 0.0), 1.0))) if first else 1.0


def least_p_value(seeds: int) -> float:
    """Return the least p-value of sign flips and of McNemar's test: min(1, 2^(1 - n)).

    Args:
        seeds: n, the number of informative seeds: those on which the two methods differ, >= 0.

    Raises:
        ValueError: if the number of seeds is negative.

    Example:
        >>> least_p_value(6), least_p_value(5), least_p_value(0)
        (0.03125, 0.0625, 1.0)
    """
    if seeds < 0:
        raise ValueError(f"the number of seeds must be >= 0, but is {seeds}")
    return min(1.0, 2.0 ** (1 - seeds))


def seeds_needed(level: float) -> int:
    """Return the fewest informative seeds whose exact two-sided p-value can reach a level: 2^(1 - n) <= level.

    Args:
        level: in (0, 1); for the least p-value of a Holm family of m tests, the level divided by m.

    Raises:
        ValueError: if the level is out of range.

    Example:
        >>> seeds_needed(0.05), seeds_needed(0.05 / 100)
        (6, 12)
    """
    if not 0 < level < 1:
        raise ValueError(f"0 < level < 1 must hold, but got {level}")
    return 2 - math.frexp(level)[1]  # level = m 2^e with 1/2 <= m < 1, so that 2^(e - 1) is the greatest power in it


def more_seeds(first_only: int, second_only: int, n: int, level: float = 0.05) -> int | None:
    """Return the expected number of further seeds until enough are discordant for McNemar's test to reach a level.

    Args:
        first_only: the number of seeds that only the first method solves.
        second_only: the number that only the second solves.
        n: the number of all seeds.
        level: of the test, in (0, 1).

    Returns:
        0 if there are enough; None without discordant seeds, since their rate is then unknown.

    Raises:
        ValueError: if the level is out of range.

    Example:
        >>> more_seeds(2, 1, 10), more_seeds(6, 0, 10), more_seeds(0, 0, 10)
        (10, 0, None)
        >>> more_seeds(6, 0, 10, level=0.05 / 100)
        10
    """
    discordant, needed = first_only + second_only, seeds_needed(level)
    if discordant >= needed:
        return 0
    return math.ceil(n * needed / discordant) - n if discordant else None


def log_rank_scores(times: Values, solved: Flags) -> Floats:
    """Return each trial's log-rank score: 1 if solved, else 0, minus the cumulative hazard of all trials at its time.

    The sum of a sample's scores is its observed minus its expected number of solved trials in the log-rank test. With
    d_i solved of n_i at risk, the cumulative hazard at t is Σ d_i/n_i over t_i <= t. Peto & Peto, JRSS A 135 (1972)
    185-207.

    Args:
        times: shape [trials], >= 0: when a trial was solved or censored.
        solved: shape [trials]: whether it was solved.

    Raises:
        ValueError: if a time is negative or not finite, a flag is neither 0 nor 1, or lengths differ.

    Example:
        >>> log_rank_scores([10, 20, 20], [True, True, False]).round(3).tolist()
        [0.667, 0.167, -0.833]
    """
    t, is_solved = checked_trials(times, solved)
    moments, place = np.unique(t, return_inverse=True)
    leaving = np.bincount(place, minlength=moments.size)
    at_risk = np.cumsum(leaving[::-1])[::-1]
    events = np.bincount(place, weights=is_solved, minlength=moments.size)
    return np.asarray(is_solved - np.cumsum(events / at_risk)[place], np.float64)


def paired_log_rank(samples: Sequence[tuple[Values, Flags]]) -> LogRank | None:
    """Test that methods have the same survival curve, paired by seed.

    Let a_ij be the log-rank score of seed i and method j among all trials, minus the seed's mean score. For k methods,
    the statistic is (k - 1) Σ_j (Σ_i a_ij)² / Σ_ij a_ij². If the trials of a seed are exchangeable, its expectation is
    k - 1, and for many seeds its distribution is χ². For two methods p is exact: that of `sign_flip` of the differences
    of scores. Trials are censored at the end of the common observation (`comparable_trials`).

    Source: scores in place of ranks: Friedman, JASA 32 (1937) 675-701; pairs: Jung, Lifetime Data Analysis 5 (1999)
    67-79.

    Args:
        samples: for each of two or more methods, the times, >= 0, and whether each trial was solved or censored. The
            trials of one seed have the same place in all samples.

    Returns:
        None if nothing can be compared: no seed's scores differ, or nothing was solved while trials of all methods were
        observed.

    Raises:
        ValueError: if a time is negative or not finite, a flag is neither 0 nor 1, lengths differ, or there are fewer
            than two methods.

    Example:
        >>> quick, slow = [10, 20, 30, 30, 40, 20], [50, 60, 60, 90, 90, 30]
        >>> test = paired_log_rank([(quick, [True] * 6), (slow, [True] * 6)])
        >>> test.degrees_of_freedom, round(test.p_value, 5)
        (1, 0.03125)
    """
    if len(samples) < 2:
        raise ValueError(f"two or more methods must be given, but got {len(samples)}")
    times, solved = (np.stack(parts, axis=1) for parts in zip(*comparable_trials(samples), strict=True))
    scores = log_rank_scores(times.ravel(), solved.ravel()).reshape(times.shape)
    scores -= scores.mean(axis=1, keepdims=True)
    scores[np.abs(scores) <= ROUNDING * times.size] = 0.0
    spread = float(np.sum(scores**2))
    if not spread:
        return None
    degrees = len(samples) - 1
    statistic = degrees * float(np.sum(scores.sum(axis=0) ** 2)) / spread
    p_value = float(special.chdtrc(degrees, statistic))
    if degrees == 1 and (exact := sign_flip(scores[:, 0] - scores[:, 1])) is not None:
        p_value = exact.p_value
    return LogRank(statistic=statistic, degrees_of_freedom=degrees, p_value=p_value)


def comparable_trials(samples: Sequence[tuple[Values, Flags]]) -> list[tuple[Floats, Bools]]:
    """Censor all trials at the end of the methods' common observation.

    A method with an unsolved trial was observed up to its longest time. A method with all trials solved sets no limit.
    The trials are censored at the least of these times.

    Args:
        samples: for each method, the times, >= 0, and whether each trial was solved or censored.

    Returns:
        The times and flags of each method, its trials in their order.

    Raises:
        ValueError: if a time is negative or not finite, a flag is neither 0 nor 1, or lengths differ.

    Example:
        >>> short, long = ([300, 500], [True, False]), ([400, 900], [True, True])
        >>> [(times.tolist(), solved.tolist()) for times, solved in comparable_trials([short, long])]
        [([300.0, 500.0], [True, False]), ([400.0, 500.0], [True, False])]
    """
    trials = [checked_trials(*sample) for sample in samples]
    end = min((float(times.max()) for times, solved in trials if not solved.all()), default=math.inf)
    return [(np.minimum(times, end), solved & (times <= end)) for times, solved in trials]


def paired_trend(outcomes: Floats) -> Trend | None:
    """Test that success doesn't change with an ordered hyperparameter, paired by seed.

    The slope of a seed is Σ_j (j - (k - 1)/2) y_j over its k outcomes in order. If the outcomes of a seed are
    exchangeable, a slope is as likely as its negative, and p is that of `sign_flip` of the slopes. z is their sum
    divided by the root of the sum of their squares. The scores j are ranks, as in the reports' `cochran_armitage`.

    Args:
        outcomes: shape [seeds, values of the hyperparameter]: 1 where the trial was solved, 0 where not.

    Returns:
        None if no seed's slope differs from 0.

    Raises:
        ValueError: if an outcome is NaN or infinite.

    Example:
        >>> trend = paired_trend(np.array([[1.0, 1, 0]] * 5 + [[1, 0, 0]] * 3 + [[0, 0, 0]]))
        >>> round(trend.z, 2), round(trend.p_value, 4)
        (-2.83, 0.0078)
    """
    y = finite(outcomes)
    steps = np.arange(y.shape[1]) - (y.shape[1] - 1) / 2
    y = y * 0.5 ** max(0, int(np.frexp(np.abs(y).max(initial=0.0))[1]))  # against overflow of sums and squares
    slopes, magnitudes = y @ steps, np.abs(y) @ np.abs(steps)
    slopes[np.abs(slopes) <= ROUNDING * magnitudes] = 0.0
    test = sign_flip(slopes) if slopes.any() else None
    if test is None:
        return None
    shares = slopes / np.abs(slopes).max()
    return Trend(z=float(shares.sum() / np.sqrt(np.sum(shares**2))), p_value=test.p_value)


def _check_discordant(first_only: int, second_only: int) -> None:
    """Raise ValueError if a count is negative."""
    if min(first_only, second_only) < 0:
        raise ValueError(f"counts must be >= 0, but got {first_only}, {second_only}")
