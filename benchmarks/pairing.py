"""Coverage of intervals of paired differences, and rejection rates of tests of paired samples.

    python -m benchmarks.pairing [--studies N] [--seed N] [--out benchmarks/results/pairing/intervals.csv]

Each study has two methods on the same seeds, with outcomes correlated by the distribution. The reports' intervals and
tests are compared with the usual ones and with ones that treat the samples as independent. Prints two tables with a row
for each distribution, sample size and interval or test: coverage and width, and the share of studies that reject.
`--out` writes the intervals, and the tests as tests.csv beside it. The numbers depend on the seed and the number of
studies alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from benchmarks.measure import finish, studies_parser, tell
from study import statistics

SIZES = (5, 10, 20, 50, 100)
LEVEL = 0.05
_Z = float(special.ndtri(1 - LEVEL / 2))
_RESAMPLES = 2000
_AT_ONCE = 500

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
Shape = tuple[int, int]
Ways = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class Law:
    """A distribution of the outcomes of two methods on the same seeds.

    Args:
        name: its name in the tables.
        draw: draws the outcomes, shape [studies, seeds], of each method; or, in a trend, of each hyperparameter value.
        difference: difference of the two means, first minus second; in other laws 0 only if all are equal.
    """

    name: str
    draw: Callable[[Rng, Shape], tuple[Floats, ...]]
    difference: float = 0.0


def outcomes(rng: Rng, shape: Shape, *, rates: tuple[float, float], phi: float) -> tuple[Floats, Floats]:
    """Draw successes of two methods, 0 or 1, with these rates and the correlation `phi`, which they must allow."""
    first, second = rates
    both = first * second + phi * math.sqrt(first * (1 - first) * second * (1 - second))
    kind = np.searchsorted(np.cumsum([both, first - both, second - both]), rng.random(shape), side="right")
    return (kind <= 1).astype(float), ((kind == 0) | (kind == 2)).astype(float)


def normals(rng: Rng, shape: Shape, *, shared: float) -> tuple[Floats, Floats]:
    """Draw standard normal values of two methods with the correlation `shared`."""
    common, first, second = (rng.normal(size=shape) for _ in range(3))
    own = math.sqrt(1 - shared)
    return math.sqrt(shared) * common + own * first, math.sqrt(shared) * common + own * second


def shifted(rng: Rng, shape: Shape, *, shared: float, by: float) -> tuple[Floats, Floats]:
    """Draw normal values with the correlation `shared`, the first method's greater by `by` deviations."""
    first, second = normals(rng, shape, shared=shared)
    return first + by, second


def lognormals(rng: Rng, shape: Shape, *, shared: float, factor: float) -> tuple[Floats, Floats]:
    """Draw log-normal values with σ = 1, the first method's multiplied by `factor`.

    Their logarithms have the correlation `shared`.
    """
    first, second = normals(rng, shape, shared=shared)
    return factor * np.exp(first), np.exp(second)


def accuracies(rng: Rng, shape: Shape) -> tuple[Floats, Floats]:
    """Draw accuracies near 1 of two independent methods, the first slightly better."""
    return rng.beta(50, 2, shape), rng.beta(40, 2, shape)


def failures(rng: Rng, shape: Shape, *, rates: tuple[float, float]) -> tuple[Floats, Floats]:
    """Draw accuracies about 0.96, or 0.2 where the method fails; the methods' failures have a correlation of 0.5."""
    fails = outcomes(rng, shape, rates=rates, phi=0.5)
    first, second = (np.where(fail > 0, 0.2, 0.96) + 0.02 * rng.normal(size=shape) for fail in fails)
    return first, second


def always_more(rng: Rng, shape: Shape) -> tuple[Floats, Floats]:
    """Draw normal values; the first method's have an exponential number added."""
    second = rng.normal(size=shape)
    return second + rng.exponential(size=shape), second


def times(rng: Rng, shape: Shape, *, shared: float, factor: float) -> tuple[Floats, Floats]:
    """Draw times to success of two methods by `lognormals`.

    With a factor of 1, about 30% are beyond 1.7, where the tests censor them.
    """
    return lognormals(rng, shape, shared=shared, factor=factor)


def three_times(rng: Rng, shape: Shape, *, shared: float, factor: float) -> tuple[Floats, ...]:
    """Draw log-normal times to success of three methods, the first one's multiplied by `factor`.

    Their logarithms have the correlation `shared`.
    """
    common, *own = (rng.normal(size=shape) for _ in range(4))
    drawn = [np.exp(math.sqrt(shared) * common + math.sqrt(1 - shared) * each) for each in own]
    return factor * drawn[0], drawn[1], drawn[2]


_END = 1.7

