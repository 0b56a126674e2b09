"""A database from before cells had runs: trials are below the study's run; that run also has the charts."""

from __future__ import annotations

import time

from mlflow.entities import Metric, Param

from study.tracking.address import connect, place_of_files
from study.tracking.packs import CHECKED, mark_of, marks_tags
from study.tracking.rows import trials_of
from tests.study.tracking.made import Made

CHARTS = (("success_rate/NMU", 0.5), ("success_rate.2/NMU", 0.75), ("solved_at_median/NMU", 1e5))


def published_before(uri: str, packs: Made, study: str = "demo") -> None:
    """Publish packs, counts, and charts of two generations, as earlier versions did."""
    client = connect(uri)
    experiment = client.create_experiment(study, artifact_location=place_of_files(uri, study))
    marks = marks_tags([mark_of(name, packs.results(name)) for name in packs.names()])
    tags = {"study.kind": "study", CHECKED: "yes", "mlflow.note.content": "mine", **marks}
    above = client.create_run(experiment, tags=tags, run_name=study).info.run_id
    for name in packs.names():
        for trial in trials_of(packs.results(name), packs.curves(name)):
            of_trial = {"study.kind": "trial", "study.pack": name, "mlflow.parentRunId": above}
            run_id = client.create_run(experiment, tags={**trial.tags, **of_trial}, run_name="NMU seed").info.run_id
            metrics = [Metric(key, value, 0, 0) for key, value in trial.metrics.items()]
            metrics += [Metric(key, value, 0, step) for key, step, value in trial.curve]
            params = [Param(key, value) for key, value in trial.params.items()]
            client.log_batch(run_id, metrics=metrics, params=params)
            client.set_terminated(run_id)
    at_ms = int(time.time() * 1000)
    counts = [Metric("done", count, at_ms, step) for step, count in ((0, 1.0), (5, 4.0))]
    client.log_batch(above, metrics=[*counts, *(Metric(key, value, at_ms, 2) for key, value in CHARTS)])
    client.set_terminated(above)
