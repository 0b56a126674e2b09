"""Success rates to a desired precision: seeds are added in batches until the interval is narrow enough.

Repeated looks reduce the coverage, so each interval is that of Clopper and Pearson at a higher confidence. That
confidence depends on the times of the looks. It is computed exactly, since the probability of each stopping point is
known for any rate. Frey, The American Statistician 64 (2010) 242-249, calibrates Wald's interval in the same way.
Without repeated looks, the interval of Clopper & Pearson, Biometrika 26 (1934) 404-413, has the required coverage at
every rate; Wald's and Wilson's don't.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, check_confidence, check_count

_TERMS = 2_000_000
"""The greatest number of probabilities that are computed at once."""

_STEP = 0.98
"""The factor by which the intervals' error level is reduced until the coverage is sufficient."""

_FEWEST = 0.05
"""The least share of the allowed error that an interval gets: small enough for any sampling."""


@dataclass(frozen=True)
class FixedWidth:
    """Sequential sampling of a success rate until its interval is narrow enough.

    After every `batch` seeds, and after `most`, the interval for k successes in n trials is computed. Sampling ends if
    its half-width is at most `half_width`, or if n = `most`.

    Args:
        half_width: the desired precision, in (0, 0.5).
        batch: the number of seeds between looks, >= 1.
        most: the greatest number of seeds, >= batch.
        confidence: in (0, 1): the least coverage of the interval at the end, for any rate.

    Raises:
        ValueError: if an argument is out of range. All members but `looks` raise it if no interval has the required
            coverage under this sampling.

    Example:
        >>> sampling = FixedWidth(half_width=0.05, batch=20, most=400)
        >>> round(sampling.nominal, 3), sampling.is_narrow(100, 100), sampling.is_narrow(50, 100)
        (0.963, True, False)
        >>> round(sampling.expected(0.9)), round(sampling.expected(0.5))
        (179, 400)
    """

    half_width: float
    batch: int
    most: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.half_width < 0.5:
            raise ValueError(f"0 < half_width < 0.5 must hold, but got {self.half_width}")
        if not 1 <= self.batch <= self.most:
            raise ValueError(f"1 <= batch <= most must hold, but got {self.batch} and {self.most}")
        check_confidence(self.confidence)

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of seeds at the looks."""
        return looks(self.batch, self.most)

    @property
    def nominal(self) -> float:
        """The nominal confidence of each interval, which would be its coverage with a single look.

        Raises:
            ValueError: if no interval has the required coverage.
        """
        return 1 - _calibrated(self)

    def interval(self, successes: int, n: int) -> Interval:
        """Bound the success rate at the end by Clopper and Pearson's interval at the nominal confidence.

        Args:
            successes: k, 0 <= k <= n.
            n: the number of trials; without any, the interval is (0, 1).

        Raises:
            ValueError: if k is out of range, or no interval has the required coverage.
        """
        check_count(successes, n)
        (low, high), *_ = self.intervals([successes], [n])
        return (float(low), float(high))

    def intervals(self, successes: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
        """Bound many success rates as by `interval`, without checks of the counts.

        Args:
            successes: k, shape [rates], 0 <= k <= n.
            n: the numbers of trials, shape [rates]; without any, an interval is (0, 1).

        Returns:
            Shape [rates, 2], low and high.

        Raises:
            ValueError: if no interval has the required coverage.
        """
        return clopper_pearsons(successes, n, _calibrated(self))

    def is_narrow(self, successes: int, n: int) -> bool:
        """Return True if the half-width of the interval is at most `half_width`.

        Raises:
            ValueError: if 0 <= successes <= n doesn't hold, or no interval has the required coverage.
        """
        return _is_narrow(self, successes, n)

    def expected(self, rate: float | None = None) -> float:
        """Compute the expected number of seeds.

        Args:
            rate: the success rate, in [0, 1]; None for the mean over all rates, uniformly distributed.

        Raises:
            ValueError: if no interval has the required coverage.
        """
        ends = self._ends
        if rate is None:  # all numbers of successes are then equally likely
            return float(np.sum(ends.n * ends.share / (ends.n + 1)))
        return float(ends.n @ ends.probability(np.array([rate]))[:, 0])

    def coverage(self, rates: Floats) -> Floats:
        """Compute the exact coverage of the interval at the end, for each of several rates.

        Args:
            rates: in [0, 1], shape [rates].

        Returns:
            Shape [rates].

        Raises:
            ValueError: if no interval has the required coverage.
        """
        ends = self._ends
        low, high = self.intervals(ends.k, ends.n).T
        holds = (low[:, None] <= rates) & (rates <= high[:, None])
        return np.asarray(np.einsum("er,er->r", ends.probability(rates), holds))

    @cached_property
    def _ends(self) -> _Ends:
        return _ends(self, _calibrated(self))


def looks(batch: int, most: int) -> tuple[int, ...]:
    """Return the numbers of seeds at the looks: after each batch, and at the end.

    Args:
        batch: the number of seeds between looks, >= 1.
        most: the number of seeds at the last look, >= 1.

    Example:
        >>> looks(20, 50)
        (20, 40, 50)
    """
    return (*range(batch, most, batch), most)


@dataclass(frozen=True)
class _Ends:
    """The stopping points of the sampling.

    Args:
        n: the number of seeds, shape [ends].
        k: the number of successes, shape [ends].
        share: the share of the orders of k successes and n - k failures that stop there and not before, shape [ends].
    """

    n: npt.NDArray[np.int64]
    k: npt.NDArray[np.int64]
    share: Floats

    def probability(self, rates: Floats) -> Floats:
        """Return the probability of each stopping point at each rate, shape [ends, rates]."""
        k, n = self.k[:, None], self.n[:, None]
        likelihood = _log_ways(n, k) + special.xlogy(k, rates) + special.xlog1py(n - k, -rates)
        return np.asarray(self.share[:, None] * np.exp(likelihood))


def clopper_pearsons(successes: npt.ArrayLike, n: npt.ArrayLike, error: float) -> Floats:
    """Bound many success rates by Clopper and Pearson's interval, whose coverage is at least 1 - `error`.

    The ends are quantiles of beta distributions: B(α/2; k, n - k + 1) and B(1 - α/2; k + 1, n - k).

    Args:
        successes: k, shape [rates].
        n: the numbers of trials, shape [rates]; without any, an interval is (0, 1).
        error: α, in (0, 1).

    Returns:
        Shape [rates, 2], low and high.

    Example:
        >>> clopper_pearsons([98, 0], [100, 0], 0.05).round(4).tolist()
        [[0.9296, 0.9976], [0.0, 1.0]]
    """
    k, total = np.asarray(successes, np.float64), np.asarray(n, np.float64)
    # where a shape parameter is 0, the quantile is the end of the range
    low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), total - k + 1, error / 2), 0.0)
    high = np.where(k < total, special.betaincinv(k + 1, np.maximum(total - k, 1), 1 - error / 2), 1.0)
    return np.column_stack([low, high])


@lru_cache(maxsize=100_000)  # thousands of cells have the same counts
def _is_narrow(sampling: FixedWidth, successes: int, n: int) -> bool:
    """Return True if an interval's half-width is at most the desired one."""
    low, high = sampling.interval(successes, n)
    return (high - low) / 2 <= sampling.half_width


