"""Conversion of results to tables, one row a trial, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from study.arrow.columns import (
    EMPTY_RESULTS,
    HYPERPARAMETER,
    METRIC,
    RESULT_COLUMNS,
    WHOLE_NUMBERS,
    Meaning,
    column_names,
    column_of,
    declared_kinds,
    declared_metrics,
    results_schema,
)
from study.arrow.kinds import decoded, encoded, kind_of
from study.interface.kinds import NONE, NUMBER
from study.records import Cell, Outcome, Result, Trial

# A result's `iterations` is stored as `trained_iterations`, since a cell may have a hyperparameter `iterations`.
_FIELDS = {name: "iterations" if name == "trained_iterations" else name for name in RESULT_COLUMNS}


def results_table(results: Iterable[Result]) -> pa.Table:
    """Convert results to a table with a column for each hyperparameter and metric that occurs.

    Metrics that the family of one of the trials declares have a column, too. A value that a trial lacks is null.

    Args:
        results: any number of results, even none, of any tasks.

    Returns:
        The columns of `EMPTY_RESULTS`, with hyperparameters and metrics among them, in the cells' order, and the column
        `WHOLE_NUMBERS` if a column of floats holds integers, too; those beyond ±2^53 make it a column of JSON.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    rows = list(results)
    trials = [result.trial for result in rows]
    declared = [name for cell in _different_cells(trials) for name in declared_metrics(cell)]
    names = dict.fromkeys([*declared, *(name for result in rows for name in result.metrics)])
    metrics = {name: [result.metrics.get(name) for result in rows] for name in names}
    content = {column: [getattr(result, name) for result in rows] for column, name in _FIELDS.items()}
    return _table(trials, metrics, content | {"outcome": [str(result.outcome) for result in rows]})


def trials_table(trials: Iterable[Trial]) -> pa.Table:
    """Convert trials without results to a table of results; the result columns are null.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    rows = list(trials)
    return _table(rows, {}, {})


def table_results(table: pa.Table) -> list[Result]:
    """Convert a table back to results; null metrics are left out.

    Raises:
        ValueError: if a trial has no outcome, as in `trials_table`, or if a JSON or range can't be decoded.
        ValueError, TypeError, OverflowError: if `whole_numbers` names a value that can't be an integer, such as NaN.
    """
    fields = [decoded(table[column], "") for column in RESULT_COLUMNS]
    metric_columns = [(c.name, name) for name, c in _columns(table).items() if c.role == METRIC]
    metrics = [table[name].to_pylist() for _, name in metric_columns]
    seeds = table["seed"].to_pylist()
    results = []
    for row, (cell, seed) in enumerate(zip(table_cells(table), seeds, strict=True)):
        content = {name: column[row] for name, column in zip(_FIELDS.values(), fields, strict=True)}
        values = {name: column[row] for (name, _), column in zip(metric_columns, metrics, strict=True)}
        content["outcome"] = Outcome(content["outcome"])
        content["metrics"] = {name: value for name, value in values.items() if value is not None}
        results.append(Result(trial=Trial(cell, seed), **content))
    return results


def table_cells(table: pa.Table) -> list[Cell]:
    """Return the cell of each row, in the order of the rows.

    Raises:
        ValueError: if a JSON or range can't be decoded.
        ValueError, TypeError, OverflowError: if `whole_numbers` names a value that can't be an integer, such as NaN.
    """
    columns = {name: column for name, column in _columns(table).items() if column.role == HYPERPARAMETER}
    names = [column.name for column in columns.values()]
    values = values_of(table, columns)
    rows = zip(*(values[name] for name in columns), strict=True) if columns else [()] * len(table)
    heads = zip(table["task"].to_pylist(), table["model"].to_pylist(), strict=True)
    return [
        Cell(task, model, dict(zip(names, row, strict=True))) for (task, model), row in zip(heads, rows, strict=True)
    ]


def values_of(table: pa.Table, columns: Mapping[str, Meaning]) -> dict[str, list[Any]]:
    """Return the values of each hyperparameter column, row by row, with integers restored.

    Args:
        table: a table of results.
        columns: the columns to read, with their roles, names and kinds.

    Raises:
        ValueError: if a JSON or range can't be decoded.
        ValueError, TypeError, OverflowError: if `whole_numbers` names a value that can't be an integer, such as NaN.
    """
    values = {name: decoded(table[name], column.kind) for name, column in columns.items()}
    if WHOLE_NUMBERS.name in table.column_names:
        values_by_name = {column.name: values[name] for name, column in columns.items() if column.kind == NUMBER}
        for row, whole_names in enumerate(table[WHOLE_NUMBERS.name].to_pylist()):
            for name in (name for name in whole_names or () if name in values_by_name):
                values_by_name[name][row] = int(values_by_name[name][row])
    return values


def kinds_of(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the kind of each hyperparameter's column; if no cell has a value, the declared kind, or else `NONE`.

    Raises:
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
    """
    declared = {name: kind for cell in cells for name, kind in declared_kinds(cell).items()}
    names = dict.fromkeys(name for cell in cells for name in cell.values)
    kinds = {name: kind_of(cell.values.get(name) for cell in cells) for name in names}
    return {name: declared.get(name, NONE) if kind == NONE else kind for name, kind in kinds.items()}