RATES = [
    Law(f"rates {a:g} and {b:g}, φ {phi:g}", partial(outcomes, rates=(a, b), phi=phi), a - b)
    for a, b, phi in (
        (0.5, 0.5, 0.0),
        (0.5, 0.5, 0.5),
        (0.9, 0.9, 0.3),
        (0.1, 0.1, 0.3),
        (0.7, 0.5, 0.4),
        (0.9, 0.5, 0.2),
        (0.98, 0.04, 0.0),
    )
]
_MEDIAN_FACTOR = 1.5
MEANS = [
    Law("normal, ρ 0", partial(normals, shared=0.0)),
    Law("normal, ρ 0.8", partial(normals, shared=0.8)),
    Law("normal, 0.5 apart, ρ 0", partial(shifted, shared=0.0, by=0.5), 0.5),
    Law("normal, 0.5 apart, ρ 0.8", partial(shifted, shared=0.8, by=0.5), 0.5),
    Law("log-normal, ρ 0.5", partial(lognormals, shared=0.5, factor=1.0)),
    Law(
        "log-normal, 1.5 times, ρ 0.5",
        partial(lognormals, shared=0.5, factor=_MEDIAN_FACTOR),
        (_MEDIAN_FACTOR - 1) * math.exp(0.5),
    ),
    Law("accuracies, ρ 0", accuracies, 50 / 52 - 40 / 42),
    Law("3 of 10 fail, φ 0.5", partial(failures, rates=(0.3, 0.3))),
    Law("3 and 5 of 10 fail, φ 0.5", partial(failures, rates=(0.3, 0.5)), 0.2 * 0.76),
    Law("normal, an exponential more", always_more, 1.0),
]
TIMES = [
    Law("times, ρ 0", partial(times, shared=0.0, factor=1.0)),
    Law("times, ρ 0.7", partial(times, shared=0.7, factor=1.0)),
    Law("times, 1.5 times, ρ 0", partial(times, shared=0.0, factor=1.5), 1.0),
    Law("times, 1.5 times, ρ 0.7", partial(times, shared=0.7, factor=1.5), 1.0),
]

THREE = [
    Law(f"three methods' times, {text}ρ {shared:g}", partial(three_times, shared=shared, factor=factor), factor - 1)
    for text, factor in (("", 1.0), ("one 1.5 times, ", 1.5))
    for shared in (0.0, 0.7)
]


def swept(rng: Rng, shape: Shape, *, shared: float, slope: float) -> tuple[Floats, ...]:
    """Draw successes, 0 or 1, at the hyperparameter values 0 to 3.

    A trial succeeds if its standard normal number is greater than `slope` times its value. The numbers of a seed have
    the correlation `shared`.
    """
    common = math.sqrt(shared) * rng.normal(size=shape)
    own = math.sqrt(1 - shared)
    return tuple((common + own * rng.normal(size=shape) > slope * value).astype(float) for value in range(4))


TRENDS = [
    Law(f"success at four values, {text}ρ {shared:g}", partial(swept, shared=shared, slope=slope), slope)
    for text, slope in (("", 0.0), ("falling, ", 0.2))
    for shared in (0.0, 0.7)
]


def _counted(statistic: Callable[[int, int, int, int, int], Any]) -> Callable[[Floats, Floats], Floats]:
    """Return a function that computes a statistic of each study's counts, once for all studies with the same counts.

    The statistic's arguments are the successes of both methods, those of the first and of the second method alone, and
    the number of seeds.
    """

    def compute(first: Floats, second: Floats) -> Floats:
        n = first.shape[1]
        counts = np.stack([first.sum(1), second.sum(1), (first > second).sum(1), (second > first).sum(1)], axis=1)
        different, place = np.unique(counts.astype(int), axis=0, return_inverse=True)
        return np.array([statistic(*map(int, row), n) for row in different])[place.ravel()]

    return compute


def _mid_p(first_only: int, second_only: int) -> float:
    """Return McNemar's mid-p-value of the seeds that only one method solves; 1 without any."""
    n, least = first_only + second_only, min(first_only, second_only)
    if not n:
        return 1.0
    at = math.exp(math.lgamma(n + 1) - math.lgamma(least + 1) - math.lgamma(n - least + 1) - n * math.log(2))
    return min(1.0, 2 * float(special.bdtr(least, n, 0.5)) - at)


def _tango(first_only: int, second_only: int, n: int) -> tuple[float, float]:
    """Return Tango's 95% score interval of the difference of rates, Statistics in Medicine 17 (1998) 891-908."""
    estimate = (first_only - second_only) / n
    low = -1.0 if second_only == n else _crossing(first_only, second_only, n, -1.0, estimate, _Z)
    return low, 1.0 if first_only == n else _crossing(first_only, second_only, n, estimate, 1.0, -_Z)


