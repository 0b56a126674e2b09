"""Coverage of intervals over several cells: interquartile means, profiles, probabilities of improvement.

    python -m benchmarks.robust [--studies N] [--seed N] [--out benchmarks/results/robust/interquartile-mean.csv]

The package's intervals are compared with the usual ones, and with ones that were rejected; these see a tenth of the
studies. "Shared" seeds are the same in all cells and both methods, and cause half of the variance of the latent values.
Otherwise each cell and each method has its own seeds. Where a method has more than 100 values there are a quarter as
many studies, of more than 400 an eighth. Prints three tables with a row for each distribution, number of cells, kind of
seeds, sample size and interval: its coverage and mean width. `--out` writes the first, and profile.csv and
improvement.csv beside it. The numbers depend on the seed and the number of studies alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product, repeat
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from benchmarks.centres import Floats, Quantile, two_kinds
from benchmarks.measure import cores, finish, studies_parser, tell
from benchmarks.restricted import held
from study import statistics
from study.statistics.interquartile_mean import replicates_of
from study.statistics.profiles import _kolmogorov, distances_of
from study.statistics.seed_values import Block, MeanOverCells, SeedValues, blocks, student

Bounds = list[tuple[float, float]]
Studies = Sequence[list[SeedValues]]
"""The methods of each study."""

SIZES = (5, 10, 20, 50, 100)
CELLS = (1, 3, 10)
OTHERS_SHARE = 10
"""Divisor of the number of studies for the other intervals."""
SHARES = {100: 1, 400: 4, 1000: 8}
"""Divisor of the number of studies, by the maximum number of a method's values: large studies are slow."""
_SHARED = 0.5
"""The correlation of the latent values of a seed."""
_GRID = 20_000


@dataclass(frozen=True)
class Law:
    """The distributions of two methods.

    Args:
        name: their name in the tables.
        first: distribution of the first method, or of the only one.
        second: distribution of the second method; None if there is only one.
        apart: increase of the values from each cell to the next.
    """

    name: str
    first: Quantile
    second: Quantile | None = None
    apart: float = 0.0


def _moved(quantile: Quantile, by: float) -> Quantile:
    return lambda u: quantile(u) + by


def _times(quantile: Quantile, factor: float) -> Quantile:
    return lambda u: factor * quantile(u)


def _rounded(quantile: Quantile) -> Quantile:
    return lambda u: np.round(quantile(u), 2)


def _failing(share: float) -> Quantile:
    return two_kinds(share, (0.1, 0.3), (0.95, 0.97))


_normal: Quantile = special.ndtri
_lognormal: Quantile = stats.lognorm(1).ppf
MIDDLE_LAWS = (
    Law("normal", _normal),
    Law("log-normal, σ 1", _lognormal),
    Law("accuracies: beta, 8 and 0.5", stats.beta(8, 0.5).ppf),
    Law("half about 0.2, half about 0.8", two_kinds(0.5, (0.15, 0.25), (0.75, 0.85))),
    Law("30% about 0.2, 70% about 0.96", _failing(0.3)),
    Law("10% about 0.2, 90% about 0.96", _failing(0.1)),
)
PROFILE_LAWS = (
    Law("any without ties, alike in all cells", _normal),
    Law("normal, cells 0.7 apart", _normal, apart=0.7),
    Law("normal, cells 6 apart", _normal, apart=6.0),
    Law("accuracies: beta, 50 and 2, of 100 rows", _rounded(stats.beta(50, 2).ppf)),
    Law("30% are 0.5, 70% are 1", two_kinds(0.3, (0.5, 0.5), (1.0, 1.0))),
)
IMPROVEMENT_LAWS = (
    Law("normal, equal", _normal, _normal),
    Law("normal, 1 apart", _moved(_normal, 1.0), _normal),
    Law("normal, 3 apart", _moved(_normal, 3.0), _normal),
    Law("log-normal, one twice the other", _times(_lognormal, 2.0), _lognormal),
    Law("accuracies: beta, 50 and 2; 40 and 2", stats.beta(50, 2).ppf, stats.beta(40, 2).ppf),
    Law("the same, of 100 rows", _rounded(stats.beta(50, 2).ppf), _rounded(stats.beta(40, 2).ppf)),
    Law("30% fail; 50%", _failing(0.3), _failing(0.5)),
    Law("10% fail; 30%", _failing(0.1), _failing(0.3)),
)


