"""Records as Arrow tables, and back: the columns that the store, MLflow, CSV files and the report share.

One row a trial: `trial_id`, `cell_id`, `seed`, every field of `Cell` (ranges as text), every field of `Result`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from study.records import Cell, Curve, Outcome, Result, Trial, Weights, format_range, parse_range
from tasks import ArithmeticTask
from tasks.arithmetic_cell import ArithmeticCell

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

CELL_COLUMNS = tuple(field.name for field in fields(ArithmeticCell))
"""Task, model and hyperparameters."""
_NO_VALUES: dict[str, Any] = dict.fromkeys(CELL_COLUMNS)

METRIC_COLUMNS = tuple(ArithmeticTask.metrics)
"""The task's metrics at the best step."""

_RESULT_COLUMNS = (
    "outcome", "threshold", "best_iteration", *METRIC_COLUMNS, "solved_at_iteration", "trained_iterations",
    "stopped_early", "training_s", "engine", "device", "error",
)  # fmt: skip


# The result's `iterations` has a column of another name, since the cell has one of that name.
_FIELDS = {
    name: "iterations" if name == "trained_iterations" else name
    for name in _RESULT_COLUMNS
    if name not in METRIC_COLUMNS
}


def _type(column: str) -> pa.DataType:
    if column in _INTEGERS:
        return pa.int64()
    if column in _TEXTS:
        return pa.string()
    if column == "stopped_early":
        return pa.bool_()
    return pa.float64()


RESULT_SCHEMA = pa.schema(
    [(name, _type(name)) for name in ("trial_id", "cell_id", "seed", *CELL_COLUMNS, *_RESULT_COLUMNS)]
)
CURVE_SCHEMA = pa.schema(
    [
        ("trial_id", pa.string()),
        ("iteration", pa.list_(pa.int64())),
        *((name, pa.list_(pa.float32())) for name in METRIC_COLUMNS),
    ]
)
WEIGHTS_SCHEMA = pa.schema(
    [
        ("trial_id", pa.string()),
        ("iteration", pa.int64()),
        ("name", pa.list_(pa.string())),
        ("shape", pa.list_(pa.list_(pa.int32()))),
        ("value", pa.list_(pa.float32())),
    ]
)
"""One row a trial: its arrays' names and shapes, and all their numbers, one array after another, row by row."""


def trial_row(trial: Trial) -> dict[str, Any]:
    """Convert a trial into the first columns of a row of `RESULT_SCHEMA`."""
    cell = trial.cell
    row: dict[str, Any] = {"trial_id": trial.id, "cell_id": cell.id, "seed": trial.seed}
    row |= _NO_VALUES | {"task": cell.task, "model": cell.model, **cell.values}
    return row | {name: format_range(row[name]) for name in _RANGES}


def result_row(result: Result) -> dict[str, Any]:
    """Convert a result into a row of `RESULT_SCHEMA`."""
    row = trial_row(result.trial)
    row |= {column: result.metrics.get(column) for column in METRIC_COLUMNS}
    row |= {column: getattr(result, name) for column, name in _FIELDS.items()}
    return row | {"outcome": str(result.outcome)}


def row_result(row: dict[str, Any]) -> Result:
    """Convert a row of `RESULT_SCHEMA` back into a result."""
    result = {name: row[column] for column, name in _FIELDS.items()} | {"outcome": Outcome(row["outcome"])}
    result["metrics"] = {name: row[name] for name in METRIC_COLUMNS if row[name] is not None}
    return Result(trial=Trial(cell=row_cell(row), seed=row["seed"]), **result)


def row_cell(row: Mapping[str, Any]) -> Cell:
    """Make the cell of a row that has at least `CELL_COLUMNS`."""
    values = {name: row[name] for name in CELL_COLUMNS if name not in ("task", "model")}
    return Cell(row["task"], row["model"], values | {name: parse_range(row[name]) for name in _RANGES})


def results_table(results: Iterable[Result]) -> pa.Table:
    """Convert results into a table of `RESULT_SCHEMA`."""
    return pa.Table.from_pylist([result_row(result) for result in results], schema=RESULT_SCHEMA)


def table_results(table: pa.Table) -> list[Result]:
    """Convert a table of `RESULT_SCHEMA` back into results."""
    return [row_result(row) for row in table.to_pylist()]


def curves_table(curves: Iterable[Curve]) -> pa.Table:
    """Convert curves into a table of `CURVE_SCHEMA`, one row a trial."""
    rows = [{"trial_id": curve.trial_id, "iteration": curve.iteration, **curve.metrics} for curve in curves]
    return pa.Table.from_pylist(rows, schema=CURVE_SCHEMA)


def table_curves(table: pa.Table) -> list[Curve]:
    """Convert a table of `CURVE_SCHEMA` back into curves."""
    return [
        Curve(
            trial_id=row["trial_id"],
            iteration=np.asarray(row["iteration"], np.int64),
            metrics={name: np.asarray(row[name], np.float32) for name in METRIC_COLUMNS},
        )
        for row in table.to_pylist()
    ]


def weights_table(weights: Iterable[Weights]) -> pa.Table:
    """Convert trained weights into a table of `WEIGHTS_SCHEMA`, one row a trial."""
    rows = [
        {
            "trial_id": one.trial_id,
            "iteration": one.iteration,
            "name": list(one.arrays),
            "shape": [list(array.shape) for array in one.arrays.values()],
            "value": np.concatenate([array.ravel() for array in one.arrays.values()]),
        }
        for one in weights
    ]
    return pa.Table.from_pylist(rows, schema=WEIGHTS_SCHEMA)


def table_weights(table: pa.Table) -> list[Weights]:
    """Convert a table of `WEIGHTS_SCHEMA` back into trained weights."""
    rows = table.drop_columns(["value"]).to_pylist()
    return [
        Weights(row["trial_id"], row["iteration"], _arrays(row, values.values.to_numpy()))
        for row, values in zip(rows, table["value"], strict=True)
    ]


def _arrays(row: Mapping[str, Any], values: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    ends = np.cumsum([math.prod(shape) for shape in row["shape"]])
    parts = np.split(values, ends[:-1])
    return {
        name: part.reshape(shape).copy() for name, shape, part in zip(row["name"], row["shape"], parts, strict=True)
    }
