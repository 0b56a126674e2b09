"""Times to success with unsolved trials censored: Kaplan-Meier curves and the log-rank test.

Times may be iterations or seconds of training. A trial that was not solved is censored at its last iteration. A
diverged trial can never be solved: censor it at the last iteration of its cell's trials. If it were censored at its
divergence, it would count as a trial that might have been solved a moment later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from study.statistics.checks import Flags, Floats, Values, finite, normal_quantile

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class SurvivalCurve:
    """A Kaplan-Meier curve: the share of trials not solved by a time. All arrays have shape [times].

    Args:
        times: the times at which a trial was solved or censored, ascending.
        at_risk: the number of trials neither solved nor censored before that time.
        solved: the number of trials solved at that time.
        survival: the share not solved by then; constant up to the next time, and 1 before the first.
        low: the lower end of its pointwise interval; NaN where there is none.
        high: the upper end of its pointwise interval; NaN where there is none.
    """

    times: Floats
    at_risk: Floats
    solved: Floats
    survival: Floats
    low: Floats
    high: Floats

    @property
    def median(self) -> float | None:
        """The first time at which the survival is at most 1/2; None if it stays above.

        Example:
            >>> kaplan_meier([10, 20, 30, 50, 50], [True, True, True, False, False]).median
            30.0
        """
        reached = np.flatnonzero(self.survival <= 0.5 + 1e-12)
        return float(self.times[reached[0]]) if reached.size else None


@dataclass(frozen=True, kw_only=True)
class LogRank:
    """The result of a log-rank test.

    Args:
        statistic: χ² under the hypothesis.
        degrees_of_freedom: of the statistic.
        p_value: of the hypothesis that all samples have the same curve.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float


def kaplan_meier(times: Values, solved: Flags, confidence: float = 0.95) -> SurvivalCurve | None:
    """Estimate the share of trials not solved by each time, by the Kaplan-Meier estimator.

    S(t) = Π over times t_i <= t of 1 - d_i/n_i, with d_i solved of n_i at risk; a trial censored at t_i is at risk
    there. The interval is symmetric in log(-log S): S^exp(± z g / log S), with the normal quantile z and Greenwood's
    g² = Σ d_i/(n_i (n_i - d_i)). Kaplan & Meier, JASA 53 (1958) 457-481; Kalbfleisch & Prentice, The Statistical
    Analysis of Failure Time Data (1980).

    Args:
        times: shape [n], >= 0: when a trial was solved or censored.
        solved: shape [n]: whether it was solved.
        confidence: in (0, 1), pointwise: the intervals aren't a simultaneous band for the curve.

    Returns:
        The curve; None without trials. It has no interval where the survival is 1 or 0, since Greenwood's has no width
        there.

    Raises:
        ValueError: if a time is negative or not finite, a flag is neither 0 nor 1, lengths differ, or the confidence is
            out of range.

    Example:
        >>> curve = kaplan_meier([10, 20, 20, 30, 50], [True, True, False, True, False])
        >>> curve.survival.round(2).tolist(), curve.low.round(2).tolist()
        ([0.8, 0.6, 0.3, 0.3], [0.2, 0.13, 0.01, 0.01])
    """
    z = normal_quantile(confidence)
    t, is_solved = checked_trials(times, solved)
    if not t.size:
        return None
    moments, at_risk, events = _counts(t, is_solved)
    survival = np.cumprod(1 - events / at_risk).astype(np.float64)
    width = np.sqrt(np.cumsum(_greenwood(at_risk, events)))
    inside = (survival > 0) & (survival < 1)
    ends = np.full((2, moments.size), math.nan)
    power = np.exp(z * width[inside] / np.log(survival[inside]))  # below one: the logarithm is negative
    ends[:, inside] = survival[inside] ** (1 / power), survival[inside] ** power
    return SurvivalCurve(times=moments, at_risk=at_risk, solved=events, survival=survival, low=ends[0], high=ends[1])


