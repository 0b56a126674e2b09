"""Statements about seeds: numbers in, numbers out.

The law of a cell's trials is estimated from independent seeds. Sources: Wilson, JASA 22 (1927) 209-212; the
choice of gamma and beta: Madsen & Johansen, ICLR 2020, appendix; profile likelihood: Venzon & Moolgavkar,
Applied Statistics 37 (1988) 87-94; Holm, Scandinavian Journal of Statistics 6 (1979) 65-70.

What can't be estimated is None: an interval from one value, from equal values, or from values outside the
law's support. What can't be an observation (NaN, a negative count) raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from study.records import Interval

Values = Sequence[float] | npt.NDArray[np.floating] | npt.NDArray[np.integer]

FLOAT32_SPACING = 2.0**-24
"""Distance from 1 to the float32 below it: weights nearer to 1 than this can't be told from 1."""


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Bound a success rate by Wilson's score interval.

    The rates p with abs(k/n - p) <= z sqrt(p (1 - p) / n), z the normal quantile; Wilson (1927).

    Args:
        successes: k, 0 <= k <= n.
        n: trials; of none nothing is known: (0, 1).
        confidence: in (0, 1).

    Raises:
        ValueError: if k or the confidence is out of range.

    Example:
        >>> low, high = wilson(98, 100)
        >>> round(low, 4), round(high, 4)
        (0.93, 0.9945)
    """
    _check_confidence(confidence)
    _check_count(successes, n)
    if n == 0:
        return (0.0, 1.0)
    interval = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return (float(interval.low), float(interval.high))


def median(values: Values) -> float | None:
    """Take the median; the middle two's mean for an even count, None for no values.

    Raises:
        ValueError: if a value is NaN or infinite.

    Example:
        >>> median([14000, 12000, 19000])
        14000.0
    """
    x = _finite(values)
    return float(np.median(x)) if x.size else None


def mean(values: Values) -> float | None:
    """Take the sample mean; None for no values.

    Raises:
        ValueError: if a value is NaN or infinite.

    Example:
        >>> mean([1.0, 2.0])
        1.5
    """
    x = _finite(values)
    return float(np.mean(x)) if x.size else None


def gamma_mean_interval(values: Values, confidence: float = 0.95) -> Interval | None:
    """Bound the mean of a gamma law by profiling the likelihood over its shape.

    With shape k and mean m, l(m, k) = n (k log(k/m) - log Γ(k) - k x̄/m) + (k - 1) Σ log x. The estimate of m
    is the sample mean x̄ for every k; the interval is {m : 2 (max l - max_k l(m, k)) <= χ²₁}. l depends on m
    only through s(m) = log m + x̄/m - 1 - mean(log x), and the best k solves log k - ψ(k) = s(m), so that one
    root in s and the two m that have it are all there is to find.

    Args:
        values: shape [n], positive; for example iterations at which trials were solved.
        confidence: in (0, 1).

    Returns:
        (low, high) around the sample mean. None for fewer than two values, equal values (to six digits), or a
        zero among them.

    Raises:
        ValueError: if a value is negative or not finite, or the confidence is out of range.

    Example:
        >>> low, high = gamma_mean_interval([1.0, 2.0, 3.0, 4.0])
        >>> round(low, 3), round(high, 3)
        (1.45, 4.861)
    """
    _check_confidence(confidence)
    x = _finite(values)
    if np.any(x < 0):
        raise ValueError(f"values must be >= 0 for a gamma law, but the smallest is {x.min():g}")
    if x.size < 2 or x.min() == 0 or _equal(x):
        return None
    centre = float(x.mean())
    deviation = (x - centre) / centre
    spread = float(np.mean(deviation - np.log1p(deviation)))
    allowed = float(stats.chi2.ppf(confidence, 1)) / (2 * x.size)

    def excess(s: float) -> float:
        return _gamma_height(spread) - _gamma_height(s) - allowed

    edge = float(optimize.brentq(excess, spread, _grow(excess, spread), xtol=1e-15, rtol=1e-12))
    rise = edge - spread  # of s(m) above s(x̄): exp(-u) + u - 1 at m = x̄ exp(u)

    def gap(u: float) -> float:
        return math.expm1(-u) + u - rise

    low = optimize.brentq(gap, -math.sqrt(2 * rise) - 1e-12, 0.0, xtol=1e-14)
    high = optimize.brentq(gap, 0.0, rise + 1.0, xtol=1e-14)
    return (centre * math.exp(low), centre * math.exp(high))


def beta_mean_interval(values: Values, *, upper: float = 0.5, confidence: float = 0.95) -> Interval | None:
    """Bound the mean of a beta law on [0, upper] by profiling the likelihood over its precision.

    With y = x / upper, mean μ and precision φ, l(μ, φ) = n (log Γ(φ) - log Γ(μφ) - log Γ((1-μ)φ))
    + (μφ - 1) Σ log y + ((1-μ)φ - 1) Σ log(1 - y), the interval is upper {μ : 2 (max l - max_φ l) <= χ²₁}.
    A value at 0 or at `upper` has no logarithm: it is moved inside by the spacing of float32 below 1, 2^-24
    (or to the nearest value inside, if that is nearer).

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
    _check_confidence(confidence)
    x = _finite(values)
    if np.any(x < 0):
        raise ValueError(f"values must be >= 0 for a beta law, but the smallest is {x.min():g}")
    if x.size < 2 or x.max() > upper or _equal(x):
        return None
    y = _inside(x / upper)
    rest = _inside((upper - x) / upper)
    log_rest = np.where(y < 0.5, np.log1p(-np.minimum(y, 0.5)), np.log(rest))
    profile = _beta_profile(float(np.mean(np.log(y))), float(np.mean(log_rest)))
    centre = math.log(float(y.mean()) / float(rest.mean()))
    best = optimize.minimize_scalar(lambda t: -profile(t), bracket=(centre - 0.1, centre + 0.1), tol=1e-10)
    allowed = float(stats.chi2.ppf(confidence, 1)) / (2 * x.size)

    def excess(t: float) -> float:
        return float(-best.fun) - profile(t) - allowed

    low = optimize.brentq(excess, _grow(excess, best.x, -0.1), best.x, xtol=1e-12)
    high = optimize.brentq(excess, best.x, _grow(excess, best.x, 0.1), xtol=1e-12)
    interval = (upper * float(special.expit(low)), upper * float(special.expit(high)))
    return interval if interval[0] <= x.mean() <= interval[1] else None


