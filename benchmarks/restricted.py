"""Coverage of intervals of the restricted mean: synthetic studies of difficult distributions.

    python -m benchmarks.restricted [--studies N] [--seed N] [--out benchmarks/results/restricted.csv]

The interval of `restricted_means` is compared with two others on the same studies: mean ± 1.96 standard errors by
Greenwood's formula, and a score interval like Wilson's. Times are in units of `until`. Prints a row for each
distribution, sample size and interval, and writes it with `--out`: the share of studies with an interval, its coverage
and its mean width. The last rows have the computed least coverage over many distributions with three values. The
numbers depend on the seed and the number of studies alone.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import integrate, special, stats

from benchmarks.measure import finish, studies_parser, tell
from study import statistics
from study.statistics.checks import normal_quantile

SIZES = (5, 10, 20, 50, 100)
LEAST = "the hardest of all distributions with three values, computed"
NEVER = 9.0
"""A time to success beyond `until`, which is 1."""

Rng = np.random.Generator
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Draw = Callable[[Rng, tuple[int, int]], Floats]
"""Draws times to success, shape [studies, seeds]."""
Interval = Callable[[Floats, Bools], Floats]
"""Bounds the mean of each row of times, of which some are solved: shape [studies, 2], NaN where there is none."""


# --- distributions ----------------------------------------------------------------------------------------------


def mixed(*parts: tuple[float, float, float]) -> tuple[Draw, float]:
    """Return a function that draws from a mixture of uniform times, and the mean of min(time, 1).

    Args:
        parts: share, lowest and highest time of each part, both at most 1 or both at least 1. Shares sum to 1 at most;
            the remaining share never succeeds.
    """
    shares, lows, highs = (np.array(column) for column in zip(*parts, (0.0, NEVER, NEVER), strict=True))
    shares[-1] = max(0.0, 1 - shares.sum())

    def draw(rng: Rng, shape: tuple[int, int]) -> Floats:
        part = rng.choice(len(shares), shape, p=shares)
        return rng.uniform(lows[part], highs[part])

    return draw, float(shares @ np.minimum((lows + highs) / 2, 1.0))


def continuous(distribution: stats.rv_continuous, solved: float) -> tuple[Draw, float]:
    """Return a function that draws times, the share `solved` of them below 1, and the mean of min(time, 1).

    The numbers of `distribution` aren't negative; the times are multiples of its quantile at `solved`, in (0, 1).
    """
    end = float(distribution.ppf(solved))
    mean = float(integrate.quad(distribution.sf, 0, end, limit=200, epsabs=1e-12)[0]) / end
    return lambda rng, shape: distribution.rvs(size=shape, random_state=rng) / end, mean


DISTRIBUTIONS: Mapping[str, tuple[Draw, float]] = {
    "90% within 2% of `until`, 10% in its first half": mixed((0.9, 0.98, 1), (0.1, 0, 0.5)),
    "90% within 2% of `until`, 10% never": mixed((0.9, 0.98, 1)),
    "exponential, 90% solved": continuous(stats.expon(), 0.9),
    "gamma, shape 3, 50% solved": continuous(stats.gamma(3), 0.5),
    "gamma, shape 3, 10% solved": continuous(stats.gamma(3), 0.1),
    "half about 10%, half about 80% of `until`": mixed((0.5, 0.08, 0.12), (0.5, 0.75, 0.85)),
    "log-normal, σ 2.5, 95% solved": continuous(stats.lognorm(2.5), 0.95),
    "90% at once, 10% never": mixed((0.9, 0, 0)),
    "all at half of `until`": mixed((1, 0.5, 0.5)),
    "97% at half of `until`, 3% at once": mixed((0.97, 0.5, 0.5), (0.03, 0, 0)),
    "97% at half of `until`, 3% never": mixed((0.97, 0.5, 0.5)),
    "12% at 1%, 88% at once": mixed((0.12, 0.01, 0.01), (0.88, 0, 0)),
}
CENSORED = ("exponential, 90% solved", "gamma, shape 3, 50% solved", "half about 10%, half about 80% of `until`")
"""Distributions that are drawn again with trials ending at times up to 1.5, two thirds of them before `until`."""


def cases() -> dict[str, tuple[Draw, float, bool]]:
    """Return, by name, a function that draws times, the mean of min(time, 1), and True if trials end at random times.

    The three `CENSORED` distributions occur a second time, with random ends.
    """
    complete = {name: (*distribution, False) for name, distribution in DISTRIBUTIONS.items()}
    return complete | {f"{name}; ended at random": (*DISTRIBUTIONS[name], True) for name in CENSORED}


# --- all distributions with three values ------------------------------------------------------------------------

VALUES = (0.0, 0.01, 0.05, 0.5, 0.95, 0.99, 1.0)
SHARES = (0.002, 0.005, 0.01, 0.018, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.7, 0.8, 0.88, 0.95, 0.97, 0.99)
"""Shares of the first and of the second value."""


def least_coverage(bound: Interval, n: int) -> float:
    """Compute the least coverage for n seeds over distributions with three values, whose counts are multinomial.

    The values are of `VALUES`; the first two have shares of `SHARES`, or the first has none. Bounds of NaN count as
    0 and 1.
    """
    counts = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    shares = np.array([(a, b, 1 - a - b) for a in (0.0, *SHARES) for b in SHARES if a + b < 0.9999])
    ways = special.gammaln(n + 1) - special.gammaln(counts + 1).sum(axis=1)
    chance = np.exp(ways[:, None] + special.xlogy(counts[:, None], shares[None]).sum(axis=2))
    least = 1.0
    for values in itertools.combinations(VALUES, 3):
        times = np.repeat(np.tile(values, len(counts)), counts.ravel()).reshape(-1, n)
        bounds, truth = bound(times, times < 1), shares @ np.array(values)
        low, high = np.nan_to_num(bounds[:, :1], nan=0.0), np.nan_to_num(bounds[:, 1:], nan=1.0)
        holds = (low <= truth + 1e-9) & (truth <= high + 1e-9)
        least = min(least, float((chance * holds).sum(axis=0).min()))
    return least


# --- intervals --------------------------------------------------------------------------------------------------


def products(times: Floats, solved: Bools) -> Floats:
    """Return the intervals of `restricted_means`, from times and flags [studies, seeds].

    Raises:
        ValueError: if a time is negative, infinite or NaN.
    """
    return _estimates(times, solved).interval


def greenwood(times: Floats, solved: Bools) -> Floats:
    """Bound the mean of min(time, 1) of each row by Greenwood's formula; shape [studies, 2].

    The interval is the estimate ± 1.96 standard errors, clipped to [0, 1]; NaN where the error is zero or undefined.

    Raises:
        ValueError: if a time is negative, infinite or NaN.
    """
    estimates = _estimates(times, solved)
    error = np.where(estimates.standard_error > 0, estimates.standard_error, np.nan)
    reach = normal_quantile(0.95) * error
    return np.column_stack([np.maximum(0, estimates.mean - reach), np.minimum(1, estimates.mean + reach)])


def score(times: Floats, solved: Bools) -> Floats:
    """Bound the mean by a score interval of the time saved, 1 - mean: Wilson's, if a success saves all.

    The time saved is bounded by all m with (m - μ)² <= z² (m r - m²)/n'. μ is its mean, and z is 1.96. r is the ratio
    of its second to its first moment, after adding one success at time 0. n' is the number of trials that Greenwood's
    error implies, or n if that error is 0. Bounds are NaN where the mean is.

    Raises:
        ValueError: if a time is negative, infinite or NaN.
    """
    estimates, (studies, n) = _estimates(times, solved), times.shape
    order = np.argsort(np.where(solved, times, times + 1e-9), axis=1)
    t, is_event = np.take_along_axis(times, order, 1), np.take_along_axis(solved, order, 1)
    is_event = is_event & (t < 1)
    at_risk = n - np.arange(n)
    survival = np.cumprod(np.where(is_event, (at_risk - 1) / at_risk, 1.0), axis=1)
    jumps = np.column_stack([np.ones(studies), survival[:, :-1]]) - survival
    saved = np.where(is_event, 1 - t, 0.0)
    mean, square = (jumps * saved).sum(axis=1), (jumps * saved**2).sum(axis=1)
    ratio = (square + 1 / n) / (mean + 1 / n)
    is_spread = estimates.standard_error > 1e-9
    error = np.where(is_spread, estimates.standard_error, 1.0)
    trials = np.where(is_spread, (square - mean**2) / error**2, n)
    k = normal_quantile(0.95) ** 2 / np.maximum(trials, 1e-9)
    middle, root = (2 * mean + k * ratio, np.sqrt(np.maximum((2 * mean + k * ratio) ** 2 - 4 * (1 + k) * mean**2, 0)))
    bounds = 1 - np.column_stack([middle + root, middle - root]) / (2 * (1 + k[:, None]))
    return np.where(np.isnan(estimates.mean)[:, None], np.nan, bounds)


def _estimates(times: Floats, solved: Bools) -> statistics.RestrictedMeans:
    studies, n = times.shape
    return statistics.restricted_means(times.ravel(), solved.ravel(), [n] * studies, until=1.0)


INTERVALS: Mapping[str, Interval] = {"restricted_means": products, "score": score, "Greenwood": greenwood}


def drawn(distribution: Draw, is_censored: bool, rng: Rng, shape: tuple[int, int]) -> tuple[Floats, Bools]:
    """Draw times to success or to the trial's end, and True for each solved trial, [studies, seeds] both.

    A trial ends at 1; with `is_censored`, at a random time up to 1.5.
    """
    at = distribution(rng, shape)
    end = rng.uniform(0, 1.5, shape) if is_censored else np.ones(shape)
    return np.minimum(at, end), at <= end


def held(bounds: Floats, truth: float) -> dict[str, str]:
    """Return the share of studies with an interval, and its coverage and mean width; both are empty without any."""
    known = bounds[~np.isnan(bounds[:, 0])]
    if not len(known):
        return {"with_interval": "0.0000", "coverage": "", "width": ""}
    holds = (known[:, 0] <= truth + 1e-9) & (known[:, 1] >= truth - 1e-9)
    width = float(np.mean(known[:, 1] - known[:, 0]))
    return {
        "with_interval": f"{len(known) / len(bounds):.4f}",
        "coverage": f"{holds.mean():.4f}",
        "width": f"{width:.4f}",
    }


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count covering intervals; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    rows = []
    for name, (distribution, truth, is_censored) in cases().items():
        tell(name)
        for n in SIZES:
            rng = np.random.default_rng([arguments.seed, zlib.crc32(name.encode()), n])
            times, solved = drawn(distribution, is_censored, rng, (arguments.studies, n))
            for interval, bound in INTERVALS.items():
                rows.append({"distribution": name, "n": n, "interval": interval, **held(bound(times, solved), truth)})
    tell(LEAST)
    for n in SIZES:
        for interval, bound in INTERVALS.items():
            row = {"with_interval": "1.0000", "coverage": f"{least_coverage(bound, n):.4f}", "width": ""}
            rows.append({"distribution": LEAST, "n": n, "interval": interval, **row})
    finish(rows, arguments)


if __name__ == "__main__":
    main()
