"""Error rates of tests between two methods, each at its best value of a hyperparameter.

    python -m benchmarks.tuned [--studies N] [--seed N] [--out benchmarks/results/tuned/laws.csv]

Both methods have the same seeds at all of their values. The estimand is the difference of their best values' means.
`tuned_difference` is compared with the usual practice in papers, a test of the best values on the same seeds, and with
other ways. Those see a quarter of the studies. Both methods are equally good, or one is better by three standard errors
of the difference of two values. With more than 12 seeds, 4,095 subsets are flipped instead of the package's 32,767,
which takes an eighth of the time.

Prints a row for each law, truth, sample size and way: the rates of right and of wrong winners, and the coverage and
width of the interval. A second table has the extremes of each way over all laws. `--out` writes the first, and the
second as ways.csv beside it. The numbers depend on the seed and the number of studies alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from benchmarks.measure import finish, studies_parser, tell
from study import statistics
from study.statistics.tuned import CrossFit, cross_fit, halved, tuned_test

SIZES = (10, 20, 50)
LEVEL = 0.05
SPLITS = 20
APART_ERRORS = 3.0
"""Advantage of a better method, in standard errors of the difference of two values' means."""
OTHERS_SHARE = 4
"""Divisor of the number of studies for the other ways."""
_SUBSETS = 2**12 - 1
_FLIPS = 499
_STUDIES_AT_ONCE = 32
_NUMBERS_AT_ONCE = 2**22

Floats = npt.NDArray[np.float64]
Result = tuple[Floats, Floats, Floats]
"""Estimates, intervals and p-values of studies."""
Noise = Callable[[Floats], Floats]
Gaps = Callable[[int], Sequence[float]]


@dataclass(frozen=True)
class Law:
    """A distribution of two methods' outcomes; greater ones are better.

    Args:
        name: its name in the tables.
        first: distances of the first method's means from its best, as a function of the number of seeds.
        second: the same of the second method.
        noise: transform of standard normal numbers, [studies, seeds, values], to ones with a mean of 0. `apart` assumes
            a variance of 1.
        scale: factor of the second method's noise; the first method's is 1.
        shared: the correlation of all outcomes of a seed before `noise`.
        alike: extra correlation of the outcomes of one method.
        diverging: the share of infinitely bad outcomes; if positive, all outcomes are replaced by their ranks.
    """

    name: str
    first: Gaps
    second: Gaps
    noise: Noise = lambda normal: normal
    scale: float = 1.0
    shared: float = 0.0
    alike: float = 0.0
    diverging: float = 0.0

    def draw(self, rng: np.random.Generator, studies: int, seeds: int, apart: float) -> list[Floats]:
        """Draw outcomes of both methods: an array [studies, seeds, values] of each.

        The first method's outcomes are greater by `apart`. If `diverging` is positive, the arrays have the outcomes'
        ranks in their study instead, divided by the number of its outcomes.
        """
        common = math.sqrt(self.shared) * rng.normal(size=(studies, seeds, 1))
        methods = []
        for gaps, scale, more in ((self.first(seeds), 1.0, apart), (self.second(seeds), self.scale, 0.0)):
            own = math.sqrt(self.alike) * rng.normal(size=(studies, seeds, 1))
            residual = math.sqrt(1 - self.shared - self.alike) * rng.normal(size=(studies, seeds, len(gaps)))
            methods.append(scale * self.noise(common + own + residual) - np.asarray(gaps) + more)
        return self._ranked(rng, methods) if self.diverging else methods

    def _ranked(self, rng: np.random.Generator, methods: Sequence[Floats]) -> list[Floats]:
        """Let outcomes diverge, and return each method's ranks among a study's outcomes, divided by their count."""
        outcomes = np.concatenate(methods, axis=2)
        outcomes[rng.random(outcomes.shape) < self.diverging] = -np.inf
        flat = outcomes.reshape(len(outcomes), -1)
        shares = stats.rankdata(flat, axis=1).reshape(outcomes.shape) / flat.shape[1]
        return np.split(shares, [methods[0].shape[2]], axis=2)

    def apart(self, seeds: int) -> float:
        """Return the advantage of a better method.

        It is `APART_ERRORS` standard errors of the difference of two values' means, with this number of seeds.
        """
        variance = 1 + self.scale**2 - 2 * self.scale * self.shared
        return APART_ERRORS * math.sqrt(variance / seeds)


