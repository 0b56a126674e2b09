"""A study's experiment in MLflow: what is there, and what to write so that it equals the store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from study.errors import TrackingError
from study.records import Curve, Result
from study.tracking.address import artifacts, connect, reached, shown, user
from study.tracking.read import row_of, trial_runs
from study.tracking.rows import KIND, TRIAL_ID, Point, TrialRun, metric_name, row_digest, trials_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run

_BATCH = 1000  # metrics a call
_HOW_TO_READ = """
A run below this one is a trial: one cell of the grid, one seed. Tags to filter by: `study.model`,
`study.hidden_size`, `study.seed`, `study.outcome` (solved, unsolved, diverged, failed), `study.cell_id`.

`success_rate/...` and `solved_at_median/...` are drawn against hidden size: choose *Step* as the x-axis. If
the study has grown since it was first published, the charts with the highest number are the newest.

Learning curves are thinned here; the store has them whole.
"""


def sync(
    uri: str,
    study: str,
    results: Sequence[Result],
    curves: Sequence[Curve],
    *,
    question: str = "",
    spec: str = "",
    counts: Mapping[str, float] | None = None,
    series: Sequence[Point] = (),
    files: Callable[[], Sequence[Path]] = tuple,
) -> int:
    """Publish what MLflow is missing, and mend what differs.

    Args:
        uri: of MLflow.
        study: its name, and its experiment's.
        results: of the store.
        curves: of the trials that have one.
        question: what the study asks; shown above it.
        spec: its file's text.
        counts: trials by state.
        series: the chart's points.
        files: writes the report, once all is published and can be linked to, and gives its files.

    Returns:
        How many trials were written; 0 if MLflow had them all.

    Raises:
        TrackingError: if MLflow can't be reached or refuses.
    """
    with reached(uri):
        experiment = Experiment(uri, study, question=question, spec=spec)
        written = sum(experiment.publish(trial) for trial in trials_of(results, curves))
        if counts:
            experiment.counts(counts)
        experiment.series(series)
        for file in files():
            experiment.artifact(file)
        experiment.finish()
    return written


@dataclass(frozen=True)
class _Known:
    """A trial's run that is already there; `blank` until its metrics, all at once, are."""

    run_id: str
    start_ms: int
    running: bool
    blank: bool
    digest: str | None
    tags: Mapping[str, str]


