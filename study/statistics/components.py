"""Shares of two sources of randomness, crossed or nested, in the variance of trials.

The trial with seed i of the first source and seed j of the second has the number y_ij = μ + a_i + b_j + e_ij, with
random effects of variances σ_a², σ_b² and σ_e². Trials are deterministic, so e_ij is the interaction of the two seeds.
For success, y_ij is a latent number with normal effects and σ_a² + σ_b² + σ_e² = 1; a trial is solved if it is
positive. Shares are σ_a², σ_b² and σ_e², each over their sum. Nested, each i has seeds j of its own, and b_j and e_ij
can't be separated.

Two trials that share i alone have the covariance σ_a², and two that share nothing have covariance 0. Let M_a, M_b and
M_0 be the mean products of all pairs that share i alone, j alone, or nothing. The estimate of σ_a² is M_a - M_0, and
that of σ_b² is M_b - M_0. The estimate of σ_e² is the mean square minus M_0 and the other two estimates. In a complete
array these are the estimates of the analysis of variance: Searle, Casella & McCulloch, Variance Components (1992).

Intervals come from simulated arrays (approximate Bayesian computation: Rubin, Annals of Statistics 12 (1984)
1151-1172). Arrays are drawn from the model with shares of all sizes; each source has no effect in a quarter of them.
Those most similar to the observed array are kept, and their shares give the interval. For success the quantiles are
expanded for few seeds. Other numbers need not be normal, so their intervals are widened to contain the jackknife's. The
jackknife leaves out one seed of a source at a time. It is applied to log((s + 1/10)/(11/10 - s)) for a share s, because
the error of this logarithm depends less on s.
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
"""Numbers of simulated arrays: as many as hold `_NUMBERS` numbers together, within the limits."""
_MOST_DRAWN = _NUMBERS // _FEWEST_DRAWS
"""The greatest size of a nested array whose trials are drawn one by one; of a larger one, each row's successes are
drawn as a count."""
_ALIKE = 150
"""One in this many simulated arrays is kept."""
_AT_ONCE = 800_000
_WITHOUT = 0.25
_CONCENTRATION = 0.6
_OFFSET = 0.1
_NEAR = (0.35, 0.8)
"""Scales of the distance between arrays: of rates as normal quantiles, and of covariances times a source's levels."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class VarianceShares:
    """The variance components of trials.

    Args:
        shares: of the first source, of the second, and of their interaction; they add up to 1. Nested, the second is
            that of the second source and the interaction, and the third is 0.
        intervals: of each share, at 95% unless another confidence is given.
        variances: σ_a², σ_b² and σ_e² of the numbers themselves, also for success; negative estimates are set to 0.
            Nested, the third is that of the second source and the interaction.
        levels: the number of seeds of each source.
        trials: the number of trials with a number.
    """

    shares: tuple[float, float, float]
    intervals: tuple[Interval, Interval, Interval]
    variances: tuple[float, float, float]
    levels: tuple[int, int]
    trials: int

    @property
    def standard_error(self) -> float:
        """The estimated standard error of the mean of n trials with I and J seeds: sqrt(σ_a²/I + σ_b²/J + σ_e²/n)."""
        return self.error_with(self.levels, self.trials)

    def error_with(self, levels: tuple[int, int], trials: int) -> float:
        """Compute the standard error of the mean with other numbers of seeds and trials, all >= 1."""
        a, b, e = self.variances
        return float(np.sqrt(a / levels[0] + b / levels[1] + e / trials))

    def errors_after(self, more: int) -> tuple[float, float, float]:
        """Compute the standard error of the mean after `more` further trials, at least 1.

        Returns:
            With new seeds of the first source and the existing seeds of the second; the other way round; and with new
            seeds of both in each trial, the means of old and new trials being weighted by the inverse of their
            variances.

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
    """Estimate the shares of two sources of randomness in the variance of trials.

    Args:
        values: shape [seeds of the first source, seeds of the second]; NaN where a trial has no number. For success, 1
            if the trial was solved and 0 if not. Nested, a row holds the second source's seeds that belong to the row's
            seed.
        is_success: whether values are successes; shares are then those of the latent numbers.
        is_nested: whether rows have seeds of their own.
        confidence: in (0, 1).

    Returns:
        None if a source has fewer than three seeds (nested, the second fewer than two), if all numbers are equal, if
        all estimated variances are 0, or if trials are missing such that no pair shares one source alone, or no pair
        shares neither source.

    Raises:
        ValueError: if a number is infinite, or for success neither 0 nor 1, or the confidence is out of range.

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
    """Return the shares of the simulated arrays that are most similar to an array.

    Args:
        y: shape [seeds of the first source, seeds of the second], 0 where a trial is missing.
        mask: True where there is a trial; each row and column has one, and `has_pairs` is true.
        is_success: whether shares are those of latent numbers.
        is_nested: whether rows have seeds of their own.

    Returns:
        Shape [similar arrays, 3], in no particular order; the columns are those of `VarianceShares.shares`.
    """
    drawn, summaries = _table(y.shape, mask.tobytes(), is_success, is_nested)
    return _alike(drawn, summaries, _summary(y, mask, is_success, is_nested), mask.shape)


