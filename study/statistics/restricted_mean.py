"""The mean time to success up to a given time, with unsolved trials censored, for any distribution.

The interval assumes only that times are >= 0. That matters if most trials are solved just before the end, and a few
long before. A sample of ten trials may contain none of the few, and its standard error is then almost zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from study.statistics import samples
from study.statistics.checks import Flags, Floats, Values, check_confidence
from study.statistics.samples import Ints, Sizes
from study.statistics.survival import Bools, checked_trials

Moments = tuple[Floats, Floats]
"""Means and variances of independent variables."""

_ONE = (1.0, 0.0)
"""The moments of the constant 1."""

_LEAST_RANGE = 1e-12
"""The least range of a distribution, as a share of its greater end: a narrower one is lost to rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RestrictedMeans:
    """Mean times to success, each trial counted up to a given time; NaN where a number can't be estimated.

    Args:
        mean: the area under the survival curve up to that time; shape [samples].
        standard_error: by Greenwood's formula; NaN where no trial was solved before that time; shape [samples].
        interval: of the distribution's mean, for any distribution; between zero and that time; shape [samples, 2], low
            and high.
    """

    mean: Floats
    standard_error: Floats
    interval: Floats


def restricted_means(
    times: Values, solved: Flags, sizes: Sizes | None = None, *, until: float | Values, confidence: float = 0.95
) -> RestrictedMeans:
    """Estimate the mean of min(time to success, until), for each sample.

    The estimate is the area A(0) under the Kaplan-Meier curve, where A(t) is that from t to `until`. Its variance is Σ
    A(t_i)² d_i/(n_i (n_i - d_i)), with d_i of n_i trials at risk solved at t_i. Klein & Moeschberger, Survival Analysis
    (2003), 4.5. If no trial is censored before `until`, these are the sample mean of min(time, until), and the mean
    squared deviation from it over n.

    The interval is from a quantile of ∫ S_low to one of ∫ S_high, both from 0 to `until`. S_high begins at 1, and is
    multiplied by a Beta(n, 1) variable at each success of one of n trials at risk. S_low(t) is S_high(t) times another
    such variable, for the number of trials at risk after t. At any t these are the beta products of Fay, Brittain &
    Proschan, Biostatistics 14 (2013) 723-736. If no trial is censored before `until`, ∫ S_high is a mean of the times
    and `until`, weighted by uniform spacings, and ∫ S_low one of the times and 0. These are the bounds of Gaffke,
    Mathematical Methods of Statistics 14 (2005) 451-467. If all trials are solved at 0 or not at all, the bounds are
    Clopper and Pearson's. The quantiles are those of the beta distribution with the same mean, variance and ends, which
    is exact in that case.

    Args:
        times: when a trial was solved or censored, >= 0; all samples, one after another.
        solved: whether the trial was solved; shape [times].
        sizes: the number of trials of each sample; None for a single sample.
        until: > 0; one for all samples, or one for each. Compared cells need the same one.
        confidence: in (0, 1).

    Returns:
        NaN for a sample without trials, and where the curve is not known up to `until`, because all trials end before
        and one of the last to end is censored. The standard error is also NaN if no trial is solved before `until`.

    Raises:
        ValueError: if a time is negative or not finite, a flag is neither 0 nor 1, `until` is not positive and finite,
            the confidence is out of range, lengths differ, an array has several axes, or sizes are negative or don't
            add up to the number of times.

    Example:
        >>> times, solved = [10, 20, 30, 50, 50, 40], [True, True, True, False, False, True]
        >>> estimates = restricted_means(times, solved, sizes=[5, 1], until=50)
        >>> estimates.mean.round(2).tolist(), estimates.standard_error.round(2).tolist()
        ([32.0, 40.0], [7.16, 0.0])
        >>> estimates.interval[0].round(1).tolist()
        [12.7, 45.5]
    """
    check_confidence(confidence)
    t, is_solved = checked_trials(times, solved)
    n = samples.checked_sizes(t, sizes)
    ends = np.broadcast_to(np.asarray(until, dtype=np.float64), n.shape)
    if not np.all((ends > 0) & (ends < math.inf)):
        raise ValueError(f"0 < until must hold, but got {until}")
    estimates = np.full((n.size, 4), math.nan)
    # complex numbers sort by time, and at one time the solved trials first: the others are still at risk there
    for places, rows in samples.padded(np.where(is_solved, t, t + 1j), n, math.inf):
        rows.sort(axis=1)
        tail = (1 - confidence) / 2
        estimates[places] = _estimates(rows.real, rows.imag == 0, n[places], ends[places], tail)
    return RestrictedMeans(mean=estimates[:, 0], standard_error=estimates[:, 1], interval=estimates[:, 2:])


