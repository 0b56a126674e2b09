"""Which source of randomness matters: what each makes of the variance of trials of combined seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from study import statistics, words
from study.analysis.aggregate import CellSummary
from study.analysis.seed_pairs import SeedSample, SeedTrials
from study.analysis.source_trials import SourceArray, source_array
from study.analysis.summary import Floats
from study.records import Interval
from tasks.declarations import Metric

MORE = 100
"""Trials of which it is said what they would bring."""

SUCCESS = "success"
DEPENDENCE_ADJUSTED = "dependence-adjusted"
"""What intervals of rates are called that allow for trials that share seeds."""
_REST = "their combination"


@dataclass(frozen=True)
class SourceShares:
    """What two sources make of the variance of a cell's trials.

    Args:
        row: the cell's row.
        quantity: success, or the metric's title.
        sources: what the shares are of, in order.
        of: the shares; nested, of the first two sources alone.
        can_grow: whether more seeds of either source can be asked for: not of evaluation rows.
    """

    row: int
    quantity: str
    sources: tuple[str, ...]
    of: statistics.VarianceShares
    can_grow: bool

    @property
    def parts(self) -> list[tuple[str, float, Interval]]:
        """Of each source: its name, its share and the interval."""
        return list(zip(self.sources, self.of.shares, self.of.intervals, strict=False))


def source_shares(
    summaries: Sequence[CellSummary], trials: SeedTrials, metrics: Mapping[str, Metric]
) -> list[SourceShares]:
    """Estimate what each source makes of the variance of success, and of each metric that is averaged.

    Args:
        summaries: the cells.
        trials: their trials, whose seeds are combined; others give nothing.
        metrics: by name.
    """
    shares = []
    for row, summary in enumerate(summaries):
        sample = trials.sample(summary)
        quantities = [(SUCCESS, _successes(sample))] if summary.judged else []
        quantities += [
            (words.metric_title(name, metric), sample.values(name))
            for name, metric in metrics.items()
            if metric.of != "none"
        ]
        for quantity, values in quantities:
            array = source_array(sample.seeds, values)
            for pair, can_grow in [] if array is None else _pairs(array):
                of = statistics.variance_shares(pair.values, is_success=quantity == SUCCESS, is_nested=pair.is_nested)
                if of is not None:
                    names = pair.sources if pair.is_nested else (*pair.sources, _REST)
                    shares.append(SourceShares(row, quantity, names, of, can_grow))
    return shares


def _successes(sample: SeedSample) -> Floats:
    return np.where(sample.are_judged, sample.solved.astype(np.float64), np.nan)


def _pairs(array: SourceArray) -> list[tuple[SourceArray, bool]]:
    """Split an array into pairs of sources: of three, init and data with the first evaluation rows, and all of it."""
    if array.values.ndim == 2:
        return [(array, "evaluation" not in array.sources)]
    whole = SourceArray(("init and data", "evaluation"), array.values.reshape(-1, array.values.shape[2]))
    return [(SourceArray(array.sources[:2], array.values[:, :, 0]), True), (whole, False)]


def with_dependence(summaries: Sequence[CellSummary], trials: SeedTrials) -> list[CellSummary]:
    """Allow for trials that share the seed of a source: they say less than as many independent ones.

    The rate's interval is that of `statistics.shared_rate_interval`; of three sources, with the first evaluation rows.
    Intervals of other numbers are left out.

    Args:
        summaries: the cells.
        trials: their trials, whose seeds are combined.
    """
    return [_with_dependence(summary, trials.sample(summary)) for summary in summaries]


def _with_dependence(summary: CellSummary, sample: SeedSample) -> CellSummary:
    array = source_array(sample.seeds, _successes(sample)) if summary.judged else None
    interval = None
    if array is not None and summary.success_rate is not None:
        values = array.values if array.values.ndim == 2 else array.values[:, :, 0]
        interval = statistics.shared_rate_interval(values, is_nested=array.is_nested)
    metrics = {
        name: replace(of, mean_interval=None, median_interval=None, interquartile_mean_interval=None)
        for name, of in summary.metrics.items()
    }
    return replace(
        summary,
        success_rate_interval=interval,
        success_rate_by=DEPENDENCE_ADJUSTED,
        solved_at_median_interval=None,
        solved_at_interval=None,
        time_to_success_interval=None,
        solved_at_s_interval=None,
        metrics=metrics,
    )
