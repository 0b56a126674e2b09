"""Values of candidates by their trials so far: the worst end of an interval for each objective.

Values of success, times and metrics with two limits are based on Wilson's interval. It bounds the share of trials that
were solved by a time, or that are at least as good as a value. Values of metrics without limits are ends of intervals
of the median. So a value from few seeds is conservative, and values from different numbers of seeds can be compared.

An unsolved trial has the worst possible time, and a diverged or failed one the worst possible metric. Otherwise an
additional trial that is solved late would make a candidate worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from study import statistics, words
from study.interface.declarations import Metric
from study.summaries.search import NO_NUMBER, Objective, Value

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """The results of a candidate's trials.

    Args:
        finished: the number of trials with a result, including unsolved and diverged ones; >= 0.
        solved_at: the iterations at which trials were solved, for the solved trials; NaN if unknown.
        metrics: the values of each metric, NaN if unknown: of the solved trials for a metric of these, otherwise of all
            trials that neither diverged nor failed.
        failed: the number of trials without a result because of an error.
    """

    finished: int
    solved_at: Floats
    metrics: Mapping[str, Floats]
    failed: int = 0


_OF_SUCCESS: Mapping[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective(name="success_rate", title="success rate, lower end", is_higher_better=True, statistic="rate"),
        Objective(
            name="solved_at",
            title="solved at, geometric mean of all trials, upper end",
            is_higher_better=False,
            statistic="time",
        ),
        Objective(
            name="time_to_success",
            title="time to success, restricted mean, upper end",
            is_higher_better=False,
            statistic="time",
        ),
    )
}


def objectives_of(names: Sequence[str], metrics: Mapping[str, Metric]) -> tuple[Objective, ...]:
    """Return objectives by their names: those of success, or else metrics; raises KeyError for any other name.

    Example:
        >>> for one in objectives_of(["val_mse", "accuracy"], {"val_mse": Metric(), "accuracy": Metric(
        ...     low=0.0, high=1.0, higher_is_better=True)}):
        ...     print(one.title)
        val mse, median of all trials, upper end
        accuracy, mean of all trials, lower end
    """
    return tuple(_OF_SUCCESS.get(name) or _of_metric(name, metrics[name]) for name in names)


def _of_metric(name: str, metric: Metric) -> Objective:
    average = "median" if _limits(metric) is None else "mean" if metric.resolution is None else "geometric mean"
    end = "lower" if metric.higher_is_better else "upper"
    return Objective(
        name=name,
        title=f"{words.metric_title(name, metric)}, {average} of all trials, {end} end",
        is_higher_better=metric.higher_is_better,
        statistic="median" if average == "median" else "mean",
    )


def value_of(sample: Sample, names: Sequence[str], metrics: Mapping[str, Metric], most_iterations: int) -> Value:
    """Compute a candidate's values, one for each objective.

    Every sample has values; without a finished trial, these are the worst ones. By `statistics.upper_mean` and
    `statistics.upper_median`, a value doesn't get worse when a trial is added that is as good as all others, when a
    trial gets better, or when every trial is repeated.

    Args:
        sample: the candidate's trials so far.
        names: the names of the objectives.
        metrics: the declarations of the metrics.
        most_iterations: the most iterations of any cell of the search. An unsolved trial counts as solved after these,
            so that the values of one search can be compared.

    Raises:
        KeyError: if a name is neither an objective of success nor a metric.
        ValueError: if the sample has more solved trials, or more values of a metric, than trials.

    Example:
        >>> perfect = Sample(5, np.full(5, 1000.0), {"accuracy": np.full(5, 0.9), "loss": np.array([1, 2, 3, 4, 5.0])})
        >>> metrics = {"accuracy": Metric(higher_is_better=True, low=0.0, high=1.0), "loss": Metric()}
        >>> names = ["success_rate", "solved_at", "time_to_success", "accuracy", "loss"]
        >>> [f"{value:.3g}" for value in value_of(perfect, names, metrics, 20_000)]
        ['0.566', '3.68e+03', '9.26e+03', '0.509', '5']
    """
    return tuple(float(_value(sample, name, metrics, most_iterations)) for name in names)


def _value(sample: Sample, name: str, metrics: Mapping[str, Metric], most_iterations: int) -> float:
    match name:
        case "success_rate":
            return statistics.wilson(sample.solved_at.size, sample.finished)[0]
        case "solved_at":
            return _geometric(sample.solved_at, sample.finished, 1.0, most_iterations)
        case "time_to_success":
            times = _or_worst(sample.solved_at, most_iterations)
            return statistics.upper_mean(times, sample.finished, most_iterations)
    metric, values = metrics[name], sample.metrics[name]
    # Failed trials don't count for metrics of solved trials, as for the success rate. They count as worst for metrics
    # of all trials, so that a setting gains nothing if training fails.
    n = sample.finished if metric.of == "solved" else sample.finished + sample.failed
    if (limits := _limits(metric)) is None:
        return _median(values, n, metric)
    low, high = limits
    if metric.resolution is not None:
        return low + _geometric(values - low, n, metric.resolution, high - low)
    costs = np.clip(high - values if metric.higher_is_better else values - low, 0.0, high - low)
    bound = statistics.upper_mean(_or_worst(costs, high - low), n, high - low)
    return high - bound if metric.higher_is_better else low + bound


def _limits(metric: Metric) -> tuple[float, float] | None:
    return metric.limits if metric.limits is not None and metric.limits[0] < metric.limits[1] else None


def _median(values: Floats, n: int, metric: Metric) -> float:
    """Return the worse end of the median's interval, for n trials of which `values` have a number.

    If that end isn't finite, return a placeholder beyond `NO_NUMBER`, less bad with a larger share of numbers.
    """
    sign = -1.0 if metric.higher_is_better else 1.0
    losses = sign * values[np.abs(values) < NO_NUMBER]
    bound = statistics.upper_median(losses, n)
    return sign * (bound if np.isfinite(bound) else NO_NUMBER * (2 - statistics.wilson(losses.size, n)[0]))


def _geometric(values: Floats, n: int, least: float, worst: float) -> float:
    """Return an upper bound of the geometric mean of n numbers, by the mean of their logarithms.

    Values are clipped to the range from `least` to `worst`; those that are missing or not finite count as `worst`.
    """
    ratios = np.clip(_or_worst(values, worst), least, worst) / worst
    return worst * float(np.exp(statistics.upper_mean(np.log(ratios), n, 0.0)))


def _or_worst(values: Floats, worst: float) -> Floats:
    return np.where(np.isfinite(values), values, worst)


def ranked(values: Sequence[Value], objectives: Sequence[Objective]) -> list[int]:
    """Return the indices of candidates, the best first; of equal candidates, the earlier one first.

    With several objectives, candidates are sorted by non-dominated sorting, then by the objectives in order.

    Example:
        >>> ranked([(0.2,), (0.9,), (0.5,)], objectives_of(["success_rate"], {}))
        [1, 2, 0]
    """
    losses = [tuple(objective.loss(v) for objective, v in zip(objectives, value, strict=True)) for value in values]
    left, order = list(range(len(values))), []
    while left:
        front = [i for i in left if not any(_dominates(losses[j], losses[i]) for j in left)]
        order += sorted(front, key=lambda i: (losses[i], i))
        left = [i for i in left if i not in set(front)]
    return order


def front(values: Sequence[Value], objectives: Sequence[Objective]) -> list[int]:
    """Return the indices of the candidates that no other dominates, the best by the first objective first.

    Equal candidates don't dominate each other, so all of them are returned.

    Example:
        >>> front([(0.9, 50.0), (0.5, 10.0), (0.4, 20.0)], objectives_of(["success_rate", "solved_at"], {}))
        [0, 1]
    """
    losses = [tuple(objective.loss(v) for objective, v in zip(objectives, value, strict=True)) for value in values]
    best = [i for i, loss in enumerate(losses) if not any(_dominates(other, loss) for other in losses)]
    return sorted(best, key=lambda i: (losses[i], i))


def spread(members: Sequence[int], most: int) -> list[int]:
    """Select at most `most` members of a front, in order: its ends, and others evenly between them.

    If `most` is 1, only the first is selected.

    Example:
        >>> spread([4, 7, 1, 0, 2], 3)
        [4, 1, 2]
    """
    if len(members) <= most:
        return list(members)
    places = np.unique(np.linspace(0, len(members) - 1, most).round().astype(int))
    return [members[place] for place in places]


def _dominates(first: Value, second: Value) -> bool:
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))
