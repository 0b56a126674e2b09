"""Comparison of two methods: the choice of a valid test, and its finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from study import statistics
from study.comparisons.finding import Finding, Lacking, Sample
from study.interface.declarations import Metric
from study.records import Interval
from study.statistics.exchanges import unpaired_share
from study.statistics.partly_paired import PartlyPaired
from study.statistics.welch import Contrast
from study.summaries.summary import Summary
from study.trials.seed_design import Sizes
from study.trials.table import Flags, Floats, Ints, Trials, TrialTable, source_array

NO_SEEDS = "no trials with a value to compare"
_TOO_FEW = "too few values, or only equal ones"
_PARTLY = "rows of a method share some seeds, but less than half of them: give all rows the same seeds"


@dataclass(frozen=True)
class Side:
    """One of two methods that are compared.

    Args:
        name: its name.
        samples: its trials, a sample for each row; several are averaged seed by seed.
        lacking: its trials without a value to compare.
    """

    name: str
    samples: tuple[Trials, ...]
    lacking: Lacking


def side_of(name: str, table: TrialTable, summaries: Sequence[Summary], metric: str | None) -> Side:
    """Collect a method's trials, a sample for each row, and count those without a value to compare.

    Args:
        name: the method's name.
        table: the trials.
        summaries: the summaries of the method's rows.
        metric: the compared metric; None for success.
    """
    return Side(name, tuple(table.group(summary.key) for summary in summaries), lacking_of(summaries, metric))


def lacking_of(summaries: Sequence[Summary], metric: str | None) -> Lacking:
    """Count by reason the trials of several rows without a value to compare; for success, diverged trials have one."""
    total = Lacking()
    for summary in summaries:
        without = 0
        if metric is not None:
            of_metric = summary.metrics.get(metric)
            without = summary.ended - (0 if of_metric is None else of_metric.count)
        total += Lacking(summary.seeds, without, summary.failed, summary.pending, summary.stopped)
    return total


def without_test(question: str, first: Side, second: Side, metric: str | None, declared: Metric | None) -> Finding:
    """Return a finding of two methods without a test, with the reason if stopped trials prevent any.

    The arguments are those of `compare`.
    """
    return Finding(
        question=question,
        first=first.name,
        second=second.name,
        metric=metric,
        is_higher_better=declared is None or declared.higher_is_better,
        lacking=(first.lacking, second.lacking),
        reason="trials were stopped early" if first.lacking.stopped or second.lacking.stopped else "",
    )


def compare(
    question: str, first: Side, second: Side, metric: str | None, declared: Metric | None, sizes: Sizes = "fixed"
) -> Finding:
    """Compare two methods by success, or by a metric.

    The data determine the test:

    - Number of seeds adapted to results: the anytime-valid sign test, paired by seed.
    - Combined seeds: differences between trials of equal seeds, with the independent seeds as the sampling unit.
    - A metric that has no number for some trial of either method, because the trial diverged or failed: ranks, in which
      such trials are worse than any number.
    - Otherwise: success rates or means. One test compares seeds that both methods have as pairs, and the others as
      independent samples. Several rows, or several trials of a seed, are averaged seed by seed. If rows of a method
      have less than half of their seeds in common, each row is an independent sample; no test if they share any seed.

    Args:
        question: the question's name.
        first: the first method.
        second: the second method.
        metric: the compared metric; None for success.
        declared: the metric's declaration; None for success.
        sizes: whether the numbers of seeds were fixed in advance or adapted to results.

    Returns:
        The finding; without a valid test, its `reason` says why.

    Raises:
        KeyError: if the trials' table doesn't declare the metric.
        ValueError: if, in a comparison by ranks, the methods have different numbers of samples.
    """
    blank = without_test(question, first, second, metric, declared)
    if blank.reason:
        return blank
    if not all(sample.rows.size for side in (first, second) for sample in side.samples):
        return replace(blank, reason=NO_SEEDS)
    if sizes == "adaptive":
        return _compare_at_any_time(first, second, metric, blank)
    is_ranked = metric is not None and any(
        np.isinf(sample.losses(metric)).any() for side in (first, second) for sample in side.samples
    )
    if any((sample.seeds < 0).any() for side in (first, second) for sample in side.samples):
        return _compare_combined_seeds(first, second, metric, blank, is_ranked=is_ranked)
    return _compare_seeds(first, second, metric, blank, is_ranked=is_ranked)


Columns = tuple[tuple[Floats, ...], tuple[Floats, ...]]
"""A number for each trial of each sample of both methods; NaN where it doesn't count."""