def drawn(rng: np.random.Generator, law: Law, shape: tuple[int, int, int], *, are_shared: bool) -> list[Floats]:
    """Draw the values of each method, one or two arrays of shape [studies, seeds, cells].

    With `are_shared`, the latent values of a seed are correlated over all cells and methods.
    """
    rho = _SHARED if are_shared else 0.0
    common = math.sqrt(rho) * rng.normal(size=(*shape[:2], 1))
    place = law.apart * np.arange(shape[2])
    methods = [law.first] if law.second is None else [law.first, law.second]
    return [
        quantile(special.ndtr(common + math.sqrt(1 - rho) * rng.normal(size=shape))) + place for quantile in methods
    ]


def seed_values_of(values: Floats, *, are_shared: bool, method: int) -> SeedValues:
    """Label the values of a study's method, [seeds, cells], by seed: shared by all cells and methods, or own ones."""
    n, cells = values.shape

    def seed(cell: int, number: int) -> Any:
        return number if are_shared else (method, cell, number)

    return SeedValues({cell: {seed(cell, i): float(values[i, cell]) for i in range(n)} for cell in range(cells)})


# --- interquartile means ----------------------------------------------------------------------------------------


def _ends(estimate: MeanOverCells) -> tuple[float, float]:
    return estimate.interval or (math.nan, math.nan)


def _bootstrap_middle(values: SeedValues, *, is_student: bool) -> tuple[float, float]:
    """Bound the mean interquartile mean at 95%, by the expanded percentiles alone, or by Student's t alone."""
    samples = [list(sample.values()) for sample in values.samples]
    centre = float(np.mean([statistics.interquartile_means(sample)[0] for sample in samples]))
    parts = blocks(values.samples)
    by_block = np.array([replicates_of(block, s) for s, block in enumerate(parts)]) / len(samples)
    n = np.array([block.least for block in parts])
    variances = by_block.var(axis=1) * n / (n - 1)
    t = student(variances, n, 0.95)
    if is_student:
        reach = t * math.sqrt(variances.sum())
        return centre - reach, centre + reach
    tail = special.ndtr(-math.sqrt(n.min() / (n.min() - 1)) * t)
    low, high = np.quantile(by_block.sum(axis=0), [tail, 1 - tail])
    return min(low, centre), max(high, centre)


def _plain_percentiles(values: SeedValues) -> tuple[float, float]:
    """Bound the interquartile mean of all runs of all cells at 95% by resampling runs within each, as rliable does."""
    matrix = np.array([list(sample.values()) for sample in values.samples])
    rng = np.random.default_rng(0)
    drawn = rng.integers(matrix.shape[1], size=(1000, *matrix.shape))
    resampled = np.take_along_axis(matrix[None], drawn, axis=2).reshape(1000, -1)
    n = resampled.shape[1]
    weights = np.diff(np.clip(np.arange(n + 1), n / 4, 3 * n / 4)) / (n / 2)
    low, high = np.quantile(np.sort(resampled, axis=1) @ weights, [0.025, 0.975])
    return low, high


MIDDLES: Mapping[str, Callable[[SeedValues], tuple[float, float]]] = {
    "interquartile_mean_over_cells": lambda values: _ends(statistics.interquartile_mean_over_cells(values)),
    "expanded percentiles": partial(_bootstrap_middle, is_student=False),
    "Student's t, bootstrap's error": partial(_bootstrap_middle, is_student=True),
    "of all runs, resampled in each cell": _plain_percentiles,
}


