"""The driver's side of the workers: converts Tune's calls to events, and kills silent workers."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler

from study.cluster.connect import node_lives
from study.cluster.queue import NODES
from study.cluster.queue_actor import QueueHandle
from study.cluster.workers import BEGIN_ANEW, Bundle, More
from study.errors import last_line
from study.plan.open_packs import OpenPacks
from study.plan.packs import MOST_CONCURRENT
from study.records import Event, Notice, PackCrashed, PackDone, PackFailed, PackSplit, Preparing, Tick, WorkersWait

# After this many deaths before its first report, a worker is considered unable to work.
_MOST_EARLY_DEATHS = 3
# A worker may be silent this long while it starts or prepares its engine.
_PREPARED_S = 300.0
# A worker that hasn't started after this long is waiting for resources of the cluster.
_START_S = 30.0
# Tune calls more often than this, unless the driver was busy or the machine asleep.
_USUAL_PAUSE_S = 1.0
_OUT_OF_MEMORY = ("running low on memory", "OutOfMemory")
_RAY_DEATH = "its worker process has died"
_DIED = (
    "a worker's process died without a word: it was killed, the machine ran out of memory, or the code of a trial "
    "ended it, by os._exit or a crash of native code; a training function with isolation: process fails alone then"
)
_LOST_TOO_OFTEN = (
    f"{NODES} machines were lost while they trained this pack, the last one while it trained nothing else: perhaps the "
    "pack needs more memory than they have. Its trials are tried again when the study is run again"
)


class _NeverSaved:
    """Base of objects that are pickled as an empty object: Tune saves its state, but nothing reads it."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return object, ()


