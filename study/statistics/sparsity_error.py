"""Sparsity error of the solved trials: intervals for the mean of numbers in [0, 1/2], some of them 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from study.statistics import samples
from study.statistics.checks import Floats, Values, normal_quantile, not_negative, too_close
from study.statistics.likelihood import digamma_rest, root, stirling_rest, trigamma_rest
from study.statistics.samples import Ints, Sizes

FLOAT32_SPACING = 2.0**-24
"""The distance from 1 to the float32 below it: weights nearer to 1 can't be distinguished from 1."""

_BELOW = 16
"""The divisor of the least observed distance in the number that replaces zero. Among the divisors from 1 to 64, its
coverage is nearest to the confidence if weights are rounded to float32 (docs/explanation/statistics.md)."""

_TINY = float(np.finfo(np.float64).tiny)


def beta_mean_intervals(
    values: Values, sizes: Sizes | None = None, *, upper: float = 0.5, confidence: float = 0.95
) -> Floats:
    """Bound the mean of a beta distribution on [0, upper], for each sample, by profile likelihood over its precision.

    With y = x / upper, mean μ and precision φ, the interval is upper {μ : 2 (max l - max_φ l) <= χ²₁} for

        l(μ, φ) = n (log Γ(φ) - log Γ(μφ) - log Γ((1-μ)φ)) + (μφ - 1) Σ log y + ((1-μ)φ - 1) Σ log(1 - y).

    For a value x at 0 or at `upper`, one of the logarithms is infinite. There, the distance of x from that end is
    replaced by a sixteenth of the spacing of float32 below 1 or, if it is less, of the distance from that end to the
    nearest other value. The distribution: Madsen & Johansen, ICLR 2020, appendix.

    Args:
        values: the values of all samples, one sample after another; in [0, upper], such as sparsity errors, for which
            upper is 1/2.
        sizes: the number of values of each sample; None for a single sample.
        upper: the end of the support, > 0.
        confidence: in (0, 1).

    Returns:
        Shape [samples, 2], low and high. NaN for fewer than two values, equal values (to six digits), a value above
        `upper` (as unbounded weights have), and where the likelihood has no maximum or the interval wouldn't contain
        the sample mean (many values at an end): no beta distribution describes those.

    Raises:
        ValueError: if a value is negative or not finite, the confidence is out of range, values or sizes have
            several axes, or sizes are negative or don't add up to the number of values.

    Example:
        >>> beta_mean_intervals([0.1, 0.2, 0.2, 0.3, 0.1], sizes=[4, 1]).round(3).tolist()
        [[0.126, 0.287], [nan, nan]]
    """
    z = normal_quantile(confidence)
    x = not_negative(values, "beta")
    n = samples.checked_sizes(x, sizes)
    bounds = np.full((n.size, 2), math.nan)
    largest = samples.greatest(x, n)
    has_fit = (n >= 2) & (largest <= upper) & ~too_close(samples.least(x, n), largest)
    x, n = x[np.repeat(has_fit, n)], n[has_fit]
    likelihood = BetaLikelihood.of_values(x / upper, (upper - x) / upper, n, FLOAT32_SPACING / upper)
    has_fit[has_fit], likelihood = likelihood.has_best, likelihood.where(likelihood.has_best)
    with np.errstate(all="ignore"):  # overflow becomes NaN, which has no interval
        ends = upper * likelihood.interval(likelihood.best(), z)
    mean = upper * likelihood.mean
    holds = (ends[:, 0] <= mean) & (mean <= ends[:, 1])
    bounds[has_fit] = np.where(holds[:, None], ends, math.nan)
    return bounds