def _crossing(b: int, c: int, n: int, low: float, high: float, wanted: float) -> float:
    """Find by bisection the difference from `low` to `high` with the score `wanted`; scores decrease between them."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _score(b, c, n, middle) > wanted else (low, middle)
    return (low + high) / 2


def _score(b: int, c: int, n: int, difference: float) -> float:
    """Return the score of a difference, in standard errors, at the rates that are most likely given it.

    `b` and `c` of `n` seeds are solved by the first and by the second method alone.
    """
    linear = (2 * n - b + c) * difference - b - c
    root = math.sqrt(max(linear * linear + 8 * n * c * difference * (1 - difference), 0.0))
    variance = n * ((root - linear) / (2 * n) + difference * (1 - difference))
    excess = b - c - n * difference
    return excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess)


def _flipped(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the intervals and p-values of sign flips of each study's differences, computed some studies at a time."""
    parts = [statistics.sign_flips(part) for part in np.array_split(first - second, -(-len(first) // _AT_ONCE))]
    return np.concatenate([bounds for _, bounds, _ in parts]), np.concatenate([p for _, _, p in parts])


def _student(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the intervals and p-values of Student's paired test; p is NaN if all differences of a study are 0."""
    d, n = first - second, first.shape[1]
    error = d.std(axis=1, ddof=1) / math.sqrt(n)
    return _by_t(d.mean(axis=1), error, np.full(len(d), n - 1.0))


def _welch(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the intervals and p-values of Welch's test; all are NaN if neither sample of a study varies."""
    n = first.shape[1]
    v, w = first.var(axis=1, ddof=1) / n, second.var(axis=1, ddof=1) / n
    freedom = (v + w) ** 2 / (v**2 + w**2) * (n - 1)
    return _by_t(first.mean(axis=1) - second.mean(axis=1), np.sqrt(v + w), freedom)


def _by_t(estimates: Floats, errors: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    reach = special.stdtrit(freedom, 1 - LEVEL / 2) * errors
    bounds = np.column_stack([estimates - reach, estimates + reach])
    return bounds, 2 * special.stdtr(freedom, -np.abs(estimates) / errors)


def _bootstrap(first: Floats, second: Floats) -> Floats:
    """Return studentised bootstrap intervals of each study's mean difference."""
    d = first - second
    return statistics.mean_intervals(d.ravel(), [d.shape[1]] * len(d))


def _bca(first: Floats, second: Floats) -> Floats:
    """Return bias-corrected and accelerated bootstrap intervals of each study's mean difference, [studies, 2]."""
    d, n = first - second, first.shape[1]
    rng = np.random.default_rng(n)
    weights = rng.multinomial(n, [1 / n] * n, size=_RESAMPLES) / n
    low_high = []
    for part in np.array_split(d, -(-len(d) // _AT_ONCE)):
        means = np.sort(weights @ part.T, axis=0)
        centre = part.mean(axis=1)
        below = (np.sum(means < centre, axis=0) + np.sum(means == centre, axis=0) / 2) / _RESAMPLES
        bias = special.ndtri(np.clip(below, 1 / _RESAMPLES, 1 - 1 / _RESAMPLES))
        gap = part - centre[:, None]
        acceleration = np.sum(gap**3, axis=1) / (6 * np.sum(gap**2, axis=1) ** 1.5)
        for z in (-_Z, _Z):
            shares = special.ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
            places = np.clip((shares * _RESAMPLES).astype(int), 0, _RESAMPLES - 1)
            low_high.append(means[places, np.arange(len(part))])
    return np.column_stack([np.concatenate(low_high[::2]), np.concatenate(low_high[1::2])])


def _paired_log_rank(first: Floats, second: Floats) -> Floats:
    """Return p-values of sign flips of log-rank scores, equal to those of `paired_log_rank` for two methods."""
    n = first.shape[1]
    both = np.concatenate([first, second], axis=1)
    scores = np.array([statistics.log_rank_scores(np.minimum(t, _END), t < _END) for t in both])
    return _flipped(scores[:, :n], scores[:, n:])[1]


def _by_times(test: Callable[..., statistics.LogRank | None]) -> Callable[..., Floats]:
    """Return a function that computes a test's p-value of times for each study; 1 for a study that can't be tested."""

    def compute(*methods: Floats) -> Floats:
        tests = (test([(np.minimum(t, _END), t < _END) for t in study]) for study in zip(*methods, strict=True))
        return np.array([1.0 if result is None else result.p_value for result in tests])

    return compute


def _paired_trend(*values: Floats) -> Floats:
    """Return p-values of sign flips of slopes, equal to those of `paired_trend`."""
    middle = (len(values) - 1) / 2
    slopes = np.sum([(place - middle) * outcomes for place, outcomes in enumerate(values)], axis=0)
    return _flipped(slopes, np.zeros_like(slopes))[1]


def _cochran_armitage(*values: Floats) -> Floats:
    """Return p-values of the Cochran-Armitage test; 1 where all or none were solved."""
    solved, n = np.stack([outcomes.sum(axis=1) for outcomes in values], axis=1).astype(int), values[0].shape[1]
    tests = [statistics.cochran_armitage(range(len(values)), row.tolist(), [n] * len(values)) for row in solved]
    return np.array([1.0 if result is None else result.p_value for result in tests])


INTERVALS: Sequence[tuple[Sequence[Law], Ways]] = (
    (
        RATES,
        {
            "mcnemar_interval": _counted(lambda _, __, b, c, n: statistics.mcnemar_interval(b, c, n)),
            "Tango's score": _counted(lambda _, __, b, c, n: _tango(b, c, n)),
            "newcombe, as if independent": _counted(lambda k, m, _, __, n: statistics.newcombe(k, n, m, n)),
        },
    ),
    (
        MEANS,
        {
            "sign_flip": lambda first, second: _flipped(first, second)[0],
            "Student's t of differences": lambda first, second: _student(first, second)[0],
            "mean_intervals, of differences": _bootstrap,
            "BCa of differences": _bca,
            "Welch's, as if independent": lambda first, second: _welch(first, second)[0],
        },
    ),
)
_INDEPENDENT = "log_rank, as if independent"
TESTS: Sequence[tuple[Sequence[Law], Ways]] = (
    (
        RATES,
        {
            "mcnemar": _counted(lambda _, __, b, c, ___: statistics.mcnemar(b, c)),
            "McNemar's mid-p": _counted(lambda _, __, b, c, ___: _mid_p(b, c)),
            "fisher_exact, as if independent": _counted(lambda k, m, _, __, n: statistics.fisher_exact(k, n, m, n)),
        },
    ),
    (
        MEANS,
        {
            "sign_flip": lambda first, second: _flipped(first, second)[1],
            "Student's t of differences": lambda first, second: _student(first, second)[1],
            "Welch's, as if independent": lambda first, second: _welch(first, second)[1],
        },
    ),
    (TIMES, {"paired_log_rank": _paired_log_rank, _INDEPENDENT: _by_times(statistics.log_rank)}),
    (TRENDS, {"paired_trend": _paired_trend, "cochran_armitage, as if independent": _cochran_armitage}),
    (THREE, {"paired_log_rank": _by_times(statistics.paired_log_rank), _INDEPENDENT: _by_times(statistics.log_rank)}),
)


def studies(laws: Sequence[Law], count: int, seed: int) -> Iterator[tuple[Law, int, tuple[Floats, ...]]]:
    """Yield each law and number of seeds with the outcomes of `count` studies."""
    for law in laws:
        tell(law.name)
        for n in SIZES:
            rng = np.random.default_rng([seed, zlib.crc32(law.name.encode()), n])
            yield law, n, law.draw(rng, (count, n))


def coverage(law: Law, bounds: Floats) -> dict[str, str]:
    """Return the share of studies with a finite interval, its coverage and mean width; both are empty without any."""
    is_there = np.isfinite(bounds).all(axis=1)
    low, high = bounds[is_there].T
    holds = (low - 1e-9 <= law.difference) & (law.difference <= high + 1e-9)
    share = f"{holds.mean():.4f}" if holds.size else ""
    width = f"{np.mean(high - low):.4f}" if holds.size else ""
    return {"with_interval": f"{is_there.mean():.4f}", "coverage": share, "width": width}


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count covering intervals and rejections; print both tables, and write them with `--out`.

    Raises:
        OSError: if a table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    intervals: list[dict[str, Any]] = []
    for laws, ways in INTERVALS:
        for law, n, methods in studies(laws, arguments.studies, arguments.seed):
            for name, way in ways.items():
                intervals.append({"distribution": law.name, "n": n, "interval": name} | coverage(law, way(*methods)))
    tests: list[dict[str, Any]] = []
    for laws, ways in TESTS:
        for law, n, methods in studies(laws, arguments.studies, arguments.seed):
            truth = "differ" if law.difference else "equal"
            for name, way in ways.items():
                rejected = np.mean(way(*methods) <= LEVEL)
                tests.append({"distribution": law.name, "truth": truth, "n": n, "test": name, "rejected": rejected})
    finish(intervals, arguments)
    arguments.out = arguments.out and Path(arguments.out).with_name("tests.csv")
    finish([row | {"rejected": f"{row['rejected']:.4f}"} for row in tests], arguments)


if __name__ == "__main__":
    main()
