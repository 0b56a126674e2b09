"""Which source of randomness matters: what each makes of the variance of trials of combined seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from study import statistics, words
from study.interface.declarations import Metric
from study.records import Interval
from study.summaries.aggregate import CellSummary
from study.trials.table import SourceArray, TrialTable, source_array

MORE = 100
"""Trials of which it is said what they would bring."""

SUCCESS = "success"
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
    summaries: Sequence[CellSummary], trials: TrialTable, metrics: Mapping[str, Metric]
) -> list[SourceShares]:
    """Estimate what each source makes of the variance of success, and of each metric that is averaged.

    Args:
        summaries: the cells.
        trials: their trials, whose seeds are combined; others give nothing.
        metrics: by name.
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
                of = statistics.variance_shares(pair.values, is_success=quantity == SUCCESS, is_nested=pair.is_nested)
                if of is not None:
                    names = pair.sources if pair.is_nested else (*pair.sources, _REST)
                    shares.append(SourceShares(row, quantity, names, of, can_grow))
    return shares


def _pairs(array: SourceArray) -> list[tuple[SourceArray, bool]]:
    """Split an array into pairs of sources: of three, init and data with the first evaluation rows, and all of it."""
    if array.values.ndim == 2:
        return [(array, "evaluation" not in array.sources)]
    whole = SourceArray(("init and data", "evaluation"), array.values.reshape(-1, array.values.shape[2]))
    return [(SourceArray(array.sources[:2], array.values[:, :, 0]), True), (whole, False)]
