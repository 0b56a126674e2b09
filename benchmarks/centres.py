"""Coverage of intervals of a mean, an interquartile mean and a median, for several distributions.

    python -m benchmarks.centres [--studies N] [--seed N] [--out benchmarks/results/centres.csv]

The package's intervals are compared with others on the same studies: SciPy's BCa bootstrap of all three, Student's t of
the mean, and Tukey and McLaughlin's t of the trimmed mean. BCa is slow and sees a quarter of the studies. Prints a row
for each distribution, sample size and interval, and writes it with `--out`: the share of studies with an interval, its
coverage, and its mean width in standard deviations of the distribution. The numbers depend on the seed and the number
of studies alone.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from benchmarks.measure import finish, studies_parser, tell
from benchmarks.restricted import held
from study import statistics

SIZES = (5, 10, 20, 50, 100, 300)
BCA_SHARE = 4
"""Divisor of the number of studies with a BCa interval."""
BCA_RESAMPLES = 1000
BCA_AT_ONCE = 2_000_000
"""Maximum number of values in a batch of resamples."""

Floats = npt.NDArray[np.float64]
Quantile = Callable[[Floats], Floats]
"""A distribution, by its quantile function."""
Interval = Callable[[Floats], Floats]
"""Bounds each row of values: shape [studies, 2], NaN where there is none."""


# --- distributions ----------------------------------------------------------------------------------------------


def two_kinds(share: float, first: tuple[float, float], second: tuple[float, float]) -> Quantile:
    """Return the quantile function of a mixture of two uniform distributions.

    Args:
        share: share of the first distribution.
        first: its ends.
        second: ends of the second distribution, of greater values.
    """

    def quantile(u: Floats) -> Floats:
        below, above = np.interp(u, (0, share), first), np.interp(u, (share, 1), second)
        return np.where(u < share, below, above)

    return quantile


DISTRIBUTIONS: Mapping[str, Quantile] = {
    "normal": special.ndtri,
    "log-normal, σ 1": stats.lognorm(1).ppf,
    "Student's t, 3 degrees of freedom": partial(special.stdtrit, 3),
    "accuracies: beta, 50 and 2": stats.beta(50, 2).ppf,
    "accuracies: beta, 50 and 2, of 100 rows": lambda u: np.round(stats.beta(50, 2).ppf(u), 2),
    "accuracies: beta, 8 and 0.5": stats.beta(8, 0.5).ppf,
    "half about 0.2, half about 0.8": two_kinds(0.5, (0.15, 0.25), (0.75, 0.85)),
    "30% about 0.2, 70% about 0.96": two_kinds(0.3, (0.1, 0.3), (0.95, 0.97)),
    "10% about 0.2, 90% about 0.96": two_kinds(0.1, (0.1, 0.3), (0.95, 0.97)),
    "30% are 0.5, 70% are 1": two_kinds(0.3, (0.5, 0.5), (1.0, 1.0)),
}


def truths(quantile: Quantile) -> dict[str, float]:
    """Approximate the ``mean``, ``interquartile mean``, ``median`` and ``deviation`` by 200,000 quantiles."""
    x = quantile((np.arange(200_000) + 0.5) / 200_000)
    middles = {"mean": x, "interquartile mean": x[50_000:150_000], "median": x[99_999:100_001]}
    return {name: float(part.mean()) for name, part in middles.items()} | {"deviation": float(x.std())}


# --- intervals --------------------------------------------------------------------------------------------------


def of_rows(bound: Callable[..., Floats]) -> Interval:
    """Return a function that bounds samples given as rows, [studies, n].

    It passes them to `bound` as one flat array, with the list of their sizes, and returns its result.
    """
    return lambda rows: bound(rows.ravel(), [rows.shape[1]] * len(rows))


def trimmed_t(rows: Floats, share: float) -> Floats:
    """Return 95% t intervals of trimmed means, by the winsorised variance; without trimming, they are Student's.

    Source: Tukey & McLaughlin, Sankhyā A 25 (1963) 331-352.

    Args:
        rows: values, [studies, n].
        share: share of values trimmed at each end; their number is rounded down.

    Returns:
        Lower and upper bounds, [studies, 2]; NaN where the computed variance is 0; rounding may keep it above 0
        for equal values.

    Raises:
        ZeroDivisionError: if fewer than two values of a sample remain.
    """
    n = rows.shape[1]
    cut = int(share * n)
    inside = np.sort(rows, axis=1)[:, cut : n - cut]
    m = inside.shape[1]
    ends = np.repeat(inside[:, :1], cut, axis=1), np.repeat(inside[:, -1:], cut, axis=1)
    deviation = np.concatenate([ends[0], inside, ends[1]], axis=1).std(axis=1, ddof=1)
    reach = special.stdtrit(m - 1, 0.975) * deviation * np.sqrt((n - 1) / (m * (m - 1)))
    bounds = inside.mean(axis=1)[:, None] + reach[:, None] * [-1, 1]
    return np.where(deviation[:, None] > 0, bounds, np.nan)


def middle_mean(values: Floats, axis: int = -1) -> Floats:
    """Return interquartile means along the last axis; `axis` is only for SciPy, which passes -1."""
    n = values.shape[axis]
    weights = np.diff(np.clip(np.arange(n + 1), n / 4, 3 * n / 4)) / (n / 2)
    return np.asarray(np.sort(values, axis=axis) @ weights)


def middle(values: Floats, axis: int = -1) -> Floats:
    """Return medians along the last axis; `axis` is only for SciPy, which passes -1."""
    n = values.shape[axis]
    ordered = np.sort(values, axis=axis)
    return np.asarray((ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2)


def bca(statistic: Callable[..., Floats]) -> Interval:
    """Return a function that bounds a statistic of each row by SciPy's BCa bootstrap, at 95%.

    It bounds only the first 1 / `BCA_SHARE` of the rows, at least one, and skips rows whose values are all equal. If no
    row is left, it returns one row of NaN. Bounds that BCa doesn't define are NaN. `statistic` takes values and `axis`.

    Source: Efron, JASA 82 (1987) 171-185.
    """

    def bound(rows: Floats) -> Floats:
        sample = rows[: max(1, len(rows) // BCA_SHARE)]
        sample = sample[sample.min(axis=1) < sample.max(axis=1)]
        if not len(sample):
            return np.full((1, 2), np.nan)
        batch = max(1, BCA_AT_ONCE // sample.size)
        with warnings.catch_warnings(category=stats.DegenerateDataWarning, action="ignore"), np.errstate(all="ignore"):
            interval = stats.bootstrap(
                (sample,), statistic, n_resamples=BCA_RESAMPLES, batch=batch, axis=-1, method="BCa", rng=0
            ).confidence_interval
        return np.column_stack([interval.low, interval.high])

    return bound


INTERVALS: Mapping[str, tuple[str, Interval]] = {
    "mean_intervals": ("mean", of_rows(statistics.mean_intervals)),
    "mean, BCa": ("mean", bca(np.mean)),
    "mean, Student's t": ("mean", partial(trimmed_t, share=0.0)),
    "interquartile_mean_intervals": ("interquartile mean", of_rows(statistics.interquartile_mean_intervals)),
    "interquartile mean, BCa": ("interquartile mean", bca(middle_mean)),
    "interquartile mean, trimmed t": ("interquartile mean", partial(trimmed_t, share=0.25)),
    "median_intervals": ("median", of_rows(statistics.median_intervals)),
    "median, BCa": ("median", bca(middle)),
}
"""By name: the quantity, and its interval."""


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count covering intervals; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    rows = []
    for name, quantile in DISTRIBUTIONS.items():
        tell(name)
        truth = truths(quantile)
        for n in SIZES:
            rng = np.random.default_rng([arguments.seed, zlib.crc32(name.encode()), n])
            values = quantile(rng.random((arguments.studies, n)))
            for interval, (centre, bound) in INTERVALS.items():
                counted = held(bound(values) / truth["deviation"], truth[centre] / truth["deviation"])
                rows.append({"distribution": name, "n": n, "interval": interval, **counted})
    finish(rows, arguments)


if __name__ == "__main__":
    main()
