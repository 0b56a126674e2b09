"""Columns of tables of results and curves: the fixed ones, and those of hyperparameters and metrics.

The field of a hyperparameter or metric has metadata: its role and its kind (`study.arrow.kinds`). If the name is taken
by another column, the field gets a different name, and the metadata holds the original one.
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
"""Roles. A note describes the other columns of its row."""

WHOLE_NUMBERS = pa.field("whole_numbers", pa.list_(pa.string()), metadata={"study.role": NOTE})
"""The hyperparameters of a row that are integers, though their columns hold floats; only in tables with any."""

_ROLE, _KIND, _NAME = b"study.role", b"study.kind", b"study.name"
_ID_FIELDS = pa.schema([("trial_id", pa.string()), ("cell_id", pa.string()), ("seed", pa.int64())])
_CELL_FIELDS = pa.schema([("task", pa.string()), ("model", pa.string())])
_OUTCOME_FIELDS = pa.schema(
    [("outcome", pa.string()), ("threshold", pa.float64()), ("criterion", pa.string()), ("best_iteration", pa.int64())]
)
_TRAINING_FIELDS = pa.schema(
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
EMPTY_RESULTS = pa.Table.from_batches([], pa.schema([*_ID_FIELDS, *_CELL_FIELDS, *_OUTCOME_FIELDS, *_TRAINING_FIELDS]))
"""An empty table of results, with the columns that every such table has."""
RESULT_COLUMNS: tuple[str, ...] = (*_OUTCOME_FIELDS.names, *_TRAINING_FIELDS.names)
"""The columns of a trial's result in every table of results."""
EMPTY_CURVES = pa.Table.from_batches([], pa.schema([("trial_id", pa.string()), ("iteration", pa.list_(pa.int64()))]))
"""An empty table of learning curves, with the columns that every such table has."""

RESERVED_NAMES = frozenset((*EMPTY_RESULTS.column_names, *EMPTY_CURVES.column_names, WHOLE_NUMBERS.name))
"""Names reserved for columns: no metric should have one. Hyperparameters can't be called `seed`, `task` or `model`."""


@dataclass(frozen=True)
class Meaning:
    """Role, name and kind of a column's content.

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
            taken: names of other columns; if its own is among them, its role is appended to its name.
            type_: its type; None for that of its kind.

        Raises:
            KeyError: if neither a type nor a kind is known.
        """
        name = self.name if self.name not in taken else f"{self.name} ({self.role})"
        metadata = {_ROLE: self.role} | ({_KIND: self.kind} if self.kind else {})
        metadata |= {_NAME: self.name} if name != self.name else {}
        return pa.field(name, type_of(self.kind) if type_ is None else type_, metadata=metadata)


def column_of(field: pa.Field) -> Meaning | None:
    """Return the role, name and kind of a column; None for one without a role, such as the fixed columns.

    Raises:
        UnicodeDecodeError: if the field's metadata isn't UTF-8 text.
    """
    metadata = field.metadata or {}
    if _ROLE not in metadata:
        return None
    texts = (metadata.get(key, b"").decode() for key in (_ROLE, _NAME, _KIND))
    role, name, kind = texts
    return Meaning(role, name or field.name, kind)


def hyperparameters_of(table: pa.Table | pa.Schema) -> list[str]:
    """List the names of the columns that hold hyperparameters, in order.

    Example:
        >>> from study.arrow import results_table
        >>> from study.records import Cell, Outcome, Result, Trial
        >>> trial = Trial(Cell("function", "mine:train", {"width": 8}), seed=0)
        >>> table = results_table([Result(trial=trial, outcome=Outcome.FINISHED, metrics={"loss": 0.5})])
        >>> hyperparameters_of(table), metrics_of(table)
        (['width'], ['loss'])
    """
    return _columns_of_role(table, HYPERPARAMETER)


def metrics_of(table: pa.Table | pa.Schema) -> list[str]:
    """List the names of the columns that hold metrics, in order; empty if there are none."""
    return _columns_of_role(table, METRIC)


