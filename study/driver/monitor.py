"""Supervision of a study's training: progress, results, publishing, and a gentle stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import table_results
from study.console import Console
from study.driver.early_stop import EarlyStop
from study.driver.heartbeat import beating, in_job, stored_heartbeat
from study.driver.progress import Board, ClockJumps, live_board, preparation_text
from study.driver.repository import repository_of
from study.environment import provenance
from study.errors import BusyError, StoreAwayError, StoreError, StudyGoneError, last_line
from study.interface.stop_signals import set_handlers
from study.plan.open_packs import OpenPacks
from study.plan.plan import Plan
from study.records import (
    Cell,
    Event,
    Notice,
    Outcome,
    Pack,
    PackCrashed,
    PackDone,
    PackFailed,
    PackSplit,
    Preparing,
    Progress,
    Result,
    Trial,
    WorkersWait,
)
from study.store import StudyStore
from study.store.retry import Later
from study.store.validated import FAILED
from study.tracking import Publisher
from study.words import duration, metric_title

_LOOK_AGAIN_S = 0.5


class Monitor:
    """Handler of a run's events: it shows, stores and publishes results.

    While the store is away, workers go on. The driver's own work on the store waits until it is back, or until patience
    is over.

    Args:
        folder: the study's part of the store.
        publisher: publishes results; None to publish nothing.
        console: where progress is shown.
        stop: set to end the run; the monitor sets it when trials fail for the same reason.
        patience_s: seconds that the store may be away.
        keep_going: continue the run whatever fails.

    Attributes:
        board: the running counts.
        gave_up: reason for which the monitor has ended the run; None if it hasn't.
    """

    def __init__(
        self,
        folder: StudyStore,
        publisher: Publisher | None,
        console: Console,
        stop: threading.Event,
        patience_s: float,
        *,
        keep_going: bool = False,
    ) -> None:
        self._folder, self._publisher, self._console, self._stop = folder, publisher, console, stop
        self.board = Board()
        self.gave_up: str | None = None
        self._early_stop = None if keep_going else EarlyStop()
        self._open = OpenPacks(())
        self._printed: set[str] = set()
        self._named: Sequence[Cell] | None = None
        self._repository: Mapping[str, Any] = {}
        self._notify = partial(console.print, style="yellow")
        self._clock, self._later = ClockJumps(), Later(self._notify, patience_s)
        self._show: Callable[[], None] = lambda: None

    def begin(self, plan: Plan, packs: Sequence[Pack], pending: Sequence[Trial]) -> None:
        """Expect more packs, once the earlier ones are done.

        Args:
            plan: the study's plan so far.
            packs: the packs to run.
            pending: trials of the plan without a result.

        Raises:
            InputError: if a newer package wrote one of the study's files.
            StoreError: if the stored outcomes can't be read.
        """
        self._open.add(packs)
        self._repository = self._repository or repository_of(plan.spec)
        already = _done_before(self._folder, plan, pending)
        if plan.cells is not self._named:  # more seeds don't change the cells
            self._named = plan.cells
            for metric, declared in [*plan.metrics.items()][:1]:
                self.board.name(lambda: plan.names, metric, metric_title(metric, declared))
        self.board.begin(packs, already, has_success=plan.spec.has_success and not plan.judges_at_the_end)
        if self._early_stop is not None:
            self._early_stop.begin(plan, pending)
        self._show()

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Show progress during the block, and keep a heartbeat in the store; then `wait` for the store.

        Raises:
            StudyError: as `wait` does.
        """
        study = self._folder.name
        show = beating(self.board, study, self._console) if in_job() else live_board(self.board, self._console)
        with stored_heartbeat(self.board, self._folder) as keep, show as print_board:

            def show_and_keep() -> None:
                print_board()
                if not self._later.waiting:  # the store may be away
                    keep()

            self._show = show_and_keep
            self._show()
            yield
            self.wait()

    def wait(self) -> None:
        """Wait until everything is stored and counted, or until the run is to stop.

        The next run finds the trials that are left.

        Raises:
            StudyError: as `__call__` does.
        """
        while self._later.waiting and not self._stop.wait(_LOOK_AGAIN_S):
            self._later.go_on()
            self._show()

    def __call__(self, event: Event) -> None:
        """Show an event, and store, count and publish the results that it announces.

        Work on the store is postponed while the store is away.

        Raises:
            StoreAwayError: if the store is away for longer than `patience_s`.
            StoreError: if results can't be read or written.
            BusyError: if another driver has taken the study over.
            InputError: if a newer package wrote the results.
        """
        if (jump_s := self._clock.jump_s()) is not None:
            self._notify(
                f"this machine's clock was set {'ahead' if jump_s > 0 else 'back'} by {duration(abs(jump_s))}: "
                "no result depends on it, but times that are shown do"
            )
        match event:
            case Progress():
                self.board.progress(event)
            case Notice(text, is_once):
                if not is_once or text not in self._printed:
                    self._notify(text)
                self._printed |= {text} if is_once else set()
                self._later.do(self._check)
            case Preparing():
                self.board.preparing(event)
                self._print_once(event)
            case WorkersWait():
                self.board.wait(event)
            case PackCrashed(pack_id, error):
                self._notify(f"pack {pack_id} crashed and will be retried: {last_line(error)}")
                self._later.do(self._check)
            case PackSplit(pack_id, parts):
                if self._open.split(event):
                    self.board.split(pack_id, parts)
            case PackDone(pack_id):
                self._later.do(partial(self._count, pack_id))
            case PackFailed(pack_id, error):
                self._later.do(partial(self._count_failed, pack_id, error))
        self._later.go_on()
        self._show()

    def _print_once(self, step: Preparing) -> None:
        """Print each step on a machine once, however many packs wait for it; waiting itself isn't printed."""
        if step.doing != "waiting" and (sentence := preparation_text(step)) not in self._printed:
            self._printed.add(sentence)
            self._console.print(sentence)

    def _check(self) -> None:
        """Raise StudyGoneError if the study is gone from the store, so that the driver gives up when workers do."""
        try:
            self._folder.check()
        except StudyGoneError:
            raise
        except (StoreAwayError, BusyError):  # workers train on, and need the store only at their end
            return

    def _count(self, pack_id: str) -> None:
        """Count and publish the results of a stored pack, for each of its open parts; may end the run."""
        ending = self._open.ending_with(pack_id)
        if ending:
            table = self._read(pack_id)
            results = {result.trial.id: result for result in table_results(table)}
            ids = {trial.id for part in ending for trial in part.trials}
            if self._publisher is not None:  # trials that were published with a part are skipped
                self._publisher.queue_pack(pack_id, len(ids), without=results.keys() - ids)
            for part in ending:
                ended = [results[t.id] for t in part.trials if t.id in results]
                self.board.done(part.id, ended)
                self._stop_early(ended)
        self._open.end(pack_id)
        self._publish_counts()

    def _count_failed(self, pack_id: str, error: str) -> None:
        """Store, count and publish a failed result for each trial of a pack that crashed for good; may end the run."""
        for part in self._open.ending_with(pack_id):
            failed, name = _failed_results(part, error), f"{part.id}{FAILED}"
            self._folder.write_pack(name, failed, [], [], provenance("cpu", self._repository))
            if self._publisher is not None:
                self._publisher.queue_pack(name, len(failed))
            self.board.failed(part.id, failed)
            self._open.end(part.id)
            self._console.print(f"pack {part.id} failed: {last_line(error)}", style="red")
            self._stop_early(failed, has_crashed=True)
        self._open.end(pack_id)
        self._publish_counts()

    def _stop_early(self, results: Sequence[Result], *, has_crashed: bool = False) -> None:
        """End the run if its trials fail for the same reason and others are left; no-op with `keep_going`."""
        if self._early_stop is None:
            return
        why = self._early_stop.add(results, has_crashed=has_crashed)
        if why is not None and self.board.counts["pending"] and not self._stop.is_set():
            self.gave_up = why
            self._console.print(f"stopping: {why}", style="red")
            self._stop.set()

    def _read(self, pack_id: str) -> pa.Table:
        try:
            return self._folder.read_pack(pack_id, with_curves=False)[0]
        except StoreError:
            self._folder.check()  # if the study itself is gone, wait for its return
            raise

    def _publish_counts(self) -> None:
        if self._publisher is not None:
            self._publisher.queue_counts(self.board.counts)


