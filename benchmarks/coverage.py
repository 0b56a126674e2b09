"""Coverage of the 95% intervals: synthetic studies of known distributions, at usual sample sizes.

    python -m benchmarks.coverage [--studies N] [--seed N] [--out benchmarks/results/coverage.csv]

The distributions are those of trials, with shapes and precisions close to those of the published seeds. Two are
included because a gamma or a beta distribution does not describe them. Prints a row for each interval, distribution and
sample size, and writes it with `--out`: the share of studies with an interval, its coverage, and the shares of
intervals below and above the true value. The numbers depend on the seed and the number of studies alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.measure import finish, studies_parser, tell
from study import statistics
from study.records import Interval
from study.statistics.samples import intervals
from study.statistics.sparsity_error import FLOAT32_SPACING

SIZES = (10, 25, 50, 100)
HIDDEN = np.arange(2, 6)
Rng = np.random.Generator
Floats = npt.NDArray[np.float64]
Study = Callable[[Rng, int], Interval | None]
"""Draws a study of n seeds and returns its interval."""


# --- rates ------------------------------------------------------------------------------------------------------


def wilson(rate: float) -> Study:
    """Return a function that draws a study and bounds its success rate by Wilson's interval."""
    interval = cache(statistics.wilson)
    return lambda rng, n: interval(int(rng.binomial(n, rate)), n)


def newcombe(first: float, second: float) -> Study:
    """Return a function that draws a study and bounds the difference of two success rates by Newcombe's interval."""
    interval = cache(statistics.newcombe)
    return lambda rng, n: interval(int(rng.binomial(n, first)), n, int(rng.binomial(n, second)), n)


@cache
def fitted(solved: tuple[int, ...], n: int) -> statistics.LogisticFit | None:
    """Regress success on the hidden size, from the numbers solved of n seeds each; None if it has no fit.

    Raises:
        ValueError: unless there is a number for each of `HIDDEN`, from 0 to n.
    """
    return statistics.logistic_regression(HIDDEN[:, None], solved, [n] * len(HIDDEN))


def logistic(slope: float, kind: str) -> Study:
    """Return a function that draws a study and bounds the slope of success over the hidden size.

    The true rate is 1/2 at the mean of the sizes `HIDDEN`. A study without a fit, or with separated data, has no
    interval.

    Args:
        slope: the true slope.
        kind: attribute of the fit's slope with the interval, such as ``wald_interval``.
    """
    rates = 1 / (1 + np.exp(-slope * (HIDDEN - HIDDEN.mean())))

    def study(rng: Rng, n: int) -> Interval | None:
        fit = fitted(tuple(rng.binomial(n, rates).tolist()), n)
        return getattr(fit.slopes[0], kind) if fit and not fit.separated else None

    return study


# --- solved at --------------------------------------------------------------------------------------------------


def of_values(bound: Callable[[Floats], Floats], draw: Callable[[Rng, int], Floats]) -> Study:
    """Return a function that draws n values and bounds a statistic of them; it returns None for bounds of NaN."""
    return lambda rng, n: intervals(bound(draw(rng, n)))[0]


def gamma(rng: Rng, n: int, *, shape: float) -> Floats:
    """Draw from a gamma distribution of mean 1."""
    return rng.gamma(shape, 1 / shape, n)


def evaluated(rng: Rng, n: int) -> Floats:
    """Draw times to success of the simple task's NMU, in evaluations: whole numbers, about 14."""
    return np.ceil(rng.gamma(160, 14 / 160, n))


def evaluated_mean() -> float:
    """Return the mean of `evaluated`: the sum of P(x > i)."""
    return float(stats.gamma(160, scale=14 / 160).sf(np.arange(100)).sum())


def heavy(rng: Rng, n: int, *, sigma: float) -> Floats:
    """Draw from a log-normal distribution of mean 1 with a heavy tail."""
    return rng.lognormal(-(sigma**2) / 2, sigma, n)


# --- survival ---------------------------------------------------------------------------------------------------

SUCCESS = stats.gamma(3, scale=1 / 3)


