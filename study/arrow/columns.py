"""The columns of tables of results and curves: those that all tables have, and what the others are for.

A column of a hyperparameter or a metric says so in the metadata of its field: its role, its kind (`study.arrow.kinds`)
and, where a column of another role has its name already, the name that it stands for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from study.arrow.kinds import type_of
from study.interface.kinds import NUMBER
from study.plugins.families import families, family_named, is_family_task
from study.records import Cell, Labels

HYPERPARAMETER, METRIC, NOTE = "hyperparameter", "metric", "note"
"""Roles. A note is of its row's other columns."""

WHOLE_NUMBERS = pa.field("whole_numbers", pa.list_(pa.string()), metadata={"study.role": NOTE})
"""The hyperparameters of a row that are whole, though their columns hold numbers; only in tables that need it."""

_ROLE, _KIND, _NAME = b"study.role", b"study.kind", b"study.name"
_BEFORE = pa.schema([("trial_id", pa.string()), ("cell_id", pa.string()), ("seed", pa.int64())])
_OF_CELL = pa.schema([("task", pa.string()), ("model", pa.string())])
_JUDGED = pa.schema(
    [("outcome", pa.string()), ("threshold", pa.float64()), ("criterion", pa.string()), ("best_iteration", pa.int64())]
)
_AFTER = pa.schema(
    [
        ("solved_at_iteration", pa.int64()),
        ("trained_iterations", pa.int64()),
        ("stopped_early", pa.bool_()),
        ("training_s", pa.float64()),
        ("engine", pa.string()),
        ("device", pa.string()),
        ("error", pa.string()),
    ]
)

# Schema.empty_table() would import pandas.
EMPTY_RESULTS = pa.Table.from_batches([], pa.schema([*_BEFORE, *_OF_CELL, *_JUDGED, *_AFTER]))
"""No results: the columns that every table of results has."""
RESULT_COLUMNS: tuple[str, ...] = (*_JUDGED.names, *_AFTER.names)
"""The columns of a trial's result that every table of results has."""
EMPTY_CURVES = pa.Table.from_batches([], pa.schema([("trial_id", pa.string()), ("iteration", pa.list_(pa.int64()))]))
"""No learning curves: the columns that every table of curves has."""

RESERVED_NAMES = frozenset((*EMPTY_RESULTS.column_names, *EMPTY_CURVES.column_names, WHOLE_NUMBERS.name))
"""Names that a metric shouldn't have, and of which `seed`, `task` and `model` can't name a hyperparameter either."""


@dataclass(frozen=True)
class Meaning:
    """What a column holds.

    Args:
        role: `HYPERPARAMETER`, `METRIC`, or `NOTE`.
        name: the name of the hyperparameter or metric.
        kind: the kind of its values; empty for curves and notes.
    """

    role: str
    name: str
    kind: str = ""

    def field(self, taken: Collection[str], type_: pa.DataType | None = None) -> pa.Field:
        """Return the column's field.

        Args:
            taken: names of other columns; if its own is among them, the column's name says its role, too.
            type_: its type, if that doesn't follow from its kind.
        """
        name = self.name if self.name not in taken else f"{self.name} ({self.role})"
        metadata = {_ROLE: self.role} | ({_KIND: self.kind} if self.kind else {})
        metadata |= {_NAME: self.name} if name != self.name else {}
        return pa.field(name, type_of(self.kind) if type_ is None else type_, metadata=metadata)


def column_of(field: pa.Field) -> Meaning | None:
    """Return what a column holds; None for one that all tables have."""
    metadata = field.metadata or {}
    if _ROLE not in metadata:
        return None
    texts = (metadata.get(key, b"").decode() for key in (_ROLE, _NAME, _KIND))
    role, name, kind = texts
    return Meaning(role, name or field.name, kind)


def hyperparameters_of(table: pa.Table | pa.Schema) -> list[str]:
    """List the columns that hold hyperparameters, in order.

    Example:
        >>> from study.arrow import results_table
        >>> from study.records import Cell, Outcome, Result, Trial
        >>> trial = Trial(Cell("function", "mine:train", {"width": 8}), seed=0)
        >>> table = results_table([Result(trial=trial, outcome=Outcome.FINISHED, metrics={"loss": 0.5})])
        >>> hyperparameters_of(table), metrics_of(table)
        (['width'], ['loss'])
    """
    return _of_role(table, HYPERPARAMETER)


