"""Runs that were recorded elsewhere, as a table of columns with known or guessed roles.

A role is hyperparameter, metric, or other: a tool's own data about a run, which may be a metric but never a
hyperparameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError
from study.outcomes.files import read_table
from study.outcomes.gather import infer_type
from study.words import join_and

HYPERPARAMETER, METRIC, OTHER = "hyperparameter", "metric", "other"

_PARENT = "tags.mlflow.parentRunId"
_STATUS = "status"
# Columns of wandb's table of runs besides configuration and summary, as are all names that begin with _.
_OF_WANDB = {
    *("Name", "Notes", "User", "Tags", "Created", "Runtime", "Sweep", "ID", "Group", "Job Type", "Updated"),
    *("End Time", "Hostname", "Description", "Commit", "GitHub", "GPU Count", "GPU Type", "Hidden", "Host", "OS"),
    *("Python Version", "Command", "Agent", "Last Updated", "Path"),
}
_WANDB = ("Name", "State")


@dataclass(frozen=True)
class _Layout:
    """Layout of a tool's table of runs.

    Args:
        prefixes: prefixes of its columns of hyperparameters.
        metrics: prefixes of its columns of metrics; empty if metrics are recognised by their names.
        columns: other columns that it must have.
    """

    prefixes: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


_LAYOUTS = (
    _Layout(("params_", "user_attrs_"), ("value", "values_"), ("number", "state")),  # Optuna
    _Layout(("config.",), ("result",), ("status",)),  # Sacred
    _Layout(("config/",), (), ("training_iteration",)),  # Ray Tune
    _Layout(("parameters/",), ("metrics/",), ("sys/id",)),  # Neptune
)


@dataclass(frozen=True)
class Runs:
    """Runs that were recorded elsewhere, in the order of their start times if these are known.

    Args:
        name: the name of the runs.
        table: their columns; texts may be numbers.
        roles: roles of columns, as far as the source tells them; the others are guessed.
        ids: the id of each run; None if runs have no ids.
        seconds: the duration of each run; None if unknown.
        above: the row of each run's parent, or None; empty if no run is nested.
        notices: sentences for the reader about decisions made while reading.
    """

    name: str
    table: pa.Table
    roles: Mapping[str, str] = field(default_factory=dict)
    ids: Sequence[str] | None = None
    seconds: Sequence[float | None] | None = None
    above: Sequence[int | None] = ()
    notices: Sequence[str] = ()


def read_runs(file: Path, *, is_wandb: bool = False) -> Runs:
    """Read runs from a text or Parquet file with one row a run, such as an export of a tool.

    Args:
        file: the file's path.
        is_wandb: require an export of wandb's table of runs.

    Raises:
        InputError: as for `study.outcomes.files.read_table`, or if the file isn't the required export.
    """
    table, notices = read_table(file)
    names = table.column_names
    if is_wandb and not set(_WANDB) <= set(names):
        raise InputError(
            f"{file} isn't wandb's table of runs: it must have columns {join_and(_WANDB)}, but has {', '.join(names)}; "
            "`study import csv` reads any other table"
        )
    if any(name.startswith("params.") for name in names):
        return replace(of_mlflow(str(file), table), notices=notices)
    if set(_WANDB) <= set(names):
        return replace(_of_wandb(str(file), table), notices=notices)
    return Runs(str(file), table, _laid_out(names), notices=notices)


def _laid_out(names: Sequence[str]) -> dict[str, str]:
    """Return the roles of the columns of a known tool's table, recognised by its columns; empty for other tables."""
    for layout in _LAYOUTS:
        if set(layout.columns) <= set(names) and any(name.startswith(layout.prefixes) for name in names):
            own = {name: METRIC if layout.metrics and name.startswith(layout.metrics) else OTHER for name in names}
            return own | {name: HYPERPARAMETER for name in names if name.startswith(layout.prefixes)}
    return {}


def of_mlflow(name: str, table: pa.Table) -> Runs:
    """Return the runs of a table with the columns of MLflow's own exports, by start time, without system metrics.

    The runs have the columns of parameters and metrics without prefixes, and ``status`` if there is one, which is
    called ``status (run)`` beside a parameter or metric of that name. A metric with the name of a parameter is called
    ``NAME (metric)``.

    Args:
        name: the name of the runs.
        table: columns ``params.NAME`` and ``metrics.NAME``, and optionally ``run_id``, ``status``, ``start_time``,
            ``end_time`` and the tag with the parent's id; others are ignored.
    """
    table = _by_time(table, "start_time")
    params = {c: c.removeprefix("params.") for c in table.column_names if c.startswith("params.")}
    metrics = {c: c.removeprefix("metrics.") for c in table.column_names if c.startswith("metrics.")}
    metrics = {c: metric for c, metric in metrics.items() if not metric.startswith("system/")}
    renamed = {c: f"{metric} (metric)" if metric in params.values() else metric for c, metric in metrics.items()}
    columns = {title: table[c] for c, title in (params | renamed).items()}
    roles = dict.fromkeys(params.values(), HYPERPARAMETER) | dict.fromkeys(renamed.values(), METRIC)
    ids, parents = _texts(table, "run_id"), _texts(table, _PARENT)
    if "status" in table.column_names:
        columns[_STATUS if _STATUS not in columns else f"{_STATUS} (run)"] = table["status"]
    row_of = {run_id: row for row, run_id in enumerate(ids or ())}
    above = [row_of.get(parent) for parent in parents or ()]
    return Runs(name, pa.table(columns), roles, ids, _seconds(table), above)


def _of_wandb(name: str, table: pa.Table) -> Runs:
    """Return the runs of wandb's table, in the order of their creation."""
    table = _by_time(table, "Created")  # wandb writes the newest first
    others = [c for c in table.column_names if c not in _OF_WANDB and not c.startswith("_")]
    ids = _texts(table, "ID") or _texts(table, "Name")
    runtime = _numbers(table["Runtime"]) if "Runtime" in table.column_names else None
    return Runs(name, table.select(others), {}, ids, runtime)


def _by_time(table: pa.Table, name: str) -> pa.Table:
    """Sort rows by a column of times (numbers or ISO 8601); unchanged without such a column."""
    if name not in table.column_names:
        return table
    times = infer_type(table[name])
    return table.take(pc.sort_indices(times.cast(pa.string()) if pa.types.is_dictionary(times.type) else times))


def _texts(table: pa.Table, name: str) -> list[str] | None:
    """Return a column as texts, empty for missing values; None without the column."""
    return [text or "" for text in table[name].cast(pa.string()).to_pylist()] if name in table.column_names else None


def _seconds(table: pa.Table) -> list[float | None] | None:
    """Return the seconds of runs with times in milliseconds; None for other times, as in exports by pandas."""
    if not {"start_time", "end_time"} <= set(table.column_names):
        return None
    begin, end = _numbers(table["start_time"]), _numbers(table["end_time"])
    if begin is None or end is None:
        return None
    return [None if a is None or b is None else (b - a) / 1000 for a, b in zip(begin, end, strict=True)]


def _numbers(column: pa.ChunkedArray) -> list[float | None] | None:
    """Return a column's numbers; None if it has other values."""
    values = infer_type(column)
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return None
    numbers: list[float | None] = values.cast(pa.float64()).to_pylist()
    return numbers
