"""The study's own run in MLflow: its question, counts, findings and report."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from study.tracking.address import can_keep_files, user
from study.tracking.keys import key_of
from study.tracking.packs import CHECKED, SHOWS, shows_value
from study.tracking.pages import experiment_tags, study_note
from study.tracking.rows import KIND, PLACE

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run

# MLflow's limits per call: 100 tags, 100 parameters, and 1000 items in all.
_METRICS_A_CALL, _OTHERS_A_CALL = 800, 100
_NOTE = "mlflow.note.content"
_NAME = "mlflow.runName"
_BEFORE = "mlflow.study.before"
_UNFINISHED = "mlflow.study.unfinished"  # tag of a run that replaces another, until it is complete
_PUBLISHER = "mlflow.study.publisher."  # tags of the publishers that are open, or were killed
# Earlier versions stored charts as metrics of this run, with a number if points had changed.
_OLD_CHART = re.compile(r"(success_rate|solved_at_median|.+_mean)(\.\d+)?/")


class StudyRun:
    """The study's run, the parent of the cells' runs; the constructor finds or makes it, and marks it as running.

    The constructor and the methods raise MLflow's errors.

    Args:
        client: MLflow's client.
        uri: MLflow's address.
        experiment_id: MLflow's id of the study's experiment.
        study: the study's name.
        question: the study's question.
        spec: text of the study's file.
        publisher: name of the writer.

    Attributes:
        run_id: MLflow's id of the run.
        began_ms: time of the study's first publication, in milliseconds since 1970.
        before: MLflow's id of the run that this one replaced, which may have child runs; None without one.
        tags: the run's tags after it was opened.
        keeps_files: True if artifacts can be written from here.
    """

    def __init__(
        self, client: MlflowClient, uri: str, experiment_id: str, study: str, question: str, spec: str, publisher: str
    ) -> None:
        self._client, self._experiment_id, self._question = client, experiment_id, question
        self._publisher, self._was_alone = f"{_PUBLISHER}{publisher}", True
        runs = self._study_runs()
        if runs:
            replaced = {run.data.tags.get(_BEFORE) for run in runs}
            run, *twins = sorted(runs, key=lambda r: (bool(r.data.tags.get(_UNFINISHED)), r.info.run_id in replaced))
            if any(_OLD_CHART.match(name) for name in run.data.metrics):
                run, twins = self._without_charts(run), [run, *twins]
            client.update_run(run.info.run_id, status="RUNNING")
            for twin in twins:  # made after a lost answer
                client.delete_run(twin.info.run_id)
        else:
            # Nothing is published yet, so all runs count as compared.
            tags = {KIND: "study", CHECKED: "yes", **user()}
            run = client.create_run(experiment_id, start_time=now_ms(), tags=tags, run_name=study)
        self.run_id, self.began_ms = run.info.run_id, int(run.info.start_time)
        self.tags: Mapping[str, str] = dict(run.data.tags)
        self.before = self.tags.get(_BEFORE) or None
        self.keeps_files = can_keep_files(uri, run.info.artifact_uri)
        note = {} if runs and _NOTE in self.tags else {_NOTE: study_note(question)}
        self.tag(note | {SHOWS: "", PLACE: "000000", self._publisher: "open"} | _spec_tags(spec))
        self._meet()
        self._tag_experiment(experiment_tags(question), only_new=True)
        if spec and self.keeps_files:
            client.log_text(self.run_id, spec, "spec.yaml")

    def tag(self, tags: Mapping[str, str]) -> None:
        """Set tags of the run."""
        log_batch(self._client, self.run_id, tags)

    def forget_before(self) -> None:
        """Record that the replaced run has no child runs left."""
        if self.before is not None:
            self.tag({_BEFORE: ""})
            self.before = None

    def describe(self, finding: str, counts: Mapping[str, float] | None = None, failures: str = "") -> None:
        """Write findings and failures to the descriptions of run and experiment, counts to the experiment's tags.

        Arguments as for `experiment_tags`. Without counts, the tags keep theirs.

        Raises:
            InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
        """
        self.tag({_NOTE: study_note(self._question, finding, failures)})
        self._tag_experiment(experiment_tags(self._question, finding, counts, failures))

    def counts(self, counts: Mapping[str, float]) -> None:
        """Write the number of trials in each state, against seconds since the study was first published."""
        at_ms = now_ms()
        step = (at_ms - self.began_ms) // 1000
        metrics = [metric(name, float(value), at_ms, step) for name, value in counts.items()]
        self._client.log_batch(self.run_id, metrics=metrics)

    def artifact(self, path: Path) -> None:
        """Add a file or folder of the report to the run's artifacts; no-op if these can't be written from here.

        Raises:
            OSError: if the file is missing, or can't be read or copied.
        """
        if not self.keeps_files:
            return
        if path.is_dir():
            self._client.log_artifacts(self.run_id, str(path), f"report/{path.name}")
        else:
            self._client.log_artifact(self.run_id, str(path), "report")

    def shows(self, mark: str) -> None:
        """Record that all content with this mark is published; opening the run again clears the record."""
        self.tag({SHOWS: shows_value(mark)})

    def finish(self) -> None:
        """Set the run's status to finished, and remove the tags of all publishers, including killed ones."""
        from mlflow.exceptions import MlflowException

        for name in filter(_is_publisher, self._client.get_run(self.run_id).data.tags):
            with suppress(MlflowException):  # another publisher has removed it
                self._client.delete_tag(self.run_id, name)
        self._client.set_terminated(self.run_id)

    def is_alone(self, runs: Sequence[Run]) -> bool:
        """Return True if no other publisher has been open since this one was opened; a killed one counts as open.

        This publisher's tag is set again if another one has removed it. Each publisher sets its own tag before it reads
        the others'. So if two write the same trial, the later reader sees the other's tag, and returns False from then
        on.

        Args:
            runs: the current runs, including the study's.
        """
        tags = next((run.data.tags for run in runs if run.info.run_id == self.run_id), {})
        if set(filter(_is_publisher, tags)) != {self._publisher}:
            self._was_alone = False
            if self._publisher not in tags:  # another publisher ended, and removed this tag as that of a killed one
                self.tag({self._publisher: "open"})
        return self._was_alone

    def _meet(self) -> None:
        """Read the run's tags, note if another publisher is open, and tag any run that it made for the study, too."""
        runs = self._study_runs()
        if self.is_alone(runs):
            self._was_alone = len(runs) == 1
        for run in runs:
            if run.info.run_id == self.run_id:
                self.tags = dict(run.data.tags)
            else:
                log_batch(self._client, run.info.run_id, {self._publisher: "open"})

    def _study_runs(self) -> Sequence[Run]:
        return self._client.search_runs(
            [self._experiment_id], f"tags.`{KIND}` = 'study'", order_by=["attributes.start_time ASC"], max_results=9
        )

    def _without_charts(self, old: Run) -> Run:
        """Return a new run without an earlier version's charts, since MLflow can't delete metrics."""
        tags = {name: value for name, value in old.data.tags.items() if name != _NAME}
        run = self._client.create_run(
            self._experiment_id,
            start_time=old.info.start_time,
            tags=tags | {_UNFINISHED: "yes"},
            run_name=old.info.run_name,
        )
        counts = [name for name in old.data.metrics if not _OLD_CHART.match(name)]
        points = [point for name in counts for point in self._client.get_metric_history(old.info.run_id, name)]
        log_batch(self._client, run.info.run_id, metrics=points)
        # Last: after a kill before this, the next publisher replaces the unfinished run.
        log_batch(self._client, run.info.run_id, {_BEFORE: old.info.run_id, _UNFINISHED: ""})
        return self._client.get_run(run.info.run_id)

    def _tag_experiment(self, tags: Mapping[str, str], *, only_new: bool = False) -> None:
        """Set the experiment's tags that differ; with `only_new`, only missing ones."""
        current = self._client.get_experiment(self._experiment_id).tags
        for name, value in tags.items():
            if current.get(name) != value and not (only_new and name in current):
                self._client.set_experiment_tag(self._experiment_id, name, value)


