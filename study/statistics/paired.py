"""Samples of the same seeds, compared seed by seed: what two trials of a seed have in common cancels out.

All tests here have one hypothesis: that of each seed, the outcomes of the two methods could as well be exchanged. It
holds if both methods have the same distribution, however alike the outcomes of a seed are. So the tests are exact for
any number of seeds, and the seeds on which both methods come to the same say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics.checks import Flags, Floats, Values, check_confidence, finite
from study.statistics.survival import LogRank, checked_trials
from study.statistics.trends import Trend
from study.statistics.welch import Contrast

LEAST_DISCORDANT = 6
"""The fewest seeds on which methods differ that any exact test can call a difference: two times 2⁻⁵ is above 5%."""

_SUBSETS = 2**15 - 1
"""Subsets of seeds that are looked at: all of up to 15 seeds, and so many of more."""

_NUMBERS = 2**23
"""The most numbers that subsets are laid out in; of very many seeds, fewer subsets are looked at."""

_LEAST_SUBSETS = 2**12 - 1
_BISECTIONS = 45

_DEVIATIONS = 10
"""Beyond so many of the greatest deviations that a beta variable can have, nothing is left of it."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(120)


def mcnemar(first_only: int, second_only: int) -> float:
    """Test that two methods succeed equally often, seed by seed: McNemar's exact test, two-sided.

    p = min(1, 2 P(B <= min(b, c))), B binomial with b + c and 1/2. McNemar, Psychometrika 12 (1947) 153-157.

    Args:
        first_only: b, the seeds that only the first method solves, >= 0.
        second_only: c, those that only the second solves, >= 0.

    Raises:
        ValueError: if a count is negative.

    Example:
        >>> mcnemar(6, 0), mcnemar(5, 0), mcnemar(0, 0)
        (0.03125, 0.0625, 1.0)
    """
    _check_discordant(first_only, second_only)
    return min(1.0, 2 * float(special.bdtr(min(first_only, second_only), first_only + second_only, 0.5)))


def mcnemar_interval(first_only: int, second_only: int, n: int, confidence: float = 0.95) -> Interval:
    """Bound the difference of two success rates of the same seeds, first minus second, in accord with McNemar's test.

    The difference is (2 θ - 1) φ, φ the rate of seeds on which only one method succeeds and θ the first one's share of
    them. With m = b + c, the lower end is a quantile of that product of beta variables: θ ~ Beta(b, c + 1), and φ ~
    Beta(m, n - m + 1) where 2 θ > 1, Beta(m + 1, n - m) elsewhere, which are the lower and upper ends of exact
    intervals; the upper end mirrors it. It excludes 0 exactly where `mcnemar` is at most 1 - confidence, and it holds
    the difference in at least that share of samples. Fay & Lumbard, The American Statistician 75 (2021) 261-271.

    Args:
        first_only: b, the seeds that only the first method solves, >= 0.
        second_only: c, those that only the second solves, >= 0.
        n: all seeds, >= b + c.
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
        raise ValueError(f"discordant seeds must be among all, but got {first_only} + {second_only} of {n}")
    tail = (1 - confidence) / 2
    return (_least_difference(first_only, second_only, n, tail), -_least_difference(second_only, first_only, n, tail))


@lru_cache(maxsize=4096)
def _least_difference(b: int, c: int, n: int, tail: float) -> float:
    """Return the lower end of the interval."""
    low, high = -1.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if _share_below(b, c, n, middle) >= tail else (middle, high)
    return (low + high) / 2


def difference_p_values(first_only: int, second_only: int, n: int, difference: float) -> tuple[float, float]:
    """Test that the difference of two success rates of the same seeds is above a number, and that it is below.

    p is the least error at which the one-sided interval of `mcnemar_interval` excludes the number; for a difference of
    0 it is half of McNemar's p-value, or the other half of it.

    Args:
        first_only: b, the seeds that only the first method solves, >= 0.
        second_only: c, those that only the second solves, >= 0.
        n: all seeds, >= b + c.
        difference: of rates, first minus second, in (-1, 1).

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
            f"discordant seeds must be among all and -1 < difference < 1 hold, but got {first_only} + {second_only} of "
            f"{n}, {difference:g}"
        )
    below = _share_below(first_only, second_only, n, difference)
    return below, _share_below(second_only, first_only, n, -difference)


