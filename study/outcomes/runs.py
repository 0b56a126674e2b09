"""Runs that were trained and recorded elsewhere, as a table of columns whose roles are known or guessed.

A role is what a column is for: a hyperparameter, a metric, or what a tool itself says of a run, which may be a metric
but never a hyperparameter.
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
# What wandb's table of runs says besides the configuration and the summary; names that begin with _ are its own, too.
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
        prefixes: what its columns of hyperparameters begin with.
        metrics: what its columns of metrics begin with; empty if metrics are called so.
        columns: columns that it has, too.
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
    """Runs as they were recorded elsewhere, in the order in which they began, where that is known.

    Args:
        name: what they are called.
        table: their columns; texts may be numbers.
        roles: roles of columns, where the source says them; the others are guessed.
        ids: what identifies each run; None where nothing does.
        seconds: how long each ran; None where it isn't known.
        above: for each run, the row of the run that it is nested in, or None; empty where no run is nested.
        notices: sentences about how they were read.
    """

    name: str
    table: pa.Table
    roles: Mapping[str, str] = field(default_factory=dict)
    ids: Sequence[str] | None = None
    seconds: Sequence[float | None] | None = None
    above: Sequence[int | None] = ()
    notices: Sequence[str] = ()


def read_runs(file: Path, *, is_wandb: bool = False) -> Runs:
    """Read runs from a text or Parquet file with one row a run: any such file, or an export of a known tool.

    Args:
        file: its path.
        is_wandb: whether it must be an export of wandb's table of runs.

    Raises:
        InputError: if it can't be read, or isn't such an export.
    """
    table, notices = read_table(file)
    names = table.column_names
    if is_wandb and not set(_WANDB) <= set(names):
        raise InputError(
            f"{file} isn't wandb's table of runs: it must have columns {join_and(_WANDB)}, but has {', '.join(names)}; "
            "`study import csv` takes any other table"
        )
    if any(name.startswith("params.") for name in names):
        return replace(of_mlflow(str(file), table), notices=notices)
    if set(_WANDB) <= set(names):
        return replace(_of_wandb(str(file), table), notices=notices)
    return Runs(str(file), table, _laid_out(names), notices=notices)


def _laid_out(names: Sequence[str]) -> dict[str, str]:
    """Return the roles of columns of a tool that is known by its columns; none for any other table."""
    for layout in _LAYOUTS:
        if set(layout.columns) <= set(names) and any(name.startswith(layout.prefixes) for name in names):
            own = {name: METRIC if layout.metrics and name.startswith(layout.metrics) else OTHER for name in names}
            return own | {name: HYPERPARAMETER for name in names if name.startswith(layout.prefixes)}
    return {}


def of_mlflow(name: str, table: pa.Table) -> Runs:
    """Take runs from a table with the columns of MLflow's own exports.

    Args:
        name: what the runs are called.
        table: columns ``run_id``, ``status``, ``params.NAME``, ``metrics.NAME``, and perhaps more.
    """
    table = _by_time(table, "start_time")
    params = {c: c.removeprefix("params.") for c in table.column_names if c.startswith("params.")}
    metrics = {c: c.removeprefix("metrics.") for c in table.column_names if c.startswith("metrics.")}
    metrics = {c: of for c, of in metrics.items() if not of.startswith("system/")}
    renamed = {c: f"{of} (metric)" if of in params.values() else of for c, of in metrics.items()}
    columns = {of: table[c] for c, of in (params | renamed).items()}
    roles = dict.fromkeys(params.values(), HYPERPARAMETER) | dict.fromkeys(renamed.values(), METRIC)
    ids, parents = _texts(table, "run_id"), _texts(table, _PARENT)
    if "status" in table.column_names:
        columns[_STATUS if _STATUS not in columns else f"{_STATUS} (run)"] = table["status"]
    row_of = {run_id: row for row, run_id in enumerate(ids or ())}
    above = [row_of.get(parent) for parent in parents or ()]
    return Runs(name, pa.table(columns), roles, ids, _seconds(table), above)


def _of_wandb(name: str, table: pa.Table) -> Runs:
    table = _by_time(table, "Created")  # wandb writes the newest first
    others = [c for c in table.column_names if c not in _OF_WANDB and not c.startswith("_")]
    ids = _texts(table, "ID") or _texts(table, "Name")
    runtime = _numbers(table["Runtime"]) if "Runtime" in table.column_names else None
    return Runs(name, table.select(others), {}, ids, runtime)


def _by_time(table: pa.Table, name: str) -> pa.Table:
    """Return the rows in the order of a column of times, numbers or ISO 8601, if it is there."""
    if name not in table.column_names:
        return table
    times = infer_type(table[name])
    return table.take(pc.sort_indices(times.cast(pa.string()) if pa.types.is_dictionary(times.type) else times))


def _texts(table: pa.Table, name: str) -> list[str] | None:
    return [text or "" for text in table[name].cast(pa.string()).to_pylist()] if name in table.column_names else None


def _seconds(table: pa.Table) -> list[float | None] | None:
    """Return how long runs took, where their times are milliseconds; exports by pandas have other times."""
    if not {"start_time", "end_time"} <= set(table.column_names):
        return None
    begin, end = _numbers(table["start_time"]), _numbers(table["end_time"])
    if begin is None or end is None:
        return None
    return [None if a is None or b is None else (b - a) / 1000 for a, b in zip(begin, end, strict=True)]


def _numbers(column: pa.ChunkedArray) -> list[float | None] | None:
    """Return a column's numbers; None if it has anything else."""
    values = infer_type(column)
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return None
    numbers: list[float | None] = values.cast(pa.float64()).to_pylist()
    return numbers