@dataclass(frozen=True)
class Rates:
    """Successes, 0 or 1, of two methods whose success rates are given for each value.

    Args:
        name: its name in the tables.
        first: rates of the first method's values.
        second: rates of the second one's.
        shared: the correlation of the latent numbers among all outcomes of a seed.
    """

    name: str
    first: Sequence[float]
    second: Sequence[float]
    shared: float = 0.3

    def draw(self, rng: np.random.Generator, studies: int, seeds: int, apart: float) -> list[Floats]:
        """Draw the outcomes of both methods, shape [studies, seeds, values]; `apart` is ignored."""
        common = math.sqrt(self.shared) * rng.normal(size=(studies, seeds, 1))
        methods = []
        for rates in (self.first, self.second):
            own = math.sqrt(1 - self.shared) * rng.normal(size=(studies, seeds, len(rates)))
            methods.append((common + own < special.ndtri(np.asarray(rates))).astype(np.float64))
        return methods

    def apart(self, seeds: int) -> float:
        """Return the first method's best rate minus the second's; `seeds` is ignored."""
        return max(self.first) - max(self.second)


def equal(count: int) -> Gaps:
    """Return distances of values from the best mean, for any number of seeds: 0 for all `count` values."""
    return lambda seeds: [0.0] * count


def alone(count: int, place: int, gap: float) -> Gaps:
    """Return distances of values from the best mean, for any number of seeds: 0 at `place`, `gap` at the others."""
    return lambda seeds: [0.0 if value == place else gap for value in range(count)]


def near(count: int, place: int, errors: float) -> Gaps:
    """Return distances of values from the best mean, by seeds: 0 at `place`, else `errors` standard errors."""
    return lambda seeds: alone(count, place, errors / math.sqrt(seeds))(seeds)


def peaked(count: int, place: int, curvature: float) -> Gaps:
    """Return distances of values from the best mean, for any number of seeds: curvature (value - place)²."""
    return lambda seeds: [curvature * (value - place) ** 2 for value in range(count)]


def _skewed(normal: Floats) -> Floats:
    """Transform standard normal numbers to negated log-normal ones, scaled to a mean of 0 and a variance of 1."""
    return np.asarray((math.exp(0.5) - np.exp(normal)) / math.sqrt((math.e - 1) * math.e))


def _failing(normal: Floats) -> Floats:
    """Transform standard normal numbers to ones with mean 0 and variance 1.1, a tenth of them far below the others."""
    fails = special.ndtr(normal) < 0.1
    spread = np.where(fails, -3.0, 1 / 3) + 0.1 * normal
    return np.asarray(spread / math.sqrt(0.1 * 9 + 0.1 + 0.01))


def _noisier(values: Floats) -> Floats:
    """Scale the noise of the hyperparameter's values by 0.3 to 2; leave that of a single value unchanged."""
    count = values.shape[-1]
    return values * np.geomspace(0.3, 2.0, count) if count > 1 else values


LAWS: Sequence[Law | Rates] = (
    Law("3 and 3 values, all equal", equal(3), equal(3)),
    Law("10 and 1, all equal", equal(10), equal(1)),
    Law("10 and 10, all equal", equal(10), equal(10)),
    Law("10 and 10, all equal, seeds alike", equal(10), equal(10), shared=0.5, alike=0.3),
    Law("10 and 1, all equal, seeds alike", equal(10), equal(1), shared=0.5, alike=0.3),
    Law("10 equal ones, and 1 good of 10", equal(10), alone(10, 6, 4.0)),
    Law("1 good of 10, and 1", alone(10, 4, 4.0), equal(1)),
    Law("1 good of 10 each", alone(10, 4, 4.0), alone(10, 6, 4.0)),
    Law("1 good of 10, others 2 errors worse, and 1", near(10, 4, 2.0), equal(1)),
    Law("the same, the 1 with a fifth of the noise", near(10, 4, 2.0), equal(1), scale=0.2),
    Law("peaks over 10 values each", peaked(10, 3, 0.1), peaked(10, 6, 0.1)),
    Law("peak over 10 values, and 1", peaked(10, 3, 0.1), equal(1)),
    Law("10 values with noise from 0.3 to 2, and 1", equal(10), equal(1), noise=_noisier),
    Law("skewed, 10 and 1, all equal", equal(10), equal(1), noise=_skewed),
    Law("skewed, peaks over 10 values each", peaked(10, 3, 0.1), peaked(10, 6, 0.1), noise=_skewed),
    Law("a tenth fails, 10 and 1, all equal", equal(10), equal(1), noise=_failing),
    Law("a fifth diverges, ranks, 10 and 1, all equal", equal(10), equal(1), diverging=0.2),
    Rates("rates of 0.5, 10 and 1", [0.5] * 10, [0.5]),
    Rates("rates of 0.9, 10 and 10", [0.9] * 10, [0.9] * 10),
    Rates("rates up to 0.8 of 5 each", [0.1, 0.4, 0.8, 0.6, 0.2], [0.3, 0.7, 0.8, 0.5, 0.1]),
    Rates("rates up to 0.8 of 5, up to 0.5 of 5", [0.1, 0.4, 0.8, 0.6, 0.2], [0.3, 0.4, 0.5, 0.3, 0.1]),
)


