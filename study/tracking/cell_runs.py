"""The runs of a study's cells in MLflow: their names and numbers, and the trials' runs below them."""

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
# Tag of a cell's run: runs of its trials may have another parent, name or label.
_UNSETTLED = "mlflow.study.unsettled"


@dataclass(frozen=True)
class CellRun:
    """A cell as MLflow shows it.

    Args:
        cell: the cell.
        name: the run's name, of which there is only one in the study.
        labels: the names of the cell's points on zip axes, by axis.
        metrics: what its trials have come to; None where that isn't known yet, and what is there stays.
    """

    cell: Cell
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] | None = None


class CellRuns:
    """The cells' runs of one experiment; each is made when the first of its trials is published.

    What the trials' runs have of their cell (parent, name, labels) may change with the plan. Before it does, the cell's
    run is tagged as unsettled, so that what a kill leaves undone is done by the next publisher.

    Args:
        client: MLflow's client.
        experiment_id: MLflow's id of the study's experiment.
        study: the study's run.
        cells: the cells that are planned, in the plan's order.
        is_new: whether nothing has been published before, so that no run can be unsettled.
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
        return _trial_name(self._of(trial.cell), trial.sources)

    def trial_tags(self, cell: Cell) -> dict[str, str]:
        """Return the tags that a trial's run has from its cell, whose own run is made if there is none."""
        self._run(cell)
        return self._above(cell.id)

    def check(self, run: Run) -> None:
        """Note a cell if the run of one of its trials hasn't its parent, name or labels."""
        cell_id = run.data.tags[CELL_ID]
        if cell_id not in self._there() or self._differs(run, cell_id):
            self._unsettled.add(cell_id)

    def publish(self, cells: Sequence[CellRun]) -> None:
        """Bring the runs of cells, and what trials' runs have of them, up to what is planned and known now.

        Args:
            cells: all cells, in the plan's order.
        """
        self._plan(cells)
        before, self._runs, self._twins = self._runs or {}, None, []
        there = self._there()  # read again, since another publisher may have made some, too
        self._unsettled |= {i for i, run in before.items() if i in there and there[i].info.run_id != run.info.run_id}
        for one in cells:
            self._publish(one)
        for cell_id, run in there.items():
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
        self._planned = {one.cell.id: one for one in cells}
        self._places = {cell_id: place for place, cell_id in enumerate(self._planned, start=1)}

    def _there(self) -> dict[str, Run]:
        """Read the cells' runs, once; of twins, which a lost answer or another publisher made, one is used."""
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

    def _of(self, cell: Cell) -> CellRun:
        return self._planned.get(cell.id) or CellRun(cell, plain_name(cell))

    def _run(self, cell: Cell) -> Run:
        run = self._there().get(cell.id)
        if run is None:
            one = self._of(cell)
            unsettled = {} if self._is_new else {_UNSETTLED: "yes"}
            tags = {**self._tags(one), **unsettled, **user()}
            run = self._client.create_run(self._experiment_id, start_time=now_ms(), tags=tags, run_name=one.name)
            self._there()[cell.id] = run
            if unsettled:  # trials of the cell may have been published by a version without cells' runs
                self._settle(cell.id)
        return run

    def _tags(self, one: CellRun) -> dict[str, str]:
        tags = {KIND: "cell", CELL_ID: one.cell.id, PARENT: self._study.run_id}
        if one.cell.id in self._places:
            tags[PLACE] = f"{self._places[one.cell.id]:06}"
        return cell_tags(one.cell) | _label_tags(one) | tags

    def _publish(self, one: CellRun) -> None:
        run = self._run(one.cell)
        run_id, tags = run.info.run_id, self._tags(one)
        changed = {name: value for name, value in tags.items() if run.data.tags.get(name) != value}
        gone = _gone_labels(run, tags)
        if gone or changed.keys() - {PARENT, PLACE} or run.info.run_name != one.name:
            self._unsettled.add(one.cell.id)
            changed[_UNSETTLED] = "yes"
        params = {} if run.data.params else cell_params(one.cell)
        metrics = {} if one.metrics is None else _changes(_spelled(one.metrics), run.data.metrics)
        at_ms = now_ms()
        points = [metric(name, value, at_ms, 0) for name, value in metrics.items()]
        log_batch(self._client, run_id, changed, points, params)
        for name in gone:
            self._client.delete_tag(run_id, name)
        if run.info.run_name != one.name:
            self._client.update_run(run_id, name=one.name)

    def _settle(self, cell_id: str) -> None:
        """Give the runs of a cell's trials their parent, name and labels."""
        of_cell = f"tags.`{KIND}` = 'trial' and tags.`{CELL_ID}` = '{cell_id}'"
        for run in list(runs_of(self._client, self._experiment_id, of_cell)):
            if cell_id not in self._there():
                cell = self._planned[cell_id].cell if cell_id in self._planned else _cell_of(run)
                if cell is None or cell.id != cell_id:
                    continue  # killed before it had parameters, or changed by hand: nothing says what it is of
                self._run(cell)
            if self._differs(run, cell_id):
                self._correct(run, cell_id)
        if cell_id in self._there():
            log_batch(self._client, self._there()[cell_id].info.run_id, {_UNSETTLED: ""})
        self._unsettled.discard(cell_id)

    def _differs(self, run: Run, cell_id: str) -> bool:
        above = self._above(cell_id)
        is_named = run.info.run_name == self._name(run, cell_id)
        return not (is_named and above.items() <= run.data.tags.items()) or bool(_gone_labels(run, above))

    def _correct(self, run: Run, cell_id: str) -> None:
        run_id, above, name = run.info.run_id, self._above(cell_id), self._name(run, cell_id)
        log_batch(self._client, run_id, {tag: v for tag, v in above.items() if run.data.tags.get(tag) != v})
        for tag in _gone_labels(run, above):
            self._client.delete_tag(run_id, tag)
        if run.info.run_name != name:
            self._client.update_run(run_id, name=name)

    def _above(self, cell_id: str) -> dict[str, str]:
        """Return the tags that the trials of a cell have of it."""
        one = self._planned.get(cell_id)
        return {PARENT: self._there()[cell_id].info.run_id, **({} if one is None else _label_tags(one))}

    def _name(self, run: Run, cell_id: str) -> str:
        """Return what a trial's run should be called: as it is, if its cell isn't planned any more."""
        one = self._planned.get(cell_id)
        return run.info.run_name if one is None else _trial_name(one, sources_of(int(run.data.tags[SEED])))


def _trial_name(one: CellRun, seed: object) -> str:
    return f"{one.name} seed {seed}"


def _cell_of(run: Run) -> Cell | None:
    """Read a trial's cell from its run; None if that has no parameters yet."""
    if "task" not in run.data.params:
        return None
    return run_result(run.data.params, run.data.metrics, run.data.tags).trial.cell


def _label_tags(one: CellRun) -> dict[str, str]:
    return {f"{LABEL}{key_of(axis)}": label for axis, label in one.labels.items()}


def _gone_labels(run: Run, tags: Mapping[str, str]) -> list[str]:
    return [name for name in run.data.tags if name.startswith(LABEL) and name not in tags]


def _spelled(metrics: Mapping[str, float]) -> dict[str, float]:
    """Spell the metrics' names so that MLflow takes them."""
    keys = keys_of(metrics, ())
    return {keys[name]: value for name, value in metrics.items()}


def _changes(metrics: Mapping[str, float], there: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics that differ; one that is gone becomes NaN, since MLflow can't delete it."""
    gone = [name for name, value in there.items() if name not in metrics and not math.isnan(value)]
    return {name: value for name, value in metrics.items() if there.get(name) != value} | dict.fromkeys(gone, math.nan)