class SchedulerCallback(_NeverSaved, tune.Callback):
    """Receiver of the workers' reports in one run of a study, over several rounds of Tune.

    Args:
        bundles: the bundles to run.
        shares: their packs' shares of a GPU, as for `study.cluster.queue.PackQueue`.
        on_event: called with each event; if it raises, the run ends and the error is in `failure`.
        stop: set to end early.
        silent_after_s: seconds without a report after which a worker is killed.
        more: called for more bundles when all are done; None if no more can follow.

    Attributes:
        workers: the workers that were used.
        left: ids of packs that are neither done nor failed.
        may_grow: True if more bundles may follow when all are done.
        shares: shares of the current packs.
        reported: True if a worker has reported anything in this round.
        last_error: the last error of a worker.
        failure: the error of `on_event` or `more`; None without one.
    """

    def __init__(
        self,
        bundles: Sequence[Bundle],
        shares: Mapping[str, float] | None,
        on_event: Callable[[Event], None],
        stop: threading.Event,
        silent_after_s: float,
        more: More | None,
    ) -> None:
        self._on_event, self._stop, self._silent_after_s, self._more = on_event, stop, silent_after_s, more
        self.workers: set[str] = set()
        self.left = {pack.id for bundle in bundles for pack in bundle}
        self._open = OpenPacks(pack for bundle in bundles for pack in bundle)
        self.may_grow = more is not None
        self.shares = shares
        self._bundles = list(bundles)
        self.reported = False
        self.last_error = ""
        self.failure: Exception | None = None
        self._last_wait = WorkersWait(0, 0)
        self._forget()

    def begin(self, queue: QueueHandle) -> None:
        """Begin a round of Tune, whose workers get their packs from the given queue."""
        self._queue, self.reported = queue, False
        self._forget()

    def _forget(self) -> None:
        """Forget the workers of the previous round."""
        self._idle: set[str] = set()
        self._trials: dict[str, Any] = {}
        self._last_report_at: dict[str, float] = {}
        self._where: dict[str, dict[str, Any]] = {}
        self._early_deaths: Counter[str] = Counter()
        self._silent: set[str] = set()
        self._pending_since: dict[str, float] = {}
        self._checked_at = time.monotonic()

    @property
    def over(self) -> bool:
        """True if the run must end: it was stopped, it has failed, no worker can start, or all packs have ended.

        Packs end when they are done or have failed. While more bundles may follow, their end doesn't end the run.
        """
        gave_up = not self.reported and all(self._early_deaths[worker] >= _MOST_EARLY_DEATHS for worker in self._trials)
        is_complete = not self.left and not self.may_grow
        return self._stop.is_set() or is_complete or self.failure is not None or (bool(self._trials) and gave_up)

    def bundles_left(self) -> list[Bundle]:
        """Return the bundles of the packs that are neither done nor failed, without other packs; empty if none are."""
        left = (tuple(pack for pack in bundle if pack.id in self.left) for bundle in self._bundles)
        return [bundle for bundle in left if bundle]

    def on_step_end(self, iteration: int, trials: Any, **info: Any) -> None:
        """Report a `Tick` and waiting workers, kill silent workers, and queue bundles if more may follow.

        These are more bundles if all are done, or those that are left if all workers are idle, since a restarted queue
        lacks them. Tune calls this several times a second.
        """
        self._notify(Tick())
        if self.may_grow and self.failure is None and not self._stop.is_set():
            self._add_bundles()
        self._report_waiting(trials)
        self._end_silent_workers()

    def surplus(self, trials: Sequence[Any]) -> Sequence[Any]:
        """Return the pending workers without packs to train, since Ray would request machines for them.

        Args:
            trials: Tune's trials.

        Returns:
            The last of the pending ones; empty if more packs may follow, none are left, or all workers have packs.
        """
        if self.may_grow or not self.left:
            return ()
        live = [trial for trial in trials if trial.status in (Trial.PENDING, Trial.RUNNING)]
        pending = [trial for trial in live if trial.status == Trial.PENDING]
        if not pending or len(self.left) >= len(live) * MOST_CONCURRENT:  # enough packs for all workers
            return ()
        surplus = len(live) - len(self.bundles_left())
        return pending[-surplus:] if surplus > 0 else ()

    def _report_waiting(self, trials: Sequence[Any]) -> None:
        now, pending = time.monotonic(), [_worker_of(trial) for trial in trials if trial.status == Trial.PENDING]
        self._pending_since = {worker: self._pending_since.get(worker, now) for worker in pending}
        waiting = sum(now - since > _START_S for since in self._pending_since.values())
        wait = WorkersWait(waiting, sum(trial.status == Trial.RUNNING for trial in trials) + len(pending))
        if wait != self._last_wait and (wait.count or self._last_wait.count):
            self._last_wait = wait
            self._notify(wait)

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Register a worker, and permit it to be silent while it starts."""
        worker = _worker_of(trial)
        self._trials[worker] = trial
        self._last_report_at[worker] = time.monotonic() + max(0.0, _PREPARED_S - self._silent_after_s)

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
        """Record a sign of life of a worker, and pass on the events of its report, except outdated ones."""
        worker = _worker_of(trial)
        self.reported = True
        self.workers.add(result["worker"])
        self._where[worker] = {name: result[name] for name in ("worker", "node")}
        prepares = any(isinstance(event, Preparing) and event.doing != "ready" for event in result["events"])
        grace_s = max(0.0, _PREPARED_S - self._silent_after_s) if prepares else 0.0
        self._last_report_at[worker] = time.monotonic() + grace_s
        for event in result["events"]:
            self._pass_on(event)
        (self._idle.add if result["idle"] else self._idle.discard)(worker)

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Expect no more reports from a worker that has ended."""
        self._last_report_at.pop(_worker_of(trial), None)

    def on_trial_recover(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Take back the packs of a worker that Tune restarts."""
        self._take_back(_worker_of(trial), _error_of(trial))

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Take back the packs of a worker that has died."""
        self._take_back(_worker_of(trial), _error_of(trial))

    def _end_silent_workers(self) -> None:
        """Kill the workers that haven't reported for `silent_after_s` seconds."""
        now = time.monotonic()
        # Time in which the driver waited for its store, or the machine slept, doesn't count as silence.
        blocked_s = max(0.0, now - self._checked_at - _USUAL_PAUSE_S)
        self._checked_at = now
        for worker in self._last_report_at:
            self._last_report_at[worker] += blocked_s
        for worker in [w for w, at in self._last_report_at.items() if now - at > self._silent_after_s]:
            silent_s = now - self._last_report_at.pop(worker)
            self._silent.add(worker)
            self._notice(self._where.get(worker), f"hasn't been heard of for {silent_s:.0f} s, and is ended")
            actor = self._trials[worker].temporary_state.ray_actor
            if actor is not None:  # None if it has just died
                ray.kill(actor)

    def _add_bundles(self) -> None:
        """Request more bundles once all are done, and queue bundles again that a restarted queue has lost."""
        if not self.left and self._more is not None:
            try:
                bundles, self.shares = self._more()
            except Exception as error:
                self.failure = error  # raised once Tune has ended
                return
            self._bundles = list(bundles)
            self.left = {pack.id for bundle in self._bundles for pack in bundle}
            self._open.add(pack for bundle in self._bundles for pack in bundle)
            self.may_grow = bool(self._bundles)
        elif not (self._last_report_at and self._idle >= self._last_report_at.keys()):
            return
        if self.left:
            self._idle.clear()
            self._queue.call("add", self.bundles_left(), self.shares)

    def _pass_on(self, event: Event) -> None:
        """Pass an event on, unless it is outdated, since its pack has ended or was split already."""
        if isinstance(event, PackSplit) and not self._open.split(event):
            return
        if isinstance(event, PackCrashed | PackDone | PackFailed) and event.pack_id not in self._open:
            return
        if isinstance(event, PackDone | PackFailed):
            self._open.end(event.pack_id)
            self.left.discard(event.pack_id)
        self._notify(event)

    def _notify(self, event: Event) -> None:
        if self.failure is None:
            try:
                self._on_event(event)
            except Exception as error:
                self.failure = error  # raised once Tune has ended, since Tune would turn it into text

    def _take_back(self, worker: str, error: str) -> None:
        """Take back the packs of a worker that died, notify the user, and fail packs that aren't tried again."""
        has_no_memory = any(words in error for words in _OUT_OF_MEMORY)
        if _RAY_DEATH in error and not has_no_memory:  # Ray's text describes a lost connection
            error = _DIED
        self.last_error = error
        where = self._where.pop(worker, None)
        self._last_report_at.pop(worker, None)
        self._idle.discard(worker)
        was_silent, on_purpose = worker in self._silent, BEGIN_ANEW in error
        self._silent.discard(worker)
        # Before a worker's first report, only the queue knows its node.
        node = where["node"] if where else self._queue.call("node_of", worker)
        node_lost = node is not None and not node_lives(node)
        self._trials.setdefault(worker, None)
        self._early_deaths[worker] += where is None and not node_lost
        if node_lost:
            self._notice(where, "was lost with its machine")
        elif where is None and not was_silent and self._early_deaths.total() <= _MOST_EARLY_DEATHS:
            self._notify(Notice(f"a worker ended before its first report: {last_line(error)}"))
        elif where is not None and not was_silent and not on_purpose:
            self._notice(where, "died: its machine ran out of memory" if has_no_memory else "died")
        blame = not node_lost and not on_purpose
        for pack_id in self._queue.call("take_back", worker, blame, node_lost):
            self._pass_on(PackFailed(pack_id, _LOST_TOO_OFTEN if node_lost else error))

    def _notice(self, where: dict[str, Any] | None, news: str) -> None:
        worker = "a worker that was starting" if where is None else f"worker {where['worker']}"
        self._notify(Notice(f"{worker} {news}; its packs go on from their checkpoints"))


class NoSurplus(_NeverSaved, FIFOScheduler):
    """Tune's scheduler: starts workers in order, and drops pending ones that would have no packs."""

    def __init__(self, callback: SchedulerCallback) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._callback = callback

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        """Drop surplus workers, and return the next worker to start; None without one."""
        for trial in self._callback.surplus(tune_controller.get_trials()):
            tune_controller.stop_trial(trial)
        return super().choose_trial_to_run(tune_controller)


class Stopper(_NeverSaved, tune.Stopper):
    """Tune's stopper: ends all workers once the callback's run is over."""

    def __init__(self, callback: SchedulerCallback) -> None:
        self._callback = callback

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return False, since workers aren't stopped one by one."""
        return False

    def stop_all(self) -> bool:
        """Return True if the run is over."""
        return self._callback.over


def _worker_of(trial: Any) -> str:
    return str(trial.config["worker"])


def _error_of(trial: Any) -> str:
    written = Path(trial.error_file or os.devnull)
    return written.read_text(errors="replace").strip() or "it died without a word"