def known_trials(values: Floats) -> tuple[Floats, Mask]:
    """Return an array without empty rows and columns, missing trials (NaN) as 0, and the mask of its trials."""
    y = np.asarray(values, np.float64)
    mask = ~np.isnan(y)
    filled, mask = (part[mask.any(axis=1)][:, mask.any(axis=0)] for part in (np.where(mask, y, 0.0), mask))
    return filled, mask


def has_pairs(y: Floats, mask: Mask, *, is_nested: bool) -> bool:
    """Return True if the sources have enough seeds, and some pairs share each source alone, and some share neither.

    Enough are three seeds of each source. Nested, two of the second are enough, and pairs that share the second alone
    aren't needed. The arguments are those of `likely_shares`.
    """
    rows, columns = mask.shape
    is_large = rows >= 3 and columns >= (2 if is_nested else 3)
    return is_large and not np.isnan(_variances(y, mask, is_nested)).any()


def _three(numbers: Floats) -> tuple[float, float, float]:
    """Return three numbers as a tuple."""
    first, second, third = numbers.tolist()
    return first, second, third


def _variances(y: Floats, mask: Mask, is_nested: bool) -> Floats:
    """Estimate the variances of both sources and their interaction in arrays [..., I, J] without bias; [..., 3].

    Nested, the second is that of the second source and the interaction, and the third is 0. NaN if there is no
    pair of trials in a row alone, in neither a row nor a column or, unless nested, in a column alone.
    """
    n, rows, columns = mask.sum((-2, -1)), mask.sum(-1), mask.sum(-2)
    y = y - _mean(y.sum((-2, -1)), n)[..., None, None] * mask  # avoids cancellation
    squares, everything = (y**2).sum((-2, -1)), y.sum((-2, -1)) ** 2
    of_rows, count_rows = (y.sum(-1) ** 2).sum(-1) - squares, (rows**2).sum(-1) - n
    if is_nested:
        none = _mean(everything - squares - of_rows, n**2 - n - count_rows)
        first = _mean(of_rows, count_rows) - none
        combined = _mean(squares, n) - none - first
        return np.stack([first, combined, np.zeros_like(first)], -1)
    of_columns, count_columns = (y.sum(-2) ** 2).sum(-1) - squares, (columns**2).sum(-1) - n
    none = _mean(everything - squares - of_rows - of_columns, n**2 - n - count_rows - count_columns)
    first, second = _mean(of_rows, count_rows) - none, _mean(of_columns, count_columns) - none
    return np.stack([first, second, _mean(squares, n) - none - first - second], -1)


def _mean(total: Floats, count: npt.NDArray[np.int64]) -> Floats:
    """Divide totals by counts; NaN where a count is 0."""
    count = np.broadcast_to(count, np.shape(total))
    return np.asarray(np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0))


def _summary(y: Floats, mask: Mask, is_success: bool, is_nested: bool) -> Floats:
    """Summarise arrays [..., I, J]: the success rate as a normal quantile, and both sources' relative variances.

    The result has shape [..., 3]. Variances are relative to rate (1 - rate). For numbers other than success, the first
    is 0, and the variances are relative to the sum of the three.
    """
    variances, n = _variances(y, mask, is_nested), mask.sum()
    if is_success:
        return _of_success(y.sum((-2, -1)), n, variances)
    total = np.maximum(variances.sum(-1), 1e-300)
    return np.stack([np.zeros_like(total), variances[..., 0] / total, variances[..., 1] / total], -1)


def _of_success(solved: Floats, n: int, variances: Floats) -> Floats:
    """Return Φ⁻¹(rate), and both sources' variances over rate (1 - rate); rate = (solved + 1/2)/(n + 1); [..., 3]."""
    rate = (solved + 0.5) / (n + 1)
    spread = rate * (1 - rate)
    return np.stack([special.ndtri(rate), variances[..., 0] / spread, variances[..., 1] / spread], -1)


