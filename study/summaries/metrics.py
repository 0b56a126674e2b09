"""Metrics averaged over the trials of a row: means, medians and interquartile means, with intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from study import statistics
from study.interface.declarations import Metric
from study.records import Interval
from study.statistics.samples import greatest, intervals, least, numbers

Floats = npt.NDArray[np.float64]


class Summarised(Protocol):
    """An object with summarised metrics, such as a row or its counterpart in a comparison."""

    @property
    def metrics(self) -> Mapping[str, MetricSummary]:
        """The averaged metrics, by name."""


Samples = tuple[Floats, npt.NDArray[np.int64]]
"""The concatenated values of many groups, and the size of each group."""


@dataclass(frozen=True, kw_only=True)
class MetricSummary:
    """A metric's estimates from the trials that its declaration selects and that have a finite value.

    A metric with the interval of a beta distribution has only the mean. None means that the number doesn't exist.

    Args:
        metric: the metric's declaration.
        count: the number of these trials.
        mean: the sample mean.
        mean_interval: 95% interval of the mean: by the studentised bootstrap for any distribution, clipped to the
            metric's limits, or of a beta distribution.
        deviation: the sample standard deviation.
        median: the sample median.
        median_interval: interval of the distribution's median by order statistics, at least 95%, for any distribution.
        interquartile_mean: the mean of the middle half.
        interquartile_mean_interval: 95% interval by the expanded percentile bootstrap, for any distribution.
    """

    metric: Metric
    count: int = 0
    mean: float | None = None
    mean_interval: Interval | None = None
    deviation: float | None = None
    median: float | None = None
    median_interval: Interval | None = None
    interquartile_mean: float | None = None
    interquartile_mean_interval: Interval | None = None


def of_trials(metrics: Mapping[str, Metric]) -> list[str]:
    """List the metrics for a list of trials: the averaged ones, and the last of the others.

    Of the metrics that aren't averaged, the first chooses the best step, and the last is the main one.
    """
    others = [name for name, metric in metrics.items() if metric.of == "none"]
    return [*averaged(metrics), *others[-1:]]


def of_curves(metrics: Mapping[str, Metric]) -> tuple[str, ...]:
    """Choose the metrics of learning curves: a leading one, and the first other on its scale; empty without metrics.

    The first metric that covers all ended trials leads, else the last that isn't averaged, else the last of all.

    Example:
        >>> of_curves({"validation_loss": Metric(of="none"), "test_loss": Metric(), "test_accuracy": Metric(high=1.0)})
        ('test_loss', 'validation_loss')
    """
    if not metrics:
        return ()
    name = _first(metrics) or next(reversed([key for key in metrics if metrics[key].of == "none"] or [*metrics]))
    same = [other for other in metrics if other != name and _scale(metrics[other]) == _scale(metrics[name])]
    return (name, *same[:1])


def _scale(metric: Metric) -> tuple[object, ...]:
    """Return a metric's direction, unit and limits: equal for metrics on one scale."""
    return metric.higher_is_better, metric.unit, metric.low, metric.high


def single(metrics: Mapping[str, Metric], named: Collection[str] = ()) -> dict[str, Metric]:
    """Select the metrics that are shown one by one: those outside of series, the main one, and the named ones.

    Args:
        metrics: the metrics, by name.
        named: metrics that are always shown one by one.

    Example:
        >>> errors = {f"mse_at_{n}": Metric(series="MSE", along="length", at=n) for n in (1, 2, 3)}
        >>> list(single({"loss": Metric()} | errors, named=["mse_at_3"])), list(single(errors))
        (['loss', 'mse_at_3'], ['mse_at_1'])
    """
    first = main(metrics)
    return {name: metric for name, metric in metrics.items() if not metric.series or name == first or name in named}


def in_series_only(metrics: Mapping[str, Metric], named: Collection[str] = ()) -> set[str]:
    """Return the metrics that are shown only in their series; see `single`."""
    return metrics.keys() - single(metrics, named).keys()


@dataclass(frozen=True)
class MetricSeries:
    """Metrics of one kind at several places.

    Args:
        title: the title of the series, for readers.
        along: the quantity that its places measure, for readers.
        metrics: the metrics by name, at ascending places.
    """

    title: str
    along: str
    metrics: Mapping[str, Metric]

    @property
    def heading(self) -> str:
        """The heading of a table or an axis, with the unit.

        Example:
            >>> series_of({"wait": Metric(series="wait", along="load", at=1, unit="s")})[0].heading
            'wait (s) along load'
        """
        return f"{self.name} along {self.along}"

    @property
    def name(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.metric.unit})" if self.metric.unit else self.title

    @property
    def metric(self) -> Metric:
        """The first metric, as an example of unit and direction."""
        return next(iter(self.metrics.values()))

    @property
    def places(self) -> tuple[float, ...]:
        """The places of the metrics, ascending."""
        return tuple(metric.at for metric in self.metrics.values() if metric.at is not None)

    @property
    def trained(self) -> Interval | None:
        """The first and the last place that training covers; None if training covers none."""
        places = [metric.at for metric in self.metrics.values() if metric.is_trained and metric.at is not None]
        return (places[0], places[-1]) if places else None


