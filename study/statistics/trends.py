"""Success rates over hyperparameters: trend test over an ordered one, logistic regression on several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, Values, check_count, finite, normal_quantile
from study.statistics.likelihood import likelihood_interval
from study.statistics.rates import Counts

Points = Sequence[Sequence[float]] | npt.NDArray[np.floating] | npt.NDArray[np.integer]


@dataclass(frozen=True, kw_only=True)
class Trend:
    """The result of a test of trend.

    Args:
        z: the statistic, positive if the rate grows with the score.
        p_value: two-sided.
    """

    z: float
    p_value: float


@dataclass(frozen=True, kw_only=True)
class Coefficient:
    """A coefficient of a logistic regression: the change of log-odds per unit of its hyperparameter.

    Args:
        estimate: the maximum-likelihood estimate.
        standard_error: from the observed information.
        wald_interval: estimate ± z standard errors.
        profile_interval: by profiling the likelihood over the other coefficients.
        p_value: of the hypothesis that the coefficient is zero; Wald's, two-sided.
    """

    estimate: float
    standard_error: float
    wald_interval: Interval
    profile_interval: Interval
    p_value: float


@dataclass(frozen=True, kw_only=True)
class LogisticFit:
    """A logistic regression.

    Args:
        separated: whether the hyperparameters separate successes from failures, completely or quasi-completely, so that
            the likelihood has no maximum. Then the intercept is None, and slopes are empty.
        intercept: the log-odds of success where all hyperparameters are zero.
        slopes: one for each hyperparameter, in their order.
    """

    separated: bool
    intercept: Coefficient | None = None
    slopes: tuple[Coefficient, ...] = ()


def cochran_armitage(scores: Values, successes: Counts, n: Counts) -> Trend | None:
    """Test that the success rate neither grows nor falls with an ordered hyperparameter.

    z = Σ t_i (k_i - n_i p) / sqrt(p (1 - p) Σ n_i (t_i - t̄)²), with the rate p and the mean score t̄ of all trials.
    Cochran, Biometrics 10 (1954) 417-451; Armitage, Biometrics 11 (1955) 375-386.

    Args:
        scores: t, shape [cells]: the hyperparameter's values, or 0, 1, 2 ... if only their order matters.
        successes: k, shape [cells].
        n: the number of trials, shape [cells]; a cell without trials has no effect.

    Returns:
        None without trials, if all have the same score, or if all or none of them succeeded.

    Raises:
        ValueError: if a count is out of range, a score is not finite, or lengths differ.

    Example:
        >>> trend = cochran_armitage([2, 3, 4, 5], [50, 46, 40, 31], [50, 50, 50, 50])
        >>> round(trend.z, 2), round(trend.p_value, 7)
        (-5.37, 1e-07)
    """
    t, k, total = _counted(finite(scores), successes, n)
    if not total.sum():
        return None
    p, centre = k.sum() / total.sum(), (total @ t) / total.sum()
    variance = p * (1 - p) * (total @ (t - centre) ** 2)
    if variance <= 0 or np.ptp(t[total > 0]) == 0:
        return None
    z = float((t - centre) @ (k - total * p) / math.sqrt(variance))
    return Trend(z=z, p_value=float(2 * special.ndtr(-abs(z))))


def logistic_regression(points: Points, successes: Counts, n: Counts, confidence: float = 0.95) -> LogisticFit | None:
    """Fit a logistic regression on several hyperparameters: log-odds of success = intercept + Σ slope × hyperparameter.

    l(β) = Σ_i k_i log p_i + (n_i - k_i) log(1 - p_i), p_i = 1/(1 + exp(-x_i β)), is maximised by Newton's method.
    Separation is detected by linear programming, as a direction along which no cell's likelihood falls and at least one
    grows.

    Source: Cox, JRSS B 20 (1958) 215-242; Albert & Anderson, Biometrika 71 (1984) 1-10; Konis, Computational algorithms
    for detecting separation, 2007.

    Args:
        points: shape [cells, hyperparameters]; take logarithms of hyperparameters that were swept by factors.
        successes: k, shape [cells].
        n: the number of trials, shape [cells]; a cell without trials has no effect.
        confidence: in (0, 1).

    Returns:
        The fit, without numbers if successes and failures are separated (also if all or none succeeded). None without
        trials, or if the cells don't determine the coefficients: a hyperparameter never varies, or hyperparameters are
        linearly dependent.

    Raises:
        ValueError: if a count or the confidence is out of range, a point is not finite, lengths differ, or points
            aren't a matrix.

    Example:
        >>> fit = logistic_regression([[2], [3], [4], [5]], [48, 46, 40, 31], [50, 50, 50, 50])
        >>> [round(number, 2) for number in (fit.slopes[0].estimate, *fit.slopes[0].profile_interval)]
        [-0.93, -1.38, -0.54]
        >>> logistic_regression([[2], [3]], [50, 0], [50, 50]).separated
        True
    """
    z = normal_quantile(confidence)
    x, k, total = _counted(finite(np.asarray(points, dtype=np.float64)), successes, n)
    x, k, total = x[total > 0], k[total > 0], total[total > 0]
    if not total.size:
        return None
    if x.ndim != 2:
        raise ValueError(f"points must have shape [cells, hyperparameters], but have {list(x.shape)}")
    if np.any(np.ptp(x, axis=0) == 0):
        return None
    centre, scale = x.mean(axis=0), x.std(axis=0)
    design = np.column_stack([np.ones(len(x)), (x - centre) / scale])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    if _separated(design, k, total):
        return LogisticFit(separated=True)
    # rows: coefficients of the original columns as combinations of those of the standardised columns
    original = np.diag(np.concatenate([[1.0], 1 / scale]))
    original[0, 1:] = -centre / scale
    beta = _fit(design, k, total, np.zeros(len(original)), np.eye(len(original)))
    intercept, *slopes = (_coefficient(design, k, total, beta, row, z) for row in original)
    return LogisticFit(separated=False, intercept=intercept, slopes=tuple(slopes))


def _counted(x: Floats, successes: Counts, n: Counts) -> tuple[Floats, Floats, Floats]:
    """Return the arguments as arrays; raise ValueError if lengths differ or a count is out of range."""
    if not len(x) == len(successes) == len(n):
        raise ValueError(f"cells and counts must have equal lengths, but got {len(x)}, {len(successes)} and {len(n)}")
    for k, total in zip(successes, n, strict=True):
        check_count(k, total)
    return x, np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)


def _separated(design: Floats, k: Floats, n: Floats) -> bool:
    """Return True if a β has x β >= 0 at successes, <= 0 at failures, and not 0 everywhere."""
    if np.all((k > 0) & (k < n)):
        return False  # x β = 0 in all cells, and they determine β
    # imported here: it takes as long as all other imports, and tables of rates don't need it
    from scipy import optimize

    sides = np.vstack([design[k > 0], -design[k < n]])
    solution = optimize.linprog(-sides.sum(axis=0), A_ub=-sides, b_ub=np.zeros(len(sides)), bounds=(-1, 1))
    return bool(-solution.fun > 1e-7)


def _coefficient(design: Floats, k: Floats, n: Floats, beta: Floats, direction: Floats, z: float) -> Coefficient:
    """Estimate the coefficient β·direction, with its standard error, intervals and p-value, given the best β.

    The profile interval comes from the greatest likelihood over all β with the same product.
    """
    estimate = float(direction @ beta)
    spread = np.linalg.solve(_information(design, n, design @ beta), direction)
    variance = float(direction @ spread)
    error = math.sqrt(variance)
    # an orthonormal basis of the subspace in which β·direction doesn't change
    basis = np.linalg.svd(direction[None])[2][1:].T

    def profile(t: float) -> float:
        """Compute the greatest log-likelihood with β·direction = t."""
        near = beta + (t - estimate) / variance * spread  # the best β with β·direction = t, if l were a parabola
        return _log_likelihood(design @ _fit(design, k, n, near, basis), k, n)

    return Coefficient(
        estimate=estimate,
        standard_error=error,
        wald_interval=(estimate - z * error, estimate + z * error),
        profile_interval=likelihood_interval(profile, estimate, 1.1 * z * error, z),
        p_value=float(2 * special.ndtr(-abs(estimate / error))),
    )


def _fit(design: Floats, k: Floats, n: Floats, beta: Floats, free: Floats) -> Floats:
    """Maximise the likelihood from β along the columns of `free` by Newton steps, halved where they overshoot."""
    if not free.size:
        return beta
    height = _log_likelihood(design @ beta, k, n)
    for _ in range(100):
        logit = design @ beta
        slope = free.T @ design.T @ (k - n * special.expit(logit))
        curvature = _information(design @ free, n, logit)
        curvature += 1e-12 * (1 + np.trace(curvature)) * np.eye(len(slope))  # far from the maximum it rounds to zero
        step = np.linalg.solve(curvature, slope)
        gain = float(slope @ step)
        while (new := _log_likelihood(design @ (beta + free @ step), k, n)) < height - 1e-9 * abs(height):
            step /= 2
        beta, height = beta + free @ step, new
        if gain < 1e-12:
            break
    return beta


def _information(design: Floats, n: Floats, logit: Floats) -> Floats:
    """Return the observed information of the coefficients: X' diag(n p (1 - p)) X for the design X."""
    weights = n * special.expit(logit) * special.expit(-logit)
    return np.asarray(design.T @ (weights[:, None] * design))


def _log_likelihood(logit: Floats, k: Floats, n: Floats) -> float:
    return float(k @ special.log_expit(logit) + (n - k) @ special.log_expit(-logit))