def with_metrics(results: pa.Table, names: Iterable[str]) -> pa.Table:
    """Append a column of nulls for each named metric, unless the results have a column of this name."""
    for name in names:
        if name not in results.column_names:
            field = Meaning(METRIC, name, NUMBER).field(())
            results = results.append_column(field, pa.nulls(len(results), field.type))
    return results


def with_labels(trials: pa.Table, labels: Labels, axes: Collection[str] | None = None) -> pa.Table:
    """Append a column of labels for each axis that has labels.

    Args:
        trials: a table with a column `cell_id`.
        labels: the labels of points on the grid's axes, by cell id and axis.
        axes: the axes to add; None for all. An axis is skipped if the table has a column of its name.

    Example:
        >>> trials = pa.table({"cell_id": ["a", "b"]})
        >>> with_labels(trials, {"a": {"schedule": "late mild"}})["schedule"].to_pylist()
        ['late mild', None]
    """
    cell_ids = trials["cell_id"].to_pylist()
    for axis in dict.fromkeys(axis for cell_labels in labels.values() for axis in cell_labels):
        if axis not in trials.column_names and (axes is None or axis in axes):
            texts = pa.array([labels.get(cell_id, {}).get(axis) for cell_id in cell_ids], pa.string())
            trials = trials.append_column(axis, texts)
    return trials


def column_names(cells: Iterable[Cell]) -> list[str]:
    """List task, model and hyperparameters of the cells, in column order: a family's task columns before the model.

    The list is empty without cells.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.

    Example:
        >>> column_names([Cell("simple", "NMU", {"operation": "mul", "hidden_size": 2})])
        ['task', 'operation', 'model', 'hidden_size']
        >>> column_names([Cell("function", "mine:train", {"width": 8})])
        ['task', 'model', 'width']
    """
    return list(dict.fromkeys(name for cell in cells for name in _names(cell)))


def declared_kinds(cell: Cell) -> Mapping[str, str]:
    """Return the kinds of hyperparameters that the cell's family declares; empty for tasks outside families.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    return family_named(cell.task).kinds if is_family_task(cell.task) else {}


def declared_metrics(cell: Cell) -> tuple[str, ...]:
    """Return the metrics that the cell's family declares; empty for tasks outside families.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    return tuple(family_named(cell.task).metrics) if is_family_task(cell.task) else ()


def cell_columns() -> tuple[str, ...]:
    """List task, model and the hyperparameters of all families, in column order.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    names = [
        name
        for family in families()
        for name in ("task", *family.task_columns, "model", *(k for k in family.kinds if k not in family.task_columns))
    ]
    return tuple(dict.fromkeys(names))


def metric_columns() -> tuple[str, ...]:
    """List the metrics of all families, in order.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    return tuple(dict.fromkeys(name for family in families() for name in family.metrics))


def results_schema(head: Iterable[pa.Field], metrics: Iterable[pa.Field], *, has_whole_numbers: bool) -> pa.Schema:
    """Return the schema of results.

    Args:
        head: the fields of task, model and hyperparameters, in order.
        metrics: the fields of metrics, in order.
        has_whole_numbers: whether to include the column `WHOLE_NUMBERS`.
    """
    notes = [WHOLE_NUMBERS] if has_whole_numbers else []
    return pa.schema([*_ID_FIELDS, *head, *notes, *_OUTCOME_FIELDS, *metrics, *_TRAINING_FIELDS])


def _names(cell: Cell) -> list[str]:
    task_columns = family_named(cell.task).task_columns if is_family_task(cell.task) else ()
    present = [name for name in cell.values if name in task_columns]
    return ["task", *present, "model", *(name for name in cell.values if name not in present)]


def _columns_of_role(table: pa.Table | pa.Schema, role: str) -> list[str]:
    schema = table if isinstance(table, pa.Schema) else table.schema
    return [field.name for field in schema if (column := column_of(field)) is not None and column.role == role]