def log_rank(samples: Sequence[tuple[Values, Flags]]) -> LogRank | None:
    """Test that samples have the same survival curve.

    At each time, given the trials at risk, the number of solved trials of each sample is hypergeometric. With the sums
    U over times of observed minus expected numbers, and their covariances V, the statistic is U' V⁻ U, χ² with rank V
    degrees of freedom. Mantel, Cancer Chemotherapy Reports 50 (1966) 163-170.

    Args:
        samples: for each sample, the times, >= 0, and whether each trial was solved or censored. A sample without
            trials has no effect.

    Returns:
        None if nothing can be compared: at no time are two samples at risk and some, but not all, of the trials at risk
        solved.

    Raises:
        ValueError: if a time is negative or not finite, a flag is neither 0 nor 1, or lengths differ.

    Example:
        >>> quick, slow = [10, 20, 30, 30, 40], [50, 60, 60, 90, 90]
        >>> test = log_rank([(quick, [True] * 5), (slow, [True, True, True, False, False])])
        >>> test.degrees_of_freedom, round(test.p_value, 4)
        (1, 0.0021)
    """
    observed = [checked_trials(*sample) for sample in samples]
    if not any(t.size for t, _ in observed):
        return None
    excess, covariance = excesses(observed)
    variances, directions = np.linalg.eigh(covariance)
    varies = variances > 1e-10 * variances.max()  # one variance is zero, since the excesses sum to zero
    if not varies.any():
        return None
    statistic = float(np.sum((directions.T @ excess)[varies] ** 2 / variances[varies]))
    degrees = int(varies.sum())
    return LogRank(statistic=statistic, degrees_of_freedom=degrees, p_value=float(special.chdtrc(degrees, statistic)))


def excesses(samples: Sequence[tuple[Floats, Bools]]) -> tuple[Floats, Floats]:
    """Compute each sample's observed minus expected number of solved trials, and the covariances of these numbers.

    Args:
        samples: the times of each sample, and whether each trial was solved; with at least one trial in all.

    Returns:
        The numbers, shape [samples], and the covariances, shape [samples, samples].

    Example:
        >>> first, second = (np.array([1.0, 2.0]), np.array([True, True])), (np.array([3.0]), np.array([True]))
        >>> excess, covariance = excesses([first, second])
        >>> excess.round(3).tolist(), covariance.round(3).tolist()
        ([0.833, -0.833], [[0.472, -0.472], [-0.472, 0.472]])
    """
    moments, total, events = _counts(*(np.concatenate(part) for part in zip(*samples, strict=True)))
    moments, total, events = moments[events > 0], total[events > 0], events[events > 0]
    at_risk = np.stack([t.size - np.searchsorted(np.sort(t), moments) for t, _ in samples])
    solved = np.stack([np.bincount(np.searchsorted(moments, t[s]), minlength=moments.size) for t, s in samples])
    share = at_risk / total
    excess = (solved - events * share).sum(axis=1)
    spread = events * (total - events) / np.maximum(total - 1, 1)
    return excess, np.asarray(np.diag(share @ spread) - (share * spread) @ share.T)


def checked_trials(times: Values, solved: Flags) -> tuple[Floats, Bools]:
    """Return times and flags as arrays.

    Raises:
        ValueError: if a time is negative or not finite, a flag is neither 0 nor 1, or lengths differ.
    """
    t, is_solved = finite(times), np.asarray(solved)
    if t.shape != is_solved.shape:
        raise ValueError(f"each time needs one flag, but there are {t.size} times and {is_solved.size} flags")
    if t.size and t.min() < 0:
        raise ValueError(f"times must be >= 0, but the smallest is {t.min():g}")
    if not np.all((is_solved == 0) | (is_solved == 1)):
        raise ValueError("the flag of a solved trial must be true or false")
    return t, is_solved.astype(bool)


def _counts(t: Floats, is_solved: Bools) -> tuple[Floats, Floats, Floats]:
    """Return the distinct times, and the numbers of trials at risk and solved at each."""
    moments, place = np.unique(t, return_inverse=True)
    leaving = np.bincount(place, minlength=moments.size).astype(np.float64)
    events = np.bincount(place, weights=is_solved, minlength=moments.size)
    return moments, np.cumsum(leaving[::-1])[::-1], events.astype(np.float64)


def _greenwood(at_risk: Floats, events: Floats) -> Floats:
    """Return d/(n (n - d)) for d solved of n at risk; 0 where all are solved, since the curve ends at 0 there."""
    left = at_risk - events
    return np.divide(events, at_risk * left, out=np.zeros_like(events), where=left > 0)
