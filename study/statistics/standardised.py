"""Success rates of a population of starts: strata weighted by the population's shares instead of the sample's.

Fifty seeds may have harder starts than average. If a covariate of the difficulty is known before training, with its
distribution over all starts, the rate can be given for all starts instead of the sampled ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from study.records import Interval
from study.statistics.checks import check_count
from study.statistics.rates import difference_interval, wilsons

LEAST_IN_STRATUM = 5
"""The least number of trials in a stratum; a level with fewer is merged with the next."""


@dataclass(frozen=True)
class StandardisedRate:
    """A success rate of a population of starts.

    Args:
        rate: the mean of the strata's rates, weighted by their shares.
        interval: 95%.
        strata: the last level of each stratum, from 0.
    """

    rate: float
    interval: Interval
    strata: tuple[int, ...]


def standardised_rate(
    solved: Sequence[int], judged: Sequence[int], shares: Sequence[float], starts: int | None = None
) -> StandardisedRate | None:
    """Estimate the success rate of a population by post-stratification.

        p = Σ_k P_k s_k / n_k,   m = q (1 - q) / (Σ_k P_k² q_k (1 - q_k) / n_k + (Σ_k P_k q_k² - q²) / N)
        q_k = (s_k + 1) / (n_k + 2),   q = Σ_k P_k q_k

    Stratum k has the share P_k of the population. The interval is Wilson's for a rate of p in m trials: the rate of m
    independent trials would have the same variance as p. If the shares are counted from a sample of N starts, they add
    to the variance of p; if they are known, the last term is left out. Levels with fewer than five trials are merged
    with the next ones, the last with the one before, so neighbouring levels must be similar.

    Args:
        solved: s_k, the number of solved trials of each level.
        judged: n_k, the number of trials of each level.
        shares: P_k >= 0, the share of each level in the population; they are divided by their sum.
        starts: N >= 1, the number of independent starts that the shares are counted from; None if they are known.

    Returns:
        None without trials.

    Raises:
        ValueError: if the lengths differ, a count is impossible, shares are negative or all 0, or N is below 1.

    Source:
        Holt & Smith, JRSS A 142 (1979) 33-46, for post-stratification; Neyman, JASA 33 (1938) 101-116, for sampled
            starts (double sampling); Franco, Little, Louis & Slud, Journal of Survey Statistics and Methodology 7
            (2019) 334-364, for Wilson's interval of an effective number of trials.

    Example:
        >>> estimate = standardised_rate([9, 4], [10, 40], [0.5, 0.5])
        >>> round(estimate.rate, 3), [round(end, 3) for end in estimate.interval]
        (0.5, [0.378, 0.622])
    """
    if not len(solved) == len(judged) == len(shares):
        raise ValueError(
            f"solved, judged and shares must have equal lengths, but got {len(solved)}, {len(judged)} and {len(shares)}"
        )
    for k, n in zip(solved, judged, strict=True):
        check_count(k, n)
    if min(shares, default=0.0) < 0 or not sum(shares) > 0:
        raise ValueError(f"shares must be >= 0 and not all 0, but got {list(shares)}")
    if starts is not None and starts < 1:
        raise ValueError(f"starts must be >= 1, but got {starts}")
    if not sum(judged):
        return None
    strata = _strata(judged)
    firsts = [0, *(last + 1 for last in strata[:-1])]
    good, trials, share = (
        np.add.reduceat(np.asarray(values, np.float64), firsts) for values in (solved, judged, shares)
    )
    share /= share.sum()
    rate = min(float(share @ (good / trials)), 1.0)  # shares sum to 1 up to rounding
    smoothed = (good + 1) / (trials + 2)  # else a stratum with all or no trials solved has no variance
    mean = float(share @ smoothed)
    variance = float(share**2 @ (smoothed * (1 - smoothed) / trials))
    variance += 0.0 if starts is None else float(share @ smoothed**2 - mean**2) / starts
    effective = mean * (1 - mean) / variance
    [(low, high)] = wilsons([rate * effective], [effective]).tolist()
    return StandardisedRate(rate, (low, high), tuple(strata))


def standardised_difference(first: StandardisedRate, second: StandardisedRate) -> Interval:
    """Bound the difference of two standardised rates of independent trials, first minus second, at 95%.

    It follows from both intervals as Newcombe's interval follows from Wilson's (`rates.difference_interval`).

    Example:
        >>> easy, hard = (standardised_rate([9, k], [10, 40], [0.5, 0.5]) for k in (30, 4))
        >>> [round(end, 2) for end in standardised_difference(easy, hard)]
        [0.13, 0.48]
    """
    return difference_interval(first.rate, first.interval, second.rate, second.interval)


def _strata(judged: Sequence[int]) -> list[int]:
    """Return the last level of each stratum: each has enough trials, or is the only one."""
    lasts, count = [], 0
    for level, trials in enumerate(judged):
        count += trials
        if count >= LEAST_IN_STRATUM:
            lasts.append(level)
            count = 0
    return [*lasts[:-1], len(judged) - 1]
