"""Intervals and tests of success rates that are valid at any stopping time, while seeds are added.

Both are based on one martingale. If the rate is p, the ratio of the likelihoods of k successes in n trials under a
Beta(1/2, 1/2) mixture of rates and under p alone,

    M(p) = B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) / (p^k (1 - p)^(n - k)),

has the expectation 1 for any number of seeds. By Ville's inequality, the probability that it ever exceeds 1/α is then
at most α.

Source: Robbins, Annals of Mathematical Statistics 41 (1970) 1397-1409; Howard, Ramdas, McAuliffe & Sekhon, Annals of
Statistics 49 (2021) 1055-1080.
"""

from __future__ import annotations

import math

from scipy import special

from study.records import Interval
from study.statistics.checks import check_confidence, check_count
from study.statistics.likelihood import likelihood_interval

_PRIOR = 0.5


def anytime(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Bound a success rate so that all intervals of a growing sample contain it simultaneously.

    The interval holds the rates p with M(p) < 1/α (see the module for M), α = 1 - confidence. With at least this
    confidence, the rate is in the interval after every number of seeds, and so also after a number that was chosen in
    view of the results.

    Args:
        successes: k, 0 <= k <= n.
        n: the number of trials; without any, the interval is (0, 1).
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
        """Compute the log-likelihood of the rate with the unbounded logit t."""
        return float(successes * special.log_expit(t) + (n - successes) * special.log_expit(-t))

    best = math.log(successes / (n - successes))
    z = math.sqrt(2 * (log_likelihood(best) - level))
    step = z * math.sqrt(n / (successes * (n - successes)))
    low, high = likelihood_interval(log_likelihood, best, step, z)
    return (float(special.expit(low)), float(special.expit(high)))


def anytime_sign_test(wins: int, losses: int) -> float:
    """Test that two methods succeed equally often, paired by seed, with any number of looks.

    If both rates are equal, each method wins half of the discordant seeds. p = 1/M(1/2) of the wins (see the module for
    M). The probability that it falls below α at any look is at most α.

    Args:
        wins: the number of seeds that only the first method solves, >= 0.
        losses: the number of seeds that only the second method solves, >= 0.

    Returns:
        The p-value, at most 1.

    Raises:
        ValueError: if a count is negative.

    Example:
        >>> round(anytime_sign_test(15, 1), 4), anytime_sign_test(5, 5)
        (0.0034, 1.0)
    """
    if min(wins, losses) < 0:
        raise ValueError(f"counts must be >= 0, but got {wins}, {losses}")
    n = wins + losses
    return min(1.0, math.exp(-n * math.log(2) - _log_mixture(wins, n)))


def _log_mixture(k: int, n: int) -> float:
    return float(special.betaln(k + _PRIOR, n - k + _PRIOR) - special.betaln(_PRIOR, _PRIOR))
