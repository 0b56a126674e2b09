"""Intervals for success rates of trials that share the seeds of two sources of randomness."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, check_confidence
from study.statistics.components import Mask, has_pairs, known_trials, likely_shares

_BISECTIONS = 20
_QUANTILES = (np.arange(20) + 0.5) / 20
"""Quantiles of the rate's variance; the shares found there represent all likely shares."""

_NEAR_ZERO = 1e-9


def shared_rate_interval(values: Floats, *, is_nested: bool = False, confidence: float = 0.95) -> Interval | None:
    """Bound a success rate of trials that share the seeds of two sources of randomness.

    The interval is Clopper and Pearson's for an effective number of trials, m(p), with the observed rate. The upper end
    is the p at which P(X <= m(p) rate) = (1 - confidence)/2, X binomial with m(p) and p; the lower end mirrors it. The
    probability is the mean over likely shares of the latent numbers' variance, which `variance_shares` finds. The
    effective number of trials follows from 1/m(p) = 1/n + r_a(p) (Σ n_i²/n² - 1/n) + r_b(p) (Σ n_j²/n² - 1/n), where
    n_i of the n trials have seed i of a source. Two trials that share only a seed of a source with the share s have the
    correlation r(p) = (Φ₂(h, h; s) - p²)/(p (1 - p)), with h = Φ⁻¹(p) and the bivariate normal distribution Φ₂. With
    fewer seeds or pairs than `variance_shares` needs, m is the smaller of the sources' numbers of seeds (nested, the
    first source's).

    Source: effective numbers of trials in Clopper and Pearson's interval: Korn & Graubard, Survey Methodology 24 (1998)
    193-201.

    Args:
        values: successes, as for `variance_shares`: shape [seeds of the first source, seeds of the second], NaN where a
            trial has no number.
        is_nested: whether rows have seeds of their own.
        confidence: in (0, 1).

    Returns:
        (low, high); None without trials.

    Raises:
        ValueError: if a value is neither 0, 1 nor NaN, or the confidence is out of range.

    Example:
        >>> solved = np.repeat([[1.0], [1.0], [1.0], [0.0], [1.0]], 20, axis=1)  # init seeds decide alone
        >>> [round(end, 2) for end in shared_rate_interval(solved)]
        [0.34, 0.99]
    """
    check_confidence(confidence)
    y, mask = known_trials(values)
    if not mask.any():
        return None
    others = y[mask & ~np.isin(y, (0, 1))]
    if others.size:
        raise ValueError(f"values must be 1 (success), 0 (failure) or NaN (no trial), not {others[0]:g}")
    rate, tail = float(y[mask].mean()), (1 - confidence) / 2
    effective = _effective_trials(y, mask, is_nested)
    ends = [1.0 if share == 1 else _upper_end(share, tail, effective) for share in (1 - rate, rate)]
    return (1 - ends[0], ends[1])


def _upper_end(rate: float, tail: float, effective: Callable[[float], Floats]) -> float:
    """Find by bisection the upper end of the interval for an observed rate."""
    low, high = max(rate, _NEAR_ZERO), 1 - _NEAR_ZERO
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        trials = effective(middle)
        is_likely = np.mean(special.betaincc(rate * trials + 1, (1 - rate) * trials, middle)) > tail
        low, high = (middle, high) if is_likely else (low, middle)
    return high


def _effective_trials(y: Floats, mask: Mask, is_nested: bool) -> Callable[[float], Floats]:
    """Return a function from a rate to the effective numbers of trials, one for each of twenty likely shares.

    Without enough pairs of trials, it returns one number: that of the seeds of the source with the fewest.
    """
    n = int(mask.sum())
    rows, columns = (mask.sum(axis=axis) for axis in (1, 0))
    if not has_pairs(y, mask, is_nested=is_nested):
        fewest = rows.size if is_nested else min(rows.size, columns.size)
        return lambda rate: np.array([float(fewest)])
    shares = likely_shares(y, mask, is_success=True, is_nested=is_nested)
    counts = [rows] if is_nested else [rows, columns]
    excesses = [float(np.sum((count / n) ** 2)) - 1 / n for count in counts]

    def variances(rate: float, shares: Floats) -> Floats:
        """Return the reciprocals of the effective numbers of trials, one for each of the shares."""
        parts = [excess * _correlation(rate, shares[:, source]) for source, excess in enumerate(excesses)]
        return np.asarray(1 / n + sum(parts))

    order = np.argsort(variances((float(y.sum()) + 0.5) / (n + 1), shares))
    typical = shares[order[(_QUANTILES * len(shares)).astype(int)]]
    return lambda rate: 1 / variances(rate, typical)


def _correlation(rate: float, shares: Floats) -> Floats:
    """Compute the correlation of two successes from that of their latent normal numbers."""
    bound = special.ndtri(rate)
    both = rate - 2 * special.owens_t(bound, np.sqrt((1 - shares) / (1 + shares)))
    return np.asarray(np.clip((both - rate**2) / (rate * (1 - rate)), 0.0, 1.0))
