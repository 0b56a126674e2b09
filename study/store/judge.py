"""Trials judged anew: what a study counts as success may change after they were trained."""

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
"""Returns the curves of some trials."""
SolvedAtOf = Callable[[], Mapping[Key, int | None]]
"""Returns when trials were solved, as far as that was kept."""

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


def judged(results: pa.Table, criterion: Criterion, curves_of: CurvesOf, solved_at_of: SolvedAtOf = dict) -> pa.Table:
    """Return results with the outcomes that a criterion gives them, from their metrics.

    A trial that diverged or failed stays so. When a trial was solved is read from its curve.

    Args:
        results: rows of trials, some of which another criterion may have judged. Where references say what success is,
            these must be all rows of the study: those of its references judge the others.
        criterion: what the metrics of a solved trial meet; empty if nothing says what success is.
        curves_of: returns curves; called only if a trial that is solved was judged otherwise.
        solved_at_of: returns what was kept of an earlier reading; of these trials no curves are read.
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
    results = _with_column(results, "outcome", pa.array(outcome, pa.string()))
    results = _with_column(results, "criterion", pa.array(text, pa.string()))
    first = _first_successes(results, solved, rules, curves_of, solved_at_of)
    before = results["solved_at_iteration"].to_pylist()
    iterations = [first.get(row) if anew[row] else before[row] for row in range(len(before))]
    return _with_column(results, "solved_at_iteration", pa.array(iterations, pa.int64()))


def _with_column(results: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return results.set_column(results.column_names.index(name), results.schema.field(name), column)


def _rules(results: pa.Table, criterion: Criterion) -> Iterator[_Rule]:
    """Yield what the rows are judged by: each row by one rule, or by none if nothing says what success is."""
    if not isinstance(criterion, ReferenceCriterion):
        yield _Rule(np.ones(len(results), bool), criterion, in_words(criterion) or None)
        return
    from study.summaries.references import (
        references_of,  # imported late: statistics take long, and most don't need them
    )

    cells = results["cell_id"].to_pylist()
    reference = np.array([criterion.reference_of.get(cell, "") for cell in cells], dtype=object)
    yield _Rule(reference == "", {}, None)  # of an earlier version of the study's file
    for cell, references in references_of(TrialTable(results), criterion).items():
        yield _Rule(reference == cell, criterion.of(references), criterion.in_words(references) or None)


def _meets(results: pa.Table, criterion: Mapping[str, Bound]) -> npt.NDArray[np.bool_]:
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
    """Return at which iteration the trials of some rows were solved, by row."""
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
