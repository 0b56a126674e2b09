"""The study's own run in MLflow: counts, charts, the report's files, what it asks and what was found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from study.tracking.address import can_keep_files, user
from study.tracking.packs import CHECKED, SHOWS
from study.tracking.pages import experiment_tags, study_note
from study.tracking.rows import KIND, Point, metric_name

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

_BATCH = 1000  # metrics a call
_TAGS = 100  # tags a call
_NOTE = "mlflow.note.content"


class StudyRun:
    """The parent of the trials' runs; opening it makes it if need be, and sets its status to running.

    Args:
        client: MLflow's client.
        uri: MLflow's address.
        experiment_id: MLflow's id of the study's experiment.
        study: the study's name.
        question: the question that the study asks.
        spec: text of the study's file.

    Attributes:
        run_id: MLflow's id of the run.
        tags: the run's tags when it was opened.
    """

    def __init__(
        self, client: MlflowClient, uri: str, experiment_id: str, study: str, question: str, spec: str
    ) -> None:
        self._client, self._experiment_id, self._question = client, experiment_id, question
        runs = client.search_runs(
            [experiment_id], f"tags.`{KIND}` = 'study'", order_by=["attributes.start_time ASC"], max_results=9
        )
        if runs:
            run = runs[0]
            client.update_run(run.info.run_id, status="RUNNING")
            for twin in runs[1:]:  # left by a lost answer
                client.delete_run(twin.info.run_id)
        else:
            # Nothing is published yet, so there are no runs to compare.
            tags = {KIND: "study", CHECKED: "yes", **user()}
            run = client.create_run(experiment_id, start_time=now_ms(), tags=tags, run_name=study)
        self.run_id, self._began_ms = run.info.run_id, run.info.start_time
        self.tags: Mapping[str, str] = dict(run.data.tags)
        self._keeps_files = can_keep_files(uri, run.info.artifact_uri)
        note = {} if runs and _NOTE in self.tags else {_NOTE: study_note(question)}
        self.tag(note | {SHOWS: ""} | _spec_tags(spec))
        self._tag_experiment(experiment_tags(question), only_new=True)
        if spec and self._keeps_files:
            client.log_text(self.run_id, spec, "spec.yaml")

    def tag(self, tags: Mapping[str, str]) -> None:
        """Set tags."""
        from mlflow.entities import RunTag

        pairs = [RunTag(name, value) for name, value in tags.items()]
        for start in range(0, len(pairs), _TAGS):
            self._client.log_batch(self.run_id, tags=pairs[start : start + _TAGS])

    def describe(self, finding: str, counts: Mapping[str, float] | None = None) -> None:
        """Write the findings into the descriptions of the run and the experiment, and the counts into its tags."""
        self.tag({_NOTE: study_note(self._question, finding)})
        self._tag_experiment(experiment_tags(self._question, finding, counts))

    def counts(self, counts: Mapping[str, float]) -> None:
        """Write how many trials are in each state, against seconds since the study was first published."""
        at_ms = now_ms()
        step = (at_ms - self._began_ms) // 1000
        metrics = [metric(name, float(value), at_ms, step) for name, value in counts.items()]
        self._client.log_batch(self.run_id, metrics=metrics)

    def series(self, points: Sequence[Point]) -> None:
        """Write the charts against what is swept.

        MLflow can't delete a metric's value, so charts that differ from those there get the next number.
        """
        charts: dict[tuple[str, str], dict[int, float]] = {}
        for chart, line, x, value in points:
            charts.setdefault((chart, line), {})[x] = float(value)
        edition = 1
        while (missing := self._missing(charts, edition)) is None:
            edition += 1
        at_ms = now_ms()
        metrics = [metric(name, value, at_ms, step) for name, step, value in missing]
        for start in range(0, len(metrics), _BATCH):
            self._client.log_batch(self.run_id, metrics=metrics[start : start + _BATCH])

    def artifact(self, path: Path) -> None:
        """Add a file of the report, or a folder's files, to the study's run, if files can be written from here."""
        if not self._keeps_files:
            return
        if path.is_dir():
            self._client.log_artifacts(self.run_id, str(path), f"report/{path.name}")
        else:
            self._client.log_artifact(self.run_id, str(path), "report")

    def shows(self, mark: str) -> None:
        """Record that everything with this mark is published; opening the run again clears this."""
        self.tag({SHOWS: mark})

    def finish(self) -> None:
        """Set the run's status to finished."""
        self._client.set_terminated(self.run_id)

    def _missing(
        self, charts: Mapping[tuple[str, str], Mapping[int, float]], edition: int
    ) -> list[tuple[str, int, float]] | None:
        """Return the points that this edition of the charts lacks, or None if it has different ones."""
        missing = []
        for (chart, series), values in charts.items():
            name = metric_name(f"{chart if edition == 1 else f'{chart}.{edition}'}/{series}")
            there = {point.step: point.value for point in self._client.get_metric_history(self.run_id, name)}
            if any(values.get(step) != value for step, value in there.items()):
                return None
            missing += [(name, step, value) for step, value in values.items() if step not in there]
        return missing

    def _tag_experiment(self, tags: Mapping[str, str], *, only_new: bool = False) -> None:
        """Set those tags of the experiment that differ from the ones it has."""
        there = self._client.get_experiment(self._experiment_id).tags
        for name, value in tags.items():
            if there.get(name) != value and not (only_new and name in there):
                self._client.set_experiment_tag(self._experiment_id, name, value)


def metric(name: str, value: float, timestamp_ms: int, step: int) -> Metric:
    """Return a point of a metric."""
    from mlflow.entities import Metric

    return Metric(name, value, timestamp_ms, step)


def now_ms() -> int:
    """Return the current time in milliseconds, as MLflow expects it."""
    return time.time_ns() // 1_000_000


def _spec_tags(spec: str) -> dict[str, str]:
    """Return the study's file as tags, one a key; unlike parameters, tags may change when the study is extended."""
    try:
        content = yaml.safe_load(spec)
    except yaml.YAMLError:
        return {}
    pairs = _flat("spec", content) if isinstance(content, dict) else []
    return dict(list(pairs)[:80])


def _flat(path: str, content: object) -> Iterator[tuple[str, str]]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _flat(f"{path}.{key}", value)
    else:
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        yield metric_name(path), text[:5000]
