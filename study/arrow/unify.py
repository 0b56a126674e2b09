"""Concatenation of tables with different columns, such as those of different models or versions of a user's code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from study.arrow.columns import (
    EMPTY_CURVES,
    EMPTY_RESULTS,
    HYPERPARAMETER,
    METRIC,
    WHOLE_NUMBERS,
    Meaning,
    column_of,
    results_schema,
)
from study.arrow.kinds import encoded, kind_of, type_of
from study.arrow.results import values_of, whole_numbers
from study.interface.kinds import NONE, NUMBER


def unified(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables of results, or of curves.

    A column that a table lacks is null in its rows. A column of integers and floats becomes float, and
    `whole_numbers` notes the integers, so that cells keep their ids. Other mixed columns, and those of floats with
    integers beyond ±2^53, become JSON. A curve's metric is float64 if it is in any table, else float32.

    Args:
        tables: at least one; empty tables don't contribute columns. If all are empty, only the first does.

    Returns:
        The rows in the order of the tables. If a hyperparameter of one table has the name of a metric of another, the
        hyperparameter's column is renamed, with its role.

    Raises:
        ValueError: if a column must be converted whose JSON or ranges can't be decoded.
        ValueError, TypeError, OverflowError: if `whole_numbers` names a value that can't be an integer, such as NaN.

    Example:
        >>> from study.arrow import results_table, table_cells
        >>> from study.records import Cell, Outcome, Result, Trial
        >>> cells = [Cell("function", "mine:train", {"width": width}) for width in (8, 8.5)]
        >>> tables = [results_table([Result(trial=Trial(cell, 0), outcome=Outcome.FINISHED)]) for cell in cells]
        >>> table = unified(tables)
        >>> table["width"].to_pylist(), table["whole_numbers"].to_pylist(), table_cells(table) == cells
        ([8.0, 8.5], [['width'], None], True)
    """
    tables = [table for table in tables if len(table)] or list(tables[:1])
    schemas: list[pa.Schema] = []
    numbers = [_number_of(table.schema, schemas) for table in tables]
    if len(schemas) == 1:
        return pa.concat_tables(tables)
    # Tables of one schema are converted together; then their rows are put back in order.
    groups = [
        pa.concat_tables(table for table, own in zip(tables, numbers, strict=True) if own == number)
        for number in range(len(schemas))
    ]
    converted = _results(groups) if "outcome" in schemas[0].names else _curves(groups)
    starts = [0] * len(groups)
    parts = []
    for table, number in zip(tables, numbers, strict=True):
        parts.append(converted[number].slice(starts[number], len(table)))
        starts[number] += len(table)
    return pa.concat_tables(parts)


def _number_of(schema: pa.Schema, schemas: list[pa.Schema]) -> int:
    """Return the index of a schema in the list, after appending it if it is new."""
    for number, other in enumerate(schemas):
        if schema.equals(other, check_metadata=True):
            return number
    schemas.append(schema)
    return len(schemas) - 1


@dataclass(frozen=True)
class _Part:
    """A table with its columns by role."""

    table: pa.Table

    @cached_property
    def hyperparameters(self) -> Mapping[str, tuple[str, Meaning]]:
        """The name and the meaning of each hyperparameter's column, by hyperparameter."""
        return self._columns_of_role(HYPERPARAMETER)

    @cached_property
    def metrics(self) -> Mapping[str, tuple[str, Meaning]]:
        """The name and the meaning of each metric's column, by metric."""
        return self._columns_of_role(METRIC)

    @property
    def head(self) -> list[str]:
        """Task, model and hyperparameters, in order."""
        names = {column: name for name, (column, _) in self.hyperparameters.items()}
        return [names.get(column, column) for column in self.table.column_names if column in {*names, "task", "model"}]

    @property
    def has_notes(self) -> bool:
        """True if number columns may hold integers."""
        return WHOLE_NUMBERS.name in self.table.column_names

    def kind(self, name: str) -> str:
        """Return the kind of a hyperparameter's values; `NONE` if the table has no values of it."""
        column, meaning = self.hyperparameters.get(name, ("", None))
        has_values = meaning is not None and self.table[column].null_count < len(self.table)
        return meaning.kind if meaning is not None and has_values else NONE

    def values(self, name: str) -> list[Any]:
        """Return a hyperparameter's value in each row; None in all rows if the table lacks it."""
        if name not in self.hyperparameters:
            return [None] * len(self.table)
        column, meaning = self.hyperparameters[name]
        return values_of(self.table, {column: meaning})[column]

    def column(self, name: str, type_: pa.DataType, columns: Mapping[str, tuple[str, Meaning]]) -> Any:
        """Return a column cast to a type; nulls if `columns` lacks it."""
        return self.table[columns[name][0]].cast(type_) if name in columns else pa.nulls(len(self.table), type_)

    def _columns_of_role(self, role: str) -> dict[str, tuple[str, Meaning]]:
        roles = {field.name: column_of(field) for field in self.table.schema}
        return {column.name: (name, column) for name, column in roles.items() if column and column.role == role}


