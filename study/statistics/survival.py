"""Time to success with the unsolved trials in it: each says that success takes longer than it was given.

Iterations and seconds of training are times alike. A trial that was not solved is censored: at its last iteration.
One that diverged will never be solved; give it the last iteration that its cell's trials run to, not that at which
it diverged, or it counts as one that might have been solved a moment later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from study.records import Interval
from study.statistics import samples
from study.statistics.checks import Flags, Floats, Values, finite, normal_quantile
from study.statistics.samples import Ints, Sizes

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class SurvivalCurve:
    """A Kaplan-Meier curve: the share of trials not solved by a time. All arrays have shape [times].

    Args:
        times: at which a trial was solved or censored, ascending.
        at_risk: trials neither solved nor censored before that time.
        solved: trials solved at that time.
        survival: share not solved by then; constant up to the next time, and one before the first.
        low: end of its pointwise interval; NaN where it has none.
        high: its other end.
    """

    times: Floats
    at_risk: Floats
    solved: Floats
    survival: Floats
    low: Floats
    high: Floats

    @property
    def median(self) -> float | None:
        """Give the first time by which half of the trials are solved, counting the unsolved; None if none is.

        Example:
            >>> kaplan_meier([10, 20, 30, 50, 50], [True, True, True, False, False]).median
            30.0
        """
        reached = np.flatnonzero(self.survival <= 0.5 + 1e-12)
        return float(self.times[reached[0]]) if reached.size else None


@dataclass(frozen=True, kw_only=True)
class RestrictedMean:
    """The mean time to success, each trial counted for no longer than a given time.

    Args:
        mean: area under the survival curve up to that time.
        standard_error: by Greenwood's formula; None where no trial was solved by then.
        interval: mean ± z standard errors, no further than from zero to that time; None likewise.
    """

    mean: float
    standard_error: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True, eq=False)
class RestrictedMeans:
    """The same of many samples; NaN where there is no such number.

    Args:
        mean: shape [samples].
        standard_error: shape [samples].
        interval: shape [samples, 2], low and high.
    """

    mean: Floats
    standard_error: Floats
    interval: Floats


@dataclass(frozen=True, kw_only=True)
class LogRank:
    """What a log-rank test found.

    Args:
        statistic: χ² under the hypothesis.
        degrees_of_freedom: of it.
        p_value: of the hypothesis that all samples have one curve.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float


def kaplan_meier(times: Values, solved: Flags, confidence: float = 0.95) -> SurvivalCurve | None:
    """Estimate the share of trials not solved by each time.

    S(t) = Π over times t_i <= t of 1 - d_i/n_i, with d_i solved of n_i at risk; a trial censored at t_i is at
    risk there. The interval is symmetric in log(-log S): S^exp(± z g / log S), g² = Σ d_i/(n_i (n_i - d_i)),
    Greenwood's. Kaplan & Meier, JASA 53 (1958) 457-481; Kalbfleisch & Prentice, The Statistical Analysis of
    Failure Time Data (1980).

    Args:
        times: shape [n], >= 0: solved at, or censored at.
        solved: shape [n]: which of both.
        confidence: in (0, 1), at one time: it is no band for the whole curve.

    Returns:
        The curve; None of no trials. No interval where the survival is 1 or 0, for which Greenwood's has no width.

    Raises:
        ValueError: if a time is negative or not finite, or lengths differ.

    Example:
        >>> curve = kaplan_meier([10, 20, 20, 30, 50], [True, True, False, True, False])
        >>> curve.survival.round(2).tolist(), curve.low.round(2).tolist()
        ([0.8, 0.6, 0.3, 0.3], [0.2, 0.13, 0.01, 0.01])
    """
    z = normal_quantile(confidence)
    t, is_solved = _observed(times, solved)
    if not t.size:
        return None
    moments, at_risk, events = _counts(t, is_solved)
    survival = np.cumprod(1 - events / at_risk).astype(np.float64)
    width = np.sqrt(np.cumsum(_greenwood(at_risk, events)))
    inside = (survival > 0) & (survival < 1)
    ends = np.full((2, moments.size), math.nan)
    power = np.exp(z * width[inside] / np.log(survival[inside]))  # below one, for the logarithm is negative
    ends[:, inside] = survival[inside] ** (1 / power), survival[inside] ** power
    return SurvivalCurve(
        times=moments, at_risk=at_risk, solved=events, survival=survival, low=ends[0], high=ends[1]
    )