def whole_numbers(values: Mapping[str, Sequence[Any]], count: int) -> pa.Array | None:
    """Return the column `whole_numbers`, the names of each row's integer hyperparameters; None if no row has any.

    Args:
        values: the values of each hyperparameter of kind number.
        count: the number of rows.
    """
    mixed = {name: column for name, column in values.items() if any(isinstance(value, int) for value in column)}
    if not mixed:
        return None
    rows = [[name for name, column in mixed.items() if isinstance(column[row], int)] for row in range(count)]
    return pa.array([names or None for names in rows], WHOLE_NUMBERS.type)


def _table(
    trials: Sequence[Trial], metrics: Mapping[str, Sequence[Any]], content: Mapping[str, Sequence[Any]]
) -> pa.Table:
    """Make a table from trials, their metrics, and the given result columns; other result columns are null."""
    fixed = EMPTY_RESULTS.schema
    cells = _different_cells(trials)
    columns = {"trial_id": [trial.id for trial in trials], "seed": [trial.seed for trial in trials]}
    columns |= {"cell_id": [trial.cell.id for trial in trials], "task": [trial.cell.task for trial in trials]}
    columns |= {"model": [trial.cell.model for trial in trials], **content}
    arrays = {name: pa.array(values, fixed.field(name).type) for name, values in columns.items()}
    metric_fields = [Meaning(METRIC, name, NUMBER).field(fixed.names) for name in metrics]
    for field, values in zip(metric_fields, metrics.values(), strict=True):
        arrays[field.name] = pa.array(values, field.type)
    kinds = kinds_of(cells)
    numbers = {}
    fields = {}
    for name, kind in kinds.items():
        values_of_trials = [trial.cell.values.get(name) for trial in trials]
        fields[name] = Meaning(HYPERPARAMETER, name, kind).field({*fixed.names, *metrics})
        arrays[fields[name].name] = encoded(values_of_trials, kind)
        if kind == NUMBER:
            numbers[name] = values_of_trials
    notes = whole_numbers(numbers, len(trials))
    if notes is not None:
        arrays[WHOLE_NUMBERS.name] = notes
    head = [fields.get(name) or fixed.field(name) for name in column_names(cells) or ("task", "model")]
    schema = results_schema(head, metric_fields, has_whole_numbers=notes is not None)
    return pa.table([arrays.get(field.name, pa.nulls(len(trials), field.type)) for field in schema], schema=schema)


def _different_cells(trials: Iterable[Trial]) -> list[Cell]:
    return list({trial.cell.id: trial.cell for trial in trials}.values())


def _columns(table: pa.Table) -> dict[str, Meaning]:
    columns = {field.name: column_of(field) for field in table.schema}
    return {name: column for name, column in columns.items() if column is not None}
