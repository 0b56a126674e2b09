"""Runs that were trained and recorded elsewhere, as a table of columns whose roles are known or guessed.

A role is what a column is for: the seed, a hyperparameter, a metric, or none, which leaves the column out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError
from study.outcomes.files import read_columns
from study.outcomes.gather import infer_type
from study.words import join_and

HYPERPARAMETER, METRIC = "hyperparameter", "metric"
UNFINISHED = (
    *("running", "scheduled", "pending", "queued", "created", "starting", "initializing", "paused", "preempting"),
)
FAILED = ("failed", "failure", "killed", "crashed", "crash", "error", "aborted", "preempted", "cancelled", "canceled")
"""What a run's status may say, in small letters; any other word says that it came to its end."""

_ENDED = ("finished", "success", "succeeded", "complete", "completed", "done", "ok")

_PARENT = "tags.mlflow.parentRunId"
_WANDB = ("Name", "State")
# What wandb's table of runs says besides the configuration and the summary; names that begin with _ are its own, too.
_OF_WANDB = {
    *("Name", "State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep", "ID", "Group", "Job Type", "Updated"),
    *("End Time", "Hostname", "Description", "Commit", "GitHub", "GPU Count", "GPU Type", "Hidden", "Host", "OS"),
    *("Python Version", "Command", "Agent", "Last Updated", "Path"),
}


@dataclass(frozen=True)
class Runs:
    """Runs as they were recorded elsewhere, in the order in which they began, where that is known.

    Args:
        name: what they are called.
        table: their columns; texts may be numbers.
        roles: roles of columns, where the source says them; the others are guessed.
        ids: what identifies each run; None where nothing does.
        status: each run's status, in small letters; None where the source has none.
        seconds: how long each ran; None where it isn't known.
        above: for each run, the row of the run that it is nested in, or None; empty where no run is nested.
    """

    name: str
    table: pa.Table
    roles: Mapping[str, str] = field(default_factory=dict)
    ids: Sequence[str] | None = None
    status: Sequence[str] | None = None
    seconds: Sequence[float | None] | None = None
    above: Sequence[int | None] = ()


def read_runs(file: Path, *, is_wandb: bool = False) -> Runs:
    """Read runs from a CSV or Parquet file with one row a run: any such file, or an export of MLflow's or wandb's.

    Args:
        file: its path.
        is_wandb: whether it must be an export of wandb's table of runs.

    Raises:
        InputError: if it can't be read, or isn't such an export.
    """
    table = read_columns(file)
    names = table.column_names
    if is_wandb and not set(_WANDB) <= set(names):
        raise InputError(
            f"{file} isn't wandb's table of runs: it must have columns {join_and(_WANDB)}, but has {', '.join(names)}; "
            "`study import csv` takes any other table"
        )
    if any(name.startswith("params.") for name in names):
        return of_mlflow(str(file), table)
    return _of_wandb(str(file), table) if set(_WANDB) <= set(names) else _of_table(str(file), table)


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
    row_of = {run_id: row for row, run_id in enumerate(ids or ())}
    above = [row_of.get(parent) for parent in parents or ()]
    return Runs(name, pa.table(columns), roles, ids, _lower(_texts(table, "status")), _seconds(table), above)


def _of_table(name: str, table: pa.Table) -> Runs:
    """Take runs from a table of anybody's; a column `state` or `status` is one if it has the words of one."""
    for column in table.column_names:
        if column.lower() in ("state", "status"):
            status = _lower(_texts(table, column))
            if status is not None and set(status) <= {*UNFINISHED, *FAILED, *_ENDED}:
                return Runs(name, table.drop_columns([column]), status=status)
    return Runs(name, table)


def _of_wandb(name: str, table: pa.Table) -> Runs:
    table = _by_time(table, "Created")  # wandb writes the newest first
    others = [c for c in table.column_names if c not in _OF_WANDB and not c.startswith("_")]
    ids = _texts(table, "ID") or _texts(table, "Name")
    runtime = _numbers(table["Runtime"]) if "Runtime" in table.column_names else None
    return Runs(name, table.select(others), {}, ids, _lower(_texts(table, "State")), runtime)


def _by_time(table: pa.Table, name: str) -> pa.Table:
    """Return the rows in the order of a column of times, numbers or ISO 8601, if it is there."""
    if name not in table.column_names:
        return table
    times = infer_type(table[name])
    return table.take(pc.sort_indices(times.cast(pa.string()) if pa.types.is_dictionary(times.type) else times))


def _texts(table: pa.Table, name: str) -> list[str] | None:
    return [text or "" for text in table[name].cast(pa.string()).to_pylist()] if name in table.column_names else None


def _lower(texts: Sequence[str] | None) -> list[str] | None:
    return None if texts is None else [text.strip().lower() for text in texts]


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