def cut(success_rate: float, rng: Rng, n: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Draw times of `SUCCESS`, censored at its quantile `success_rate`; return them, and True for each solved trial."""
    end = SUCCESS.ppf(success_rate)
    at = rng.gamma(3, 1 / 3, n)
    return np.minimum(at, end), at <= end


def interrupted(rng: Rng, n: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Draw times of `SUCCESS`, censored at uniform times up to twice its mean; return them, and True where solved."""
    at, end = rng.gamma(3, 1 / 3, n), rng.uniform(0, 2, n)
    return np.minimum(at, end), at <= end


def share_unsolved(draw: Callable[..., Any], unsolved: float) -> Study:
    """Return a function that draws a study and bounds its survival function where the true one is `unsolved`.

    `draw` returns times and flags of success, as `cut` does. A study without a bound at that time has no interval.
    """
    time = SUCCESS.isf(unsolved)

    def study(rng: Rng, n: int) -> Interval | None:
        curve = statistics.kaplan_meier(*draw(rng, n))
        if curve is None or curve.times[-1] < time:
            return None
        place = int(np.searchsorted(curve.times, time, side="right")) - 1
        if place < 0 or math.isnan(curve.low[place]):
            return None
        return (float(curve.low[place]), float(curve.high[place]))

    return study


# --- sparsity error ---------------------------------------------------------------------------------------------


def beta(rng: Rng, n: int, *, mean: float, precision: float) -> Floats:
    """Draw from a beta distribution on [0, 1/2] with this mean; the precision is that of the doubled numbers."""
    return rng.beta(2 * mean * precision, (1 - 2 * mean) * precision, n) / 2


def float32(rng: Rng, n: int, *, mean: float, shape: float) -> Floats:
    """Draw gamma-distributed distances of weights from 1, rounded as in float32: small ones become 0."""
    return np.round(rng.gamma(shape, mean / shape, n) / FLOAT32_SPACING) * FLOAT32_SPACING


def float32_mean(*, mean: float, shape: float) -> float:
    """Return the mean of `float32`, for distributions below 2,000 times `FLOAT32_SPACING`, about 1.2e-4."""
    edges = (np.arange(2000) + 0.5) * FLOAT32_SPACING
    return float(stats.gamma(shape, scale=mean / shape).sf(edges).sum() * FLOAT32_SPACING)


# --- all of them ------------------------------------------------------------------------------------------------


def cases() -> Iterator[tuple[str, str, Study, float]]:
    """Yield each interval's name, its distribution's name, a function that draws and bounds a study, and the truth."""
    for rate in (0.1, 0.5, 0.9):
        yield "wilson", f"rate {rate}", wilson(rate), rate
    for first, second in ((0.5, 0.5), (0.5, 0.1), (0.9, 0.5), (0.9, 0.9)):
        yield "newcombe", f"rates {first} and {second}", newcombe(first, second), first - second
    for kind in ("wald_interval", "profile_interval"):
        name = f"logistic_regression, {kind.split('_')[0]}"
        yield name, "slope -0.8, 4 cells", logistic(-0.8, kind), -0.8
    median, gamma_mean = statistics.median_intervals, statistics.gamma_mean_intervals
    whole_median = float(np.ceil(stats.gamma(160, scale=14 / 160).median()))
    yield ("median_intervals", "gamma, shape 3", of_values(median, partial(gamma, shape=3)), float(SUCCESS.median()))
    yield "median_intervals", "whole evaluations", of_values(median, evaluated), whole_median
    for shape in (3, 25):
        yield ("gamma_mean_intervals", f"gamma, shape {shape}", of_values(gamma_mean, partial(gamma, shape=shape)), 1.0)
    yield "gamma_mean_intervals", "whole evaluations", of_values(gamma_mean, evaluated), evaluated_mean()
    yield ("gamma_mean_intervals", "no gamma: log-normal, σ 1.5", of_values(gamma_mean, partial(heavy, sigma=1.5)), 1.0)
    for success_rate, unsolved in ((0.9, 0.5), (0.9, 0.15), (0.5, 0.6)):
        distribution = f"{success_rate:.0%} solved, at {unsolved:.0%} unsolved"
        yield "kaplan_meier", distribution, share_unsolved(partial(cut, success_rate), unsolved), unsolved
    yield "kaplan_meier", "cut off at random, at 50% unsolved", share_unsolved(interrupted, 0.5), 0.5
    sparse = statistics.beta_mean_intervals
    for mean, precision in ((0.45, 10), (0.35, 5), (1e-4, 5e3)):
        distribution = f"beta, mean {mean:g}, precision {precision:g}"
        yield (
            "beta_mean_intervals",
            distribution,
            of_values(sparse, partial(beta, mean=mean, precision=precision)),
            mean,
        )
    for mean, shape, zeros in ((4e-7, 8.0, "no zeros"), (1.2e-7, 1.0, "22% zeros"), (4e-8, 1.0, "53% zeros")):
        drawn = partial(float32, mean=mean, shape=shape)
        truth = float32_mean(mean=mean, shape=shape)
        yield "beta_mean_intervals", f"float32, mean {mean:g}, {zeros}", of_values(sparse, drawn), truth

    def mixed(rng: Rng, n: int) -> Floats:
        return np.minimum(heavy(rng, n, sigma=2.0) * 1e-4, 0.5)

    yield "beta_mean_intervals", "no beta: log-normal, σ 2", of_values(sparse, mixed), 1e-4


def measured(study: Study, truth: float, rng: Rng, n: int, studies: int) -> dict[str, str]:
    """Draw studies of n seeds; return the share with an interval, its coverage, and the shares of misses on both sides.

    Coverage and misses are empty texts if no study has an interval. `studies` is at least 1.
    """
    bounds = [study(rng, n) for _ in range(studies)]
    known = np.array([interval for interval in bounds if interval is not None]).reshape(-1, 2)
    slack = 1e-12 * abs(truth)
    below, above = known[:, 1] < truth - slack, known[:, 0] > truth + slack
    count = max(len(known), 1)
    return {
        "with_interval": f"{len(known) / studies:.4f}",
        "coverage": f"{1 - (below.sum() + above.sum()) / count:.4f}" if len(known) else "",
        "all_below": f"{below.sum() / count:.4f}" if len(known) else "",
        "all_above": f"{above.sum() / count:.4f}" if len(known) else "",
    }


def main(words: Sequence[str] | None = None) -> None:
    """Draw the studies, and count the intervals that contain the truth; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    rows = []
    for interval, distribution, study, truth in cases():
        tell(f"{interval}: {distribution}")
        for n in SIZES:
            # seeded by the distribution: all its intervals see the same studies
            rng = np.random.default_rng([arguments.seed, zlib.crc32(distribution.encode()), n])
            shares = measured(study, truth, rng, n, arguments.studies)
            rows.append({"interval": interval, "distribution": distribution, "n": n, **shares})
    finish(rows, arguments)


if __name__ == "__main__":
    main()
