"""Sparsity error of the trials that were solved: the mean of numbers in [0, 1/2], some of them 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from study.records import Interval
from study.statistics.checks import Floats, Values, nearly_equal, normal_quantile, not_negative
from study.statistics.likelihood import digamma_rest, likelihood_interval, stirling_rest

FLOAT32_SPACING = 2.0**-24
"""Distance from 1 to the float32 below it: weights nearer to 1 than this can't be told from 1."""

_BELOW = 16
"""What is in the place of zero is so much less than the least distance seen: of 1 to 64 that whose intervals held the
truth most nearly as often as they say, where weights are rounded to float32 (docs/statistics.md)."""

_TINY = float(np.finfo(np.float64).tiny)


def beta_mean_interval(values: Values, *, upper: float = 0.5, confidence: float = 0.95) -> Interval | None:
    """Bound the mean of a beta law on [0, upper] by profiling the likelihood over its precision.

    With y = x / upper, mean μ and precision φ, l(μ, φ) = n (log Γ(φ) - log Γ(μφ) - log Γ((1-μ)φ))
    + (μφ - 1) Σ log y + ((1-μ)φ - 1) Σ log(1 - y), the interval is upper {μ : 2 (max l - max_φ l) <= χ²₁}.
    A value at 0 or at `upper` has one logarithm only: in the place of the other is that of a sixteenth of the
    spacing of float32 below 1, or of the nearest value inside, if that is nearer. The law: Madsen & Johansen,
    ICLR 2020, appendix.

    Args:
        values: shape [n], in [0, upper]; for example sparsity errors, for which upper is 1/2.
        upper: end of the support.
        confidence: in (0, 1).

    Returns:
        (low, high). None for fewer than two values, equal values (to six digits), or a value above `upper`
        (weights without bounds have such sparsity errors), and where the interval wouldn't hold the sample
        mean (many values at an end): no beta law describes those.

    Raises:
        ValueError: if a value is negative or not finite, or the confidence is out of range.

    Example:
        >>> low, high = beta_mean_interval([0.1, 0.2, 0.2, 0.3])
        >>> round(low, 3), round(high, 3)
        (0.126, 0.287)
    """
    z = normal_quantile(confidence)
    x = not_negative(values, "beta")
    if x.size < 2 or x.max() > upper or nearly_equal(x):
        return None
    y, rest = x / upper, (upper - x) / upper
    log_y, log_rest = float(np.mean(_log(y, rest, upper))), float(np.mean(_log(rest, y, upper)))
    if math.exp(log_y) >= -math.expm1(log_rest):
        return None  # so many values at an end that the likelihood grows for ever with the precision
    law = BetaLikelihood(log_y, log_rest, x.size)
    best = law.best_logit(math.log(float(y.mean()) / float(rest.mean())))
    low, high = (upper * mu for mu in law.interval(best, z))
    return (low, high) if low <= x.mean() <= high else None


@dataclass(frozen=True)
class BetaLikelihood:
    """The log-likelihood (but for a constant) of a beta law on [0, 1] by its mean's logit, its precision chosen best.

    Args:
        log_y: mean of log y.
        log_rest: mean of log(1 - y).
        n: values.
    """

    log_y: float
    log_rest: float
    n: int

    def interval(self, best: float, z: float) -> Interval:
        """Bound the mean, given its best logit."""
        mu, nu = _both(best)
        error = 1 / math.sqrt(self.n * mu * nu * (self._precision(best) + 1))  # of the sample mean's logit
        low, high = likelihood_interval(self._profile, best, 1.2 * z * error, z)
        return (float(special.expit(low)), float(special.expit(high)))

    def best_logit(self, guess: float) -> float:
        """Find where the profile is greatest: where its slope, but for a positive factor, is zero."""

        def slope(logit: float) -> float:
            mu, nu = _both(logit)
            phi = self._precision(logit)
            return digamma_rest(nu * phi) - digamma_rest(mu * phi) - logit + self.log_y - self.log_rest

        low, high, step = guess - 0.1, guess + 0.1, 0.2
        while slope(low) < 0:
            low, step = low - step, 2 * step
        while slope(high) > 0:
            high, step = high + step, 2 * step
        return float(optimize.brentq(slope, low, high, xtol=1e-9))

    def _profile(self, logit: float) -> float:
        mu, nu = _both(logit)
        phi = self._precision(logit)
        rest = stirling_rest(phi) - stirling_rest(mu * phi) - stirling_rest(nu * phi)
        return self.n * (rest - phi * self._distance(logit))

    def _precision(self, logit: float) -> float:
        """Solve D(φ) = distance, with D(φ) = r(φ) - μ r(μφ) - (1-μ) r((1-μ)φ) and r(x) = ψ(x) - log x."""
        mu, nu = _both(logit)
        distance = self._distance(logit)

        def excess(log_phi: float) -> float:
            phi = math.exp(log_phi)
            return digamma_rest(phi) - mu * digamma_rest(mu * phi) - nu * digamma_rest(nu * phi) - distance

        # φ D(φ) falls from 1 to 1/2, which brackets φ; the likelihood is flat there, so eight digits give it sixteen
        low, high = math.log(0.49 / distance), math.log(1.01 / distance)
        return math.exp(optimize.brentq(excess, low, high, xtol=1e-8))

    def _distance(self, logit: float) -> float:
        mu, nu = _both(logit)
        to_y = mu * (float(special.log_expit(logit)) - self.log_y)
        return to_y + nu * (float(special.log_expit(-logit)) - self.log_rest)


def _both(logit: float) -> tuple[float, float]:
    """Give μ and 1 - μ, each to full precision."""
    return float(special.expit(logit)), float(special.expit(-logit))


def _log(y: Floats, rest: Floats, upper: float) -> Floats:
    """Take log y, y = 1 - rest, to full precision; at zero, that of what can't be told from zero."""
    least = min(FLOAT32_SPACING / upper, float(y[y > 0].min())) / _BELOW
    inside = np.where(y > 0, y, max(least, _TINY))
    return np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(inside))
