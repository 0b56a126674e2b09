"""How much of the variance of trials each of two sources of randomness makes, crossed or nested.

The number of the trial with the first source's seed i and the second one's seed j is y_ij = μ + a_i + b_j + e_ij, of
random effects with the variances σ_a², σ_b² and σ_e². Trials are deterministic, so e_ij is what only the combination
makes. For success, y_ij is a latent number, and a trial is solved if it is positive: its parts are normal, and
σ_a² + σ_b² + σ_e² = 1. Shares are σ_a², σ_b² and σ_e² of their sum. Nested, each i has seeds j of its own, and b_j and
e_ij can't be told apart.

Two trials that share i alone have the covariance σ_a², and two that share nothing have none. With the means M_a, M_b
and M_0 of the products of all pairs that share i, j or nothing, the estimates are M_a - M_0 of σ_a², M_b - M_0 of σ_b²,
and what is left of the mean square minus M_0 of σ_e². In a complete array that is the analysis of variance: Searle,
Casella & McCulloch, Variance Components (1992).

The intervals compare what was computed of the trials with what comes of arrays that are drawn from the model with
shares of all sizes, each source being without effect in a quarter of them: the shares of those that look most alike
(Rubin, Annals of Statistics 12 (1984) 1151-1172). For success their quantiles are expanded for few seeds. Of numbers
that needn't be normal they are widened to hold the jackknife's, which leaves out one seed of a source at a time, of
log((s + 1/10)/(11/10 - s)) for a share s, whose error depends less on s than that of s itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, check_confidence

_MOST_DRAWS, _FEWEST_DRAWS, _NUMBERS = 60_000, 9_000, 24_000_000
"""Arrays that are drawn: as many as have so many numbers together, within limits."""
_MOST_DRAWN = _NUMBERS // _FEWEST_DRAWS
"""The most numbers of a nested array whose trials are drawn one by one; of more, each row's successes are counted."""
_ALIKE = 150
"""One in so many of them counts as alike."""
_AT_ONCE = 800_000
_WITHOUT = 0.25
_CONCENTRATION = 0.6
_OFFSET = 0.1
_NEAR = (0.35, 0.8)
"""How far apart rates, as normal quantiles, and covariances, times the levels of a source, count as equally unlike."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class VarianceShares:
    """How much of the variance each source makes.

    Args:
        shares: of the first source, of the second, and of their combination; they add up to 1. Nested, the second has
            both of the latter, and the third is 0.
        intervals: of each, 95% unless another confidence is asked for.
        variances: σ_a², σ_b² and σ_e² of the numbers themselves, also for success, those below 0 taken as 0. Nested,
            the third is that of the second source and the combination.
        levels: how many seeds each source has.
        trials: how many have a number.
    """

    shares: tuple[float, float, float]
    intervals: tuple[Interval, Interval, Interval]
    variances: tuple[float, float, float]
    levels: tuple[int, int]
    trials: int

    @property
    def standard_error(self) -> float:
        """That of the mean of the trials: sqrt(σ_a²/I + σ_b²/J + σ_e²/n), with what is expected of the sources."""
        return self.error_with(self.levels, self.trials)

    def error_with(self, levels: tuple[int, int], trials: int) -> float:
        """Compute the standard error of the mean with other numbers of seeds and trials."""
        a, b, rest = self.variances
        return float(np.sqrt(a / levels[0] + b / levels[1] + rest / trials))

    def errors_after(self, more: int) -> tuple[float, float, float]:
        """Compute the standard error of the mean after so many trials more.

        Returns:
            With new seeds of the first source and those of the second that there are; the other way round; and with new
            seeds of both in each trial, the two means being weighted by their errors.

        Example:
            >>> of = VarianceShares((0.5, 0, 0.5), ((0, 1),) * 3, (0.1, 0.0, 0.1), (10, 10), 100)
            >>> [round(error, 3) for error in (of.standard_error, *of.errors_after(100))]
            [0.105, 0.074, 0.102, 0.041]
        """
        first, second = self.levels
        trials = self.trials + more
        new_first = self.error_with((first + max(1, round(more / second)), second), trials)
        new_second = self.error_with((first, second + max(1, round(more / first))), trials)
        both = [self.standard_error**2, sum(self.variances) / more]
        return new_first, new_second, float(1 / np.sqrt(sum(1 / max(v, 1e-300) for v in both)))


def variance_shares(
    values: Floats, *, is_success: bool = False, is_nested: bool = False, confidence: float = 0.95
) -> VarianceShares | None:
    """Estimate how much of the variance of trials each of two sources of randomness makes.

    Args:
        values: shape [seeds of the first source, seeds of the second]; NaN where a trial has no number. For success, 1
            where the trial was solved and 0 where not. Nested, a row has the seeds that belong to its seed.
        is_success: whether shares are those of latent numbers.
        is_nested: whether rows have seeds of their own.
        confidence: in (0, 1).

    Returns:
        None with fewer than three seeds of a source (nested, two of the second), if all numbers are equal, or if so
        many are missing that no two trials share a seed of one source alone, or none.

    Raises:
        ValueError: if a number is infinite, or, for success, neither 0 nor 1; or the confidence is out of range.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> of = variance_shares(rng.normal(size=(20, 1)) + 0.5 * rng.normal(size=(20, 20)))
        >>> [round(share, 2) for share in of.shares], [round(end, 2) for end in of.intervals[0]]
        ([0.76, 0.0, 0.24], [0.57, 0.9])
    """
    check_confidence(confidence)
    y = np.asarray(values, np.float64)
    mask = ~np.isnan(y)
    if np.isinf(y).any() or (is_success and not np.isin(y[mask], (0, 1)).all()):
        raise ValueError("numbers must be finite, and for success 0 or 1")
    y, mask = known_trials(y)
    levels = mask.shape
    if not has_pairs(y, mask, is_nested=is_nested) or np.ptp(y[mask]) == 0:
        return None
    own = np.maximum(_variances(y, mask, is_nested), 0.0)
    if not own.any():
        return None
    alike = likely_shares(y, mask, is_success=is_success, is_nested=is_nested)
    shares = alike.mean(axis=0) if is_success else own / own.sum()
    tail = (1 - confidence) / 2
    if is_success:
        low, high = _expanded(alike, levels, is_nested, tail)
    else:
        low, high = np.quantile(alike, [tail, 1 - tail], axis=0)
        ends = _jackknife(y, mask, is_nested, tail)
        low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
        low, high = np.minimum(low, shares), np.maximum(high, shares)
    bounds = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    variances = own[[0, 2, 1]] if is_nested else own
    return VarianceShares(
        _three(shares), (bounds[0], bounds[1], bounds[2]), _three(variances), levels, int(np.count_nonzero(mask))
    )


def likely_shares(y: Floats, mask: Mask, *, is_success: bool, is_nested: bool) -> Floats:
    """Return the shares of the arrays that look most like an array, among those that are drawn from the model.

    Args:
        y: shape [seeds of the first source, seeds of the second], 0 where a trial is missing.
        mask: where there is a trial; each row and column has one.
        is_success: whether shares are those of latent numbers.
        is_nested: whether rows have seeds of their own.

    Returns:
        Shape [draws, 3].
    """
    drawn, summaries = _table(y.shape, mask.tobytes(), is_success, is_nested)
    return _alike(drawn, summaries, _summary(y, mask, is_success, is_nested), mask.shape)


def known_trials(values: Floats) -> tuple[Floats, Mask]:
    """Return an array without empty rows and columns, missing trials as 0, and where there are trials."""
    y = np.asarray(values, np.float64)
    mask = ~np.isnan(y)
    filled, mask = (part[mask.any(axis=1)][:, mask.any(axis=0)] for part in (np.where(mask, y, 0.0), mask))
    return filled, mask


def has_pairs(y: Floats, mask: Mask, *, is_nested: bool) -> bool:
    """Return whether there are enough seeds of both sources, and pairs of trials that share each, or none."""
    rows, columns = mask.shape
    is_large = rows >= 3 and columns >= (2 if is_nested else 3)
    return is_large and not np.isnan(_variances(y, mask, is_nested)).any()


def _three(numbers: Floats) -> tuple[float, float, float]:
    first, second, third = numbers.tolist()
    return first, second, third


def _variances(y: Floats, mask: Mask, is_nested: bool) -> Floats:
    """Estimate the three variances of arrays [..., I, J], without bias, from the products of pairs; [..., 3].

    NaN where no two trials share a row alone, a column alone, or nothing.
    """
    n, rows, columns = mask.sum((-2, -1)), mask.sum(-1), mask.sum(-2)
    y = y - _mean(y.sum((-2, -1)), n)[..., None, None] * mask  # else the products of large numbers cancel
    squares, everything = (y**2).sum((-2, -1)), y.sum((-2, -1)) ** 2
    of_rows, count_rows = (y.sum(-1) ** 2).sum(-1) - squares, (rows**2).sum(-1) - n
    if is_nested:
        none = _mean(everything - squares - of_rows, n**2 - n - count_rows)
        first = _mean(of_rows, count_rows) - none
        rest = _mean(squares, n) - none - first
        return np.stack([first, rest, np.zeros_like(first)], -1)
    of_columns, count_columns = (y.sum(-2) ** 2).sum(-1) - squares, (columns**2).sum(-1) - n
    none = _mean(everything - squares - of_rows - of_columns, n**2 - n - count_rows - count_columns)
    first, second = _mean(of_rows, count_rows) - none, _mean(of_columns, count_columns) - none
    return np.stack([first, second, _mean(squares, n) - none - first - second], -1)


def _mean(total: Floats, count: npt.NDArray[np.int64]) -> Floats:
    """Divide, where there is something to divide by; elsewhere there is no mean, which is NaN."""
    count = np.broadcast_to(count, np.shape(total))
    return np.asarray(np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0))


def _summary(y: Floats, mask: Mask, is_success: bool, is_nested: bool) -> Floats:
    """Compute what arrays are compared by: the rate, as a normal quantile, and the parts of the variance; [..., 3]."""
    variances, n = _variances(y, mask, is_nested), mask.sum()
    if is_success:
        return _of_success(y.sum((-2, -1)), n, variances)
    total = np.maximum(variances.sum(-1), 1e-300)
    return np.stack([np.zeros_like(total), variances[..., 0] / total, variances[..., 1] / total], -1)


def _of_success(solved: Floats, n: int, variances: Floats) -> Floats:
    rate = (solved + 0.5) / (n + 1)
    spread = rate * (1 - rate)
    return np.stack([special.ndtri(rate), variances[..., 0] / spread, variances[..., 1] / spread], -1)


def _summary_of_counts(solved: Floats, trials: Floats) -> Floats:
    """Compute what `_summary` does of nested successes, from how many trials of each row were solved; [..., 3]."""
    n = trials.sum()
    rate = solved.sum(-1) / n
    squares, pairs = n * rate * (1 - rate), float(np.sum(trials**2) - n)
    of_rows = ((solved - rate[..., None] * trials) ** 2).sum(-1) - squares
    none = -(squares + of_rows) / (n**2 - n - pairs)
    first = of_rows / pairs - none
    return _of_success(solved.sum(-1), n, np.stack([first, squares / n - none - first], -1))


@lru_cache(maxsize=8)
def _table(shape: tuple[int, int], mask_bytes: bytes, is_success: bool, is_nested: bool) -> tuple[Floats, Floats]:
    """Draw arrays from the model, and return their shares and what they are compared by."""
    mask = np.frombuffer(mask_bytes, bool).reshape(shape)
    draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _NUMBERS // mask.size))
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([_CONCENTRATION] * 3, draws)
    if is_nested:
        shares = np.stack([shares[:, 0], shares[:, 1] + shares[:, 2], np.zeros(draws)], -1)
    for source in range(1 if is_nested else 2):
        shares[rng.random(draws) < _WITHOUT, source] = 0.0
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    bounds = special.ndtri(rng.uniform(0.02, 0.98, draws))
    if is_nested and is_success and mask.size > _MOST_DRAWN:
        trials = mask.sum(axis=1).astype(np.float64)
        latent = bounds[:, None] - np.sqrt(shares[:, :1]) * rng.standard_normal((draws, len(trials)))
        chances = special.ndtr(latent / np.sqrt(np.maximum(shares[:, 1:2], 1e-300)))
        return shares, _summary_of_counts(rng.binomial(trials.astype(np.int64), chances).astype(np.float64), trials)
    some = max(1, _AT_ONCE // mask.size)
    summaries = []
    for first in range(0, draws, some):
        a, b, rest = (np.sqrt(of)[:, None, None] for of in shares[first : first + some].T)
        count = len(a)
        y = a * rng.standard_normal((count, shape[0], 1)) + np.where(is_nested, b, rest) * rng.standard_normal(
            (count, *shape)
        )
        if not is_nested:
            y += b * rng.standard_normal((count, 1, shape[1]))
        if is_success:
            y = (y < bounds[first : first + some, None, None]).astype(np.float64)
        summaries.append(_summary(y * mask, mask, is_success, is_nested))
    return shares, np.concatenate(summaries)


def _alike(drawn: Floats, summaries: Floats, of: Floats, levels: tuple[int, int]) -> Floats:
    """Choose the shares of the arrays that look most like one."""
    near = np.array([_NEAR[0], _NEAR[1] / levels[0], _NEAR[1] / levels[1]])
    distances = (((summaries - of) / near) ** 2).sum(axis=1)
    count = len(drawn) // _ALIKE
    return np.asarray(drawn[np.argpartition(distances, count)[:count]])


def _expanded(alike: Floats, levels: tuple[int, int], is_nested: bool, tail: float) -> tuple[Floats, Floats]:
    """Take quantiles of the shares, farther out for a source of few seeds: by the p of Φ(z m/(m - 1)), m its seeds."""
    first, second = levels
    seeds = np.array([first, first * (second - 1) + 1 if is_nested else second, (first - 1) * (second - 1) + 1])
    outer = special.ndtr(special.ndtri(tail) * seeds / (seeds - 1))
    pairs = [np.quantile(of, [p, 1 - p]) for of, p in zip(alike.T, outer, strict=True)]
    low, high = np.transpose(pairs)
    return low, high


def _jackknife(y: Floats, mask: Mask, is_nested: bool, tail: float) -> tuple[Floats, Floats]:
    """Bound the shares by leaving out one row at a time, and, crossed, one column at a time."""
    center = _logits(y, mask, is_nested)
    spreads, freedoms = [], []
    for count, left_out in zip(y.shape[: 1 if is_nested else 2], _one_out(y.shape), strict=False):
        some = mask & ~left_out
        left = _logits(y * some, some, is_nested)
        spreads.append((count - 1) / count * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
        freedoms.append(count - 1)
    total = np.sum(spreads, axis=0)
    freedom = total**2 / np.maximum(sum(v**2 / f for v, f in zip(spreads, freedoms, strict=True)), 1e-300)
    reach = special.stdtrit(np.maximum(freedom, 1.0), 1 - tail) * np.sqrt(total)
    low, high = (
        np.clip((1 + 2 * _OFFSET) * special.expit(end) - _OFFSET, 0, 1) for end in (center - reach, center + reach)
    )
    unknown = np.isnan(reach)  # without some seed, no pairs of some kind are left
    return np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)


def _one_out(shape: tuple[int, int]) -> tuple[Mask, Mask]:
    """Mark each row, and each column, of an array; [I, I, 1] and [J, 1, J]."""
    return np.eye(shape[0], dtype=bool)[:, :, None], np.eye(shape[1], dtype=bool)[:, None, :]


def _logits(y: Floats, mask: Mask, is_nested: bool) -> Floats:
    """Compute log((s + c)/(1 + c - s)) of the shares; [..., 3]."""
    variances = _variances(y, mask, is_nested)
    shares = variances / np.maximum(variances.sum(axis=-1, keepdims=True), 1e-300)
    return np.asarray(special.logit((np.clip(shares, -_OFFSET / 2, 1 + _OFFSET / 2) + _OFFSET) / (1 + 2 * _OFFSET)))
