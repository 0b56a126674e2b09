"""The runs of a study's cells in MLflow, and the relation of trials' runs to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from study.records import Cell, Trial, sources_of
from study.tracking.address import user
from study.tracking.keys import key_of, keys_of
from study.tracking.read import runs_of
from study.tracking.rows import CELL_ID, KIND, LABEL, PLACE, SEED, cell_params, cell_tags, plain_name, run_result
from study.tracking.study_run import StudyRun, log_batch, metric, now_ms

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

PARENT = "mlflow.parentRunId"
_CELLS = f"tags.`{KIND}` = 'cell'"
# Tag of a cell's run: runs of its trials may have a wrong parent, name or label.
_UNSETTLED = "mlflow.study.unsettled"


@dataclass(frozen=True)
class CellRun:
    """A cell as MLflow shows it.

    Args:
        cell: the cell.
        name: the run's name, unique in the study.
        labels: the names of the cell's points on zip axes, by axis.
        metrics: statistics of its trials; None if unknown, to leave those in MLflow.
    """

    cell: Cell
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] | None = None


class CellRuns:
    """The cells' runs of one experiment; each is made when the first of its trials is published.

    Methods raise MLflow's errors; those that repair runs of trials also raise LookupError, ValueError, TypeError or
    OverflowError if a user changed such a run, and InputError if a family can't be imported.

    Trials' runs inherit parent, name and labels from their cell, and these may change with the plan. The cell's run is
    tagged as unsettled before such a change, so that after a kill the next publisher completes it.

    Args:
        client: MLflow's client.
        experiment_id: MLflow's id of the study's experiment.
        study: the study's run.
        cells: the planned cells in the plan's order.
        is_new: True if nothing was published before, so that no run can be unsettled.
    """

    def __init__(
        self, client: MlflowClient, experiment_id: str, study: StudyRun, cells: Sequence[CellRun], *, is_new: bool
    ) -> None:
        self._client, self._experiment_id, self._study, self._is_new = client, experiment_id, study, is_new
        self._runs: dict[str, Run] | None = None
        self._twins: list[str] = []
        self._unsettled: set[str] = set()
        self._plan(cells)

    def trial_name(self, trial: Trial) -> str:
        """Return the name of a trial's run."""
        return _trial_name(self._planned_run(trial.cell), trial.sources)

    def trial_tags(self, cell: Cell) -> dict[str, str]:
        """Return the tags that a trial's run inherits from its cell; make the cell's run if there is none."""
        self._run(cell)
        return self._inherited_tags(cell.id)

    def check(self, run: Run) -> None:
        """Mark a cell for repair if it has no run, or the run of one of its trials has a wrong parent, name or label.

        Raises:
            LookupError: if the trial's run lacks the tag with its cell's id, or with its seed.
            ValueError: if the tag with its seed was changed.
        """
        cell_id = run.data.tags[CELL_ID]
        if cell_id not in self._existing() or self._differs(run, cell_id):
            self._unsettled.add(cell_id)

    def publish(self, cells: Sequence[CellRun]) -> None:
        """Make or update the runs of cells, repair the trials' runs of marked cells, and delete cells' duplicate runs.

        A cell's trials are also repaired if the cell's name or labels have changed. Cells that aren't planned any more
        keep their runs, without a place.

        Args:
            cells: all planned cells in the plan's order.
        """
        self._plan(cells)
        before, self._runs, self._twins = self._runs or {}, None, []
        runs = self._existing()  # read again, since another publisher may have made some, too
        self._unsettled |= {i for i, run in before.items() if i in runs and runs[i].info.run_id != run.info.run_id}
        for cell_run in cells:
            self._publish(cell_run)
        for cell_id, run in runs.items():
            if cell_id not in self._planned and PLACE in run.data.tags:
                self._client.delete_tag(run.info.run_id, PLACE)
        while self._unsettled:
            self._settle(min(self._unsettled))
        for run_id in self._twins:
            self._client.delete_run(run_id)
        self._twins = []

    def finish(self) -> None:
        """Set the status of the cells' runs to finished."""
        for run in (self._runs or {}).values():
            if run.info.status == "RUNNING":
                self._client.set_terminated(run.info.run_id)

    def _plan(self, cells: Sequence[CellRun]) -> None:
        self._planned = {cell_run.cell.id: cell_run for cell_run in cells}
        self._places = {cell_id: place for place, cell_id in enumerate(self._planned, start=1)}

    def _existing(self) -> dict[str, Run]:
        """Return the cells' runs, read once; of a cell's runs, the first is used, and `publish` deletes the others."""
        if self._runs is None:
            self._runs = {}
            runs = runs_of(self._client, self._experiment_id, _CELLS)
            for run in sorted(runs, key=lambda run: (run.info.start_time, run.info.run_id)):
                cell_id = run.data.tags[CELL_ID]
                if self._runs.setdefault(cell_id, run) is not run:
                    self._twins.append(run.info.run_id)
                    self._unsettled.add(cell_id)
                elif run.data.tags.get(_UNSETTLED):
                    self._unsettled.add(cell_id)
        return self._runs

    def _planned_run(self, cell: Cell) -> CellRun:
        return self._planned.get(cell.id) or CellRun(cell, plain_name(cell))

    def _run(self, cell: Cell) -> Run:
        run = self._existing().get(cell.id)
        if run is None:
            cell_run = self._planned_run(cell)
            unsettled = {} if self._is_new else {_UNSETTLED: "yes"}
            tags = {**self._tags(cell_run), **unsettled, **user()}
            run = self._client.create_run(self._experiment_id, start_time=now_ms(), tags=tags, run_name=cell_run.name)
            self._existing()[cell.id] = run
            if unsettled:  # a version without cells' runs may have published trials of the cell
                self._settle(cell.id)
        return run

    def _tags(self, cell_run: CellRun) -> dict[str, str]:
        tags = {KIND: "cell", CELL_ID: cell_run.cell.id, PARENT: self._study.run_id}
        if cell_run.cell.id in self._places:
            tags[PLACE] = f"{self._places[cell_run.cell.id]:06}"
        return cell_tags(cell_run.cell) | _label_tags(cell_run) | tags

    def _publish(self, cell_run: CellRun) -> None:
        run = self._run(cell_run.cell)
        run_id, tags = run.info.run_id, self._tags(cell_run)
        changed = {name: value for name, value in tags.items() if run.data.tags.get(name) != value}
        gone = _gone_labels(run, tags)
        if gone or changed.keys() - {PARENT, PLACE} or run.info.run_name != cell_run.name:
            self._unsettled.add(cell_run.cell.id)
            changed[_UNSETTLED] = "yes"
        params = {} if run.data.params else cell_params(cell_run.cell)
        metrics = {} if cell_run.metrics is None else _changes(_spelled(cell_run.metrics), run.data.metrics)
        at_ms = now_ms()
        points = [metric(name, value, at_ms, 0) for name, value in metrics.items()]
        log_batch(self._client, run_id, changed, points, params)
        for name in gone:
            self._client.delete_tag(run_id, name)
        if run.info.run_name != cell_run.name:
            self._client.update_run(run_id, name=cell_run.name)

    def _settle(self, cell_id: str) -> None:
        """Correct parent, name and labels of the runs of a cell's trials, and clear the cell's mark for repair.

        If the cell has no run, make it first.
        """
        in_cell = f"tags.`{KIND}` = 'trial' and tags.`{CELL_ID}` = '{cell_id}'"
        for run in list(runs_of(self._client, self._experiment_id, in_cell)):
            if cell_id not in self._existing():
                cell = self._planned[cell_id].cell if cell_id in self._planned else _cell_of(run)
                if cell is None or cell.id != cell_id:
                    continue  # its cell is unknown: killed before it had parameters, or changed by hand
                self._run(cell)
            if self._differs(run, cell_id):
                self._correct(run, cell_id)
        if cell_id in self._existing():
            log_batch(self._client, self._existing()[cell_id].info.run_id, {_UNSETTLED: ""})
        self._unsettled.discard(cell_id)

    def _differs(self, run: Run, cell_id: str) -> bool:
        inherited = self._inherited_tags(cell_id)
        is_named = run.info.run_name == self._name(run, cell_id)
        return not (is_named and inherited.items() <= run.data.tags.items()) or bool(_gone_labels(run, inherited))

    def _correct(self, run: Run, cell_id: str) -> None:
        run_id, inherited, name = run.info.run_id, self._inherited_tags(cell_id), self._name(run, cell_id)
        log_batch(self._client, run_id, {tag: v for tag, v in inherited.items() if run.data.tags.get(tag) != v})
        for tag in _gone_labels(run, inherited):
            self._client.delete_tag(run_id, tag)
        if run.info.run_name != name:
            self._client.update_run(run_id, name=name)

    def _inherited_tags(self, cell_id: str) -> dict[str, str]:
        """Return the tags that the runs of a cell's trials inherit."""
        cell_run = self._planned.get(cell_id)
        return {PARENT: self._existing()[cell_id].info.run_id, **({} if cell_run is None else _label_tags(cell_run))}

    def _name(self, run: Run, cell_id: str) -> str:
        """Return the right name of a trial's run; its current name if its cell isn't planned any more."""
        cell_run = self._planned.get(cell_id)
        return run.info.run_name if cell_run is None else _trial_name(cell_run, sources_of(int(run.data.tags[SEED])))


def _trial_name(cell_run: CellRun, seed: object) -> str:
    return f"{cell_run.name} seed {seed}"


def _cell_of(run: Run) -> Cell | None:
    """Return a trial's cell, read from its run; None if the run has no parameters yet."""
    if "task" not in run.data.params:
        return None
    return run_result(run.data.params, run.data.metrics, run.data.tags).trial.cell


def _label_tags(cell_run: CellRun) -> dict[str, str]:
    return {f"{LABEL}{key_of(axis)}": label for axis, label in cell_run.labels.items()}


def _gone_labels(run: Run, tags: Mapping[str, str]) -> list[str]:
    return [name for name in run.data.tags if name.startswith(LABEL) and name not in tags]


def _spelled(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return metrics by MLflow's keys."""
    keys = keys_of(metrics, ())
    return {keys[name]: value for name, value in metrics.items()}


def _changes(metrics: Mapping[str, float], stored: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics that differ, and NaN for removed ones, since MLflow can't delete metrics."""
    gone = [name for name, value in stored.items() if name not in metrics and not math.isnan(value)]
    return {name: value for name, value in metrics.items() if stored.get(name) != value} | dict.fromkeys(gone, math.nan)