def restricted_mean(
    times: Values, solved: Flags, until: float, confidence: float = 0.95
) -> RestrictedMean | None:
    """Estimate the mean of min(time to success, until).

    The area A(0) under the Kaplan-Meier curve, where A(t) is that from t to `until`, with the variance
    Σ A(t_i)² d_i/(n_i (n_i - d_i)). Klein & Moeschberger, Survival Analysis (2003), 4.5. Without trials censored before
    `until` these are the sample mean of min(time, until), and the mean squared deviation from it over n.

    Args:
        times: shape [n], >= 0: solved at, or censored at.
        solved: shape [n]: which of both.
        until: > 0; the same for all cells that are compared.
        confidence: in (0, 1).

    Returns:
        None of no trials, and where the curve is not known up to `until`: the trials end before, and not all are
        solved.

    Raises:
        ValueError: if a time is negative or not finite, `until` is not positive, or lengths differ.

    Example:
        >>> found = restricted_mean([10, 20, 30, 50, 50], [True, True, True, False, False], until=50)
        >>> found.mean, round(found.standard_error, 2)
        (32.0, 7.16)
    """
    found = restricted_means(times, solved, [len(times)], until, confidence)
    [mean], [error] = samples.numbers(found.mean), samples.numbers(found.standard_error)
    if mean is None:
        return None
    return RestrictedMean(mean=mean, standard_error=error, interval=samples.intervals(found.interval)[0])


def restricted_means(
    times: Values, solved: Flags, sizes: Sizes, until: float | Values, confidence: float = 0.95
) -> RestrictedMeans:
    """Estimate the mean of min(time to success, until) of each of many samples, as `restricted_mean` does for one.

    Args:
        times: of the samples, one after another; >= 0.
        solved: as many.
        sizes: trials of each sample.
        until: > 0; one for all, or one a sample.
        confidence: in (0, 1).

    Raises:
        ValueError: as for one sample, or if sizes don't add up to the times.

    Example:
        >>> times, solved = [10, 20, 30, 50, 50, 40], [True, True, True, False, False, True]
        >>> found = restricted_means(times, solved, [5, 1], until=50)
        >>> found.mean.round(2).tolist(), found.standard_error.round(2).tolist()
        ([32.0, 40.0], [7.16, 0.0])
    """
    z = normal_quantile(confidence)
    t, is_solved = _observed(times, solved)
    n = samples.checked_sizes(t, sizes)
    ends = np.broadcast_to(np.asarray(until, dtype=np.float64), n.shape)
    if not np.all((ends > 0) & (ends < math.inf)):
        raise ValueError(f"0 < until must hold, but got {until}")
    mean, error = np.full((2, n.size), math.nan)
    # complex numbers sort as trials must: by time, and of one time the solved first, where the others are still at risk
    for places, rows in samples.padded(np.where(is_solved, t, t + 1j), n, math.inf):
        rows.sort(axis=1)
        mean[places], error[places] = _restricted(rows.real, rows.imag == 0, n[places], ends[places])
    low, high = np.maximum(0.0, mean - z * error), np.minimum(ends, mean + z * error)
    interval = np.where(error[:, None] > 0, np.column_stack([low, high]), math.nan)
    return RestrictedMeans(mean=mean, standard_error=error, interval=interval)


def _restricted(times: Floats, solved: Bools, n: Ints, until: Floats) -> tuple[Floats, Floats]:
    """Give area and standard error of rows of trials in order, n in each; NaN where there is none."""
    row = np.arange(n.size)
    is_known = (times[row, n - 1] >= until) | solved[row, n - 1]
    event = solved & (times < until[:, None])
    # a trial at a time, since the factors of trials of one time multiply to theirs
    at_risk = np.maximum(n[:, None] - np.arange(times.shape[1]), 1)
    survival = np.cumprod(np.where(event, (at_risk - 1) / at_risk, 1.0), axis=1)
    edges = np.column_stack([np.zeros(n.size), np.minimum(times, until[:, None]), until])
    areas = np.column_stack([np.ones(n.size), survival]) * np.diff(edges, axis=1)
    to_come = np.cumsum(areas[:, ::-1], axis=1)[:, ::-1]
    # where the last is solved nothing is to come, whatever was before
    greenwood = np.where(event, to_come[:, 1:] ** 2 / (at_risk * np.maximum(at_risk - 1, 1)), 0.0)
    variance = np.cumsum(greenwood, axis=1)[:, -1]  # one by one, so that the row's width changes no bit
    error = np.where(event.any(axis=1), np.sqrt(variance), math.nan)
    return np.where(is_known, to_come[:, 0], math.nan), np.where(is_known, error, math.nan)


