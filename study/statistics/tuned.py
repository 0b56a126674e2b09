"""Comparison of two methods, each at the best value of a hyperparameter, chosen by the same seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from study.records import Interval
from study.statistics.checks import Floats, check_confidence
from study.statistics.sign_flips import sign_flips

LEAST_TUNED_SEEDS = 4
"""The fewest seeds with which both halves still have a seed when one is dropped."""

_LEAST_SHARE = 0.5
"""A value is a candidate if at least this share of the seeds has an outcome there."""

_OPTIMISM_SHARE = 0.5
"""The share of the optimism by which an end of the interval moves, chosen by `python -m benchmarks.tuned`."""

Ints = npt.NDArray[np.intp]


@dataclass(frozen=True)
class TunedMethod:
    """A method at the values that halves of the seeds choose.

    Args:
        outcomes: for each seed, its mean outcome at the values chosen by halves without the seed; infinite if one of
            these outcomes is infinite.
        scores: the same means of the compared numbers, which are outcomes or their ranks.
        wins: for each value, the number of halves that choose it.
        left_out: the values that aren't candidates because more than half of the seeds have no outcome there.
    """

    outcomes: tuple[float, ...]
    scores: tuple[float, ...]
    wins: tuple[int, ...]
    left_out: tuple[int, ...]


@dataclass(frozen=True)
class TunedDifference:
    """The difference of two tuned methods.

    Args:
        estimate: the mean score of the first method minus that of the second.
        interval: its interval, which allows for the choice of values; None if no seed's scores differ.
        p_value: two-sided, of the hypothesis that the best values are equally good; None if no seed's scores differ.
        first: the first method.
        second: the second method.
        seeds: the compared rows, in the order of the methods' outcomes and scores.
        is_ranked: whether the scores are ranks, because an outcome is infinite.
    """

    estimate: float
    interval: Interval | None
    p_value: float | None
    first: TunedMethod
    second: TunedMethod
    seeds: tuple[int, ...]
    is_ranked: bool


@dataclass(frozen=True)
class CrossFit:
    """Cross-fitted outcomes of a method, at values chosen by other seeds; leading axes are studies.

    Args:
        choices: shape [..., halves]: the value that each half chooses.
        values: shape [..., seeds]: each seed's mean over the halves without it; NaN if it has no outcome at any of
            their choices.
        influences: shape [..., seeds]: (n - 1) times the fall of the mean if the seed is dropped, centred at 0.
        optimism: shape [...]: the best mean of all seeds minus the mean of the values, >= 0.
    """

    choices: Ints
    values: Floats
    influences: Floats
    optimism: Floats


def tuned_difference(
    first: npt.ArrayLike, second: npt.ArrayLike, *, higher_is_better: bool, splits: int = 20, confidence: float = 0.95
) -> TunedDifference | None:
    """Compare two methods, each at its own best value of a hyperparameter, without selection bias.

    The seeds are halved in `splits` ways. Each half chooses the value with its best mean, and the seeds of the other
    half are evaluated there. A seed's score x is its mean over the splits; the estimate is the mean of x₁ - x₂. Its
    spread comes from pseudo-values: the estimate plus (n - 1) times its fall if a seed is dropped and all halves choose
    again. The interval is that of `sign_flip` of the pseudo-values, with one change: the end on the side where a method
    is better moves outward by half of that method's optimism. The optimism is the best mean over all seeds minus the
    mean x. p is that of sign flips about the moved ends, and a finite interval excludes 0 exactly where
    p <= 1 - confidence. With one value for each method, the test is `sign_flip`.

    The shift of the ends is a compromise, chosen by simulation. Without it, a method with several nearly equal values
    loses too often, since its halves choose inferior values.

    Source: halves: Stone, JRSS B 36 (1974) 111-147; pseudo-values: Tukey, Annals of Mathematical Statistics 29 (1958)
    614.

    Args:
        first: outcomes, shape [seeds, values of the first method's hyperparameter]; NaN where there is none. Rows are
            sorted by seed, since the places of the seeds determine the halves.
        second: outcomes, shape [seeds, values of the second method's hyperparameter], with the same seeds in the same
            rows.
        higher_is_better: whether a greater outcome is better. An outcome may be infinite, as the worst possible one.
            Then all outcomes of both methods are replaced by their ranks (for ties, the mean rank), divided by the
            number of outcomes.
        splits: the number of ways to halve the seeds, > 0; a value can win 2 splits times.
        confidence: in (0, 1).

    Returns:
        None if fewer than four seeds can be compared. A value that more than half of a method's seeds miss can't be
        chosen. A seed that has no outcome at any of the values chosen for it is left out, and all halves choose again
        without it.

    Raises:
        ValueError: if an outcome is infinite as the best, outcomes aren't matrices with columns, their numbers of seeds
            differ, or the confidence or the number of splits is out of range.

    Example:
        >>> seeds = np.arange(12.0)[:, None]
        >>> plain = 0.7 + 0.01 * np.sin(seeds + [0, 1, 2])
        >>> better = 0.72 + 0.01 * np.sin(3 * seeds + [5, 6]) - [0, 0.1]
        >>> both = tuned_difference(better, plain, higher_is_better=True)
        >>> round(both.estimate, 3), [round(end, 3) for end in both.interval], both.p_value <= 0.05
        (0.021, [0.013, 0.028], True)
        >>> both.first.wins, sum(both.second.wins)
        ((40, 0), 40)
    """
    check_confidence(confidence)
    if splits < 1:
        raise ValueError(f"splits must be >= 1, but got {splits}")
    outcomes = [_checked(values, higher_is_better) for values in (first, second)]
    if len(outcomes[0]) != len(outcomes[1]):
        raise ValueError(f"both methods must have the same seeds, but got {len(outcomes[0])} and {len(outcomes[1])}")
    left_out = [_missed(values) for values in outcomes]
    usable = [np.where(missed, np.nan, values) for values, missed in zip(outcomes, left_out, strict=True)]
    is_ranked = any(np.isinf(values).any() for values in usable)
    scores = _ranked(usable) if is_ranked else usable
    sign = 1.0 if higher_is_better else -1.0

    rows = np.arange(len(outcomes[0]))
    while True:
        if len(rows) < LEAST_TUNED_SEEDS:
            return None
        halves = halved(len(rows), splits)
        fits = [cross_fit(sign * values[rows], halves) for values in scores]
        is_there = np.isfinite(fits[0].values) & np.isfinite(fits[1].values)
        if is_there.all():
            break
        rows = rows[is_there]

    estimate, bounds, p_value = tuned_test(*fits, confidence=confidence)
    is_tested = bool(np.any(fits[0].values != fits[1].values))
    low, high = sorted((sign * bounds).tolist())
    methods = [
        TunedMethod(
            outcomes=tuple(_held_out(values[rows], halves, fit.choices).tolist()),
            scores=tuple((sign * fit.values).tolist()),
            wins=tuple(np.bincount(fit.choices, minlength=values.shape[1]).tolist()),
            left_out=tuple(np.flatnonzero(missed).tolist()),
        )
        for values, fit, missed in zip(usable, fits, left_out, strict=True)
    ]
    return TunedDifference(
        estimate=float(sign * estimate),
        interval=(low, high) if is_tested else None,
        p_value=float(p_value) if is_tested else None,
        first=methods[0],
        second=methods[1],
        seeds=tuple(rows.tolist()),
        is_ranked=is_ranked,
    )


def tuned_test(first: CrossFit, second: CrossFit, *, confidence: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Test the difference of two cross-fitted methods in each of several studies; a greater value is better.

    Args:
        first: the first method; each seed must have a value.
        second: the second method, likewise, with the same seeds and halves.
        confidence: in (0, 1).

    Returns:
        The estimates, shape [...]; the intervals, shape [..., 2]; and the p-values, shape [...].

    Raises:
        ValueError: if the confidence is out of range.

    Example:
        >>> values = np.array([0.9, 0.8, 0.9, 0.7, 0.8, 0.9])[:, None]
        >>> estimate, interval, p_value = tuned_test(*(cross_fit(y, halved(6, 2)) for y in (values, values - 0.1)))
        >>> round(float(estimate), 3), interval.round(3).tolist(), float(p_value)
        (0.1, [0.1, 0.1], 0.03125)
    """
    estimates = (first.values - second.values).mean(axis=-1)
    pseudo = estimates[..., None] + first.influences - second.influences
    lowered = pseudo - _OPTIMISM_SHARE * second.optimism[..., None]
    raised = pseudo + _OPTIMISM_SHARE * first.optimism[..., None]
    (low_mean, low, low_p), (high_mean, high, high_p) = (
        sign_flips(values.reshape(-1, values.shape[-1]), confidence) for values in (lowered, raised)
    )
    p_values = np.where(low_mean > 0, low_p, np.where(high_mean < 0, high_p, 1.0))
    bounds = np.stack([low[:, 0], high[:, 1]], axis=-1)
    return estimates, bounds.reshape(*estimates.shape, 2), p_values.reshape(estimates.shape)


def halved(seeds: int, splits: int) -> Floats:
    """Halve seeds in several ways, always the same for their number.

    Args:
        seeds: the number of seeds, >= 2.
        splits: the number of ways to halve them.

    Returns:
        Shape [2 splits, seeds]: 1 where a seed is in the half, 0 elsewhere. Two rows are the halves of one split.

    Example:
        >>> halved(5, 20).sum(axis=1)[:4].tolist(), halved(5, 20).sum(axis=0).tolist()
        ([2.0, 3.0, 2.0, 3.0], [20.0, 20.0, 20.0, 20.0, 20.0])
    """
    generator = np.random.default_rng(seeds)
    halves = np.zeros((2 * splits, seeds))
    for split in range(splits):
        order = generator.permutation(seeds)
        halves[2 * split, order[: seeds // 2]] = 1.0
        halves[2 * split + 1, order[seeds // 2 :]] = 1.0
    return halves


def cross_fit(values: Floats, halves: Floats) -> CrossFit:
    """Evaluate each seed at the values of a hyperparameter that are chosen by the halves without it.

    Args:
        values: shape [..., seeds, values of the hyperparameter], finite; a greater one is better; NaN where there is
            none.
        halves: shape [halves, seeds], from `halved`.

    Returns:
        The choices of all halves, the seeds' values, their influences, and the optimism.

    Example:
        >>> fit = cross_fit(np.array([[1.0, 0], [1, 0], [1, 0], [0, 0.5]]), halved(4, 3))
        >>> np.bincount(fit.choices).tolist(), fit.values.tolist(), float(fit.optimism)
        ([6], [1.0, 1.0, 1.0, 0.0], 0.0)
    """
    is_present = ~np.isnan(values)
    filled, present = np.where(is_present, values, 0.0), is_present.astype(np.float64)
    others = 1.0 - halves
    totals, counts = halves @ filled, halves @ present
    choices = _best(totals, counts)
    held_out = _held_out(values, halves, choices)

    # without each seed: [..., seeds, halves, values]
    own, own_present = filled[..., :, None, :], present[..., :, None, :]
    inside, outside = halves.T[:, :, None], others.T[:, :, None]
    chosen = _best(totals[..., None, :, :] - inside * own, counts[..., None, :, :] - inside * own_present)[..., None]
    other_totals = (others @ filled)[..., None, :, :] - outside * own
    other_counts = (others @ present)[..., None, :, :] - outside * own_present
    sums, sizes = (np.take_along_axis(x, chosen, axis=-1)[..., 0].sum(axis=-1) for x in (other_totals, other_counts))
    left = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
    influences = (values.shape[-2] - 1) * (left.mean(axis=-1, keepdims=True) - left)

    sizes = present.sum(axis=-2)
    best = np.max(np.divide(filled.sum(axis=-2), sizes, out=np.full(sizes.shape, -np.inf), where=sizes > 0), axis=-1)
    return CrossFit(choices, held_out, influences, np.maximum(best - held_out.mean(axis=-1), 0.0))


def _best(totals: Floats, counts: Floats) -> Ints:
    """Return the place of the greatest mean on the last axis, the first of ties."""
    means = np.divide(totals, counts, out=np.full(totals.shape, -np.inf), where=counts > 0)
    return np.asarray(means.argmax(axis=-1))


def _held_out(values: Floats, halves: Floats, choices: Ints) -> Floats:
    """Return each seed's mean at the choices of the halves without it; NaN if it has no outcome there.

    Arrays are those of `cross_fit`; `choices` has shape [..., halves], and the result [..., seeds].
    """
    chosen = np.take_along_axis(values, choices[..., None, :], axis=-1)  # [..., seeds, halves]
    is_held_out = (halves.T == 0) & ~np.isnan(chosen)
    sums, sizes = np.where(is_held_out, chosen, 0.0).sum(axis=-1), is_held_out.sum(axis=-1)
    return np.asarray(np.divide(sums, sizes, out=np.full(sums.shape, np.nan), where=sizes > 0))


def _checked(outcomes: npt.ArrayLike, higher_is_better: bool) -> Floats:
    """Return outcomes as a matrix; raise ValueError for another shape or an infinitely good outcome."""
    values = np.asarray(outcomes, dtype=np.float64)
    if values.ndim != 2 or not values.shape[1]:
        raise ValueError(f"outcomes must have the shape [seeds, values], but got {values.shape}")
    best = np.inf if higher_is_better else -np.inf
    if (values == best).any():
        raise ValueError(f"an infinite outcome must be the worst, but got {best}, the best")
    return values


def _missed(values: Floats) -> npt.NDArray[np.bool_]:
    """Return a mask of the columns with outcomes of less than half of the seeds that have any outcome."""
    is_present = ~np.isnan(values)
    return np.asarray(is_present.sum(axis=0) < _LEAST_SHARE * np.count_nonzero(is_present.any(axis=1)))


def _ranked(methods: Sequence[Floats]) -> list[Floats]:
    """Replace outcomes by their ranks among those of all methods, as shares; ties have their mean rank."""
    from scipy import stats  # imported here: it takes long

    ranks = stats.rankdata(np.concatenate([values.ravel() for values in methods]), nan_policy="omit")
    shares = ranks / np.count_nonzero(~np.isnan(ranks))
    ends = np.cumsum([values.size for values in methods])[:-1]
    return [part.reshape(values.shape) for part, values in zip(np.split(shares, ends), methods, strict=True)]