def _columns(first: Side, second: Side, read: Callable[[Trials], Floats]) -> Columns:
    """Read the numbers of both methods, sample by sample."""
    return tuple(map(read, first.samples)), tuple(map(read, second.samples))


def _numbers(first: Side, second: Side, metric: str | None) -> Columns:
    """Return the values of the metric or, without one, successes of 0 and 1."""
    return _columns(first, second, lambda sample: sample.successes if metric is None else sample.values(metric))


def _ranks(first: Side, second: Side, metric: str) -> Columns:
    """Rank the trials of both methods, row by row, as shares between 0 (worst) and 1 (best); pending trials have NaN.

    The difference of the methods' mean ranks is half of P(first better) - P(second better) over all pairs of trials, if
    both have the same number of trials. Ties have their mean rank.
    """
    from scipy import stats  # imported here: it takes long

    columns: tuple[list[Floats], list[Floats]] = ([], [])
    for a, b in zip(first.samples, second.samples, strict=True):
        losses = np.concatenate([a.losses(metric), b.losses(metric)])
        ranks, has_rank = np.full(losses.size, np.nan), ~np.isnan(losses)
        count = int(np.count_nonzero(has_rank))
        ranks[has_rank] = (count - stats.rankdata(losses[has_rank]) + 0.5) / count
        columns[0].append(ranks[: a.rows.size])
        columns[1].append(ranks[a.rows.size :])
    return tuple(columns[0]), tuple(columns[1])


@dataclass(frozen=True, eq=False)
class SeedNumbers:
    """One number for each seed of a method.

    Args:
        seeds: ascending, shape [seeds].
        values: shape [seeds].
    """

    seeds: Ints
    values: Floats

    def at(self, seeds: Ints) -> Floats:
        """Return the values of the given seeds, all of which must be among `seeds`."""
        return self.values[np.searchsorted(self.seeds, seeds)]

    def without(self, seeds: Ints) -> Floats:
        """Return the values of all seeds but the given ones."""
        return self.values[~np.isin(self.seeds, seeds)]


def _rows_by_seed(samples: Sequence[Trials], columns: Sequence[Floats]) -> list[SeedNumbers]:
    """Average the numbers of each row seed by seed, over the seeds with a number."""
    rows = []
    for sample, values in zip(samples, columns, strict=True):
        known = ~np.isnan(values)
        seeds, place, count = np.unique(sample.seeds[known], return_inverse=True, return_counts=True)
        rows.append(SeedNumbers(seeds, np.bincount(place, weights=values[known], minlength=seeds.size) / count))
    return rows


def by_seed(samples: Sequence[Trials], columns: Sequence[Floats]) -> SeedNumbers:
    """Average a method's numbers seed by seed, over the seeds with a number in each of its rows."""
    return _over_rows(_rows_by_seed(samples, columns))


def _over_rows(rows: Sequence[SeedNumbers]) -> SeedNumbers:
    """Average over rows, at the seeds that all of them have."""
    common = reduce(np.intersect1d, [row.seeds for row in rows])
    return SeedNumbers(common, np.mean([row.at(common) for row in rows], axis=0))


def _compare_seeds(first: Side, second: Side, metric: str | None, blank: Finding, *, is_ranked: bool) -> Finding:
    """Compare plain seeds: shared seeds as pairs, and the others as independent samples.

    If rows of a method share less than half of their seeds, each row is an independent sample instead.
    """
    is_simple = all(len(side.samples) == 1 and not side.samples[0].repeat_seeds for side in (first, second))
    numbers = _numbers(first, second, metric)
    if is_ranked and metric is not None:
        numbers = (
            _columns(first, second, lambda sample: sample.losses(metric))
            if is_simple
            else _ranks(first, second, metric)
        )
    rows = [_rows_by_seed(side.samples, columns) for side, columns in zip((first, second), numbers, strict=True)]
    a, b = map(_over_rows, rows)
    if any(
        len(own) > 1 and 2 * of_side.seeds.size < min(row.seeds.size for row in own)
        for of_side, own in zip((a, b), rows, strict=True)
    ):
        return _compare_independent_rows(first, second, metric, rows, blank, is_ranked=is_ranked)
    shared = np.intersect1d(a.seeds, b.seeds)
    parts = a.at(shared), b.at(shared), a.without(shared), b.without(shared)
    if is_ranked and is_simple:
        test, kind = statistics.partly_paired_ranks(*parts), "ranks"
    elif metric is None and is_simple:
        test, kind = statistics.partly_paired_rates(*_solved(parts)), "rates"
    else:
        test, kind = statistics.partly_paired_means(*parts), "means"
    if test is None:
        return _untested(blank, first, second, metric, _TOO_FEW)
    is_greater_better = not is_simple if is_ranked else blank.is_higher_better  # simple ranks are those of losses
    with np.errstate(invalid="ignore"):  # inf - inf: neither trial has a number
        differences = (1.0 if is_greater_better else -1.0) * (parts[0] - parts[1])
    better = (int(np.sum(differences > 0)), int(np.sum(differences < 0))) if test.pairs else (0, 0)
    finding = _tested(
        blank,
        test,
        _TEST_NAMES[kind][2 if test.pairs and test.first_alone else 0 if test.pairs else 1],
        _means(first, second, metric) if is_ranked else _values(parts, test),
        Sample(test.pairs, *better, test.first_alone, test.second_alone),
        is_of_ranks=is_ranked and not is_simple,
    )
    return replace(finding, is_probability=is_ranked)