def of_middles(law: Law, studies: Studies, cells: int) -> Iterator[tuple[str, Bounds, float, float]]:
    """Yield each interval of the interquartile mean: its name, its bounds, the truth, and the values' deviation.

    The truth is the integral of the middle half. With one cell, only the package's interval is yielded: the others
    equal it, or are in the table of `benchmarks.centres`. Their bounds are those of the first tenth of the studies.
    """
    x = law.first((np.arange(_GRID) + 0.5) / _GRID)
    truth, scale = float(x[_GRID // 4 : 3 * _GRID // 4].mean()), float(x.std())
    for name, bound in MIDDLES.items():
        # with one cell, all but the package's are the same, or in the table of centres
        sample = _some(studies, name == next(iter(MIDDLES)))
        if cells > 1 or name == next(iter(MIDDLES)):
            yield name, [bound(first) for (first,) in sample], truth, scale


# --- profiles ---------------------------------------------------------------------------------------------------


def _of_cell(values: SeedValues) -> float:
    """Return the reach of Kolmogorov's 95% band of one cell, for the number of seeds of the first cell."""
    return _kolmogorov(len(values.samples[0]), 0.95)


def _inequality(values: SeedValues) -> float:
    """Return the reach of a 95% band by an inequality for any law: a seed's mean over cells is between 0 and 1."""
    return math.sqrt(math.log(2 * math.e / 0.05) / (2 * len(values.samples[0])))


def _bootstrap_band(values: SeedValues) -> float:
    """Return the greatest distance from the profile that 95% of the resampled profiles don't exceed."""
    n, cells = len(values.samples[0]), len(values.samples)
    parts: Sequence[Block] = blocks(values.samples)
    return float(np.quantile(distances_of(parts, n, cells), 0.95))


def _own_band(values: SeedValues) -> float:
    return statistics.performance_profile(values, higher_is_better=True).reach


BANDS: Mapping[str, Callable[[SeedValues], float]] = {
    "performance_profile": _own_band,
    "bootstrap's greatest distance": _bootstrap_band,
    "band of one cell": _of_cell,
    "inequality for any law": _inequality,
}


def of_profiles(law: Law, studies: Studies, cells: int) -> Iterator[tuple[str, Bounds, float, float]]:
    """Yield each band of a performance profile: its name, its bounds, the truth 0, and the scale 1.

    Bounds are the profile's greatest distance from the true one, plus and minus the band's reach. The bootstrap's band
    has those of the first tenth of the studies.
    """
    matrices = [np.array([list(sample.values()) for sample in first.samples]).T for (first,) in studies]
    distances = [greatest_distance(law, values) for values in matrices]
    for name, reach in BANDS.items():
        reaches = [reach(first) for (first,) in _some(studies, name != "bootstrap's greatest distance")]
        yield name, [(at - far, at + far) for at, far in zip(distances, reaches, strict=False)], 0.0, 1.0


def greatest_distance(law: Law, values: Floats) -> float:
    """Return the greatest distance over thresholds between a study's profile and the true one.

    `values` are those of the study's method, [seeds, cells].
    """
    cells = values.shape[1]
    grid = law.first((np.arange(_GRID) + 0.5) / _GRID)
    found, counts = np.unique(values, return_counts=True)
    place = law.apart * np.arange(cells)
    up_to, below = (
        np.mean([np.searchsorted(grid, found - shift, side=side) for shift in place], axis=0) / _GRID
        for side in ("right", "left")
    )
    there = np.cumsum(counts) / values.size
    return float(max(np.abs(there - up_to).max(), np.abs(there - counts / values.size - below).max()))


# --- probabilities ----------------------------------------------------------------------------------------------


def _improvement(first: SeedValues, second: SeedValues) -> tuple[float, float]:
    return _ends(statistics.probability_of_improvement(of=first, over=second, higher_is_better=True))


def _array(method: SeedValues) -> Floats:
    return np.array([list(sample.values()) for sample in method.samples])


def _share(a: Floats, b: Floats) -> Floats:
    """Return the share of pairs with a better first value; ties count half. The last two axes are cells and seeds."""
    better = (a[..., :, None] > b[..., None, :]) + 0.5 * (a[..., :, None] == b[..., None, :])
    return np.asarray(better.mean(axis=(-3, -2, -1)))


def _percentiles(first: SeedValues, second: SeedValues) -> tuple[float, float]:
    """Bound the probability of improvement by 95% percentiles; each method's runs are resampled in each cell."""
    a, b = _array(first), _array(second)
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(10):
        resampled = [
            np.take_along_axis(runs[None], rng.integers(runs.shape[1], size=(20, *runs.shape)), axis=2)
            for runs in (a, b)
        ]
        shares.append(_share(*resampled))
    low, high = np.quantile(np.concatenate(shares), [0.025, 0.975])
    return low, high


IMPROVEMENTS: Mapping[str, Callable[[SeedValues, SeedValues], tuple[float, float]]] = {
    "probability_of_improvement": _improvement,
    "percentiles, runs resampled in each cell": _percentiles,
}


def of_improvements(law: Law, studies: Studies, cells: int) -> Iterator[tuple[str, Bounds, float, float]]:
    """Yield each interval of the probability of improvement: its name, its bounds, the truth, and the scale 1.

    The truth compares the quantiles of both methods. The percentiles have bounds of the first tenth of the studies.

    Raises:
        AssertionError: if the law has a single method.
    """
    u = (np.arange(_GRID) + 0.5) / _GRID
    assert law.second is not None
    first, second = law.first(u), np.sort(law.second(u))
    truth = float(sum(np.searchsorted(second, first, side).mean() for side in ("left", "right")) / 2 / _GRID)
    for name, bound in IMPROVEMENTS.items():
        sample = _some(studies, name == next(iter(IMPROVEMENTS)))
        yield name, [bound(*methods) for methods in sample], truth, 1.0


# --- counting ---------------------------------------------------------------------------------------------------


def _some(studies: Studies, are_all: bool) -> Studies:
    return studies if are_all else studies[: max(1, len(studies) // OTHERS_SHARE)]


OF: Mapping[str, tuple[Sequence[Law], Callable[..., Iterator[tuple[str, Bounds, float, float]]]]] = {
    "interquartile mean": (MIDDLE_LAWS, of_middles),
    "profile": (PROFILE_LAWS, of_profiles),
    "improvement": (IMPROVEMENT_LAWS, of_improvements),
}


def of_law(what: str, place: int, studies: int, seed: int) -> list[dict[str, Any]]:
    """Draw the studies of a law, and return a row for each number of cells, kind of seeds, size and interval.

    For one cell of a single method both kinds of seeds are the same; there is one row, with an empty kind.

    Args:
        what: key of `OF`, the quantity to bound.
        place: position of the law in its list.
        studies: number of studies of each kind; large ones are fewer.
        seed: seed of the draws.
    """
    law, bounds_of = OF[what][0][place], OF[what][1]
    tell(f"{what}: {law.name}")
    rows = []
    for cells, are_shared, n in product(CELLS, (True, False), SIZES):
        if law.second is None and cells == 1 and not are_shared:
            continue  # the same as with shared seeds
        rng = np.random.default_rng([seed, zlib.crc32(law.name.encode()), n, cells, are_shared])
        count = max(1, studies // next(share for most, share in SHARES.items() if n * cells <= most))
        methods = drawn(rng, law, (count, n, cells), are_shared=are_shared)
        sample = [
            [seed_values_of(values, are_shared=are_shared, method=method) for method, values in enumerate(study)]
            for study in zip(*methods, strict=True)
        ]
        seeds = "" if law.second is None and cells == 1 else "shared" if are_shared else "own"
        head = {"of": what, "distribution": law.name, "cells": cells, "seeds": seeds, "n": n}
        rows += [
            head | {"interval": name} | held(np.array(bounds) / scale, truth / scale)
            for name, bounds, truth, scale in bounds_of(law, sample, cells)
        ]
    return rows


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count covering intervals; print the tables, and write them with `--out`.

    Raises:
        OSError: if a table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    tasks = [(what, place) for what, (laws, _) in OF.items() for place in range(len(laws))]
    with ProcessPoolExecutor(cores()) as pool:
        parts = pool.map(of_law, *zip(*tasks, strict=True), repeat(arguments.studies), repeat(arguments.seed))
        rows = [row for part in parts for row in part]
    first = arguments.out
    for what in OF:
        if first is not None and what != next(iter(OF)):
            arguments.out = Path(first).with_name(f"{what.replace(' ', '-')}.csv")
        finish([row for row in rows if row["of"] == what], arguments)


if __name__ == "__main__":
    main()
