"""Conversion of learning curves to tables, one row a trial, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from study.arrow.columns import EMPTY_CURVES, METRIC, Meaning, column_of
from study.records import Curve


def curves_table(curves: Iterable[Curve]) -> pa.Table:
    """Convert learning curves to a table with a column for each metric that occurs.

    A metric's column holds float32, or float64 if any of its arrays does; it is null for curves without the metric.
    Without curves, the table has the columns of `EMPTY_CURVES`.

    Example:
        >>> curve = Curve("a", np.array([0, 100]), {"loss": np.array([0.5, 0.25])})
        >>> curves_table([curve]).to_pylist()
        [{'trial_id': 'a', 'iteration': [0, 100], 'loss': [0.5, 0.25]}]
    """
    rows = list(curves)
    fixed = EMPTY_CURVES.schema
    names = list(dict.fromkeys(name for curve in rows for name in curve.metrics))
    fields = [Meaning(METRIC, name).field(fixed.names, pa.list_(_type(rows, name))) for name in names]
    arrays = [
        pa.array([curve.trial_id for curve in rows], pa.string()),
        pa.array([curve.iteration for curve in rows], fixed.field("iteration").type),
        *(pa.array([c.metrics.get(name) for c in rows], f.type) for name, f in zip(names, fields, strict=True)),
    ]
    return pa.table(arrays, schema=pa.schema([*fixed, *fields]))


def table_curves(table: pa.Table) -> list[Curve]:
    """Convert a table of learning curves back; each curve gets its non-null metrics."""
    metrics = {field.name: (column.name, field) for field in table.schema if (column := column_of(field)) is not None}
    curves = []
    for row in table.to_pylist():
        arrays = {
            name: np.asarray(row[column], field.type.value_type.to_pandas_dtype())
            for column, (name, field) in metrics.items()
            if row[column] is not None
        }
        curves.append(Curve(row["trial_id"], np.asarray(row["iteration"], np.int64), arrays))
    return curves


def _type(curves: Sequence[Curve], name: str) -> pa.DataType:
    is_double = any(curve.metrics[name].dtype == np.float64 for curve in curves if name in curve.metrics)
    return pa.float64() if is_double else pa.float32()