def _tested(
    blank: Finding,
    test: Contrast,
    name: str,
    values: tuple[float | None, float | None],
    sample: Sample,
    *,
    is_of_ranks: bool,
) -> Finding:
    """Return the finding of a test; a difference of mean ranks becomes a probability, an infinite interval None."""
    estimate, interval = test.estimate, test.interval if np.isfinite(test.interval).all() else None
    if is_of_ranks:
        estimate, interval = _as_probability(estimate), interval and _probabilities(interval)
    return replace(
        blank,
        values=values,
        estimate=estimate,
        interval=interval,
        is_probability=is_of_ranks,
        test=name,
        p_value=test.p_value,
        p_adjusted=test.p_value,
        sample=sample,
    )


def _compare_independent_rows(
    first: Side,
    second: Side,
    metric: str | None,
    rows: Sequence[Sequence[SeedNumbers]],
    blank: Finding,
    *,
    is_ranked: bool,
) -> Finding:
    """Compare averages over rows as independent samples.

    No test if rows of a method share any seeds, a row has fewer than two seeds with a number, or no row's numbers vary.
    """
    for own in rows:
        seeds = np.concatenate([row.seeds for row in own])
        if np.unique(seeds).size < seeds.size:
            return _untested(blank, first, second, metric, _PARTLY)
    samples = [row.values for own in rows for row in own]
    weights = [1 / len(own) * sign for own, sign in zip(rows, (1, -1), strict=True) for _ in own]
    sizes = [values.size for values in samples]
    if min(sizes) < 2:
        return _untested(blank, first, second, metric, _TOO_FEW)
    spreads = statistics.deviations(np.concatenate(samples), sizes).tolist()
    test = statistics.contrast(weights, [float(values.mean()) for values in samples], spreads, sizes)
    if test is None:
        return _untested(blank, first, second, metric, _TOO_FEW)
    counts = Sample(first_alone=sum(sizes[: len(rows[0])]), second_alone=sum(sizes[len(rows[0]) :]))
    return _tested(blank, test, "Welch", _means(first, second, metric), counts, is_of_ranks=is_ranked)


def _solved(parts: tuple[Floats, Floats, Floats, Floats]) -> tuple[Flags, Flags, Flags, Flags]:
    """Return successes of 0 and 1 as flags."""
    return parts[0] > 0.5, parts[1] > 0.5, parts[2] > 0.5, parts[3] > 0.5


_TEST_NAMES = {
    "rates": ("McNemar", "Fisher", "McNemar and Fisher"),
    "means": ("sign-flip", "Welch", "paired and Welch"),
    "ranks": ("sign-flip of ranks", "permutation of ranks", "sign-flip and permutation of ranks"),
}


def _values(parts: Sequence[Floats], test: PartlyPaired) -> tuple[float, float]:
    """Average the tested numbers with the test's weights, so that the difference is its estimate."""
    share = unpaired_share(test.pairs, test.first_alone, test.second_alone)
    if not test.pairs:
        return tuple(float(np.concatenate([parts[k], parts[k + 2]]).mean()) for k in range(2))  # type: ignore[return-value]
    first, second = (
        (1 - share) * float(parts[k].mean()) + (share * float(parts[k + 2].mean()) if share else 0.0) for k in range(2)
    )
    return first, second


