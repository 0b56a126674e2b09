"""Records as Arrow tables, and back: the columns that the store, MLflow, CSV files and the report share.

One row a trial: `trial_id`, `cell_id`, `seed`, every field of `Cell` (ranges as text), every field of `Result`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from study.records import (
    CELL_FIELDS,
    RESULT_FIELDS,
    Cell,
    Curve,
    Outcome,
    Result,
    Trial,
    format_range,
    parse_range,
)

_INTEGERS = {
    "seed", "input_size", "subsets", "hidden_size", "sparsity_start", "sparsity_end", "batch_size", "iterations",
    "evaluate_every", "best_step_window", "evaluation_rows", "best_iteration", "solved_at_iteration",
    "trained_iterations",
}  # fmt: skip
_TEXTS = {
    "trial_id", "cell_id", "task", "operation", "interpolation_range", "extrapolation_range", "model", "bounds",
    "out_of_bounds_shape", "sparsity_shape", "sparsity_scaling", "optimizer", "stop", "outcome", "engine", "device",
    "error",
}  # fmt: skip
_RANGES = ("interpolation_range", "extrapolation_range")

# `iterations` of the result is a column of its own: the cell has one of that name.
_RESULT_COLUMNS = {name: "trained_iterations" if name == "iterations" else name for name in RESULT_FIELDS}


def _type(column: str) -> pa.DataType:
    if column in _INTEGERS:
        return pa.int64()
    if column in _TEXTS:
        return pa.string()
    if column == "stopped_early":
        return pa.bool_()
    return pa.float64()


RESULT_SCHEMA = pa.schema(
    [(name, _type(name)) for name in ("trial_id", "cell_id", "seed", *CELL_FIELDS, *_RESULT_COLUMNS.values())]
)
CURVE_SCHEMA = pa.schema(
    [
        ("trial_id", pa.string()),
        ("iteration", pa.list_(pa.int64())),
        ("validation_mse", pa.list_(pa.float32())),
        ("test_mse", pa.list_(pa.float32())),
        ("sparsity_error", pa.list_(pa.float32())),
    ]
)


def trial_row(trial: Trial) -> dict[str, Any]:
    """Lay a trial without a result out as the first columns of `RESULT_SCHEMA`."""
    cell = trial.cell
    row: dict[str, Any] = {"trial_id": trial.id, "cell_id": cell.id, "seed": trial.seed}
    row |= {name: getattr(cell, name) for name in CELL_FIELDS}
    return row | {name: format_range(row[name]) for name in _RANGES}


def result_row(result: Result) -> dict[str, Any]:
    """Lay a result out as one row of `RESULT_SCHEMA`."""
    row = trial_row(result.trial)
    row |= {column: getattr(result, name) for name, column in _RESULT_COLUMNS.items()}
    row["outcome"] = str(result.outcome)
    return row


def row_result(row: dict[str, Any]) -> Result:
    """Read one row of `RESULT_SCHEMA` back."""
    cell = {name: row[name] for name in CELL_FIELDS}
    cell |= {name: parse_range(cell[name]) for name in _RANGES}
    result = {name: row[column] for name, column in _RESULT_COLUMNS.items()}
    result["outcome"] = Outcome(result["outcome"])
    return Result(trial=Trial(cell=Cell(**cell), seed=row["seed"]), **result)


def results_table(results: Iterable[Result]) -> pa.Table:
    """Gather results into a table of `RESULT_SCHEMA`."""
    return pa.Table.from_pylist([result_row(result) for result in results], schema=RESULT_SCHEMA)


def table_results(table: pa.Table) -> list[Result]:
    """Read a table of `RESULT_SCHEMA` back into results."""
    return [row_result(row) for row in table.to_pylist()]


def curves_table(curves: Iterable[Curve]) -> pa.Table:
    """Gather curves into a table of `CURVE_SCHEMA`, one row a trial."""
    rows = [{name: getattr(curve, name) for name in CURVE_SCHEMA.names} for curve in curves]
    return pa.Table.from_pylist(rows, schema=CURVE_SCHEMA)


def table_curves(table: pa.Table) -> list[Curve]:
    """Read a table of `CURVE_SCHEMA` back into curves."""
    return [
        Curve(
            trial_id=row["trial_id"],
            iteration=np.asarray(row["iteration"], np.int64),
            validation_mse=np.asarray(row["validation_mse"], np.float32),
            test_mse=np.asarray(row["test_mse"], np.float32),
            sparsity_error=np.asarray(row["sparsity_error"], np.float32),
        )
        for row in table.to_pylist()
    ]
