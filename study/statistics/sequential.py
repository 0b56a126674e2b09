"""Success rates looked at repeatedly while seeds are added: intervals and tests that allow for it.

Both stand on one martingale. While the rate is p, the ratio of what a Beta(1/2, 1/2) mixture of rates and what p alone
says of k successes of n,

    M(p) = B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) / (p^k (1 - p)^(n - k)),

has the expectation 1 however many seeds there are, so that by Ville's inequality it ever exceeds 1/α with probability α
at most. Robbins, Annals of Mathematical Statistics 41 (1970) 1397-1409; Howard, Ramdas, McAuliffe & Sekhon, Annals of
Statistics 49 (2021) 1055-1080.
"""

from __future__ import annotations

import math

from scipy import special

from study.records import Interval
from study.statistics.checks import check_confidence, check_count, check_positive
from study.statistics.likelihood import likelihood_interval

_PRIOR = 0.5


def anytime(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Bound a success rate so that all the intervals of a growing sample hold it together.

    The rates p with M(p) < 1/α, α = 1 - confidence: with that probability at least, the rate is in the interval after
    every number of seeds, and so after one that was chosen by looking at them.

    Args:
        successes: k, 0 <= k <= n.
        n: trials; of none nothing is known: (0, 1).
        confidence: in (0, 1).

    Raises:
        ValueError: if k or the confidence is out of range.

    Example:
        >>> low, high = anytime(98, 100)
        >>> round(low, 4), round(high, 4)
        (0.8953, 0.9995)
    """
    check_count(successes, n)
    check_confidence(confidence)
    if n == 0:
        return (0.0, 1.0)
    level = _log_mixture(successes, n) + math.log1p(-confidence)
    if successes in (0, n):  # p^n, or (1 - p)^n, alone
        end = math.exp(level / n)
        return (end, 1.0) if successes else (0.0, 1.0 - end)

    def log_likelihood(t: float) -> float:
        """Take the rate by its logit, in which it has no bounds."""
        return float(successes * special.log_expit(t) + (n - successes) * special.log_expit(-t))

    best = math.log(successes / (n - successes))
    z = math.sqrt(2 * (log_likelihood(best) - level))
    step = z * math.sqrt(n / (successes * (n - successes)))
    low, high = likelihood_interval(log_likelihood, best, step, z)
    return (float(special.expit(low)), float(special.expit(high)))


def anytime_sign_test(wins: int, losses: int) -> float:
    """Test that two methods succeed equally often, seed by seed, however often it is looked at.

    Of seeds on which only one of both succeeds, half are won by either, if both rates are equal. p = 1/M(1/2) of the
    wins; over all looks together it falls below α with probability α at most.

    Args:
        wins: seeds that the first method alone solves, >= 0.
        losses: seeds that the second one alone solves, >= 0.

    Returns:
        The p-value, at most 1.

    Raises:
        ValueError: if a count is negative.

    Example:
        >>> round(anytime_sign_test(15, 1), 4), anytime_sign_test(5, 5)
        (0.0034, 1.0)
    """
    check_positive(wins, losses)
    n = wins + losses
    return min(1.0, math.exp(-n * math.log(2) - _log_mixture(wins, n)))


def _log_mixture(k: int, n: int) -> float:
    return float(special.betaln(k + _PRIOR, n - k + _PRIOR) - special.betaln(_PRIOR, _PRIOR))
