"""Trials judged anew: what a study counts as success may change after they were trained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import table_curves
from study.records import Outcome
from tasks.criterion import Bound, first_success, in_words
from tasks.references import Criterion, ReferenceCriterion

CurvesOf = Callable[[Collection[str]], pa.Table]
"""Returns the curves of some trials."""

_JUDGED = (Outcome.SOLVED, Outcome.UNSOLVED, Outcome.FINISHED)


@dataclass(frozen=True, eq=False)
class _Rule:
    """What some rows are judged by.

    Args:
        rows: a flag for each row of the results.
        bounds: what the metrics of a solved trial meet; empty if nothing says what success is.
        text: the same in words; None if nothing says it.
    """

    rows: npt.NDArray[np.bool_]
    bounds: Mapping[str, Bound]
    text: str | None


def judged(results: pa.Table, criterion: Criterion, curves_of: CurvesOf) -> pa.Table:
    """Return results with the outcomes that a criterion gives them, from their metrics.

    A trial that diverged or failed stays so. When a trial was solved is read from its curve.

    Args:
        results: rows of trials, some of which another criterion may have judged. Where references say what success is,
            these must be all rows of the study: those of its references judge the others.
        criterion: what the metrics of a solved trial meet; empty if nothing says what success is.
        curves_of: returns curves; called only if a trial that is solved was judged otherwise.
    """
    rules = list(_rules(results, criterion))
    text = np.full(len(results), None, dtype=object)
    for rule in rules:
        text[rule.rows] = rule.text
    is_other = np.array([one != new for one, new in zip(results["criterion"].to_pylist(), text, strict=True)], bool)
    if not is_other.any():
        return results
    outcome = np.array(results["outcome"].to_pylist(), dtype=object)
    anew = is_other & np.isin(outcome, [str(one) for one in _JUDGED])
    solved = np.zeros(len(outcome), bool)
    for rule in rules:
        outcome[anew & rule.rows] = str(Outcome.UNSOLVED if rule.bounds else Outcome.FINISHED)
        solved |= anew & rule.rows & _meets(results, rule.bounds) if rule.bounds else False
    outcome[solved] = str(Outcome.SOLVED)
    columns = {
        "outcome": pa.array(outcome, pa.string()),
        "criterion": pa.array(text, pa.string()),
        "solved_at_iteration": _solved_at(results, anew, solved, rules, curves_of),
    }
    for name, column in columns.items():
        results = results.set_column(results.column_names.index(name), results.schema.field(name), column)
    return results


def _rules(results: pa.Table, criterion: Criterion) -> Iterator[_Rule]:
    """Yield what the rows are judged by: each row by one rule, or by none if nothing says what success is."""
    if not isinstance(criterion, ReferenceCriterion):
        yield _Rule(np.ones(len(results), bool), criterion, in_words(criterion) or None)
        return
    from study.analysis.references import references_of  # imported late: statistics take long, and most don't need them

    cells = results["cell_id"].to_pylist()
    reference = np.array([criterion.reference_of.get(cell, "") for cell in cells], dtype=object)
    yield _Rule(reference == "", {}, None)  # of an earlier version of the study's file
    for cell, references in references_of(results, criterion).items():
        yield _Rule(reference == cell, criterion.of(references), criterion.in_words(references) or None)


def _meets(results: pa.Table, criterion: Mapping[str, Bound]) -> npt.NDArray[np.bool_]:
    met = np.ones(len(results), bool)
    for name, bound in criterion.items():
        if name not in results.column_names:
            return np.zeros(len(results), bool)
        met &= bound.holds(np.asarray(pc.fill_null(pc.cast(results[name], pa.float64()), np.nan)))
    return met


def _solved_at(
    results: pa.Table,
    anew: npt.NDArray[np.bool_],
    solved: npt.NDArray[np.bool_],
    rules: Collection[_Rule],
    curves_of: CurvesOf,
) -> pa.Array:
    iterations = results["solved_at_iteration"].to_pylist()
    trial_ids = results["trial_id"].to_pylist()
    bounds = {trial_ids[row]: rule.bounds for rule in rules for row in np.flatnonzero(rule.rows & solved)}
    first: dict[str, int | None] = {}
    for curve in table_curves(curves_of(list(bounds))) if bounds else ():
        criterion = bounds[curve.trial_id]
        metrics = {name: curve.metrics[name].astype(np.float64) for name in criterion if name in curve.metrics}
        if len(metrics) == len(criterion):
            first[curve.trial_id] = first_success(curve.iteration, metrics, criterion)
    return pa.array(
        [first.get(trial_ids[row]) if anew[row] else iteration for row, iteration in enumerate(iterations)], pa.int64()
    )
