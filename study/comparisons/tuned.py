"""Comparison of two methods, each at its own best values of the tuned hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from study import statistics
from study.comparisons.compare import Side, without_test
from study.comparisons.finding import Finding, Sample
from study.interface.declarations import Metric
from study.statistics.tuned import TunedMethod
from study.trials.seed_design import Sizes
from study.trials.table import Floats, Ints, Trials

_ADAPTIVE = "each method's best values can't be chosen if the number of seeds depends on results"
_COMBINED = "each method's best values can't be chosen if trials share seeds of init, data or evaluation"


def compare_tuned(
    question: str,
    first: Side,
    second: Side,
    values: tuple[Sequence[str], Sequence[str]],
    metric: str | None,
    declared: Metric | None,
    sizes: Sizes = "fixed",
) -> Finding:
    """Compare two methods at the values that other seeds choose (`statistics.tuned_difference`).

    Args:
        question: the question's name.
        first: the first method, with a sample for each value of the tuned hyperparameters.
        second: the second method, with a sample for each of its values.
        values: the names of these values.
        metric: the compared metric; None for success.
        declared: the metric's declaration; None for success.
        sizes: whether the numbers of seeds were fixed in advance or adapted to results.

    Returns:
        The finding; without a valid test, its `reason` says why.

    Raises:
        KeyError: if the trials' table doesn't declare the metric.
        ValueError: if a method has no samples.
    """
    blank = without_test(question, first, second, metric, declared)
    if blank.reason:
        return blank
    samples = [*first.samples, *second.samples]
    seeds = np.unique(np.concatenate([sample.seeds for sample in samples]))
    if sizes == "adaptive":
        return replace(blank, reason=_ADAPTIVE)
    if (seeds < 0).any():
        return replace(blank, reason=_COMBINED)
    test = statistics.tuned_difference(
        _outcomes(first.samples, seeds, metric, is_higher_better=blank.is_higher_better),
        _outcomes(second.samples, seeds, metric, is_higher_better=blank.is_higher_better),
        higher_is_better=blank.is_higher_better,
    )
    if test is None or test.p_value is None:
        return replace(blank, reason="too few seeds that all values have, or only equal values")
    sign = 1.0 if blank.is_higher_better else -1.0
    differences = sign * (np.array(test.first.scores) - np.array(test.second.scores))
    means = [float(np.mean(method.outcomes)) for method in (test.first, test.second)]
    chosen = [
        f"{side.name} {_chosen(method, names)}"
        for side, method, names in zip((first, second), (test.first, test.second), values, strict=True)
    ]
    return replace(
        blank,
        values=(means[0], means[1]) if np.isfinite(means).all() else (None, None),
        estimate=test.estimate,
        interval=test.interval,
        test="tuned sign-flip of ranks" if test.is_ranked else "tuned sign-flip",
        p_value=test.p_value,
        p_adjusted=test.p_value,
        sample=Sample(differences.size, int(np.sum(differences > 0)), int(np.sum(differences < 0))),
        note=f"each at the values that other seeds choose: {'; '.join(chosen)}",
    )


def _outcomes(samples: Sequence[Trials], seeds: Ints, metric: str | None, *, is_higher_better: bool) -> Floats:
    """Return successes or a metric's values, [seeds, values]; NaN for pending and, of successes, unjudged trials.

    A trial that ended or failed without a number of the metric has an infinite outcome, the worst.
    """
    columns = []
    for sample in samples:
        trials = sample.of_seeds(seeds)
        if metric is None:
            columns.append(trials.successes)
        else:
            losses = trials.losses(metric)
            columns.append(-losses if is_higher_better else losses)
    return np.column_stack(columns)


def _chosen(method: TunedMethod, names: Sequence[str]) -> str:
    """List the values that halves of the seeds chose with their counts, the most frequent first."""
    total = sum(method.wins)
    order = sorted(range(len(names)), key=lambda place: -method.wins[place])
    return ", ".join(f"{names[place]} ({method.wins[place]} of {total})" for place in order if method.wins[place])
