"""Trials judged anew: what a study counts as success may change after they were trained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import table_curves
from study.records import Outcome
from tasks.criterion import Bound, first_success, in_words

CurvesOf = Callable[[Collection[str]], pa.Table]
"""Returns the curves of some trials."""

_JUDGED = (Outcome.SOLVED, Outcome.UNSOLVED, Outcome.FINISHED)


def judged(results: pa.Table, criterion: Mapping[str, Bound], curves_of: CurvesOf) -> pa.Table:
    """Return results with the outcomes that a criterion gives them, from their metrics.

    A trial that diverged or failed stays so. When a trial was solved is read from its curve.

    Args:
        results: rows of trials, some of which another criterion may have judged.
        criterion: what the metrics of a solved trial meet; empty if nothing says what success is.
        curves_of: returns curves; called only if a trial that is solved was judged otherwise.
    """
    text = in_words(criterion) or None
    is_other = np.array([other != text for other in results["criterion"].to_pylist()], bool)
    if not is_other.any():
        return results
    outcome = np.array(results["outcome"].to_pylist(), dtype=object)
    anew = is_other & np.isin(outcome, [str(one) for one in _JUDGED])
    solved = anew & _meets(results, criterion) if criterion else np.zeros(len(outcome), bool)
    outcome[anew] = str(Outcome.UNSOLVED if criterion else Outcome.FINISHED)
    outcome[solved] = str(Outcome.SOLVED)
    columns = {
        "outcome": pa.array(outcome, pa.string()),
        "criterion": pa.array([text] * len(outcome), pa.string()),
        "solved_at_iteration": _solved_at(results, anew, solved, criterion, curves_of),
    }
    for name, column in columns.items():
        results = results.set_column(results.column_names.index(name), results.schema.field(name), column)
    return results


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
    criterion: Mapping[str, Bound],
    curves_of: CurvesOf,
) -> pa.Array:
    iterations = results["solved_at_iteration"].to_pylist()
    trial_ids = results["trial_id"].to_pylist()
    first: dict[str, int | None] = {}
    if solved.any():
        for curve in table_curves(curves_of([trial_ids[row] for row in np.flatnonzero(solved)])):
            metrics = {name: values.astype(np.float64) for name, values in curve.metrics.items()}
            if metrics.keys() >= criterion.keys():
                first[curve.trial_id] = first_success(curve.iteration, metrics, criterion)
    return pa.array(
        [first.get(trial_ids[row]) if anew[row] else iteration for row, iteration in enumerate(iterations)], pa.int64()
    )
