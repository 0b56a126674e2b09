"""Judging of stored trials, since a study's criterion may change after training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import table_curves
from study.interface.criterion import Bound, first_success, in_words
from study.interface.references import Criterion, ReferenceCriterion
from study.records import Outcome
from study.store.judgements import Key, keys_of
from study.trials.table import TrialTable

CurvesOf = Callable[[Collection[str]], pa.Table]
"""Function that returns the curves of the given trials."""
SolvedAtOf = Callable[[], Mapping[Key, int | None]]
"""Function that returns the cached iterations at which trials were solved."""

_JUDGED = (Outcome.SOLVED, Outcome.UNSOLVED, Outcome.FINISHED)


@dataclass(frozen=True, eq=False)
class _Rule:
    """A criterion and the rows that it judges.

    Args:
        rows: a flag for each row of the results.
        bounds: bounds on the metrics of a solved trial; empty without a criterion.
        text: the bounds in words; None without a criterion.
    """

    rows: npt.NDArray[np.bool_]
    bounds: Mapping[str, Bound]
    text: str | None


def judged(results: pa.Table, criterion: Criterion, curves_of: CurvesOf, solved_at_of: SolvedAtOf = dict) -> pa.Table:
    """Return results with outcome, criterion and iteration of solving according to a criterion and their metrics.

    Diverged, failed and stopped trials keep their outcomes. A trial's curve shows when it was solved; the iteration is
    null if neither the cache nor a curve with all metrics of the criterion shows it.

    Args:
        results: rows of trials, which another criterion may have judged. If references set the criterion, pass all
            rows of the study, since the rows of its references determine the bounds.
        criterion: the criterion of a solved trial; empty if there is none.
        curves_of: returns curves; called only for solved trials that another criterion had judged, unless cached.
        solved_at_of: returns cached iterations of solving; no curves are read for the trials in it.

    Raises:
        Exception: an error of `curves_of` or `solved_at_of`.
    """
    rules = list(_rules(results, criterion))
    text = np.full(len(results), None, dtype=object)
    for rule in rules:
        text[rule.rows] = rule.text
    is_other = np.array([old != new for old, new in zip(results["criterion"].to_pylist(), text, strict=True)], bool)
    if not is_other.any():
        return results
    outcome = np.array(results["outcome"].to_pylist(), dtype=object)
    rejudged = is_other & np.isin(outcome, [str(kind) for kind in _JUDGED])
    solved = np.zeros(len(outcome), bool)
    for rule in rules:
        outcome[rejudged & rule.rows] = str(Outcome.UNSOLVED if rule.bounds else Outcome.FINISHED)
        solved |= rejudged & rule.rows & _meets(results, rule.bounds) if rule.bounds else False
    outcome[solved] = str(Outcome.SOLVED)
    results = _with_column(results, "outcome", pa.array(outcome, pa.string()))
    results = _with_column(results, "criterion", pa.array(text, pa.string()))
    first = _first_successes(results, solved, rules, curves_of, solved_at_of)
    before = results["solved_at_iteration"].to_pylist()
    iterations = [first.get(row) if rejudged[row] else before[row] for row in range(len(before))]
    return _with_column(results, "solved_at_iteration", pa.array(iterations, pa.int64()))


def _with_column(results: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """Replace the values of a column."""
    return results.set_column(results.column_names.index(name), results.schema.field(name), column)


def _rules(results: pa.Table, criterion: Criterion) -> Iterator[_Rule]:
    """Yield the rules that judge the rows; each row is in at most one of them."""
    if not isinstance(criterion, ReferenceCriterion):
        yield _Rule(np.ones(len(results), bool), criterion, in_words(criterion) or None)
        return
    from study.summaries.references import (
        references_of,  # imported late: statistics import slowly, and most studies don't need them
    )

    cells = results["cell_id"].to_pylist()
    reference = np.array([criterion.reference_of.get(cell, "") for cell in cells], dtype=object)
    yield _Rule(reference == "", {}, None)  # cells of an earlier version of the study's file
    for cell, references in references_of(TrialTable(results), criterion).items():
        yield _Rule(reference == cell, criterion.of(references), criterion.in_words(references) or None)


def _meets(results: pa.Table, criterion: Mapping[str, Bound]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that meet all bounds; a missing value or NaN meets none, nor does a missing column."""
    met = np.ones(len(results), bool)
    for name, bound in criterion.items():
        if name not in results.column_names:
            return np.zeros(len(results), bool)
        met &= bound.holds(np.asarray(pc.fill_null(pc.cast(results[name], pa.float64()), np.nan)))
    return met


def _first_successes(
    results: pa.Table,
    solved: npt.NDArray[np.bool_],
    rules: Collection[_Rule],
    curves_of: CurvesOf,
    solved_at_of: SolvedAtOf,
) -> dict[int, int | None]:
    """Return the iteration at which each solved row's trial was solved, by row, from the cache or from its curve.

    Rows are left out if both are missing, or if the curve lacks a metric of the bounds.
    """
    rows = np.flatnonzero(solved)
    if not len(rows):
        return {}
    before, keys = solved_at_of(), keys_of(results.take(pa.array(rows)))
    first = {int(row): before[key] for row, key in zip(rows, keys, strict=True) if key in before}
    trial_ids = results["trial_id"].to_pylist()
    unknown = {trial_ids[row]: int(row) for row in rows if row not in first}
    bounds = {int(row): rule.bounds for rule in rules for row in np.flatnonzero(rule.rows & solved)}
    for curve in table_curves(curves_of(list(unknown))) if unknown else ():
        row = unknown[curve.trial_id]
        metrics = {name: curve.metrics[name].astype(np.float64) for name in bounds[row] if name in curve.metrics}
        if len(metrics) == len(bounds[row]):
            first[row] = first_success(curve.iteration, metrics, bounds[row])
    return first