def _fits(first: Floats, second: Floats, splits: int = SPLITS) -> list[CrossFit]:
    halves = halved(first.shape[1], splits)
    return [cross_fit(values, halves) for values in (first, second)]


def _tuned(first: Floats, second: Floats) -> Result:
    return tuned_test(*_fits(first, second))


def _unmoved(first: Floats, second: Floats) -> Result:
    """Test like `_tuned`, but without its correction for optimism."""
    none = np.zeros(len(first))
    return tuned_test(*(replace(fit, optimism=none) for fit in _fits(first, second)))


def _of_scores(first: Floats, second: Floats) -> Result:
    """Test the differences of the methods' cross-fitted scores by sign flips, as if the halves' choices were known."""
    fits = _fits(first, second)
    return statistics.sign_flips(fits[0].values - fits[1].values)


def _same_seeds(first: Floats, second: Floats) -> Result:
    """Take each method's value with the best mean, and test their differences on the same seeds by sign flips."""
    best = [
        np.take_along_axis(y, y.mean(axis=1).argmax(axis=1)[:, None, None], axis=2)[..., 0] for y in (first, second)
    ]
    return statistics.sign_flips(best[0] - best[1])


def _each_left_out(first: Floats, second: Floats) -> Result:
    """Evaluate each seed at the value chosen by all others, and test the differences by sign flips."""
    scores = []
    for values in (first, second):
        chosen = (values.sum(axis=1, keepdims=True) - values).argmax(axis=2)
        scores.append(np.take_along_axis(values, chosen[..., None], axis=2)[..., 0])
    return statistics.sign_flips(scores[0] - scores[1])


def _two_halves(first: Floats, second: Floats) -> Result:
    """Double the smaller p-value of two halves, each tested at the other's choice; intervals are NaN."""
    fits, halves = _fits(first, second, 1), halved(first.shape[1], 1).astype(bool)
    difference = fits[0].values - fits[1].values
    sides = [statistics.sign_flips(difference[:, half]) for half in halves]
    smaller = np.argmin([p for _, _, p in sides], axis=0)
    place = np.arange(len(first))
    estimates, p_values = (np.stack([side[part] for side in sides])[smaller, place] for part in (0, 2))
    return estimates, np.full((len(first), 2), np.nan), np.minimum(1.0, 2 * p_values)


@lru_cache(maxsize=1)
def _flips(seeds: int) -> Floats:
    """Return random signs, [flips, seeds], the same at each call; the first row is all positive."""
    signs = np.random.default_rng(seeds).choice([-1.0, 1.0], size=(_FLIPS + 1, seeds))
    signs[0] = 1.0
    return signs


def _exchanged(first: Floats, second: Floats) -> Result:
    """Test by exchanging the methods of whole seeds and choosing again; intervals are NaN.

    The test is exact if both methods are equally distributed. They must have equally many values.
    """
    middle, half = (first + second) / 2, (first - second) / 2
    flipped = np.einsum("bn,snk->bsk", _flips(first.shape[1]), half, optimize=True)
    totals = middle.sum(axis=1)
    gaps = (totals + flipped).max(axis=2) - (totals - flipped).max(axis=2)
    p_values = np.mean(np.abs(gaps) >= np.abs(gaps[0]) - 1e-9, axis=0)
    return gaps[0] / first.shape[1], np.full((len(first), 2), np.nan), p_values


def _simultaneous(first: Floats, second: Floats) -> Result:
    """Test the greatest difference from each value of the other method, and take the largest p-value.

    The smaller one of both directions is doubled, and gives the estimate, 1 or -1. Intervals are NaN.
    """
    sides = [_side(first, second), _side(second, first)]
    p_values = np.minimum(1.0, 2 * np.minimum(*sides))
    return np.where(sides[0] < sides[1], 1.0, -1.0), np.full((len(first), 2), np.nan), p_values


def _side(better: Floats, worse: Floats) -> Floats:
    greatest = np.zeros(len(better))
    for value in range(worse.shape[2]):
        gaps = better - worse[:, :, value, None]
        scores = np.einsum("bn,snk->bsk", _flips(better.shape[1]), gaps, optimize=True)
        tops = (scores / np.sqrt(np.maximum(np.sum(gaps**2, axis=1), 1e-12))).max(axis=2)
        greatest = np.maximum(greatest, np.mean(tops >= tops[0] - 1e-9, axis=0))
    return greatest


