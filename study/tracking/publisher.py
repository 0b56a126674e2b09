"""The only writer to MLflow while a study runs: a background thread that doesn't slow training."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from study.addresses import without_secret
from study.errors import StoreAwayError, StudyError, TrackingError
from study.tracking.address import imported
from study.tracking.cell_runs import CellRun
from study.tracking.charts import ChartLine
from study.tracking.experiment import Experiment
from study.tracking.packs import TRIALS_TOGETHER, Packs, ReadPack, in_groups
from study.tracking.trouble import explanation

_LONGEST_PAUSE_S = 60.0
_NOTIFY_AFTER = 3
"""Number of consecutive failures after which the user is notified."""
_PATIENCE_S = 15.0
"""Seconds of an outage after which closing gives up; a server restarts in 5 s."""
_GATHER_S = 2.0
"""Seconds for which a small pack waits for others, to be written together."""


@dataclass(frozen=True)
class _Pack:
    """A queued pack: its name, the number of trials to publish, and the ids of trials to leave out."""

    name: str
    trials: int
    without: Collection[str]


@dataclass(frozen=True)
class _Job:
    """A queued write; a later job replaces a queued one of the same kind.

    Args:
        act: writes to the experiment.
        trials: number of trials that it writes.
        kind: its kind; None if no later job replaces it.
        packs: the packs that it writes; others may join them until `due_s`.
        due_s: latest start, on the clock `time.monotonic`.
    """

    act: Callable[[Experiment], object]
    trials: int = 0
    kind: str | None = None
    packs: tuple[_Pack, ...] = ()
    due_s: float = 0.0


class Publisher:
    """Background publisher of a running study.

    Only `close` and `wait_for_study` wait for MLflow, and no method raises MLflow's errors. The queue holds names of
    packs; a pack is read when its turn comes. A failed job is retried after pauses of 1, 2, 4, ... up to 60 seconds,
    until MLflow is back or the publisher is closed. Queued counts, cells, charts, findings or a file are replaced by
    later ones of the same kind.

    Args:
        uri: MLflow's address.
        study: the study's name.
        packs: reads the stored packs.
        question: the study's question.
        spec: text of the study's file.
        cells: returns the planned cells in the plan's order; called in the publisher's thread.
        notify: called, in the publisher's thread, with a sentence when MLflow can't be used and when it can again.
        close_timeout_s: seconds for which leaving the ``with`` block may wait for queued jobs.

    Attributes:
        trouble: one sentence about the current problem; None without one.
    """

    def __init__(
        self,
        uri: str,
        study: str,
        packs: Packs,
        *,
        question: str = "",
        spec: str = "",
        cells: Callable[[], Sequence[CellRun]] = tuple,
        notify: Callable[[str], None] = lambda sentence: None,
        close_timeout_s: float = 60.0,
    ) -> None:
        self.trouble: str | None = None
        self._uri, self._packs, self._notify = uri, packs, notify
        name = uuid4().hex
        self._open: Callable[[], Experiment] = lambda: Experiment(
            uri, study, question=question, spec=spec, cells=cells(), publisher=name
        )
        self._close_timeout_s = close_timeout_s
        self._jobs: deque[_Job] = deque()
        self._writing = 0  # trials that the current job hasn't written yet
        self._lost = 0  # trials of packs that can't be read
        self._changed = threading.Condition()
        self._closing = self._give_up = False
        self._failures, self._failing_since, self._again_at = 0, 0.0, 0.0
        self._was_reached, self._never_failed = False, True
        self._mark: str | None = None
        self._first_try_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def __enter__(self) -> Publisher:
        """Start the publisher's thread: it imports MLflow and opens the study there first."""
        self._put(_Job(lambda experiment: None))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the publisher."""
        self.close(self._close_timeout_s)

    def wait_for_study(self, timeout_s: float = 60.0) -> None:
        """Wait until the first try to open the study in MLflow has ended, or `timeout_s` seconds are over."""
        self._first_try_over.wait(timeout_s)

    def queue_pack(self, pack: str, trials: int, without: Collection[str] = ()) -> None:
        """Queue a stored pack; it waits up to two seconds for others, unless the publisher is closed.

        Args:
            pack: the pack's name.
            trials: number of its trials to publish.
            without: ids of its trials that were queued with another pack, since a trial has only one run.
        """
        self._put(self._pack_job((_Pack(pack, trials, without),)))

    def catch_up(self) -> None:
        """Queue all stored packs; those that MLflow has already cost little."""
        self._put(_Job(self._catch_up))

    def queue_counts(self, counts: Mapping[str, float]) -> None:
        """Queue the number of trials in each state."""
        counted = dict(counts)
        self._put(_Job(lambda experiment: experiment.study.counts(counted), kind="counts"))

    def queue_cells(self, cells: Sequence[CellRun]) -> None:
        """Queue an update of the cells' runs: their names, labels and statistics."""
        self._put(_Job(lambda experiment: experiment.publish_cells(cells), kind="cells"))

    def queue_charts(self, lines: Callable[[], Sequence[ChartLine]]) -> None:
        """Queue the final charts; `lines` is called when their turn comes."""
        self._put(_Job(lambda experiment: experiment.publish_charts(lines()), kind="charts"))

    def queue_finding(self, finding: str, counts: Mapping[str, float] | None = None, failures: str = "") -> None:
        """Queue the findings so far, the counts, and the reasons of failed trials as Markdown."""
        self._put(_Job(lambda experiment: experiment.study.describe(finding, counts, failures), kind="finding"))

    def queue_artifact(self, path: Path) -> None:
        """Queue a file or folder of the report."""
        self._put(_Job(lambda experiment: experiment.study.artifact(path), kind=f"file {path}"))

    def shows(self, mark: str) -> None:
        """Set the mark of the study's content, by which `shows_all` finds that MLflow has all of it.

        It is written to MLflow when the publisher ends, after all queued jobs, unless a pack was unreadable.
        """
        self._mark = mark

    def close(self, timeout_s: float = 60.0) -> int:
        """Wait for the queued jobs, at most `timeout_s` seconds, and stop. A further call waits again.

        If MLflow became unreachable, closing gives up at the first failure at which at least three tries in a row have
        failed and the outage has lasted 15 s. If it was never reached, three failures are enough.

        Returns:
            The number of queued trials that weren't published, including unreadable ones; `sync` publishes the others.
            Trials of `catch_up` count only once it has begun to write.
        """
        with self._changed:
            self._closing, self._again_at = True, 0.0
            self._changed.notify()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._give_up = True
            self.trouble = self.trouble or f"MLflow at {without_secret(self._uri)} was too slow"
        return self.waiting

    @property
    def waiting(self) -> int:
        """The number of queued trials that aren't published yet or can't be read."""
        with self._changed:
            return self._lost + self._writing + sum(job.trials for job in self._jobs)

    def _put(self, job: _Job) -> None:
        with self._changed:
            if job.kind is not None:
                self._jobs = deque(other for other in self._jobs if other.kind != job.kind)
            self._jobs.append(job)
            self._changed.notify()

    def _next(self) -> _Job | None:
        """Wait until a job is due, and return it; None if there will be no more."""
        with self._changed:
            while not self._give_up:
                pause_s = self._again_at - time.monotonic() if self._failures else 0.0
                if self._jobs and pause_s <= 0:
                    job = self._joined()
                    if self._closing or job.trials >= TRIALS_TOGETHER or (pause_s := job.due_s - time.monotonic()) <= 0:
                        self._jobs.popleft()
                        self._writing = job.trials
                        return job
                if self._closing and not self._jobs:
                    return None
                self._changed.wait(pause_s if self._jobs else None)
        return None

    def _joined(self) -> _Job:
        """Join the first jobs if they write small packs, and return the first job."""
        while len(self._jobs) > 1:
            first, second = self._jobs[0], self._jobs[1]
            if not (first.packs and second.packs) or first.trials + second.trials > TRIALS_TOGETHER:
                break
            self._jobs.popleft()
            self._jobs[0] = replace(self._pack_job(first.packs + second.packs), due_s=first.due_s)
        return self._jobs[0]

    def _pack_job(self, packs: tuple[_Pack, ...]) -> _Job:
        trials = sum(pack.trials for pack in packs)
        return _Job(partial(self._publish, packs), trials, packs=packs, due_s=time.monotonic() + _GATHER_S)

    def _run(self) -> None:
        experiment: Experiment | None = None
        imported()  # imported first: the import takes seconds
        while (job := self._next()) is not None:
            try:
                experiment = experiment or self._open()
                job.act(experiment)
            except Exception as error:  # a failure to publish never fails the study
                # MLflow may have received a part of it, so the next try opens the experiment again.
                experiment, self._never_failed = None, False
                self._failed(job, error)
            else:
                self._succeeded(job)
            self._first_try_over.set()
        if experiment is not None and not self._give_up:
            try:
                if self._mark is not None and not self._lost:
                    experiment.study.shows(self._mark)
                experiment.finish()
            except Exception as error:
                self.trouble = f"MLflow at {without_secret(self._uri)}: {explanation(error, self._uri)}"

    def _succeeded(self, job: _Job) -> None:
        with self._changed:
            self._writing, self._was_reached = 0, True
        if self._failures >= _NOTIFY_AFTER:
            out_s = time.monotonic() - self._failing_since
            self._notify(
                f"MLflow at {without_secret(self._uri)} can be used again, after {out_s:.0f} s: "
                "the missing results are published now"
            )
        if self._failures:
            self._failures, self.trouble = 0, None

    def _failed(self, job: _Job, error: Exception) -> None:
        if isinstance(error, StudyError) and not isinstance(error, TrackingError | StoreAwayError):
            with self._changed:  # the store can't be read, and a retry won't help
                if len(job.packs) > 1:  # all but one of them may be readable
                    self._jobs += [replace(self._pack_job((pack,)), packs=(), due_s=0.0) for pack in job.packs]
                else:
                    self._lost += self._writing
                self._writing = 0
            self.trouble = str(error)
            return
        now = time.monotonic()
        if not self._failures:
            self._failing_since = now
        self._failures += 1
        is_store = isinstance(error, StoreAwayError)
        self.trouble = (
            str(error) if is_store else f"MLflow at {without_secret(self._uri)}: {explanation(error, self._uri)}"
        )
        if self._failures == _NOTIFY_AFTER:
            self._notify(
                f"{self.trouble}. The study goes on; what MLflow misses is published when it can be used again"
            )
        with self._changed:
            job, self._writing = replace(job, trials=self._writing), 0
            if job.kind is None or all(other.kind != job.kind for other in self._jobs):
                self._jobs.append(job)  # at the end, so that other jobs come first
            patience_s = _PATIENCE_S if self._was_reached else 0.0
            if self._closing and self._failures >= _NOTIFY_AFTER and now - self._failing_since > patience_s:
                self._give_up = True
            longest_s = (1.0 if self._was_reached else 0.1) if self._closing else _LONGEST_PAUSE_S
            self._again_at = time.monotonic() + min(2.0 ** (self._failures - 1), longest_s)

    def _publish(self, packs: Sequence[_Pack], experiment: Experiment) -> None:
        read = [self._read(pack.name, pack.without) for pack in packs]
        experiment.publish(read, self._packs.files, are_new=self._never_failed)

    def _read(self, name: str, without: Collection[str] = ()) -> ReadPack:
        results = [result for result in self._packs.results(name) if result.trial.id not in without]
        return ReadPack(name, results, partial(self._packs.curves, name))

    def _catch_up(self, experiment: Experiment) -> None:
        marks, counts = {}, {}
        for name in self._packs.names():
            pack = self._read(name)
            marks[name], counts[name] = pack.mark, len(pack.results)
        if experiment.has_marks_of_others(list(marks.values())):
            experiment.look_at_all()
        missing = [name for name, mark in marks.items() if not experiment.has(mark)]
        with self._changed:
            self._writing = sum(counts[name] for name in missing)
        for group in in_groups(map(self._read, missing)):
            if self._give_up:
                return
            experiment.publish(group, self._packs.files)
            with self._changed:
                self._writing -= sum(counts[pack.name] for pack in group)
        experiment.believe_marks(list(marks.values()))