def fisher_exact(successes_1: int, n_1: int, successes_2: int, n_2: int) -> float:
    """Test that two success rates are equal: Fisher's exact test, two-sided.

    p = the sum of the hypergeometric probabilities, given both margins, that don't exceed the observed one's;
    Fisher (1935). One where a sample is empty.

    Args:
        successes_1: of the first sample, 0..n_1.
        n_1: its size.
        successes_2: of the second sample, 0..n_2.
        n_2: its size.

    Raises:
        ValueError: if a count is out of range.

    Example:
        >>> round(fisher_exact(94, 100, 13, 100), 4)
        0.0
    """
    _check_count(successes_1, n_1)
    _check_count(successes_2, n_2)
    table = [[successes_1, n_1 - successes_1], [successes_2, n_2 - successes_2]]
    return min(1.0, float(stats.fisher_exact(table).pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust a family of p-values so that the chance of any false alarm stays below the level.

    In ascending order p'_(i) = max over j <= i of min(1, (m - j + 1) p_(j)); Holm (1979).

    Args:
        p_values: of the m tests of the family, each in [0, 1].

    Returns:
        Adjusted p-values, in the order given.

    Raises:
        ValueError: if a p-value is out of range.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"p-values must lie in [0, 1], but got {list(p_values)}")
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(1.0, p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(stepped)
    return [float(value) for value in adjusted]


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"0 < confidence < 1 must hold, but got {confidence}")


def _check_count(successes: int, n: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"0 <= successes <= n must hold, but got (successes={successes}, n={n})")


def _finite(values: Values) -> npt.NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(x)):
        raise ValueError("values must be finite, but NaN or infinity is among them: drop or count them first")
    return x


def _grow(excess: Callable[[float], float], start: float, step: float | None = None) -> float:
    """Walk from `start` in doubling steps to where `excess` is positive."""
    step = max(start, 1e-12) if step is None else step
    end = start + step
    while excess(end) <= 0:
        step *= 2
        end += step
    return end


def _equal(x: npt.NDArray[np.float64]) -> bool:
    """Say whether the values differ by less than a millionth: too little to estimate a spread from."""
    return bool(x.max() - x.min() <= 1e-6 * x.max())


def _gamma_height(s: float) -> float:
    """Give max over k of k (log k - s - 1) - log Γ(k): the profile likelihood's logarithm a value."""
    # 1/(2k) < log k - ψ(k) < 1/k brackets the best k
    low, high = math.log(0.49 / s), math.log(1.01 / s)
    k = math.exp(optimize.brentq(lambda log_k: -_digamma_rest(math.exp(log_k)) - s, low, high, xtol=1e-14))
    return -_stirling_rest(k) - k * s


def _beta_profile(log_y: float, log_rest: float) -> Callable[[float], float]:
    """Give the profile log-likelihood a value (but for a constant) of a beta law's mean, by the mean's logit.

    Args:
        log_y: mean of log y.
        log_rest: mean of log(1 - y).
    """

    def profile(logit: float) -> float:
        mu, nu = float(special.expit(logit)), float(special.expit(-logit))
        distance = mu * (float(special.log_expit(logit)) - log_y)
        distance += nu * (float(special.log_expit(-logit)) - log_rest)

        def slope(log_phi: float) -> float:
            phi = math.exp(log_phi)
            inner = mu * _digamma_rest(mu * phi) + nu * _digamma_rest(nu * phi)
            return _digamma_rest(phi) - inner - distance

        low, high = 0.0, 4.0
        while slope(low) <= 0:
            low -= 4.0
        while slope(high) >= 0:
            high += 4.0
        phi = math.exp(optimize.brentq(slope, low, high, xtol=1e-12))
        rest = _stirling_rest(phi) - _stirling_rest(mu * phi) - _stirling_rest(nu * phi)
        return rest - phi * distance

    return profile


def _digamma_rest(x: float) -> float:
    """Give ψ(x) - log x, without cancellation for large x."""
    if x > 1e4:
        return -1 / (2 * x) - 1 / (12 * x * x)
    return float(special.digamma(x)) - math.log(x)


def _stirling_rest(x: float) -> float:
    """Give log Γ(x) - (x log x - x), without cancellation for large x."""
    if x > 1e4:
        return 0.5 * math.log(2 * math.pi / x) + 1 / (12 * x)
    return math.lgamma(x) - x * (math.log(x) - 1)


def _inside(y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Replace zeros by the spacing of float32 below one, or by the smallest value that isn't zero."""
    positive = y[y > 0]
    return np.where(y > 0, y, min(FLOAT32_SPACING, float(positive.min())))