def _share_below(b: int, c: int, n: int, difference: float) -> float:
    """Compute how often the product of beta variables is at most a difference."""
    m = b + c
    least = abs(difference)  # a smaller φ is surely below a positive difference, and surely above a negative one
    first, second = (m, n - m + 1) if difference >= 0 else (m + 1, n - m)
    if first == 0:  # no seed is discordant: φ's lower end is 0
        return 1.0
    if second == 0:  # all seeds are: its upper end is 1
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


def more_seeds(first_only: int, second_only: int, n: int) -> int | None:
    """Return how many more seeds are expected to bring the discordant ones to the least that a test needs.

    Args:
        first_only: seeds that only the first method solves.
        second_only: those that only the second solves.
        n: all seeds.

    Returns:
        0 if there are enough; None without any, for then nothing says how many it would take.

    Example:
        >>> more_seeds(2, 1, 10), more_seeds(6, 0, 10), more_seeds(0, 0, 10)
        (10, 0, None)
    """
    discordant = first_only + second_only
    if discordant >= LEAST_DISCORDANT:
        return 0
    return math.ceil(n * LEAST_DISCORDANT / discordant) - n if discordant else None


def sign_flip(differences: Values, confidence: float = 0.95) -> Contrast | None:
    """Estimate the mean of differences that are symmetric about it, by flipping their signs.

    Under the hypothesis that the mean is m, each d - m is as likely as m - d. So p = 2 (1 + k)/(1 + s), where k is the
    number of subsets whose differences have a mean on the other side of m, or at it, of the s that are looked at: all
    of up to 15 seeds, and 32,767 that are drawn of more, always the same. The interval holds the m that are not
    rejected: its ends are quantiles of the subsets' means, and it excludes 0 exactly where p <= 1 - confidence. Fisher,
    The Design of Experiments (1935), 21; the interval: Hartigan, JASA 64 (1969) 1303-1317.

    Args:
        differences: one a seed, first method minus second; those that are 0 count for the estimate and the interval.
        confidence: in (0, 1).

    Returns:
        The estimate; None without differences. Its interval is infinite where no p-value can be small enough: with
        fewer than six seeds, at 95%.

    Raises:
        ValueError: if a difference is NaN or infinite.

    Example:
        >>> both = sign_flip([0.5, 1.0, 0.5, 2.0, -0.1, 0.7, 0.9, 1.1])
        >>> round(both.estimate, 3), [round(end, 3) for end in both.interval], both.p_value
        (0.825, [0.367, 1.35], 0.015625)
    """
    d = finite(differences)
    if not d.size:
        return None
    estimates, bounds, p_values = sign_flips(d[None], confidence)
    return Contrast(float(estimates[0]), (float(bounds[0, 0]), float(bounds[0, 1])), float(p_values[0]))


