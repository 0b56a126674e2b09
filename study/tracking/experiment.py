"""A study's experiment in MLflow, with exactly one run per trial."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from uuid import uuid4

from study.addresses import without_secret
from study.errors import TrackingError
from study.records import Outcome, Result
from study.tracking.address import connect, count_rows, place_of_files, user
from study.tracking.cell_runs import PARENT, CellRun, CellRuns
from study.tracking.charts import ChartLine, publish_charts
from study.tracking.existing import ENDED, ExistingRun, existing_run, rank, trial_id_of
from study.tracking.packs import CHECKED, WRITING, FilesOf, ReadPack, empty_tags, marks_of, marks_tags
from study.tracking.pages import EXPERIMENT_KIND
from study.tracking.read import runs_of
from study.tracking.rows import KIND, PACK, TRIAL_ID, TrialRun, trial_run, trials_of
from study.tracking.study_run import StudyRun, log_batch, metric, now_ms

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_TRIALS = f"tags.`{KIND}` = 'trial'"
_UNFINISHED = f"{_TRIALS} and attributes.status != 'FINISHED'"


class Experiment:
    """One study in MLflow, written to by one thread.

    Packs are published in groups. A tag first lists a group's packs, then its runs are written and read back. If each
    run exists once, the packs are marked. After a kill, a timeout or a lost answer, only unfinished runs and those of
    listed packs can be incomplete; opening the experiment reads these.

    If no other publisher can have written a group's trials, its runs are read back by id, in one request. Otherwise
    they are read back by pack, in one request per pack, which also returns other runs of these trials.

    Args:
        uri: MLflow's address.
        study: the study's name.
        question: the study's question.
        spec: text of the study's file.
        cells: the planned cells in the plan's order.
        look_at_all: ignore marks and compare all runs, which takes half a minute for 20,000.
        publisher: name of the writer; None for a new one.

    Raises:
        TrackingError: if the experiment was deleted in MLflow, which still reserves its name.
        InputError: if a family can't be imported or isn't a `Family`, or two packages offer one of the same task.
        Exception: an error of MLflow if it can't be reached, or a LookupError, ValueError or TypeError if a user
            changed a trial's run; `explaining_errors` converts it. Methods raise it, too.
    """

    def __init__(
        self,
        uri: str,
        study: str,
        *,
        question: str = "",
        spec: str = "",
        cells: Sequence[CellRun] = (),
        look_at_all: bool = False,
        publisher: str | None = None,
    ) -> None:
        self._client, self._uri = connect(uri), uri
        self._id, self._is_new = _experiment_id(self._client, uri, study)
        self.study = StudyRun(self._client, uri, self._id, study, question, spec, publisher or uuid4().hex)
        self._cells = CellRuns(self._client, self._id, self.study, cells, is_new=self._is_new)
        self._runs: dict[str, ExistingRun] = {}
        self._marks = marks_of(self.study.tags)
        self._compares_all = False
        if look_at_all or CHECKED not in self.study.tags:  # written by a version without marks
            self.look_at_all()
            return
        self._look_at(_UNFINISHED)
        self._look_at_packs(filter(None, self.study.tags.get(WRITING, "").split(",")))

    def look_at_all(self) -> None:
        """Read all trials' runs, and compare all packs until `believe_marks`, not only those without a mark.

        Duplicate runs of a trial are deleted.
        """
        self._look_at(_TRIALS)
        self._compares_all = True

    def has_marks_of_others(self, marks: Sequence[str]) -> bool:
        """Return True if a marked pack was trained again or is gone: its mark isn't among the given ones."""
        return not set(self._marks) <= set(marks)

    def has(self, mark: str) -> bool:
        """Return True if a pack has a mark and needn't be compared."""
        return not self._compares_all and mark in self._marks

    def publish(
        self, packs: Sequence[ReadPack], files: FilesOf = lambda trial_id, into: {}, *, are_new: bool = False
    ) -> int:
        """Write the missing runs of a group of packs, replace those that differ, and complete half-written ones.

        Packs with a mark are skipped unless all are compared (`look_at_all`). Then packs without a failed trial are
        marked.

        Args:
            packs: the packs; learning curves are read only for packs with a missing or differing trial.
            files: returns the paths of a trial's files by name; see `Packs.files`.
            are_new: True if they were stored after the experiment was opened. Earlier packs with a failed trial have
                no mark, and so may have unknown runs.

        Returns:
            The number of trials that were written; 0 if MLflow had all of them.

        Raises:
            TrackingError: if a run is missing or differs after it was written.
            StudyError: if a pack's curves or a trial's files can't be read, or a family can't be imported.
        """
        unmarked = [pack for pack in packs if not self.has(pack.mark)]
        incomplete = [pack for pack in unmarked if not all(map(self._has, pack.results))]
        if incomplete:
            names = [pack.name for pack in incomplete]
            self.study.tag({WRITING: ",".join(names)})
            written = [self._write(pack, files) for pack in incomplete]
            are_known = are_new or self._is_new or self._compares_all
            self._read_back(names, {trial_id for ids in written for trial_id in ids}, are_known=are_known)
        successful = [pack for pack in unmarked if all(result.outcome is not Outcome.FAILED for result in pack.results)]
        self._mark([pack.mark for pack in successful])  # failed trials may be tried again
        if not self._compares_all:
            for pack in successful:
                for result in pack.results:
                    self._runs.pop(result.trial.id, None)
        return sum(map(len, written)) if incomplete else 0

    def believe_marks(self, marks: Sequence[str]) -> None:
        """Record that all stored packs were compared, and drop the marks of packs that no longer exist.

        This ends the comparison of all packs that `look_at_all` began.

        Args:
            marks: the marks of all stored packs.
        """
        stored = set(marks)
        self._marks = list(dict.fromkeys(mark for mark in self._marks if mark in stored))
        tags = marks_tags(self._marks)
        self.study.tag({CHECKED: "yes", WRITING: "", **tags, **empty_tags(self.study.tags, tags)})
        if self._compares_all:  # the marks are correct from here on
            self._compares_all = False
            self._runs.clear()
            self._look_at(_UNFINISHED)

    def publish_cells(self, cells: Sequence[CellRun]) -> None:
        """Make or update the cells' runs, and their trials' parents, names and labels, by the current plan and results.

        Args:
            cells: all planned cells in the plan's order.
        """
        if self.study.before is not None:
            for run in list(runs_of(self._client, self._id, f"{_TRIALS} and tags.`{PARENT}` = '{self.study.before}'")):
                self._cells.check(run)
        self._cells.publish(cells)
        self.study.forget_before()

    def publish_charts(self, lines: Sequence[ChartLine]) -> None:
        """Replace the charts if their lines have changed."""
        publish_charts(self._client, self._id, self.study, lines)

    def finish(self) -> None:
        """Delete running runs of trials that also have an ended run, and end the runs of the study and its cells.

        Of the cells' runs, only those end that this experiment has read, as `publish_cells` does. Finally, the
        statistics of a database file are updated.

        Raises:
            sqlite3.Error: if the database file can't be read or written (`count_rows`).
            KeyError: if a running trial's run lacks the tag with the trial's id.
        """
        for run in runs_of(self._client, self._id, f"{_TRIALS} and attributes.status = 'RUNNING'"):
            others = runs_of(self._client, self._id, f"tags.`{TRIAL_ID}` = '{run.data.tags[TRIAL_ID]}'")
            ended = [other for other in others if other.info.status in ENDED]
            if ended:  # created twice, since the answer came too late
                self._drop([run], min(ended, key=rank))
        self._cells.finish()
        self.study.finish()
        count_rows(self._uri)

    def _look_at(self, where: str) -> None:
        self._keep_best(runs_of(self._client, self._id, where))

    def _look_at_packs(self, names: Iterable[str]) -> None:
        for name in names:
            self._look_at(f"{_TRIALS} and tags.`{PACK}` = '{name}'")

    def _keep_best(self, runs: Iterable[Run]) -> None:
        """Keep and record the best run of each trial, delete the others, and mark cells with wrong runs for repair."""
        trial_runs = [run for run in runs if TRIAL_ID in run.data.tags]
        for trial_id, twins in groupby(sorted(trial_runs, key=rank), key=trial_id_of):
            best, *others = twins  # made by two publishers at once, or after a lost answer
            kept = self._drop(others, best)
            self._cells.check(kept)
            self._runs[trial_id] = existing_run(kept)

    def _drop(self, twins: Sequence[Run], best: Run) -> Run:
        """Delete a trial's other runs, and return the remaining one.

        Another publisher may meanwhile have ended one of these runs and deleted the best one. Then each publisher
        restores the run that began first, so that both restore the same one.
        """
        if not twins:
            return best
        for twin in twins:
            self._client.delete_run(twin.info.run_id)
        if self._client.get_run(best.info.run_id).info.lifecycle_stage == "active":
            return best
        first = min([best, *twins], key=lambda run: (run.info.start_time, run.info.run_id))
        self._client.restore_run(first.info.run_id)
        return self._client.get_run(first.info.run_id)

    def _has(self, result: Result) -> bool:
        run = self._runs.get(result.trial.id)
        return run is not None and run.content == (False, trial_run(result, None).digest)

    def _write(self, pack: ReadPack, files: FilesOf) -> list[str]:
        """Write the trials of a pack that are missing or differ, and return their ids."""
        missing = [result for result in pack.results if not self._has(result)]
        for trial in trials_of(missing, pack.curves()) if missing else ():
            self._publish(pack.name, trial, files)
        return [result.trial.id for result in missing]

    def _publish(self, pack: str, trial: TrialRun, files: FilesOf) -> None:
        run = self._runs.get(trial.trial.id)
        if run is not None and run.running and run.digest == trial.digest:
            run_id, start_ms = run.run_id, run.start_ms
            self._client.set_tag(run_id, PACK, pack)
        else:
            if run is not None and run.running and run.blank and run.tags == trial.tags:
                run_id, start_ms = run.run_id, run.start_ms
                self._client.set_tag(run_id, PACK, pack)
            else:
                if run is not None:  # failed and then solved, or trained again elsewhere
                    self._client.delete_run(run.run_id)
                run_id, start_ms = self._begin(pack, trial)
            self._log(run_id, start_ms, trial)
        self._add_files(run_id, trial.trial.id, files)
        self._end(run_id, start_ms, trial)
        self._runs[trial.trial.id] = ExistingRun(run_id, start_ms, False, False, trial.digest, {})

    def _read_back(self, packs: Sequence[str], trial_ids: Collection[str], *, are_known: bool) -> None:
        """Delete the trials' duplicate runs; raise TrackingError unless each trial has a run as it was written."""
        written = {trial_id: self._runs.pop(trial_id) for trial_id in trial_ids}
        run_ids = [self.study.run_id, *(run.run_id for run in written.values())]
        runs = list(runs_of(self._client, self._id, f"attributes.run_id IN ({', '.join(map(repr, run_ids))})"))
        self._keep_best(runs)
        if not self.study.is_alone(runs) or not are_known:
            self._look_at_packs(packs)
        lost = [i for i, run in written.items() if i not in self._runs or self._runs[i].content != run.content]
        if lost:
            differ = f"{len(lost)} runs of pack {packs[0]} differ from the written ones"
            raise TrackingError(f"{differ}, such as that of trial {lost[0]}; `study sync` writes them again")

    def _mark(self, new: Sequence[str]) -> None:
        count = len(self._marks)
        self._marks += [mark for mark in dict.fromkeys(new) if mark not in self._marks]
        if new and not self._compares_all:  # otherwise `believe_marks` writes all of them
            self.study.tag({WRITING: "", **marks_tags(self._marks, since=count)})

    def _begin(self, pack: str, trial: TrialRun) -> tuple[str, int]:
        start_ms = now_ms() - round(1000 * trial.training_s)
        above = {KIND: "trial", PACK: pack, **self._cells.trial_tags(trial.trial.cell)}
        tags, name = {**trial.tags, **above, **user()}, self._cells.trial_name(trial.trial)
        run = self._client.create_run(self._id, start_time=start_ms, tags=tags, run_name=name)
        return run.info.run_id, start_ms

    def _log(self, run_id: str, start_ms: int, trial: TrialRun) -> None:
        last = max((step for _, step, _ in trial.curve), default=0) or 1
        length_ms = 1000 * trial.training_s
        metrics = [
            metric(name, value, start_ms + round(length_ms * step / last), step) for name, step, value in trial.curve
        ]
        end_ms = start_ms + round(length_ms)
        metrics += [metric(name, value, end_ms, 0) for name, value in trial.metrics.items()]
        log_batch(self._client, run_id, metrics=metrics, params=trial.params)

    def _add_files(self, run_id: str, trial_id: str, files: FilesOf) -> None:
        if not self.study.keeps_files:
            return
        with tempfile.TemporaryDirectory(prefix="study-artifacts-") as scratch:
            for name, path in files(trial_id, Path(scratch)).items():
                folder = str(PurePosixPath(name).parent)
                self._client.log_artifact(run_id, str(path), None if folder == "." else folder)

    def _end(self, run_id: str, start_ms: int, trial: TrialRun) -> None:
        status = "FAILED" if trial.failed else "FINISHED"
        end_ms = start_ms + round(1000 * trial.training_s)
        self._client.set_terminated(run_id, status=status, end_time=end_ms)


def _experiment_id(client: MlflowClient, uri: str, study: str) -> tuple[str, bool]:
    """Return the id of a study's experiment, and True if it was made now; raise TrackingError if it was deleted."""
    experiment = client.get_experiment_by_name(study)
    if experiment is None:
        location = place_of_files(uri, study)
        return str(client.create_experiment(study, artifact_location=location, tags=EXPERIMENT_KIND)), True
    if experiment.lifecycle_stage != "active":
        raise TrackingError(
            f"experiment {study!r} was deleted in MLflow at {without_secret(uri)}: restore it with "
            f"`mlflow experiments restore --experiment-id {experiment.experiment_id}`, or rename the study"
        )
    return str(experiment.experiment_id), False