def _estimates(times: Floats, solved: Bools, n: Ints, until: Floats, tail: float) -> Floats:
    """Return mean, standard error, low and high of rows of n sorted trials, [rows, 4]; NaN if they aren't known."""
    row = np.arange(n.size)
    is_known = (times[row, n - 1] >= until) | solved[row, n - 1]
    is_watched = times < until[:, None]
    is_event = solved & is_watched
    # one trial at a time: the factors of simultaneous trials multiply to their common factor
    at_risk = np.maximum(n[:, None] - np.arange(times.shape[1]), 1).astype(np.float64)
    times = np.minimum(times, until[:, None])
    gaps = np.diff(np.column_stack([np.zeros(n.size), times, until]), axis=1)

    survival = _curve(np.where(is_event, (at_risk - 1) / at_risk, 1.0))
    to_come = _to_come(survival * gaps)
    # no area remains after the last trial if it is solved
    terms = np.where(is_event, to_come[:, 1:] ** 2 / (at_risk * np.maximum(at_risk - 1, 1)), 0.0)
    mean = np.minimum(to_come[:, 0], until)  # the sum of many gaps may exceed it in the last bit
    error = np.where(is_event.any(axis=1), np.sqrt(_total(terms)), math.nan)

    factors = _where(is_event, _beta(at_risk), _ONE)
    first = np.min(times, axis=1, where=is_event, initial=math.inf)
    high = _quantile(1 - tail, *_area(gaps, *factors), np.minimum(first, until), until)
    # the additional factor: each success consumes it and introduces the next
    factors = _where(is_event, _beta(at_risk - 1), _where(is_watched, _beta_ratio(at_risk), _ONE))
    first_factor = _beta(n.astype(np.float64))
    factors = np.column_stack([first_factor[0], factors[0]]), np.column_stack([first_factor[1], factors[1]])
    gaps = np.column_stack([np.zeros(n.size), gaps])
    last = np.where(survival[:, -1] > 0, until, times[row, n - 1])
    low = _quantile(tail, *_area(gaps, *factors), np.zeros(n.size), last)
    # at a confidence near zero a quantile may lie beyond the mean
    low, high = np.minimum(low, mean), np.clip(high, mean, until)
    return np.where(is_known[:, None], np.column_stack([mean, error, low, high]), math.nan)


def _where(mask: Bools, these: Moments, others: Moments | tuple[float, float]) -> Moments:
    """Choose elementwise between the moments of two kinds of factors."""
    return np.where(mask, these[0], others[0]), np.where(mask, these[1], others[1])


def _beta(n: Floats) -> Moments:
    """Return the moments of Beta(n, 1); for n = 0, those of the constant 0."""
    return n / (n + 1), n / ((n + 1) ** 2 * (n + 2))


def _beta_ratio(n: Floats) -> Moments:
    """Return the moments of the factor that turns a Beta(n, 1) variable into a Beta(n - 1, 1) variable.

    The factor is 1 with probability (n - 1)/n, else Beta(n - 1, 1).
    """
    return (n - 1) * (n + 1) / n**2, (n - 1) * (2 * n + 1) / (n**4 * (n + 1))


def _curve(factors: Floats) -> Floats:
    """Return the cumulative products of the factors, with 1 at the start."""
    return np.column_stack([np.ones(len(factors)), np.cumprod(factors, axis=1)])


def _to_come(areas: Floats) -> Floats:
    """Return the sum from each area to the last; summed from the right, so that padding changes no bit."""
    return np.cumsum(areas[:, ::-1], axis=1)[:, ::-1]


def _total(terms: Floats) -> Floats:
    """Sum each row term by term, so that its width changes no bit."""
    return np.cumsum(terms, axis=1)[:, -1]


def _area(gaps: Floats, means: Floats, variances: Floats) -> Moments:
    """Return mean and variance of the area under each curve that is multiplied by a random factor after each gap.

    With the remaining area R after a factor B, on a curve that is 1 there, Var(B R) = E(B²) Var(R) + Var(B) E(R)².
    """
    curve = _curve(means)
    to_come = _to_come(curve * gaps)
    ahead = np.divide(to_come[:, 1:], curve[:, 1:], out=np.zeros_like(means), where=curve[:, 1:] > 0)
    squares = _curve(means**2 + variances)[:, :-1]
    return to_come[:, 0], _total(squares * variances * ahead**2)


def _quantile(share: float, mean: Floats, variance: Floats, least: Floats, greatest: Floats) -> Floats:
    """Return a quantile of the beta distributions with these ranges and moments; the mean without a spread."""
    extent = greatest - least
    is_spread = (extent > _LEAST_RANGE * greatest) & (variance >= np.finfo(np.float64).tiny)
    extent, place = np.where(is_spread, extent, 1.0), np.where(is_spread, mean - least, 0.5)
    place = place / extent
    spread = np.where(is_spread, variance, 0.0625) / extent**2
    precision = place * (1 - place) / spread - 1
    quantile = least + extent * special.betaincinv(place * precision, (1 - place) * precision, share)
    return np.where(is_spread, quantile, mean)