def sign_flips(differences: Floats, confidence: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Estimate the means of many samples of differences, all of one number of seeds, as `sign_flip` does of one.

    Args:
        differences: shape [samples, seeds], finite, with at least one seed.
        confidence: in (0, 1).

    Returns:
        The estimates, shape [samples]; the intervals, shape [samples, 2]; and the p-values, shape [samples].

    Example:
        >>> estimates, bounds, p_values = sign_flips(np.array([[1.0, 1, 1, 1, 1, 1], [1, -1, 1, -1, 1, -1]]))
        >>> estimates.tolist(), bounds.tolist(), p_values.tolist()
        ([1.0, 0.0], [[1.0, 1.0], [-1.0, 1.0]], [0.03125, 1.0])
    """
    check_confidence(confidence)
    subsets = _subsets(differences.shape[1])
    totals = subsets @ differences.T
    # the sums of a subset's differences in another order differ by rounding
    slack = 1e-12 * np.abs(differences).sum(axis=1)
    estimates = differences.mean(axis=1)
    beyond = np.count_nonzero(np.where(estimates > 0, totals, -totals) <= slack, axis=0)
    p_values = np.minimum(1.0, 2 * (1 + beyond) / (1 + len(subsets)))
    reach = math.floor((1 - confidence) / 2 * (len(subsets) + 1) * (1 + 1e-12))
    if not reach:
        return estimates, np.tile([-math.inf, math.inf], (len(differences), 1)), p_values
    totals /= subsets.sum(axis=1)[:, None]
    ends = [reach - 1, len(subsets) - reach]
    return estimates, np.partition(totals, ends, axis=0)[ends].T, p_values


@lru_cache(maxsize=1)
def _subsets(n: int) -> Floats:
    """Return subsets of n seeds that aren't empty, a row each: all, or some that are drawn with n as the seed."""
    if 2**n - 1 <= _SUBSETS:
        return (np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)
    count = max(_LEAST_SUBSETS, min(_SUBSETS, _NUMBERS // n))
    drawn = np.random.default_rng(n).integers(0, 2, size=(count, n), dtype=np.int8)
    drawn[~drawn.any(axis=1)] = 1  # as good as never
    return drawn.astype(np.float64)


def log_rank_scores(times: Values, solved: Flags) -> Floats:
    """Return each trial's score: whether it was solved, minus the hazard of all trials up to its time.

    The sum of a sample's scores is its observed minus its expected number of solved trials in the log-rank test. With
    d_i solved of n_i at risk, the hazard up to t is Σ d_i/n_i over t_i <= t. Peto & Peto, JRSS A 135 (1972) 185-207.

    Args:
        times: shape [trials], >= 0: when a trial was solved or censored.
        solved: shape [trials]: whether it was solved.

    Raises:
        ValueError: if a time is negative or not finite, or lengths differ.

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
    """Test that methods have the same survival curve, seed by seed.

    With a_ij the log-rank score of seed i and method j among all trials, and of each seed its mean taken off, the
    statistic is (k - 1) Σ_j (Σ_i a_ij)² / Σ_ij a_ij². If the trials of a seed can be exchanged, it has the
    expectation k - 1, and for many seeds is χ². For two methods p is exact, that of `sign_flip` of the differences of
    scores. The scores in place of ranks: Friedman, JASA 32 (1937) 675-701; pairs: Jung, Lifetime Data Analysis 5 (1999)
    67-79.

    Args:
        samples: of each of two or more methods, the times, >= 0, and whether the trial was solved or censored; the
            trials of one seed are at the same place in all of them.

    Returns:
        None if nothing can be compared: no seed's trials differ.

    Raises:
        ValueError: if a time is negative or not finite, lengths differ, or there are fewer than two methods.

    Example:
        >>> quick, slow = [10, 20, 30, 30, 40, 20], [50, 60, 60, 90, 90, 30]
        >>> test = paired_log_rank([(quick, [True] * 6), (slow, [True] * 6)])
        >>> test.degrees_of_freedom, round(test.p_value, 5)
        (1, 0.03125)
    """
    times = np.stack([finite(of) for of, _ in samples], axis=1)
    solved = np.stack([np.asarray(of) for _, of in samples], axis=1)
    if len(samples) < 2:
        raise ValueError(f"two or more methods must be given, but got {len(samples)}")
    scores = log_rank_scores(times.ravel(), solved.ravel()).reshape(times.shape)
    scores -= scores.mean(axis=1, keepdims=True)
    spread = float(np.sum(scores**2))
    if not spread > 1e-12 * scores.size:
        return None
    degrees = len(samples) - 1
    statistic = degrees * float(np.sum(scores.sum(axis=0) ** 2)) / spread
    p_value = float(special.chdtrc(degrees, statistic))
    if degrees == 1 and (exact := sign_flip(scores[:, 0] - scores[:, 1])) is not None:
        p_value = exact.p_value
    return LogRank(statistic=statistic, degrees_of_freedom=degrees, p_value=p_value)


def paired_trend(outcomes: Floats) -> Trend | None:
    """Test that success doesn't change with an ordered hyperparameter, seed by seed.

    Of each seed, the slope is Σ_j (j - (k - 1)/2) y_j over its k outcomes in order. If outcomes of a seed can be
    exchanged, a slope is as likely as its negative, and p is that of `sign_flip` of the slopes; z is their sum over the
    root of the sum of their squares. The scores are those of ranks, as `cochran_armitage` takes them in reports.

    Args:
        outcomes: shape [seeds, values of the hyperparameter]: 1 where the trial was solved, 0 where not.

    Returns:
        None if no seed's slope differs from 0.

    Raises:
        ValueError: if there is a number that isn't finite.

    Example:
        >>> trend = paired_trend(np.array([[1.0, 1, 0]] * 5 + [[1, 0, 0]] * 3 + [[0, 0, 0]]))
        >>> round(trend.z, 2), round(trend.p_value, 4)
        (-2.83, 0.0078)
    """
    slopes = np.asarray(outcomes, np.float64) @ (np.arange(outcomes.shape[1]) - (outcomes.shape[1] - 1) / 2)
    test = sign_flip(slopes) if slopes.any() else None
    return None if test is None else Trend(z=float(slopes.sum() / np.sqrt(np.sum(slopes**2))), p_value=test.p_value)


def _check_discordant(first_only: int, second_only: int) -> None:
    if min(first_only, second_only) < 0:
        raise ValueError(f"counts must be >= 0, but got {first_only}, {second_only}")