def _results(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Convert tables of results to one schema."""
    parts = [_Part(table) for table in tables]
    fixed = EMPTY_RESULTS.schema
    names = dict.fromkeys(name for part in parts for name in part.hyperparameters)
    metrics = {name: Meaning(METRIC, name, NUMBER).field(fixed.names) for name in _all_metrics(parts)}
    taken = {*fixed.names, *(field.name for field in metrics.values())}
    kinds = {name: _joint_kind(name, parts) for name in names}
    fields = {name: Meaning(HYPERPARAMETER, name, kind).field(taken) for name, kind in kinds.items()}
    notes = [_notes(part, kinds) for part in parts]
    head = [fields[n] if n in fields else fixed.field(n) for n in dict.fromkeys(n for part in parts for n in part.head)]
    schema = results_schema(head, metrics.values(), has_whole_numbers=any(note is not None for note in notes))
    converted = []
    for part, note in zip(parts, notes, strict=True):
        arrays = {name: part.table[name] for name in fixed.names}
        arrays |= {fields[name].name: _as_kind(part, name, kind) for name, kind in kinds.items()}
        arrays |= {field.name: part.column(name, field.type, part.metrics) for name, field in metrics.items()}
        arrays[WHOLE_NUMBERS.name] = pa.nulls(len(part.table), WHOLE_NUMBERS.type) if note is None else note
        converted.append(pa.table([arrays[name] for name in schema.names], schema=schema))
    return converted


def _joint_kind(name: str, parts: Sequence[_Part]) -> str:
    kinds = {part.kind(name) for part in parts} - {NONE}
    if len(kinds) == 1:
        return kinds.pop()
    if not kinds:  # null everywhere: the kind in a table that has the column
        declared = [part.hyperparameters[name][1].kind for part in parts if name in part.hyperparameters]
        return next((kind for kind in declared if kind != NONE), NONE)
    return kind_of(value for part in parts for value in part.values(name))


def _as_kind(part: _Part, name: str, kind: str) -> Any:
    if part.kind(name) in (kind, NONE):
        own = part.hyperparameters if part.kind(name) == kind else {}
        return part.column(name, type_of(kind), own)
    return encoded(part.values(name), kind)


def _notes(part: _Part, kinds: Mapping[str, str]) -> pa.Array | None:
    """Return the column `whole_numbers` of a table for the joint kinds; None without integers among numbers."""
    numbers = [name for name, kind in kinds.items() if kind == NUMBER and (part.has_notes or part.kind(name) != NUMBER)]
    return whole_numbers({name: part.values(name) for name in numbers}, len(part.table))


def _curves(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Convert tables of curves to one schema."""
    parts = [_Part(table) for table in tables]
    fixed = EMPTY_CURVES.schema
    types = {name: _joint_type(name, parts) for name in _all_metrics(parts)}
    fields = {name: Meaning(METRIC, name).field(fixed.names, type_) for name, type_ in types.items()}
    schema = pa.schema([*fixed, *fields.values()])
    return [
        pa.table(
            [
                *(part.table[name] for name in fixed.names),
                *(part.column(name, type_, part.metrics) for name, type_ in types.items()),
            ],
            schema=schema,
        )
        for part in parts
    ]


def _joint_type(name: str, parts: Sequence[_Part]) -> pa.DataType:
    types = [part.table.schema.field(part.metrics[name][0]).type for part in parts if name in part.metrics]
    return max(types, key=lambda type_: type_.value_type.bit_width)


def _all_metrics(parts: Sequence[_Part]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part.metrics))