def log_batch(
    client: MlflowClient,
    run_id: str,
    tags: Mapping[str, str] | None = None,
    metrics: Sequence[Metric] = (),
    params: Mapping[str, str] | None = None,
) -> None:
    """Write tags, metrics and parameters of a run, at most 100, 800 and 100 a request; no request without content.

    Raises:
        Exception: an error of MLflow if it can't be reached or refuses a value; `explaining_errors` converts it.
    """
    from mlflow.entities import Param, RunTag

    pairs = [RunTag(name, value) for name, value in (tags or {}).items()]
    constants = [Param(name, value) for name, value in (params or {}).items()]
    calls = max(-(-len(metrics) // _METRICS_A_CALL), *(-(-len(row) // _OTHERS_A_CALL) for row in (pairs, constants)))
    for call in range(calls):
        points = slice(call * _METRICS_A_CALL, (call + 1) * _METRICS_A_CALL)
        others = slice(call * _OTHERS_A_CALL, (call + 1) * _OTHERS_A_CALL)
        client.log_batch(run_id, metrics[points], constants[others], pairs[others])


def metric(name: str, value: float, timestamp_ms: int, step: int) -> Metric:
    """Return a point of a metric."""
    from mlflow.entities import Metric

    return Metric(name, value, timestamp_ms, step)


def now_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _is_publisher(tag: str) -> bool:
    return tag.startswith(_PUBLISHER)


def _spec_tags(spec: str) -> dict[str, str]:
    """Return the study's file as tags, one for each of its first 80 keys; empty if it isn't a YAML table.

    Parameters couldn't change when the study is extended.
    """
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
        yield key_of(path), text[:5000]