@dataclass(frozen=True, kw_only=True, eq=False)
class BetaLikelihood:
    """Profile log-likelihoods (up to constants) of beta distributions on [0, 1], by the logit of their mean.

    There is one for each sample, with the best precision for each mean. A logit is expressed as its distance from that
    of the sample mean, so that values close to each other lose no digits. All arrays have shape [samples].

    Args:
        n: the number of values.
        mean: the sample mean.
        complement: 1 - mean.
        gap: the logarithm of the mean minus the mean of the logarithms, of the values.
        complement_gap: the same for 1 - values.
    """

    n: Floats
    mean: Floats
    complement: Floats
    gap: Floats
    complement_gap: Floats

    @classmethod
    def of_values(cls, y: Floats, complements: Floats, sizes: Ints, spacing: float) -> BetaLikelihood:
        """Compute the likelihoods' coefficients from the samples.

        Args:
            y: values in [0, 1], not all equal in a sample.
            complements: 1 - y.
            sizes: the number of values of each sample.
            spacing: the distance from an end below which a value can't be distinguished from it. Values at an end are
                replaced as in `beta_mean_intervals`.
        """
        mean, mean_complement = samples.means(y, sizes), samples.means(complements, sizes)
        gap = samples.log_gaps(y, sizes, mean, _least(y, sizes, spacing))
        complement_gap = samples.log_gaps(complements, sizes, mean_complement, _least(complements, sizes, spacing))
        return cls(
            n=sizes.astype(np.float64), mean=mean, complement=mean_complement, gap=gap, complement_gap=complement_gap
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> BetaLikelihood:
        """Return the likelihoods of the samples where the mask is True."""
        return BetaLikelihood(**{name: array[mask] for name, array in vars(self).items()})

    @property
    def has_best(self) -> npt.NDArray[np.bool_]:
        """True where the likelihood has a maximum; with too many values at an end it is unbounded."""
        above = self.mean * np.expm1(-self.gap) + self.complement * np.expm1(-self.complement_gap)
        return np.asarray(above < 0)

    def best(self) -> Floats:
        """Find the logit at the likelihood's maximum, as its distance from that of the sample mean."""
        mu, nu, phi = self._at(np.zeros_like(self.mean))
        error = 1 / np.sqrt(mu * nu * (phi + 1))  # a value's distance from the mean, as a logit

        def fall(distance: Floats) -> tuple[Floats, Floats]:
            """Return the negative slope of the likelihood, scaled, and its own slope."""
            mu, nu, phi = self._at(distance * error)
            a, b = mu * phi, nu * phi
            slope = self._slope(distance * error, a, b)
            of_phi, of_a, of_b = trigamma_rest(np.array([phi, a, b]))
            relative = -(mu * b * slope + mu * of_b - nu * of_a) / (of_phi - of_a - of_b)  # φ'/φ
            curvature = of_b / b * (relative - mu) - of_a / a * (relative + nu) - 1
            return -slope, -curvature * error

        return error * root(fall, np.zeros_like(error))

    def means(self, distance: Floats) -> tuple[Floats, Floats]:
        """Return μ and 1 - μ at a distance of the logit from that of the sample mean, each to full precision."""
        logit = np.log(self.mean / self.complement) + distance
        return special.expit(logit), special.expit(-logit)

    def interval(self, best: Floats, z: float) -> Floats:
        """Bound the means by the likelihood.

        Args:
            best: the maxima, from `best`.
            z: the quantile of the normal distribution.

        Returns:
            Shape [samples, 2], low and high; NaN where a likelihood isn't finite.
        """
        mu, nu, phi = self._at(best)
        sides = np.array([[-1.0], [1.0]])
        about = sides * 1.2 * z / np.sqrt(self.n * mu * nu * (phi + 1))
        top = self._profile(best, mu, nu, phi)

        def beyond(times: Floats) -> tuple[Floats, Floats]:
            """Return the root of the deviance minus z, and its slope, at multiples of the first guess."""
            distance = best + about * times
            mu, nu, phi = self._at(distance)
            deviation = np.sqrt(np.maximum(0.0, 2 * (top - self._profile(distance, mu, nu, phi))))
            slope = self._slope(distance, mu * phi, nu * phi)
            return deviation - z, -about * self.n * mu * nu * phi * slope / deviation

        return self.means(best + about * root(beyond, np.ones_like(about), 0.0))[0].T

    def _at(self, distance: Floats) -> tuple[Floats, Floats, Floats]:
        """Return μ, 1 - μ and the best precision φ, with r(φ) - μ r(μφ) - (1-μ) r((1-μ)φ) = d, r(x) = ψ(x) - log x.

        d is the `_divergence` at μ.
        """
        mu, nu = self.means(distance)
        d = self._divergence(distance, mu, nu)
        # a parabola joins the limits 1/(2φ) + c/(12 φ²) for large φ and 1/φ for small φ, and gives φ to 4%
        c = 1 / (mu * nu) - 1
        p = 3 - d * c
        q = np.abs(p) + np.sqrt(p * p + 24 * d * c)
        log_phi = np.log(np.where(p > 0, q / (12 * d), 2 * c / q))
        # Newton steps, with logarithms on both axes: to 5e-5 and 1e-10, where the likelihood is flat
        for _ in range(2):
            phi = np.exp(log_phi)
            x = np.array([phi, mu * phi, nu * phi])
            (r, r_a, r_b), (t, t_a, t_b) = digamma_rest(x), trigamma_rest(x)
            complement = r - mu * r_a - nu * r_b
            log_phi = log_phi - np.log(complement / d) * phi * complement / (t - t_a - t_b)
        return mu, nu, np.exp(log_phi)

    def _divergence(self, distance: Floats, mu: Floats, nu: Floats) -> Floats:
        """Return μ (log μ - mean log y) + (1-μ) (log (1-μ) - mean log (1-y))."""
        to_y = self.gap - _log_ratio(self.mean, self.complement, distance)
        to_rest = self.complement_gap - _log_ratio(self.complement, self.mean, -distance)
        return np.asarray(mu * to_y + nu * to_rest)

    def _profile(self, distance: Floats, mu: Floats, nu: Floats, phi: Floats) -> Floats:
        """Return the profile log-likelihood at a distance, given μ, 1 - μ and the best precision there."""
        of_phi, of_a, of_b = stirling_rest(np.array([phi, mu * phi, nu * phi]))
        return np.asarray(self.n * (of_phi - of_a - of_b - phi * self._divergence(distance, mu, nu)))

    def _slope(self, distance: Floats, a: Floats, b: Floats) -> Floats:
        """Return the profile's slope over the logit, divided by n μ (1-μ) φ; a = μφ, b = (1-μ)φ."""
        r_a, r_b = digamma_rest(np.array([a, b]))
        return np.asarray(r_b - r_a - distance - self.gap + self.complement_gap)


def _log_ratio(mean: Floats, complement: Floats, distance: Floats) -> Floats:
    """Return log(mean + complement exp(-distance)) to full precision: a mean's logarithm minus that at a distance."""
    over = complement * np.expm1(-distance)
    far = np.log(mean + complement * np.exp(-distance))
    return np.where(over > -0.5, np.log1p(np.maximum(over, -0.5)), far)


def _least(y: Floats, sizes: Ints, spacing: float) -> Floats:
    """Return the number that replaces zeros in each sample: one that can't be distinguished from zero."""
    inside = samples.least(np.where(y > 0, y, math.inf), sizes)
    return np.maximum(np.minimum(spacing, inside) / _BELOW, _TINY)