def metrics_of(table: pa.Table | pa.Schema) -> list[str]:
    """List the columns that hold metrics, in order."""
    return _of_role(table, METRIC)


def with_metrics(results: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return results with a column for each metric; one that no trial has is null."""
    for name in names:
        if name not in results.column_names:
            field = Meaning(METRIC, name, NUMBER).field(())
            results = results.append_column(field, pa.nulls(len(results), field.type))
    return results


def with_labels(trials: pa.Table, labels: Labels, axes: Collection[str] | None = None) -> pa.Table:
    """Add a column of labels for each axis that has any, behind the others.

    Args:
        trials: has a column cell_id.
        labels: the names of points on axes of the grid.
        axes: those to add; None for all. An axis that is called like a column of the table is left out.

    Example:
        >>> trials = pa.table({"cell_id": ["a", "b"]})
        >>> with_labels(trials, {"a": {"schedule": "late mild"}})["schedule"].to_pylist()
        ['late mild', None]
    """
    cell_ids = trials["cell_id"].to_pylist()
    for axis in dict.fromkeys(axis for of in labels.values() for axis in of):
        if axis not in trials.column_names and (axes is None or axis in axes):
            texts = pa.array([labels.get(cell_id, {}).get(axis) for cell_id in cell_ids], pa.string())
            trials = trials.append_column(axis, texts)
    return trials


def column_names(cells: Iterable[Cell]) -> list[str]:
    """List all that any of the cells consists of, in the order of columns: a family's task columns before the model.

    Example:
        >>> column_names([Cell("simple", "NMU", {"operation": "mul", "hidden_size": 2})])
        ['task', 'operation', 'model', 'hidden_size']
        >>> column_names([Cell("function", "mine:train", {"width": 8})])
        ['task', 'model', 'width']
    """
    return list(dict.fromkeys(name for cell in cells for name in _names(cell)))


def declared_kinds(cell: Cell) -> Mapping[str, str]:
    """Return the kinds of hyperparameters as the cell's family declares them; none if it has no declared family."""
    return family_named(cell.task).kinds if is_family_task(cell.task) else {}


def declared_metrics(cell: Cell) -> tuple[str, ...]:
    """Return the metrics that the cell's family declares; none if it has no declared family."""
    return tuple(family_named(cell.task).metrics) if is_family_task(cell.task) else ()


def cell_columns() -> tuple[str, ...]:
    """List task, model and the hyperparameters that families declare, in order."""
    names = [
        name
        for family in families()
        for name in ("task", *family.task_columns, "model", *(k for k in family.kinds if k not in family.task_columns))
    ]
    return tuple(dict.fromkeys(names))


def metric_columns() -> tuple[str, ...]:
    """List the metrics that all trials of families have, in order."""
    return tuple(dict.fromkeys(name for family in families() for name in family.metrics))


def results_schema(head: Iterable[pa.Field], metrics: Iterable[pa.Field], *, has_whole_numbers: bool) -> pa.Schema:
    """Return the schema of results.

    Args:
        head: the fields of task, model and hyperparameters, in order.
        metrics: the fields of metrics, in order.
        has_whole_numbers: whether there is the column `WHOLE_NUMBERS`.
    """
    notes = [WHOLE_NUMBERS] if has_whole_numbers else []
    return pa.schema([*_BEFORE, *head, *notes, *_JUDGED, *metrics, *_AFTER])


def _names(cell: Cell) -> list[str]:
    of_task = family_named(cell.task).task_columns if is_family_task(cell.task) else ()
    own = [name for name in cell.values if name in of_task]
    return ["task", *own, "model", *(name for name in cell.values if name not in own)]


def _of_role(table: pa.Table | pa.Schema, role: str) -> list[str]:
    schema = table if isinstance(table, pa.Schema) else table.schema
    return [field.name for field in schema if (column := column_of(field)) is not None and column.role == role]
