"""What the profile-likelihood intervals share: the search for an interval's ends, and ψ and log Γ without cancellation.

Venzon & Moolgavkar, Applied Statistics 37 (1988) 87-94.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize, special

from study.records import Interval

Log = Callable[[float], float]
"""A log-likelihood by one parameter, the others chosen best."""


def likelihood_interval(log_likelihood: Log, best: float, step: float, z: float) -> Interval:
    """Find both ends of {t : 2 (l(best) - l(t)) <= z²}.

    The deviance's root is nearly linear in t, so that a bracketing search needs few evaluations.

    Args:
        log_likelihood: falls without bound, or at least below the interval's level, on either side of `best`.
        best: where it is greatest.
        step: about the distance from `best` to an end.
        z: quantile of the normal law.

    Example:
        >>> low, high = likelihood_interval(lambda t: -((t - 3) ** 2) / 2, 3.0, 1.0, 1.96)
        >>> round(low, 6), round(high, 6)
        (1.04, 4.96)
    """
    top = log_likelihood(best)

    def beyond(t: float) -> float:
        return math.sqrt(max(0.0, 2 * (top - log_likelihood(t)))) - z

    return _end(beyond, best, -step), _end(beyond, best, step)


def _end(beyond: Log, best: float, step: float) -> float:
    near, far = best, best + step
    while beyond(far) < 0:
        step *= 2
        near, far = far, far + step
    return float(optimize.brentq(beyond, near, far, xtol=1e-11 * max(1e-3, abs(far))))


def digamma_rest(x: float) -> float:
    """Give ψ(x) - log x, without cancellation for large x.

    Example:
        >>> round(digamma_rest(1e9), 15)
        -5e-10
    """
    if x > 1e4:
        return -1 / (2 * x) - 1 / (12 * x * x)
    return float(special.digamma(x)) - math.log(x)


def stirling_rest(x: float) -> float:
    """Give log Γ(x) - (x log x - x), without cancellation for large x.

    Example:
        >>> round(stirling_rest(1.0), 6)
        1.0
    """
    if x > 1e4:
        return 0.5 * math.log(2 * math.pi / x) + 1 / (12 * x)
    return math.lgamma(x) - x * (math.log(x) - 1)