def _compare_combined_seeds(
    first: Side, second: Side, metric: str | None, blank: Finding, *, is_ranked: bool
) -> Finding:
    """Compare trials of equal combinations of seeds, with the independent seeds as the sampling unit.

    No test without shared combinations, or where `crossed_mean` has none: with too few seeds, or without differences.
    """
    numbers = _ranks(first, second, metric) if is_ranked and metric is not None else _numbers(first, second, metric)
    a, b = (by_seed(side.samples, values) for side, values in zip((first, second), numbers, strict=True))
    shared = np.intersect1d(a.seeds, b.seeds)
    array = source_array(shared, a.at(shared) - b.at(shared))
    if array is None:
        return _untested(blank, first, second, metric, "they share no combinations of seeds")
    test = statistics.crossed_mean(array.values, is_nested=array.is_nested)
    if test is None:
        few = "there are fewer than two" if array.is_nested else "a source of randomness has fewer than three"
        return _untested(blank, first, second, metric, f"all differences are 0, or {few} seeds")
    sign = 1.0 if is_ranked or blank.is_higher_better else -1.0
    axes = tuple(range(1, array.values.ndim))
    means = sign * np.nanmean(array.values, axis=axes)
    unit = f"{array.sources[0]} seed" if array.sources[0] != "seed" else "seed"
    return _tested(
        blank,
        test,
        f"sign-flip by {unit}" if array.is_nested else "t over crossed seeds",
        _means(first, second, metric) if is_ranked else (float(a.at(shared).mean()), float(b.at(shared).mean())),
        Sample(means.size, int(np.sum(means > 0)), int(np.sum(means < 0)), unit=unit),
        is_of_ranks=is_ranked,
    )


def _compare_at_any_time(first: Side, second: Side, metric: str | None, blank: Finding) -> Finding:
    """Compare methods by the anytime-valid sign test, paired by seed.

    No test without shared seeds, or if a trial of several averaged rows has no number.
    """
    columns = _columns(first, second, lambda sample: 1 - sample.successes if metric is None else sample.losses(metric))
    if len(first.samples) > 1 and any(np.isinf(values).any() for side in columns for values in side):
        return _untested(blank, first, second, metric, "rows with trials that diverged or failed can't be averaged")
    a, b = (by_seed(side.samples, of_side) for side, of_side in zip((first, second), columns, strict=True))
    shared = np.intersect1d(a.seeds, b.seeds)
    if not shared.size:
        return _untested(
            blank, first, second, metric, "they share no seeds, and the number of seeds depends on results"
        )
    losses, others = a.at(shared), b.at(shared)
    wins, defeats = int(np.sum(losses < others)), int(np.sum(losses > others))
    scores = np.where(losses < others, 1.0, np.where(losses > others, 0.0, 0.5))
    low, high = statistics.anytime_mean(scores)
    is_rate = metric is None and len(first.samples) == 1
    p_value = statistics.anytime_sign_test(wins, defeats)
    estimate = float(scores.mean())
    return replace(
        blank,
        values=(1 - float(losses.mean()), 1 - float(others.mean()))
        if metric is None
        else _means(first, second, metric),
        estimate=2 * estimate - 1 if is_rate else estimate,
        interval=(2 * low - 1, 2 * high - 1) if is_rate else (low, high),
        is_probability=not is_rate,
        test="sign test at any time",
        p_value=p_value,
        p_adjusted=p_value,
        sample=Sample(shared.size, wins, defeats),
    )


def _untested(blank: Finding, first: Side, second: Side, metric: str | None, reason: str) -> Finding:
    """Return a finding without a test, with both methods' means and the reason."""
    return replace(blank, values=_means(first, second, metric), reason=reason)


def _means(first: Side, second: Side, metric: str | None) -> tuple[float | None, float | None]:
    """Average each method's numbers, with equal weights for its rows; None if a row has no number."""
    means = []
    for columns in _numbers(first, second, metric):
        known = [values[~np.isnan(values)] for values in columns]
        means.append(float(np.mean([values.mean() for values in known])) if all(v.size for v in known) else None)
    return means[0], means[1]


def _as_probability(difference: float) -> float:
    """Return the probability that corresponds to a difference of mean ranks, which are shares; clipped to [0, 1]."""
    return min(1.0, max(0.0, 0.5 + difference))


def _probabilities(interval: Interval) -> Interval:
    """Convert an interval of a difference of mean ranks to one of the corresponding probability."""
    return _as_probability(interval[0]), _as_probability(interval[1])
