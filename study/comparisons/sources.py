"""Shares of the sources of randomness in the variance of trials of combined seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from study import statistics, words
from study.interface.declarations import Metric
from study.records import Interval
from study.summaries.aggregate import CellSummary
from study.trials.table import SourceArray, TrialTable, source_array

MORE = 100
"""The number of further trials for which standard errors are predicted."""

SUCCESS = "success"
_REST = "their combination"


@dataclass(frozen=True)
class SourceShares:
    """The shares of two sources in the variance of a cell's trials.

    Args:
        row: the cell's row.
        quantity: success, or the metric's title.
        sources: the names of the shares, in order.
        estimate: the shares; nested, of the first two sources alone.
        can_grow: whether more seeds of either source can be asked for; evaluation rows can't grow.
    """

    row: int
    quantity: str
    sources: tuple[str, ...]
    estimate: statistics.VarianceShares
    can_grow: bool

    @property
    def parts(self) -> list[tuple[str, float, Interval]]:
        """The name of each source, its share and the interval."""
        return list(zip(self.sources, self.estimate.shares, self.estimate.intervals, strict=False))


def source_shares(
    summaries: Sequence[CellSummary], trials: TrialTable, metrics: Mapping[str, Metric]
) -> list[SourceShares]:
    """Estimate the shares of the sources in the variance of success, and of each averaged metric.

    Args:
        summaries: the cells.
        trials: their trials; cells without combined seeds are skipped.
        metrics: the metrics by name.

    Returns:
        The shares of each cell and quantity, without those that can't be estimated. Three sources give two entries:
        init and data at the first evaluation rows, and both together against evaluation.
    """
    shares = []
    for row, summary in enumerate(summaries):
        sample = trials.cell(summary.cell_id)
        quantities = [(SUCCESS, sample.successes)] if summary.judged else []
        quantities += [
            (words.metric_title(name, metric), sample.values(name))
            for name, metric in metrics.items()
            if metric.of != "none"
        ]
        for quantity, values in quantities:
            array = source_array(sample.seeds, values)
            for pair, can_grow in [] if array is None else _pairs(array):
                estimate = statistics.variance_shares(
                    pair.values, is_success=quantity == SUCCESS, is_nested=pair.is_nested
                )
                if estimate is not None:
                    names = pair.sources if pair.is_nested else (*pair.sources, _REST)
                    shares.append(SourceShares(row, quantity, names, estimate, can_grow))
    return shares


def _pairs(array: SourceArray) -> list[tuple[SourceArray, bool]]:
    """Split an array into pairs of sources, each with a flag: its seeds can grow.

    Three sources give (init, data) at the first evaluation, and (both, evaluation).
    """
    if array.values.ndim == 2:
        return [(array, "evaluation" not in array.sources)]
    combined = SourceArray(("init and data", "evaluation"), array.values.reshape(-1, array.values.shape[2]))
    return [(SourceArray(array.sources[:2], array.values[:, :, 0]), True), (combined, False)]