def _done_before(folder: StudyStore, plan: Plan, pending: Sequence[Trial]) -> dict[Outcome, int]:
    missing = {trial.id for trial in pending}
    return _count_outcomes(folder, {trial.id for trial in plan.trials} - missing)


def _count_outcomes(folder: StudyStore, trial_ids: Collection[str]) -> dict[Outcome, int]:
    """Count the given trials' stored outcomes other than failed."""
    rows = folder.outcomes()
    rows = rows.filter(pc.is_in(rows["trial_id"], pa.array(list(trial_ids), pa.string())))
    return {Outcome(entry["values"]): entry["counts"] for entry in pc.value_counts(rows["outcome"]).to_pylist()}


def _failed_results(pack: Pack, error: str) -> list[Result]:
    return [Result(trial=trial, outcome=Outcome.FAILED, error=error) for trial in pack.trials]


@contextmanager
def stopping(console: Console, stop: threading.Event) -> Iterator[None]:
    """Turn the first SIGINT and the first SIGTERM into a gentle stop; the second of a kind has its usual effect.

    Outside the main thread, which alone may handle signals, this is a no-op.

    Args:
        console: where the stop is announced.
        stop: set by these signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard: set[int] = set()

    def on_signal(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if number not in heard:
            heard.add(number)
            stop.set()
            console.print("\nstopping: keeping checkpoints; repeat to stop at once", style="yellow")
            return
        set_handlers(before)  # now, since an exception of the handler may skip the code below
        if callable(handler):
            handler(number, frame)
        elif handler is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        set_handlers(before)
