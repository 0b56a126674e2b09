"""The published estimators, including their faults: only to reproduce published numbers from published seeds.

Madsen & Johansen, ICLR 2020, fitted with R's package bbmle. Its optimiser (L-BFGS-B, with untransformed parameters)
doesn't move the variance of a gamma distribution at all, and often gives up on a beta distribution. The results depend
on the points that its profiling happens to evaluate. Don't use these for anything new;
docs/explanation/statistics.md describes the faults.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, Values, normal_quantile, not_negative, too_close
from study.statistics.likelihood import Log, likelihood_interval
from study.statistics.rates import wilson
from study.statistics.samples import numbers
from study.statistics.solved_at import means, medians
from study.statistics.sparsity_error import BetaLikelihood

_STEP = math.sqrt(float(special.chdtri(2, 0.005))) / 5
"""The step between two points of the profile, in standard errors: five steps reach the 99.5% quantile of χ²₂."""

_BETTER = 0.001
"""The fit restarts from a point of the profile where the deviance is lower by more than this."""

_NO_HESSIAN = 1.781e-5
"""Below this parameter, the numerical Hessian's absolute step of 1e-4 leaves the support, so the fit fails."""

_EDGE = 1e-16
"""The distance by which values at an end were moved inside [0, 1/2]."""

Estimate = tuple[float | None, Interval | None]


@dataclass(frozen=True, kw_only=True)
class AsPublished:
    """A row of the published analysis. None means that the analysis would have no such number.

    Args:
        success_rate: solved / seeds.
        success_rate_interval: Wilson's.
        solved_at_median: of the solved seeds.
        solved_at_mean: of a gamma distribution with the sample's variance, near its greatest likelihood.
        solved_at_interval: the likelihood interval of that mean, at the sample's variance, relative to the likelihood
            at `solved_at_mean`.
        error_mean: half the mean of a beta distribution on [0, 1], or the sample mean.
        error_interval: of that mean.
    """

    success_rate: float | None
    success_rate_interval: Interval
    solved_at_median: float | None
    solved_at_mean: float | None
    solved_at_interval: Interval | None
    error_mean: float | None
    error_interval: Interval | None


def as_published(solved_at: Values, sparsity_error: Values, seeds: int) -> AsPublished:
    """Compute a row of estimates by the methods of the published analysis.

    Args:
        solved_at: iterations to success of the solved seeds.
        sparsity_error: of the solved seeds; above 1/2, it counts as 1/2.
        seeds: the number of all seeds.

    Raises:
        ValueError: if more seeds are solved than there are, the lengths differ, or a value is negative or not finite.

    Example:
        >>> row = as_published([12000, 14000, 19000], [1e-7, 2e-7, 0.0], 10)
        >>> row.success_rate, row.solved_at_median, round(row.solved_at_mean, -1)
        (0.3, 14000.0, 15000.0)
        >>> round(row.error_mean, 9)
        1e-07
    """
    x, error = not_negative(solved_at, "gamma"), not_negative(sparsity_error, "beta")
    if x.size != error.size:
        raise ValueError(f"each solved seed needs one sparsity error, but got {error.size} of {x.size}")
    solved_at_mean, solved_at_interval = _gamma(x)
    error_mean, error_interval = _beta(error)
    return AsPublished(
        success_rate=x.size / seeds if seeds else None,
        success_rate_interval=wilson(x.size, seeds),
        solved_at_median=numbers(medians(x))[0],
        solved_at_mean=solved_at_mean,
        solved_at_interval=solved_at_interval,
        error_mean=error_mean,
        error_interval=error_interval,
    )


def _gamma(x: Floats) -> Estimate:
    """Fit a gamma distribution's mean m at the sample's variance s, by the steps of bbmle's profile.

    The search begins at the sample mean, from which the optimiser never moves. The profile evaluates steps below and
    above; at the first step with a greater likelihood, everything restarts. So the mean ends up to one step from the
    greatest likelihood, and the interval is that of the likelihood relative to this mean. For fewer than two values,
    equal ones or a zero, the sample mean is returned without an interval.
    """
    if x.size < 2 or x.min() == 0 or too_close(x.min(), x.max()) or float(np.std(x, ddof=1)) <= 1e-5:
        return numbers(means(x))[0], None
    n, centre = x.size, float(x.mean())
    variance, mean_log = float(np.var(x, ddof=1)), float(np.mean(np.log(x)))

    def log_likelihood(m: float) -> float:
        """Compute the log-likelihood of a mean, at the sample's variance."""
        shape, rate = m * m / variance, m / variance
        log_gamma = float(special.gammaln(shape))
        return n * (shape * math.log(rate) - log_gamma + (shape - 1) * mean_log - rate * centre)

    def step(m: float) -> float:
        """Return the step of the profile at a mean: `_STEP` standard errors by the likelihood's curvature."""
        shape, rate = m * m / variance, m / variance
        curvature = math.log(rate) + 1.5 - float(special.digamma(shape)) + mean_log
        curvature -= 2 * shape * float(special.polygamma(1, shape))
        return _STEP / math.sqrt(-2 * n * curvature / variance)

    m = _better(log_likelihood, step, centre)
    low, high = likelihood_interval(  # by the logarithm: a mean is positive
        lambda log_m: log_likelihood(math.exp(log_m)), math.log(m), 2 * step(m) / m, normal_quantile(0.95)
    )
    return m, (math.exp(low), math.exp(high))


def _better(log_likelihood: Log, step: Log, m: float) -> float:
    """Move to the first better point of the profile, below before above, as long as there is one."""
    here, width = log_likelihood(m), step(m)
    for sign in (-1, 1):
        for steps in range(1, 100):
            there = m + sign * steps * width
            drop = 2 * (here - log_likelihood(there)) if there > 0 else math.inf
            if drop < -_BETTER:
                return _better(log_likelihood, step, there)
            if drop >= (5 * _STEP) ** 2:
                break
    return m


def _beta(x: Floats) -> Estimate:
    """Fit a beta distribution on [0, 1] to values in [0, 1/2], and halve its mean and interval.

    Where the published fit failed, return the sample mean with a t-interval instead; for fewer than two values, or
    equal ones, the sample mean without an interval.
    """
    x = np.clip(x, _EDGE, 0.5 - _EDGE)
    if x.size < 2 or too_close(x.min(), x.max()) or float(np.std(x, ddof=1)) <= 1e-10:
        return numbers(means(x))[0], None
    z, centre = normal_quantile(0.95), float(x.mean())
    likelihood = BetaLikelihood.of_values(x, 1 - x, np.array([x.size]), _EDGE)
    best = likelihood.best()
    half = float(likelihood.means(best)[0][0]) / 2
    if half < _NO_HESSIAN:
        width = float(special.stdtrit(x.size - 1, 0.975)) * float(np.std(x, ddof=1)) / math.sqrt(x.size)
        return centre, (max(0.0, centre - width), min(0.5, centre + width))
    [(low, high)] = (likelihood.interval(best, z) / 2).tolist()
    return half, (low, high)