def series_of(metrics: Mapping[str, Metric]) -> list[MetricSeries]:
    """Group metrics by `series` and `along`, in the order of their first metrics; leave out metrics without a series.

    Example:
        >>> errors = {f"mse_at_{n}": Metric(series="MSE", along="length", at=n) for n in (3, 1, 2)}
        >>> [(one.title, one.along, one.places) for one in series_of({"loss": Metric()} | errors)]
        [('MSE', 'length', (1, 2, 3))]
    """
    by_series: dict[tuple[str, str], dict[str, Metric]] = {}
    for name, metric in sorted(metrics.items(), key=lambda item: item[1].at or 0.0):
        if metric.series:
            by_series.setdefault((metric.series, metric.along), {})[name] = metric
    order = dict.fromkeys((metric.series, metric.along) for metric in metrics.values() if metric.series)
    return [MetricSeries(*names, by_series[names]) for names in order]


def metrics_of(summaries: Iterable[Summarised]) -> dict[str, Metric]:
    """Return the declarations of all averaged metrics of rows, by name."""
    return {name: values.metric for summary in summaries for name, values in summary.metrics.items()}


def main(metrics: Mapping[str, Metric]) -> str | None:
    """Return the metric that compares rows without success rates: the first one that covers all ended trials.

    None without such a metric. A validation metric is replaced by the test metric of the same name, if there is one.

    Example:
        >>> main({"error": Metric(of="solved"), "loss": Metric(), "accuracy": Metric(higher_is_better=True)})
        'loss'
        >>> main({"validation_loss": Metric(), "test_error": Metric(), "test_loss": Metric()})
        'test_loss'
    """
    first = _first(metrics)
    if first is None or not first.startswith("validation_"):
        return first
    on_tests = f"test_{first.removeprefix('validation_')}"
    return on_tests if on_tests in metrics and metrics[on_tests].of == "ended" else first


def _first(metrics: Mapping[str, Metric]) -> str | None:
    """Return the first metric that covers all ended trials; None without any."""
    return next((name for name, metric in metrics.items() if metric.of == "ended"), None)


def difference(first: MetricSummary | None, second: MetricSummary | None) -> statistics.Contrast | None:
    """Compare two means by Welch's test; None if either is missing or has fewer than two values, or no value varies."""
    return mean_of([1.0, -1.0], [first, second])


def mean_of(weights: Sequence[float], metrics: Sequence[MetricSummary | None]) -> statistics.Contrast | None:
    """Estimate a weighted sum of means.

    Args:
        weights: one a metric.
        metrics: the metrics, of independent samples.

    Returns:
        None without metrics, if any is missing or has fewer than two values, or if none with a nonzero weight varies.
    """
    means = [metric.mean for metric in metrics if metric is not None and metric.mean is not None]
    deviations = [metric.deviation for metric in metrics if metric is not None and metric.deviation is not None]
    if not len(means) == len(deviations) == len(metrics):
        return None
    return statistics.contrast(weights, means, deviations, [metric.count for metric in metrics if metric is not None])


def averaged(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Select the metrics that reports average over trials.

    Example:
        >>> list(averaged({"loss": Metric(), "validation_loss": Metric(of="none")}))
        ['loss']
    """
    return {name: metric for name, metric in metrics.items() if metric.of != "none"}


def summaries_of(samples: Mapping[str, tuple[Metric, Samples]], groups: int) -> list[dict[str, MetricSummary]]:
    """Summarise each metric of each group.

    Args:
        samples: each metric's declaration, and its values in all groups, by name.
        groups: the number of groups.

    Returns:
        For each group, the summaries by name.

    Raises:
        ValueError: if a value is NaN or infinite, or sizes don't add up to the number of values.
    """
    by_name = {name: _metric(metric, *sample) for name, (metric, sample) in samples.items()}
    return [{name: summaries[group] for name, summaries in by_name.items()} for group in range(groups)]


def _metric(metric: Metric, values: Floats, sizes: npt.NDArray[np.int64]) -> list[MetricSummary]:
    """Summarise a metric in each group."""
    fields: dict[str, Sequence[Any]] = {
        "count": sizes.tolist(),
        "mean": numbers(statistics.means(values, sizes)),
        "deviation": numbers(statistics.deviations(values, sizes)),
    }
    if metric.interval == "beta":
        fields["mean_interval"] = intervals(_beta_intervals(metric, values, sizes))
    else:
        fields |= {
            "mean_interval": intervals(_within(metric, values, sizes, statistics.mean_intervals(values, sizes))),
            "median": numbers(statistics.medians(values, sizes)),
            "median_interval": intervals(statistics.median_intervals(values, sizes)),
            "interquartile_mean": numbers(statistics.interquartile_means(values, sizes)),
            "interquartile_mean_interval": intervals(statistics.interquartile_mean_intervals(values, sizes)),
        }
    rows = zip(*fields.values(), strict=True)
    return [MetricSummary(metric=metric, **dict(zip(fields, row, strict=True))) for row in rows]


def _within(metric: Metric, values: Floats, sizes: npt.NDArray[np.int64], ends: Floats) -> Floats:
    """Clip the intervals to the metric's limits, ignoring a limit that the sample itself violates."""
    low, high = np.full(sizes.size, -np.inf), np.full(sizes.size, np.inf)
    if metric.low is not None:
        low[least(values, sizes) >= metric.low] = metric.low
    if metric.high is not None:
        high[greatest(values, sizes) <= metric.high] = metric.high
    return np.clip(ends, low[:, None], high[:, None])


def _beta_intervals(metric: Metric, values: Floats, sizes: npt.NDArray[np.int64]) -> Floats:
    """Return intervals of the means of a beta distribution on the metric's limits; NaN if a sample violates them."""
    if metric.low is None or metric.high is None:  # the declaration refuses this
        return np.full((sizes.size, 2), np.nan)
    width = metric.high - metric.low
    inside = np.where(values < metric.low, width + 1, values - metric.low)  # values above the upper limit give NaN
    return metric.low + statistics.beta_mean_intervals(inside, sizes, upper=width)
