"""A study's charts in MLflow: one run per line, so that the dashboard draws all lines in one chart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from study.tracking.address import user
from study.tracking.keys import metric_name
from study.tracking.read import runs_of
from study.tracking.rows import KIND
from study.tracking.study_run import StudyRun, log_batch, metric, now_ms

if TYPE_CHECKING:
    from mlflow import MlflowClient

LINE, CURVE = "line", "curve"
"""Kinds of charts' runs: statistics of cells against the swept values, and a cell's learning curve."""
_FAMILY = "charts"
# Otherwise the dashboard chooses colours at random, and repeats some.
_COLOUR = "mlflow.runColor"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#7a4fb5")
_PARENT = "mlflow.parentRunId"
# Tag of the charts' parent run: the digest of its lines, once all of them exist.
_DIGEST = "mlflow.study.charts"


@dataclass(frozen=True)
class ChartLine:
    """A line of charts.

    Args:
        kind: `LINE` or `CURVE`.
        name: its label in the legend.
        points: (metric, value on the x axis, value), all finite.
    """

    kind: str
    name: str
    points: Sequence[tuple[str, int, float]]


def publish_charts(client: MlflowClient, experiment_id: str, study: StudyRun, lines: Sequence[ChartLine]) -> None:
    """Replace the charts if their lines or the study's run have changed; without lines, delete them.

    MLflow can't delete points, so the existing runs are deleted, and new ones are made below a new parent.

    Args:
        client: MLflow's client.
        experiment_id: MLflow's id of the study's experiment.
        study: the study's run.
        lines: all lines of the charts.

    Raises:
        Exception: an error of MLflow if it can't be reached; `explaining_errors` converts it.
    """
    digest = hashlib.sha256(repr([astuple(line) for line in lines]).encode()).hexdigest()
    current = None
    for run in list(runs_of(client, experiment_id, f"tags.`{KIND}` = '{_FAMILY}'")):
        tags = run.data.tags
        if current is None and (tags.get(_DIGEST), tags.get(_PARENT)) == (digest, study.run_id):
            current = run.info.run_id
        else:
            client.delete_run(run.info.run_id)
    # Delete lines of other parents, such as one that another publisher deleted while its lines were being written.
    for kind in (LINE, CURVE):
        for run in list(runs_of(client, experiment_id, f"tags.`{KIND}` = '{kind}'")):
            if run.data.tags.get(_PARENT) != current:
                client.delete_run(run.info.run_id)
    if current is None and lines:
        _publish(client, experiment_id, study, lines, digest)


def _publish(
    client: MlflowClient, experiment_id: str, study: StudyRun, lines: Sequence[ChartLine], digest: str
) -> None:
    start_ms = now_ms()
    tags = {KIND: _FAMILY, _PARENT: study.run_id, **user()}
    family = client.create_run(experiment_id, start_time=start_ms, tags=tags, run_name="charts").info.run_id
    for place, line in enumerate(lines):
        line_tags = {KIND: line.kind, _PARENT: family, _COLOUR: _COLOURS[place % len(_COLOURS)], **user()}
        run = client.create_run(experiment_id, start_time=start_ms, tags=line_tags, run_name=metric_name(line.name))
        points = [metric(metric_name(name), value, start_ms, step) for name, step, value in line.points]
        log_batch(client, run.info.run_id, metrics=points)
        client.set_terminated(run.info.run_id)
    log_batch(client, family, {_DIGEST: digest})
    client.set_terminated(family)
