"""The one writer to MLflow while a study runs: a background thread that costs training nothing."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from study.records import Curve, Result
from study.tracking.address import said, shown
from study.tracking.experiment import Experiment
from study.tracking.rows import Point, TrialRun, trials_of

_FAILURES = 3
_COOL_DOWN_S = 60.0


@dataclass(frozen=True)
class _Job:
    act: Callable[[Experiment], object]
    trials: int = 0


class Publisher:
    """Publishes a study as it runs. No method waits for MLflow but `close`, and none raises because of it.

    After three failures in a row it leaves MLflow alone for a minute and drops what comes meanwhile; `sync`
    publishes that later.

    Args:
        uri: of MLflow.
        study: the study's name.
        question: what it asks.
        spec: its file's text.
        close_timeout_s: how long leaving the ``with`` block may wait for what is queued.

    Attributes:
        trouble: what went wrong last, in one sentence, or None.
    """

    def __init__(
        self, uri: str, study: str, *, question: str = "", spec: str = "", close_timeout_s: float = 60.0
    ) -> None:
        self.trouble: str | None = None
        self._uri = uri
        self._open: Callable[[], Experiment] = lambda: Experiment(uri, study, question=question, spec=spec)
        self._close_timeout_s = close_timeout_s
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._counts: Mapping[str, float] | None = None
        self._waiting = 0
        self._missed = 0
        self._lock = threading.Lock()
        self._tried = threading.Event()
        self._give_up = threading.Event()
        self._thread = threading.Thread(target=self._write, name="publisher", daemon=True)

    def __enter__(self) -> Publisher:
        """Start the writer."""
        self._thread.start()
        self._put(_Job(lambda experiment: None))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close(self._close_timeout_s)

    def wait_for_study(self, timeout_s: float = 60.0) -> None:
        """Wait until MLflow has the study, or the first try has failed: before that there is nothing to link to."""
        self._tried.wait(timeout_s)

    def publish(self, results: Sequence[Result], curves: Sequence[Curve]) -> None:
        """Queue trials and their curves."""
        for trial in trials_of(results, curves):
            self._put(_Job(_publishing(trial), trials=1))

    def catch_up(self, packs: Iterable[Callable[[], tuple[Sequence[Result], Sequence[Curve]]]]) -> None:
        """Queue what was stored before: each pack is read when its turn comes; what MLflow has already costs little."""
        for read in packs:
            self._put(_Job(partial(_catching_up, read)))

    def counts(self, counts: Mapping[str, float]) -> None:
        """Queue how many trials are in which state; of those waiting only the latest are written."""
        self._counts = dict(counts)
        self._put(_Job(self._write_counts))

    def series(self, points: Sequence[Point]) -> None:
        """Queue the charts against hidden size. Call it when they are final."""
        self._put(_Job(lambda experiment: experiment.series(points)))

    def artifact(self, path: Path) -> None:
        """Queue a file or folder of the report."""
        self._put(_Job(lambda experiment: experiment.artifact(path)))

    def close(self, timeout_s: float = 60.0) -> int:
        """Wait for what is queued, at most so long, and stop. Closing again only counts again.

        Returns:
            How many trials were not published; `sync` publishes them.
        """
        self._queue.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._give_up.set()
            self.trouble = self.trouble or f"MLflow at {shown(self._uri)} was too slow"
        with self._lock:
            return self._missed + self._waiting

    def _put(self, job: _Job) -> None:
        with self._lock:
            self._waiting += job.trials
        self._queue.put(job)

    def _write_counts(self, experiment: Experiment) -> None:
        counts, self._counts = self._counts, None
        if counts is not None:
            experiment.counts(counts)

    def _write(self) -> None:
        experiment: Experiment | None = None
        failures, again_at = 0, 0.0
        while (job := self._queue.get()) is not None and not self._give_up.is_set():
            done = False
            if failures < _FAILURES or time.monotonic() >= again_at:
                try:
                    experiment = experiment or self._open()
                    job.act(experiment)
                    done, failures = True, 0
                except Exception as error:  # a view's failure is never the study's
                    # What reached MLflow is unknown now, so the next try looks again.
                    experiment, failures = None, failures + 1
                    again_at = time.monotonic() + _COOL_DOWN_S
                    self.trouble = f"MLflow at {shown(self._uri)}: {said(error)}"
            self._tried.set()
            with self._lock:
                self._waiting -= job.trials
                self._missed += 0 if done else job.trials
        self._finish(experiment)

    def _finish(self, experiment: Experiment | None) -> None:
        if experiment is not None and not self._give_up.is_set():
            try:
                experiment.finish()
            except Exception as error:
                self.trouble = f"MLflow at {shown(self._uri)}: {said(error)}"


def _publishing(trial: TrialRun) -> Callable[[Experiment], object]:
    return lambda experiment: experiment.publish(trial)


def _catching_up(
    read: Callable[[], tuple[Sequence[Result], Sequence[Curve]]], experiment: Experiment
) -> None:
    for trial in trials_of(*read()):
        experiment.publish(trial)
