"""Effect of a look after every batch of seeds on intervals and tests: synthetic studies with a stopping rule.

    python -m benchmarks.looks [--studies N] [--seed N] [--out benchmarks/results/looks.csv]

Each study follows the rule of `seeds: {until: ...}`: a look after every 20 seeds, 400 at most. A cell's study ends when
its interval reaches at most 0.05 to either side, a pair's when the cells differ at 5%. Prints a row for each rule and
each rate or pair of rates, and writes it with `--out`: the coverage, or the share of studies that find a difference,
and the mean number of seeds. The numbers depend on the seed and the number of studies alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.measure import finish, studies_parser, tell
from study import statistics

HALF_WIDTH, BATCH, MOST, ERROR = 0.05, 20, 400, 0.05
LOOKS = tuple(range(BATCH, MOST + 1, BATCH))
RATES = (0.02, 0.05, 0.09, 0.13, 0.2, 0.3, 0.4, 0.5)
FINE = np.arange(1, 251) / 500
"""Rates of the search for the least coverage, by exact probabilities."""
PAIRS = ((0.02, 0.02), (0.1, 0.1), (0.3, 0.3), (0.5, 0.5), (0.55, 0.45), (0.6, 0.4), (0.95, 0.85), (0.9, 0.5))
FAILING = 0.1

CALIBRATED, WITH_FAILED = "calibrated", "calibrated, 10% of trials failed"
WILSON, WILSON_ONCE = "wilson", "wilson, 400 seeds in any case"
ANYTIME, SIGN, FISHER = "anytime_sign_test", "plain sign test", "fisher_exact"
FISHER_ONCE = "fisher_exact, 400 seeds in any case"

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Rng = np.random.Generator
Bounds = Callable[[Counts, Counts], Floats]
"""Returns intervals, shape [studies, 2], from numbers of solved and finished trials."""
PValue = Callable[..., float]
"""Tests two cells by wins, losses, and each cell's solved and total trials."""


# --- cells: until the interval is narrow ---------------------------------------------------------------------------


def narrowed(
    bounds: Bounds, rate: float, rng: Rng, studies: int, looks: Sequence[int] = LOOKS, failing: float = 0.0
) -> tuple[float, float]:
    """Stop each study at its first interval with a half-width of at most `HALF_WIDTH`, or at the last look.

    Args:
        bounds: bounds the rate.
        rate: the true success rate.
        rng: source of the outcomes.
        studies: number of studies.
        looks: numbers of seeds at the looks, increasing.
        failing: share of trials without an outcome.

    Returns:
        The coverage of the last intervals, and the mean number of seeds.
    """
    running = np.ones(studies, bool)
    holds, used = np.zeros(studies, bool), np.zeros(studies)
    solved = finished = np.zeros(studies, np.int64)
    before = 0
    for n in looks:
        more = rng.binomial(n - before, 1 - failing, studies)
        finished, solved, before = finished + more, solved + rng.binomial(more, rate), n
        low, high = bounds(solved, finished).T
        ends = running & (((high - low) / 2 <= HALF_WIDTH) | (n == looks[-1]))
        holds[ends] = ((low <= rate) & (rate <= high))[ends]
        used[ends] = n
        running &= ~ends
    return float(holds.mean()), float(used.mean())


def exactly(bounds: Bounds, rate: float, looks: Sequence[int] = LOOKS) -> tuple[float, float]:
    """Compute the results of `narrowed` exactly, as sums over all numbers of solved seeds, if no trial fails."""
    there, before, holds, used = np.ones(1), 0, 0.0, 0.0
    for n in looks:
        there = np.convolve(there, stats.binom.pmf(np.arange(n - before + 1), n - before, rate))
        low, high = bounds(np.arange(n + 1), np.full(n + 1, n)).T
        ends = ((high - low) / 2 <= HALF_WIDTH) | (n == looks[-1])
        holds += float(there[ends & (low <= rate) & (rate <= high)].sum())
        used += n * float(there[ends].sum())
        there, before = np.where(ends, 0.0, there), n
    return holds, used


def remembered(bounds: Bounds) -> Bounds:
    """Return `bounds` with a cache of the intervals for each number of finished trials."""

    @cache
    def after(n: int) -> Floats:
        return bounds(np.arange(n + 1), np.full(n + 1, n))

    def find(solved: Counts, finished: Counts) -> Floats:
        found = np.empty((len(solved), 2))
        for n in np.unique(finished):
            of_n = finished == n
            found[of_n] = after(int(n))[solved[of_n]]
        return found

    return find