@lru_cache(maxsize=32)
def _calibrated(sampling: FixedWidth) -> float:
    """Find the error level of each interval that gives the required coverage; raise ValueError if there is none."""
    allowed = 1 - sampling.confidence
    error = allowed
    while error > _FEWEST * allowed:
        if _covers(sampling, error):
            return error
        error *= _STEP
    raise ValueError(f"no interval has a confidence of {sampling.confidence} under this sampling")


def _covers(sampling: FixedWidth, error: float) -> bool:
    """Return True if the coverage suffices just below and just above each end of an interval, where it jumps."""
    ends = _ends(sampling, error)
    low, high = clopper_pearsons(ends.k, ends.n, error).T
    jumps = np.unique(np.concatenate([low, high]))
    jumps = jumps[(jumps > 0) & (jumps <= 0.5)]  # coverage at 1 - p is that at p
    parts = -(-2 * len(jumps) * len(ends.n) // _TERMS)
    for part in range(parts):  # each part spans all rates, so that the first part finds most failures
        rates = np.concatenate([jumps[part::parts] * (1 - 1e-9), jumps[part::parts] * (1 + 1e-9)])
        holds = (low[:, None] <= rates) & (rates <= high[:, None])
        if np.einsum("er,er->r", ends.probability(rates), holds).min() < sampling.confidence:
            return False
    return True


def _ends(sampling: FixedWidth, error: float) -> _Ends:
    """Find the stopping points, with the share of orders that haven't stopped before."""
    ns, ks, shares = [], [], []
    before, reached = 0, np.ones(1)
    for n in sampling.looks:
        k = np.arange(n + 1)
        reached = _onward(reached, before, n)
        low, high = clopper_pearsons(k, np.full(n + 1, n), error).T
        ended = ((high - low) / 2 <= sampling.half_width) | (n == sampling.most)
        there = ended & (reached > 0)
        ns.append(np.full(np.count_nonzero(there), n))
        ks.append(k[there])
        shares.append(reached[there])
        before, reached = n, np.where(ended, 0.0, reached)
        if not reached.any():
            break  # possibly long before `most`
    return _Ends(np.concatenate(ns), np.concatenate(ks), np.concatenate(shares))


def _onward(reached: Floats, before: int, n: int) -> Floats:
    """Return, for each k, the share of the orders of k successes in n that pass through the states reached before.

    Of k successes in n, the number i among the last n - `before` is hypergeometric, for any rate.
    """
    added = n - before
    k, i = np.arange(n + 1)[:, None], np.arange(added + 1)
    j = k - i
    possible = (j >= 0) & (j <= before)
    j = np.where(possible, j, 0)
    probability = np.exp(_log_ways(before, j) + _log_ways(added, i) - _log_ways(n, k))
    return np.asarray(np.sum(np.where(possible, reached[j] * probability, 0.0), axis=1))


def _log_ways(n: npt.ArrayLike, k: npt.NDArray[np.int64]) -> Floats:
    """Return the logarithm of the number of ways to choose k of n."""
    total = np.asarray(n)
    return np.asarray(special.gammaln(total + 1) - special.gammaln(k + 1) - special.gammaln(total - k + 1))
