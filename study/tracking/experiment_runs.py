"""The runs of any MLflow experiment as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from study.addresses import without_secret
from study.errors import InputError, nearest
from study.tracking.address import connect, database
from study.tracking.read import runs_of
from study.tracking.trouble import explaining_errors

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

PARENT = "tags.mlflow.parentRunId"


def experiment_runs(uri: str, experiment: str) -> pa.Table:
    """Read the runs of an experiment, ordered by their start, with the column names of MLflow's exports.

    Args:
        uri: MLflow's address.
        experiment: the experiment's name, or its id.

    Returns:
        One row per run that isn't deleted: ``run_id``, ``status``, ``start_time`` and ``end_time`` (ms since 1970), the
        parent's id, and a column ``params.NAME`` or ``metrics.NAME`` (last value) for each parameter and metric; null
        for runs without it.

    Raises:
        InputError: if the address has no ``://``, its database file is missing, or the experiment doesn't exist, was
            deleted or has no runs.
        TrackingError: if MLflow doesn't support the address, can't be reached, or refuses a request.
    """
    path = database(uri)
    if path is not None and not path.exists():
        raise InputError(f"there is no database {path}: MLflow's address must be a server's or a database's")
    if "://" not in uri:
        raise InputError(
            f"{uri} isn't an address of MLflow: it must be a server's, http://HOST:5000, or a database's, "
            "sqlite:///mlflow.db"
        )
    with explaining_errors(uri):
        client = connect(uri)
        experiment_id, names = _experiment_id(client, experiment)
        runs = [] if experiment_id is None else list(runs_of(client, experiment_id, ""))
    if experiment_id is None:
        hint = f"; choose from {', '.join(names[:20])}" if names else "; it has no experiments"
        raise InputError(
            f"MLflow at {without_secret(uri)} has no experiment {experiment!r}{nearest(experiment, names) or hint}"
        )
    if not runs:
        raise InputError(f"experiment {experiment!r} in MLflow at {without_secret(uri)} has no runs")
    return _table(runs)


def _experiment_id(client: MlflowClient, experiment: str) -> tuple[str | None, Sequence[str]]:
    """Return an active experiment's id by its name or id, and the names to choose from; None if there is none."""
    named = client.get_experiment_by_name(experiment)
    if named is not None and named.lifecycle_stage == "active":
        return str(named.experiment_id), []
    page = client.search_experiments(max_results=1000)
    listed = list(page)
    while page.token:
        page = client.search_experiments(max_results=1000, page_token=page.token)
        listed += page
    by_name = {entry.name: str(entry.experiment_id) for entry in listed}
    ids = {str(entry.experiment_id) for entry in listed}
    return by_name.get(experiment, experiment if experiment in ids else None), list(by_name)


def _table(runs: Sequence[Run]) -> pa.Table:
    columns: dict[str, Any] = {
        "run_id": [run.info.run_id for run in runs],
        "status": [run.info.status for run in runs],
        "start_time": pa.array([run.info.start_time for run in runs], pa.int64()),
        "end_time": pa.array([run.info.end_time for run in runs], pa.int64()),
        PARENT: pa.array([run.data.tags.get("mlflow.parentRunId") for run in runs], pa.string()),
    }
    for kind, kind_of_value in (("params", pa.string()), ("metrics", pa.float64())):
        names = sorted({name for run in runs for name in getattr(run.data, kind)})
        for name in names:
            values = [getattr(run.data, kind).get(name) for run in runs]
            columns[f"{kind}.{name}"] = pa.array(values, kind_of_value)
    return pa.table(columns)