def log_rank(samples: Sequence[tuple[Values, Flags]]) -> LogRank | None:
    """Test that samples have one survival curve.

    At each time, given what is at risk, the solved are spread over the samples by a hypergeometric law. With U the sums
    over times of observed minus expected, and V their covariances, the statistic is U' V⁻ U, χ² of rank V degrees of
    freedom. Mantel, Cancer Chemotherapy Reports 50 (1966) 163-170.

    Args:
        samples: of each, times >= 0 and which of them are solved; others are censored. One of no trials counts for
            nothing.

    Returns:
        None where nothing can be compared: fewer than two samples, or nothing solved while two are at risk.

    Raises:
        ValueError: if a time is negative or not finite, or lengths differ.

    Example:
        >>> quick, slow = [10, 20, 30, 30, 40], [50, 60, 60, 90, 90]
        >>> found = log_rank([(quick, [True] * 5), (slow, [True, True, True, False, False])])
        >>> found.degrees_of_freedom, round(found.p_value, 4)
        (1, 0.0021)
    """
    observed = [_observed(times, solved) for times, solved in samples]
    if not observed or not any(t.size for t, _ in observed):
        return None
    moments, total, events = _counts(*(np.concatenate(part) for part in zip(*observed, strict=True)))
    moments, total, events = moments[events > 0], total[events > 0], events[events > 0]
    at_risk = np.stack([t.size - np.searchsorted(np.sort(t), moments) for t, _ in observed])
    counted = np.stack([_solved_at(t[s], moments) for t, s in observed])
    share = at_risk / total
    excess = (counted - events * share).sum(axis=1)
    spread = events * (total - events) / np.maximum(total - 1, 1)
    covariance = np.diag(share @ spread) - (share * spread) @ share.T
    variances, directions = np.linalg.eigh(covariance)
    kept = variances > 1e-10 * variances.max()  # one is zero: the excesses sum to zero
    if not kept.any():
        return None
    statistic = float(np.sum((directions.T @ excess)[kept] ** 2 / variances[kept]))
    degrees = int(kept.sum())
    return LogRank(
        statistic=statistic, degrees_of_freedom=degrees, p_value=float(special.chdtrc(degrees, statistic))
    )


def _observed(times: Values, solved: Flags) -> tuple[Floats, Bools]:
    t, is_solved = finite(times), np.asarray(solved)
    if t.shape != is_solved.shape:
        raise ValueError(
            f"one flag a time must be given, but there are {t.size} times and {is_solved.size} flags"
        )
    if t.size and t.min() < 0:
        raise ValueError(f"times must be >= 0, but the smallest is {t.min():g}")
    if not np.all((is_solved == 0) | (is_solved == 1)):
        raise ValueError("what says whether a trial was solved must be true or false")
    return t, is_solved.astype(bool)


def _counts(t: Floats, is_solved: Bools) -> tuple[Floats, Floats, Floats]:
    """Give the distinct times, the trials at risk at each and those solved at each."""
    moments, place = np.unique(t, return_inverse=True)
    leaving = np.bincount(place, minlength=moments.size).astype(np.float64)
    events = np.bincount(place, weights=is_solved, minlength=moments.size)
    return moments, np.cumsum(leaving[::-1])[::-1], events.astype(np.float64)


def _solved_at(t: Floats, moments: Floats) -> Ints:
    """Count the times that are each of some ascending moments; every one is one of them."""
    return np.bincount(np.searchsorted(moments, t), minlength=moments.size)


def _greenwood(at_risk: Floats, events: Floats) -> Floats:
    """Give d/(n (n - d)); zero where all at risk are solved, for there the curve ends at 0, whatever was before."""
    left = at_risk - events
    return np.divide(events, at_risk * left, out=np.zeros_like(events), where=left > 0)