OWN, USUAL = "tuned_difference", "best values, on the same seeds"
WAYS: Mapping[str, Callable[[Floats, Floats], Result]] = {
    OWN: _tuned,
    USUAL: _same_seeds,
    "each seed where the others are best": _each_left_out,
    "halves' scores, as if choices were known": _of_scores,
    "pseudo-values, ends not moved": _unmoved,
    "two halves, the smaller p doubled": _two_halves,
    "seeds exchanged, chosen again": _exchanged,
    "all values at once": _simultaneous,
}


def in_parts(way: Callable[[Floats, Floats], Result], first: Floats, second: Floats) -> Result:
    """Test studies, at least one, in parts that fit into memory, and return all results in their order."""
    numbers = first.shape[1] * 2 * SPLITS * max(first.shape[2], second.shape[2])
    size = max(1, min(_STUDIES_AT_ONCE, _NUMBERS_AT_ONCE // numbers))
    parts = [way(first[start : start + size], second[start : start + size]) for start in range(0, len(first), size)]
    estimates, bounds, p_values = (np.concatenate([part[place] for part in parts]) for place in range(3))
    return estimates, bounds, p_values


def counted(result: Result, truth: float) -> dict[str, str]:
    """Return the shares of right and of wrong winners, and the coverage and mean width of the finite intervals.

    The share of right winners is empty if the methods are equal; coverage and width are if no interval is finite.
    """
    estimates, bounds, p_values = result
    is_called = p_values <= LEVEL
    is_right = is_called & (np.sign(estimates) == np.sign(truth)) & (truth != 0)
    is_there = np.isfinite(bounds).all(axis=1)
    low, high = bounds[is_there].T
    holds = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
    return {
        "found": f"{is_right.mean():.4f}" if truth else "",
        "false": f"{np.mean(is_called & ~is_right):.4f}",
        "coverage": f"{holds.mean():.4f}" if holds.size else "",
        "width": f"{np.mean(high - low):.4f}" if holds.size else "",
    }


def cases(law: Law | Rates, seeds: int) -> Iterator[tuple[str, float]]:
    """Yield each truth of a law with the first method's mean or rate minus the second's, both at their best values.

    The truth is ``equal``, ``first better`` or ``second better``. A law with diverging outcomes has only ``equal``, and
    `Rates` have one truth.
    """
    apart = law.apart(seeds)
    if isinstance(law, Rates):
        yield "first better" if apart else "equal", apart
        return
    yield "equal", 0.0
    if law.diverging:  # the difference of mean ranks depends on all values
        return
    yield "first better", apart
    if law.first(seeds) != law.second(seeds) or law.scale != 1:
        yield "second better", -apart


def of_law(law: Law | Rates, studies: int, seed: int) -> Iterator[dict[str, Any]]:
    """Draw the studies of a law, and yield a row for each number of seeds, truth and applicable way."""
    for seeds in SIZES:
        for better, truth in cases(law, seeds):
            rng = np.random.default_rng([seed, zlib.crc32(law.name.encode()), seeds, zlib.crc32(better.encode())])
            first, second = law.draw(rng, studies, seeds, truth)
            for name, way in WAYS.items():
                if way is not _exchanged or first.shape == second.shape:
                    head = {"distribution": law.name, "truth": better, "n": seeds, "way": name}
                    count = studies if name in (OWN, USUAL) else max(1, studies // OTHERS_SHARE)
                    yield head | counted(in_parts(way, first[:count], second[:count]), truth)


def extremes(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each way and sample size, over all laws.

    It has the greatest rate of wrong winners, the least coverage (empty if no row has one), and the mean rate of right
    winners (``nan`` if no row has one).

    Raises:
        ValueError: if a way has no rows of a size.
    """
    for way in WAYS:
        for n in SIZES:
            own = [row for row in rows if row["way"] == way and row["n"] == n]
            found = [float(row["found"]) for row in own if row["found"]]
            coverage = [float(row["coverage"]) for row in own if row["coverage"]]
            yield {
                "way": way,
                "n": n,
                "most_false": f"{max(float(row['false']) for row in own):.4f}",
                "least_coverage": f"{min(coverage):.4f}" if coverage else "",
                "mean_found": f"{np.mean(found):.4f}",
            }


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies, and count winners and covering intervals; print both tables, and write them with `--out`.

    Raises:
        OSError: if a table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    rows: list[dict[str, Any]] = []
    module = import_module("study.statistics.sign_flips")  # the package's attribute of that name is the function
    with mock.patch.object(module, "_SUBSETS", _SUBSETS):
        module._subsets.cache_clear()
        for law in LAWS:
            tell(law.name)
            rows += of_law(law, arguments.studies, arguments.seed)
    module._subsets.cache_clear()
    finish(rows, arguments)
    arguments.out = arguments.out and Path(arguments.out).with_name("ways.csv")
    finish(list(extremes(rows)), arguments)


if __name__ == "__main__":
    main()