def table_cells(seed: int, studies: int) -> list[dict[str, str]]:
    """Draw studies, and return a row for each way to bound a rate and each of `RATES`.

    Where no trial fails, another row has the way's least coverage over the rates of `FINE`. A row has the coverage, as
    ``share``, and the mean number of seeds, which is empty for the least coverage.
    """
    calibrated = remembered(statistics.FixedWidth(HALF_WIDTH, BATCH, MOST).intervals)
    wilson = remembered(statistics.wilsons)
    ways: dict[str, tuple[Bounds, Sequence[int], float]] = {
        CALIBRATED: (calibrated, LOOKS, 0.0),
        WITH_FAILED: (calibrated, LOOKS, FAILING),
        WILSON: (wilson, LOOKS, 0.0),
        WILSON_ONCE: (wilson, (MOST,), 0.0),
    }
    rows = []
    for way, (bounds, looks, failing) in ways.items():
        tell(way)
        for rate in RATES:
            rng = np.random.default_rng([seed, int(1000 * rate)])
            rows.append(_cell(way, f"{rate:g}", *narrowed(bounds, rate, rng, studies, looks, failing)))
        if not failing:
            rows.append(_cell(way, "least", min(exactly(bounds, rate, looks)[0] for rate in FINE), None))
    return rows


def _cell(way: str, rate: str, coverage: float, seeds: float | None) -> dict[str, str]:
    return {"way": way, "of": rate, "share": f"{coverage:.4f}", "mean_seeds": "" if seeds is None else f"{seeds:.1f}"}


# --- pairs: until they differ --------------------------------------------------------------------------------------


def told_apart(
    p_value: PValue, rates: tuple[float, float], rng: Rng, studies: int, looks: Sequence[int] = LOOKS
) -> tuple[float, float]:
    """Stop each study at its first look with a p-value below 5%; a study without one counts with `MOST` seeds.

    Returns:
        The share of studies with such a p-value, and the mean number of seeds.
    """
    first, second = (rng.random((studies, MOST)) < rate for rate in rates)
    counts = [np.cumsum(a, axis=1) for a in (first & ~second, second & ~first, first, second)]
    apart, used = np.zeros(studies, bool), np.full(studies, MOST)
    for n in looks:
        for i in np.flatnonzero(~apart):
            if p_value(*(int(count[i, n - 1]) for count in counts), n) < ERROR:
                apart[i], used[i] = True, n
    return float(apart.mean()), float(used.mean())


@cache
def _anytime(wins: int, losses: int) -> float:
    return statistics.anytime_sign_test(wins, losses)


@cache
def _sign(wins: int, losses: int) -> float:
    return float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


@cache
def _fisher(first: int, second: int, n: int) -> float:
    return statistics.fisher_exact(first, n, second, n)


def pairs(seed: int, studies: int) -> list[dict[str, str]]:
    """Return a row for each test and pair of rates: share of studies that find a difference, mean number of seeds."""
    ways: dict[str, tuple[PValue, Sequence[int]]] = {
        ANYTIME: (lambda wins, losses, first, second, n: _anytime(wins, losses), LOOKS),
        SIGN: (lambda wins, losses, first, second, n: _sign(wins, losses), LOOKS),
        FISHER: (lambda wins, losses, first, second, n: _fisher(first, second, n), LOOKS),
        FISHER_ONCE: (lambda wins, losses, first, second, n: _fisher(first, second, n), (MOST,)),
    }
    rows = []
    for way, (p_value, looks) in ways.items():
        tell(way)
        for place, rates in enumerate(PAIRS):
            rng = np.random.default_rng([seed, 10_000 + place])  # all ways see the same studies
            share, used = told_apart(p_value, rates, rng, studies, looks)
            rows.append(_cell(way, f"{rates[0]:g} and {rates[1]:g}", share, used))
    return rows


def main(words: Sequence[str] | None = None) -> None:
    """Draw studies with both stopping rules; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    arguments = studies_parser(__doc__).parse_args(words)
    finish([*table_cells(arguments.seed, arguments.studies), *pairs(arguments.seed, arguments.studies)], arguments)


if __name__ == "__main__":
    main()