class Experiment:
    """One study in MLflow, written to by one thread.

    Args:
        uri: of MLflow.
        study: its name.
        question: what it asks.
        spec: its file's text.
    """

    def __init__(self, uri: str, study: str, *, question: str = "", spec: str = "") -> None:
        self._client = connect(uri)
        self._id = _experiment_id(self._client, uri, study)
        self._known: dict[str, _Known] = {}
        for run in list(trial_runs(self._client, study)):
            twin = self._known.get(run.data.tags[TRIAL_ID])
            if twin is None:
                self._known[run.data.tags[TRIAL_ID]] = _known(run)
            else:  # two publishers at once, or an answer that never came
                self._client.delete_run(run.info.run_id)
        self._study_run, self._began_ms = self._open_study_run(study, question, spec)

    def publish(self, trial: TrialRun) -> bool:
        """Write a trial's run unless it is there; complete what a kill left half-written.

        Returns:
            False if MLflow had it already.
        """
        known = self._known.get(trial.trial_id)
        if known is not None and known.digest == trial.digest:
            if known.running:
                self._end(known.run_id, known.start_ms, trial)
            self._known[trial.trial_id] = _Known(known.run_id, known.start_ms, False, False, known.digest, {})
            return known.running
        if known is not None and known.running and known.blank and known.tags == trial.tags:
            run_id, start_ms = known.run_id, known.start_ms
        else:
            if known is not None:  # failed and then solved, or trained again elsewhere
                self._client.delete_run(known.run_id)
            run_id, start_ms = self._begin(trial)
        self._log(run_id, start_ms, trial)
        self._end(run_id, start_ms, trial)
        self._known[trial.trial_id] = _Known(run_id, start_ms, False, False, trial.digest, {})
        return True

    def counts(self, counts: Mapping[str, float]) -> None:
        """Write how many trials are in which state, against seconds since the study was first published."""
        now_ms = _now_ms()
        step = (now_ms - self._began_ms) // 1000
        metrics = [_metric(name, float(value), now_ms, step) for name, value in counts.items()]
        self._client.log_batch(self._study_run, metrics=metrics)

    def series(self, points: Sequence[Point]) -> None:
        """Write the charts against hidden size.

        MLflow can't forget a metric's value, so charts that differ from those there get the next number.
        """
        wanted: dict[tuple[str, str], dict[int, float]] = {}
        for line, hidden_size, success_rate, solved_at_median in points:
            for chart, value in (("success_rate", success_rate), ("solved_at_median", solved_at_median)):
                if value is not None:
                    wanted.setdefault((chart, line), {})[hidden_size] = float(value)
        edition = 1
        while (missing := self._missing(wanted, edition)) is None:
            edition += 1
        now_ms = _now_ms()
        metrics = [_metric(name, value, now_ms, step) for name, step, value in missing]
        for start in range(0, len(metrics), _BATCH):
            self._client.log_batch(self._study_run, metrics=metrics[start : start + _BATCH])

    def artifact(self, path: Path) -> None:
        """Keep a file, or a folder's files, of the report with the study's run."""
        if path.is_dir():
            self._client.log_artifacts(self._study_run, str(path), f"report/{path.name}")
        else:
            self._client.log_artifact(self._study_run, str(path), "report")

    def finish(self) -> None:
        """Say that nobody is writing any more."""
        self._client.set_terminated(self._study_run)

    def _missing(
        self, wanted: Mapping[tuple[str, str], Mapping[int, float]], edition: int
    ) -> list[tuple[str, int, float]] | None:
        """List the points that this edition of the charts lacks, or None if it has other ones."""
        missing = []
        for (chart, series), values in wanted.items():
            name = metric_name(f"{chart if edition == 1 else f'{chart}.{edition}'}/{series}")
            there = {
                point.step: point.value for point in self._client.get_metric_history(self._study_run, name)
            }
            if any(values.get(step) != value for step, value in there.items()):
                return None
            missing += [(name, step, value) for step, value in values.items() if step not in there]
        return missing

    def _begin(self, trial: TrialRun) -> tuple[str, int]:
        start_ms = _now_ms() - round(1000 * trial.training_s)
        tags = {**trial.tags, KIND: "trial", "mlflow.parentRunId": self._study_run, **user()}
        run = self._client.create_run(self._id, start_time=start_ms, tags=tags, run_name=trial.name)
        return run.info.run_id, start_ms

    def _log(self, run_id: str, start_ms: int, trial: TrialRun) -> None:
        from mlflow.entities import Param

        params = [Param(name, value) for name, value in trial.params.items()]
        last = max((step for _, step, _ in trial.curve), default=0) or 1
        length_ms = 1000 * trial.training_s
        metrics = [
            _metric(name, value, start_ms + round(length_ms * step / last), step)
            for name, step, value in trial.curve
        ]
        end_ms = start_ms + round(length_ms)
        metrics += [_metric(name, value, end_ms, 0) for name, value in trial.metrics.items()]
        self._client.log_batch(run_id, metrics=metrics, params=params)

    def _end(self, run_id: str, start_ms: int, trial: TrialRun) -> None:
        status = "FAILED" if trial.failed else "FINISHED"
        end_ms = start_ms + round(1000 * trial.training_s)
        self._client.set_terminated(run_id, status=status, end_time=end_ms)

    def _open_study_run(self, study: str, question: str, spec: str) -> tuple[str, int]:
        tags = {
            KIND: "study",
            "mlflow.note.content": f"{question}\n{_HOW_TO_READ}".strip(),
            **_spec_tags(spec),
        }
        runs = self._client.search_runs([self._id], f"tags.`{KIND}` = 'study'", max_results=1)
        if runs:
            run_id, began_ms = runs[0].info.run_id, runs[0].info.start_time
            self._client.update_run(run_id, status="RUNNING")
        else:
            began_ms = _now_ms()
            run = self._client.create_run(
                self._id, start_time=began_ms, tags={KIND: "study", **user()}, run_name=study
            )
            run_id = run.info.run_id
        self._set_tags(run_id, tags)
        if spec:
            self._client.log_text(run_id, spec, "spec.yaml")
        return run_id, began_ms

    def _set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        self._client.log_batch(run_id, tags=[RunTag(name, value) for name, value in tags.items()])


def _experiment_id(client: MlflowClient, uri: str, study: str) -> str:
    experiment = client.get_experiment_by_name(study)
    if experiment is None:
        folder = artifacts(uri)
        location = None if folder is None else (folder / study).as_uri()
        # Without the kind, the dashboard takes a study for a chat application and opens on empty pages.
        kind = {"mlflow.experimentKind": "custom_model_development"}
        return str(client.create_experiment(study, artifact_location=location, tags=kind))
    if experiment.lifecycle_stage != "active":
        raise TrackingError(
            f"experiment {study!r} was deleted in MLflow at {shown(uri)}: restore it with "
            f"`mlflow experiments restore --experiment-id {experiment.experiment_id}`, or name the study anew"
        )
    return str(experiment.experiment_id)


def _known(run: Run) -> _Known:
    running = run.info.status == "RUNNING"
    blank = not run.data.metrics
    return _Known(
        run_id=run.info.run_id,
        start_ms=run.info.start_time,
        running=running,
        blank=blank,
        digest=None if blank else row_digest(row_of(run)),
        tags={name: value for name, value in run.data.tags.items() if _ours(name)} if running else {},
    )


def _ours(tag: str) -> bool:
    return tag != KIND and not tag.startswith("mlflow.")


def _spec_tags(spec: str) -> dict[str, str]:
    """Give the study's file as tags, one a key: unlike parameters they may change when the study grows."""
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


def _metric(name: str, value: float, timestamp_ms: int, step: int) -> Metric:
    from mlflow.entities import Metric

    return Metric(name, value, timestamp_ms, step)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
