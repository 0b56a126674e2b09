"""A study's charts in MLflow: one run a line, so that the dashboard draws all lines into one chart."""

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
"""Kinds of charts' runs: statistics of cells against what is swept, and a cell's learning curve."""
_FAMILY = "charts"
# Otherwise the dashboard draws colours by lot, and gives the same one to several lines.
_COLOUR = "mlflow.runColor"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#7a4fb5")
_PARENT = "mlflow.parentRunId"
# Tag of the family's run: the digest of its lines, once all of them are there.
_DIGEST = "mlflow.study.charts"


@dataclass(frozen=True)
class ChartLine:
    """A line of charts.

    Args:
        kind: `LINE` or `CURVE`.
        name: what the legend calls it.
        points: (metric, value on the x axis, value), all finite.
    """

    kind: str
    name: str
    points: Sequence[tuple[str, int, float]]


def publish_charts(client: MlflowClient, experiment_id: str, study: StudyRun, lines: Sequence[ChartLine]) -> None:
    """Replace the charts if others are there.

    MLflow can't delete a point, so the runs that are there are deleted, and new ones are made, below one of their own.

    Args:
        client: MLflow's client.
        experiment_id: MLflow's id of the study's experiment.
        study: the study's run.
        lines: all lines of the charts.
    """
    digest = hashlib.sha256(repr([astuple(line) for line in lines]).encode()).hexdigest()
    current = None
    for run in list(runs_of(client, experiment_id, f"tags.`{KIND}` = '{_FAMILY}'")):
        tags = run.data.tags
        if current is None and (tags.get(_DIGEST), tags.get(_PARENT)) == (digest, study.run_id):
            current = run.info.run_id
        else:
            client.delete_run(run.info.run_id)
    # Of any other family: one that another publisher deleted while its lines were still being written, for example.
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
        of_line = {KIND: line.kind, _PARENT: family, _COLOUR: _COLOURS[place % len(_COLOURS)], **user()}
        run = client.create_run(experiment_id, start_time=start_ms, tags=of_line, run_name=metric_name(line.name))
        points = [metric(metric_name(name), value, start_ms, step) for name, step, value in line.points]
        log_batch(client, run.info.run_id, metrics=points)
        client.set_terminated(run.info.run_id)
    log_batch(client, family, {_DIGEST: digest})
    client.set_terminated(family)