def _summary_of_counts(solved: Floats, trials: Floats) -> Floats:
    """Compute `_summary` of nested successes from the solved trials of each row; [..., 3]."""
    n = trials.sum()
    rate = solved.sum(-1) / n
    squares, pairs = n * rate * (1 - rate), float(np.sum(trials**2) - n)
    of_rows = ((solved - rate[..., None] * trials) ** 2).sum(-1) - squares
    none = -(squares + of_rows) / (n**2 - n - pairs)
    first = of_rows / pairs - none
    return _of_success(solved.sum(-1), n, np.stack([first, squares / n - none - first], -1))


@lru_cache(maxsize=8)
def _table(shape: tuple[int, int], mask_bytes: bytes, is_success: bool, is_nested: bool) -> tuple[Floats, Floats]:
    """Simulate arrays with the mask's trials; return their shares and summaries (`_summary`), each [draws, 3]."""
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
    chunk = max(1, _AT_ONCE // mask.size)
    summaries = []
    for first in range(0, draws, chunk):
        a, b, e = (np.sqrt(share)[:, None, None] for share in shares[first : first + chunk].T)
        count = len(a)
        y = a * rng.standard_normal((count, shape[0], 1)) + np.where(is_nested, b, e) * rng.standard_normal(
            (count, *shape)
        )
        if not is_nested:
            y += b * rng.standard_normal((count, 1, shape[1]))
        if is_success:
            y = (y < bounds[first : first + chunk, None, None]).astype(np.float64)
        summaries.append(_summary(y * mask, mask, is_success, is_nested))
    return shares, np.concatenate(summaries)


def _alike(drawn: Floats, summaries: Floats, observed: Floats, levels: tuple[int, int]) -> Floats:
    """Return the shares, [similar arrays, 3], of the simulated arrays whose summaries are nearest to the observed."""
    near = np.array([_NEAR[0], _NEAR[1] / levels[0], _NEAR[1] / levels[1]])
    distances = (((summaries - observed) / near) ** 2).sum(axis=1)
    count = len(drawn) // _ALIKE
    return np.asarray(drawn[np.argpartition(distances, count)[:count]])


def _expanded(alike: Floats, levels: tuple[int, int], is_nested: bool, tail: float) -> tuple[Floats, Floats]:
    """Return the p and 1 - p quantiles of the three shares, p = Φ(Φ⁻¹(tail) m/(m - 1)) for a source of m seeds."""
    first, second = levels
    seeds = np.array([first, first * (second - 1) + 1 if is_nested else second, (first - 1) * (second - 1) + 1])
    outer = special.ndtr(special.ndtri(tail) * seeds / (seeds - 1))
    pairs = [np.quantile(share, [p, 1 - p]) for share, p in zip(alike.T, outer, strict=True)]
    low, high = np.transpose(pairs)
    return low, high


def _jackknife(y: Floats, mask: Mask, is_nested: bool, tail: float) -> tuple[Floats, Floats]:
    """Bound the shares by the jackknife over rows and, crossed, over columns; from 0 to 1 where pairs are missing."""
    center = _logits(y, mask, is_nested)
    spreads, freedoms = [], []
    for count, left_out in zip(y.shape[: 1 if is_nested else 2], _one_out(y.shape), strict=False):
        kept = mask & ~left_out
        logits = _logits(y * kept, kept, is_nested)
        spreads.append((count - 1) / count * ((logits - logits.mean(axis=0)) ** 2).sum(axis=0))
        freedoms.append(count - 1)
    total = np.sum(spreads, axis=0)
    freedom = total**2 / np.maximum(sum(v**2 / f for v, f in zip(spreads, freedoms, strict=True)), 1e-300)
    reach = special.stdtrit(np.maximum(freedom, 1.0), 1 - tail) * np.sqrt(total)
    low, high = (
        np.clip((1 + 2 * _OFFSET) * special.expit(end) - _OFFSET, 0, 1) for end in (center - reach, center + reach)
    )
    unknown = np.isnan(reach)  # without one of the seeds, pairs of a kind are missing
    return np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)


def _one_out(shape: tuple[int, int]) -> tuple[Mask, Mask]:
    """Return masks of each single row, and of each single column, of an array; [I, I, 1] and [J, 1, J]."""
    return np.eye(shape[0], dtype=bool)[:, :, None], np.eye(shape[1], dtype=bool)[:, None, :]


def _logits(y: Floats, mask: Mask, is_nested: bool) -> Floats:
    """Compute log((s + c)/(1 + c - s)), c = 1/10, of the three shares s; [..., 3]."""
    variances = _variances(y, mask, is_nested)
    shares = variances / np.maximum(variances.sum(axis=-1, keepdims=True), 1e-300)
    return np.asarray(special.logit((np.clip(shares, -_OFFSET / 2, 1 + _OFFSET / 2) + _OFFSET) / (1 + 2 * _OFFSET)))
