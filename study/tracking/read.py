"""What MLflow has of a study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from study.errors import TrackingError
from study.records import Curve
from study.tracking.address import connect, reached, shown
from study.tracking.rows import CURVES, KIND, TRIAL_ID, curve_of, rows_table, run_row

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_PAGE = 1000


def published(uri: str, study: str) -> set[str]:
    """Name the trials that MLflow has whole; one that failed may yet be solved, and isn't among them.

    Raises:
        TrackingError: if MLflow can't be reached.
    """
    with reached(uri):
        runs = trial_runs(connect(uri), study)
        return {run.data.tags[TRIAL_ID] for run in runs if run.info.status == "FINISHED"}


def load(uri: str, study: str, *, with_curves: bool = True) -> tuple[pa.Table, list[Curve]]:
    """Read a study back from MLflow: the store's rows, bit for bit, and the thinned curves.

    Args:
        uri: of MLflow.
        study: its name.
        with_curves: read the curves too, at three requests a trial.

    Returns:
        Results in the store's order, and curves ordered by trial id.

    Raises:
        TrackingError: if MLflow can't be reached or doesn't know the study.
    """
    with reached(uri):
        client = connect(uri)
        if client.get_experiment_by_name(study) is None:
            raise TrackingError(
                f"MLflow at {shown(uri)} has no experiment {study!r}: publish it with `study sync`"
            )
        whole = {
            run.data.tags[TRIAL_ID]: run for run in trial_runs(client, study) if run.info.status != "RUNNING"
        }
        rows = [row_of(run) for run in whole.values()]
        curves = [_curve(client, whole[trial_id]) for trial_id in sorted(whole)] if with_curves else []
    return rows_table(rows), [curve for curve in curves if len(curve.iteration)]


def trial_runs(client: MlflowClient, study: str) -> Iterator[Run]:
    """Give the runs of trials; of one trial, those that ended come first."""
    experiment = client.get_experiment_by_name(study)
    token = ""
    while experiment is not None and token is not None:
        page = client.search_runs(
            [experiment.experiment_id],
            f"tags.`{KIND}` = 'trial'",
            max_results=_PAGE,
            order_by=["attributes.status ASC", "attributes.start_time ASC"],  # FAILED, FINISHED, RUNNING
            page_token=token or None,
        )
        yield from page
        token = page.token


def row_of(run: Run) -> dict[str, Any]:
    """Read a run as one row of `RESULT_SCHEMA`."""
    return run_row(run.data.params, run.data.metrics, run.data.tags)


def _curve(client: MlflowClient, run: Run) -> Curve:
    values: dict[str, dict[int, float]] = {}
    for name in CURVES:
        if f"curve/{name}" in run.data.metrics:
            history = client.get_metric_history(run.info.run_id, f"curve/{name}")
            values[name] = {point.step: point.value for point in history}
    return curve_of(run.data.tags[TRIAL_ID], values)
