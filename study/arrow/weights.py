"""Conversion of trained weights to tables and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from study.records import Weights

WEIGHTS_SCHEMA = pa.schema(
    [
        ("trial_id", pa.string()),
        ("iteration", pa.int64()),
        ("name", pa.list_(pa.string())),
        ("shape", pa.list_(pa.list_(pa.int32()))),
        ("value", pa.list_(pa.float32())),
    ]
)
"""One row a trial: names, shapes and values of its arrays, the values concatenated in C order."""


def weights_table(weights: Iterable[Weights]) -> pa.Table:
    """Convert trained weights, each of at least one array, to a table of `WEIGHTS_SCHEMA`, one row a trial."""
    rows = [
        {
            "trial_id": trial_weights.trial_id,
            "iteration": trial_weights.iteration,
            "name": list(trial_weights.arrays),
            "shape": [list(array.shape) for array in trial_weights.arrays.values()],
            "value": np.concatenate([array.ravel() for array in trial_weights.arrays.values()]),
        }
        for trial_weights in weights
    ]
    return pa.Table.from_pylist(rows, schema=WEIGHTS_SCHEMA)


def table_weights(table: pa.Table) -> list[Weights]:
    """Convert a table of `WEIGHTS_SCHEMA` back to trained weights, one for each row; arrays are copies."""
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


def stacked_weights(weights: Sequence[Weights]) -> dict[str, npt.NDArray[np.float32]]:
    """Stack the arrays of several trials of a cell to shape [trials, ...].

    Args:
        weights: those of at least one trial, with arrays of the same names and shapes.

    Example:
        >>> one, other = (Weights(name, 41, {"layer_1.bias": np.zeros(2, np.float32)}) for name in "ab")
        >>> stacked_weights([one, other])["layer_1.bias"].shape
        (2, 2)
    """
    return {name: np.stack([trial_weights.arrays[name] for trial_weights in weights]) for name in weights[0].arrays}
