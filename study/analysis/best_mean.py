"""The finding in a sentence where nothing says what success is: which method has the best mean of a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from study import words
from study.analysis.method_tests import LEVEL, lead
from study.analysis.methods import Method
from study.analysis.metrics import MetricSummary, mean_of
from study.analysis.rows import ResultRows
from study.analysis.seed_pairs import SeedTrials
from tasks.declarations import Metric


@dataclass(frozen=True)
class _Mean:
    """The mean of a method, over the rows that are compared: each row counts as much as any other."""

    method: Method
    rows: tuple[MetricSummary, ...]
    value: float


def best_mean(methods: Sequence[Method], name: str, metric: Metric, trials: SeedTrials | None = None) -> str:
    """Say which method has the best mean, and whether that may be chance; empty without a mean.

    Args:
        methods: the methods of one question.
        name: the metric's name.
        metric: its declaration.
        trials: their trials, by their seeds; None if the trials aren't known.
    """
    means = [mean for method in methods if (mean := _mean(method, name)) is not None]
    title = words.metric_title(name, metric)
    if not methods:
        return "no two methods were tried at the same values of what is swept"
    if not means:
        return f"no trial has a finite {title}"
    means.sort(key=lambda mean: mean.value, reverse=metric.higher_is_better)
    first, *others = means
    if not others:
        return f"{first.method.label}: {_described(first, title)}" if first.method.name else _described(first, title)
    equal = [mean for mean in means if mean.value == first.value]
    if len(equal) > 1:
        number = "both" if len(equal) == 2 else "all"
        names = words.join_and([mean.method.label for mean in equal])
        return f"{names} {number} have a {title} of {words.measure(first.value)} on average"
    superlative, comparative = ("highest", "lower") if metric.higher_is_better else ("lowest", "higher")
    rest = [f"{mean.method.label} {words.measure(mean.value)}" for mean in others[:2]]
    rest += [f"{words.count_of(len(others) - 2, 'other')} {comparative}"] if len(others) > 2 else []
    by_seed = lead(trials, first.method.compared, others[0].method.compared, name)
    is_sure = by_seed.p_value < LEVEL if by_seed is not None else _differ(first, others[0])
    chance = "" if is_sure else " (which may be chance)"
    value = f"{words.measure(first.value)}{_interval(first)} on average"
    return f"{first.method.label} has the {superlative} {title}{chance}, {value}, {words.join_and(rest)}"


def swept_means(rows: ResultRows, members: Sequence[int], x: str, name: str) -> str:
    """Say what a method's mean is at both ends of what is swept; empty with fewer than two rows that have one."""
    there = [(row, of) for row in members if (of := rows.summaries[row].metrics[name]).mean is not None]
    if len(there) < 2:
        return ""
    ends = [
        f"{words.measure(of.mean)}{words.spaced_interval(of.mean_interval, words.measure)} at "
        f"{words.title(x)} {words.show_value(x, rows.value(row, x))}"
        for row, of in (there[0], there[-1])
    ]
    return f"on average it is {ends[0]} and {ends[1]}"


def _mean(method: Method, name: str) -> _Mean | None:
    rows = tuple(summary.metrics[name] for summary in method.compared)
    means = [row.mean for row in rows if row.mean is not None]
    return _Mean(method, rows, sum(means) / len(means)) if len(means) == len(rows) > 0 else None


def _described(mean: _Mean, title: str) -> str:
    return f"the {title} is {words.measure(mean.value)}{_interval(mean)} on average"


def _interval(mean: _Mean) -> str:
    """Write the interval of a mean: the row's own, or Welch's of the mean of several rows."""
    if len(mean.rows) == 1:
        return words.spaced_interval(mean.rows[0].mean_interval, words.measure)
    several = mean_of([1 / len(mean.rows)] * len(mean.rows), mean.rows)
    return "" if several is None else words.spaced_interval(several.interval, words.measure)


def _differ(first: _Mean, second: _Mean) -> bool:
    """Return whether Welch's interval of the difference leaves 0 out."""
    weights = [1 / len(first.rows)] * len(first.rows) + [-1 / len(second.rows)] * len(second.rows)
    test = mean_of(weights, [*first.rows, *second.rows])
    return test is not None and not test.interval[0] <= 0 <= test.interval[1]
