"""Trials, cells and curves as pandas DataFrames, with documented columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from study.arrow import hyperparameters_of, metrics_of, with_labels
from study.arrow.columns import WHOLE_NUMBERS
from study.reports.columns import TRIALS

if TYPE_CHECKING:
    import pandas as pd

    from study.records import Labels
    from study.reports.content import DataRows

TRIAL_COLUMNS: Mapping[str, str] = {name: note.meaning for name, note in TRIALS.items()}
"""Columns of `trials` besides grid axes, hyperparameters and metrics; columns without values are left out."""

CURVE_COLUMNS: Mapping[str, str] = {
    "trial_id": "the trial's id",
    "cell_id": "the id of its cell",
    "seed": "its seed",
    "iteration": "of the evaluation",
}
"""Columns of `curves`, besides one per metric."""

_ALWAYS = ("trial_id", "cell_id", "seed", "task", "model", "outcome")


def trials(results: pa.Table, labels: Labels) -> pd.DataFrame:
    """Return one row per trial, in the given order: ids, grid axes, hyperparameters, outcome and metrics.

    Columns without any value are left out, except ids, seed, task, model and outcome.

    Args:
        results: the trials' results.
        labels: the names of grid points, which become columns.
    """
    known, results = results.column_names, with_labels(results, labels)
    columns = {name: results[name] for name in _ALWAYS if name != "outcome"}
    columns |= {name: results[name] for name in results.column_names if name not in known}
    for name in [*hyperparameters_of(results), "outcome", *metrics_of(results), *TRIAL_COLUMNS]:
        if name in results.column_names and name not in columns and name != WHOLE_NUMBERS.name:
            columns[name] = results[name]
    return _frame(pa.table({name: column for name, column in columns.items() if name in _ALWAYS or _has_any(column)}))


def cells_frame(rows: DataRows) -> pd.DataFrame:
    """Return rows for other programs, such as those of cells.csv, as a DataFrame."""
    return _frame(pa.Table.from_pylist(rows.records, rows.schema))


def curves(results: pa.Table, stored: pa.Table, metrics: Collection[str] | None = None) -> pd.DataFrame:
    """Return one row per evaluation of a trial: its iteration and metrics; curves of other trials are left out.

    Args:
        results: the trials' results.
        stored: learning curves, one row per trial.
        metrics: names of the metrics to return; None for all. Other names are ignored.
    """
    rows = {row["trial_id"]: row for row in results.select(["trial_id", "cell_id", "seed"]).to_pylist()}
    stored = stored.filter(pa.array([trial_id in rows for trial_id in stored["trial_id"].to_pylist()], pa.bool_()))
    ids = stored["trial_id"].to_pylist()
    sizes = np.array([len(iterations) for iterations in stored["iteration"]], np.int64)
    places = np.repeat(np.arange(len(ids)), sizes)
    columns: dict[str, pa.Array] = {
        name: pa.array([rows[i][name] for i in ids]).take(pa.array(places)) for name in ("trial_id", "cell_id", "seed")
    }
    columns["iteration"] = _flat(stored["iteration"], sizes)
    for name in metrics_of(stored):
        if metrics is None or name in metrics:
            columns[name] = _flat(stored[name], sizes)
    return _frame(pa.table(columns))


def _flat(column: pa.ChunkedArray, sizes: np.ndarray) -> pa.Array:
    """Concatenate the lists of a column, of the given sizes; a missing list becomes as many missing values."""
    type_ = column.type.value_type
    parts = [
        pa.nulls(size, type_) if part.values is None else part.values
        for part, size in zip(column, sizes.tolist(), strict=True)
    ]
    return pa.concat_arrays(parts) if parts else pa.array([], type_)


def _has_any(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count < len(column))


def _frame(table: pa.Table) -> pd.DataFrame:
    """Convert a table; integers and booleans with missing values keep their type."""
    import pandas as pd

    return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
