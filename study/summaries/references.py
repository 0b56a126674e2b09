"""References of a study: their valid trials, the bounds that they set, and rates of trials within these bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from study import statistics
from study.interface.criterion import Bound
from study.interface.references import KINDS, Kind, ReferenceCriterion, References
from study.records import Interval
from study.summaries.metrics import series_of
from study.trials.table import ENDED, TrialTable

Floats = npt.NDArray[np.float64]


def references_of(table: TrialTable, criterion: ReferenceCriterion) -> dict[str, References]:
    """Select the reference trials of each question that ended, have all metrics, and meet the bounds of `keep`.

    Only trials with a seed in `criterion.seeds` are selected.

    Args:
        table: trials by cells, judged by any criterion.
        criterion: the success criterion.

    Returns:
        The references of each question in `criterion.seeds`, by the id of their cell; empty ones without such trials.

    Raises:
        ValueError: if the table has an unknown outcome, or a metric's text isn't a number.
    """
    names = dict.fromkeys([*criterion.higher_is_better, *criterion.keep])
    references = {}
    for cell, seeds in criterion.seeds.items():
        trials = table.cell(cell)
        trials = trials.select(np.isin(trials.seeds, list(seeds)))
        references[cell] = criterion.select(trials.are(*ENDED), {name: trials.values(name) for name in names})
    return references


@dataclass(frozen=True, kw_only=True)
class ReferenceFindings:
    """The findings from the references of a study.

    Args:
        criterion: the success criterion.
        references: the references of each question, by the id of their cell.
        rates: the rates of trials that pass each bound, from `rates_by_bound`.
        along: if the criterion has metrics of series, the findings as if success required every metric of these series;
            otherwise None.
    """

    criterion: ReferenceCriterion
    references: Mapping[str, References]
    rates: Sequence[BoundRate]
    along: ReferenceFindings | None = None


@dataclass(frozen=True, kw_only=True)
class BoundRate:
    """The rate of a cell's trials that pass a bound set by references.

    Args:
        cell_id: the cell's id.
        metric: the metric.
        kind: the kind of bound.
        bound: the bound; None if there are too few references.
        passed: number of trials that pass it.
        judged: number of trials that ended; diverged trials pass no bound.
        rate: passed / judged; None without a bound, or without a trial that ended.
        interval: Wilson's 95% interval.
    """

    cell_id: str
    metric: str
    kind: Kind
    bound: float | None = None
    passed: int = 0
    judged: int = 0
    rate: float | None = None
    interval: Interval | None = None


def rates_by_bound(
    table: TrialTable, criterion: ReferenceCriterion, cells: Sequence[str], kinds: Sequence[Kind] = KINDS
) -> list[BoundRate]:
    """Compute the rate of trials that pass the references' bound, for each cell, metric and kind of bound.

    A trial counts with its metrics at its own best step. Each metric is counted separately.

    Args:
        table: trials by cells, including the references.
        criterion: the success criterion.
        cells: the ids of the cells.
        kinds: the kinds of bounds.

    Returns:
        The rates in the order of the cells, then of the criterion's metrics, then of the kinds.

    Raises:
        ValueError: if the criterion's level isn't in (0, 1), or as for `references_of`.
    """
    references = references_of(table, criterion)
    rates: list[BoundRate] = []
    for cell in cells:
        trials = table.cell(cell)
        ended = trials.select(trials.are(*ENDED))
        known = references.get(criterion.reference_of.get(cell, ""), References(values=_none(criterion)))
        for name in criterion.higher_is_better:
            ends = {kind: criterion.end(known, name, kind) for kind in kinds}
            bounds = {kind: None if end is None else criterion.bound(name, end) for kind, end in ends.items()}
            rates += [_rate(cell, name, kind, bounds[kind], ended.values(name)) for kind in kinds]
    return rates


def _none(criterion: ReferenceCriterion) -> Mapping[str, Floats]:
    """Return an empty array for each metric of the criterion."""
    return {name: np.empty(0) for name in criterion.higher_is_better}


def _rate(cell: str, metric: str, kind: Kind, bound: Bound | None, values: Floats) -> BoundRate:
    """Compute the rate of values that pass a bound; without a bound or values, the rate and its interval are None."""
    if bound is None:
        return BoundRate(cell_id=cell, metric=metric, kind=kind, judged=len(values))
    passed = int(np.count_nonzero(bound.holds(values)))
    end = bound.at_most if bound.at_most is not None else bound.at_least
    if not len(values):
        return BoundRate(cell_id=cell, metric=metric, kind=kind, bound=end)
    return BoundRate(
        cell_id=cell,
        metric=metric,
        kind=kind,
        bound=end,
        passed=passed,
        judged=len(values),
        rate=passed / len(values),
        interval=statistics.wilson(passed, len(values)),
    )


def reference_findings(table: TrialTable, criterion: ReferenceCriterion, cells: Sequence[str]) -> ReferenceFindings:
    """Compute the findings from references, and those along the series that the criterion's metrics belong to.

    Args:
        table: trials by cells, including the references, with the declarations of their metrics.
        criterion: the success criterion.
        cells: the ids of the cells.

    Raises:
        ValueError: if the criterion's level isn't in (0, 1), or as for `references_of`.
    """
    along = [s for s in series_of(table.metrics) if not criterion.higher_is_better.keys().isdisjoint(s.metrics)]
    everywhere = {name: metric.higher_is_better for s in along for name, metric in s.metrics.items()}
    findings = _findings(table, criterion, cells)
    if not along:
        return findings
    return replace(findings, along=_findings(table, replace(criterion, higher_is_better=everywhere), cells))


def _findings(table: TrialTable, criterion: ReferenceCriterion, cells: Sequence[str]) -> ReferenceFindings:
    """Compute the findings for the criterion's metrics."""
    rates = rates_by_bound(table, criterion, cells)
    return ReferenceFindings(criterion=criterion, references=references_of(table, criterion), rates=rates)
