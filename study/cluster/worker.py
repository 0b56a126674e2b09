"""The worker: a Tune trial that requests packs from the queue, and trains them until none are left."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray import tune

from study import environment
from study.cluster.queue import GPU
from study.cluster.queue_actor import QueueHandle
from study.cluster.workers import BEGIN_ANEW, WorkerGroup
from study.errors import ClusterError
from study.records import Event, Notice, PackCrashed, PackDone, PackFailed, Preparing
from study.worker.concurrent import concurrently

# A worker bundles its events, and reports at most this often: the driver needs some milliseconds for each report, while
# other workers wait. The driver can handle the reports of this many workers per second.
_EVERY_S = 1.0
_WORKERS_A_SECOND = 50
_QUEUE_AGAIN = "the process that hands out packs died and was started again; what was being trained goes on"


class PackTrainable(tune.Trainable):
    """A worker, run by Tune as a trial."""

    def setup(  # type: ignore[override]  # Tune passes `with_parameters` by name
        self, config: dict[str, Any], groups: Sequence[WorkerGroup], queue: QueueHandle, versions: Mapping[str, str]
    ) -> None:
        """Set up the worker in its process; Tune calls this.

        Args:
            config: ``worker`` is this worker's number.
            groups: the group of each worker, by number.
            queue: hands out packs.
            versions: the driver's versions.

        Raises:
            ClusterError: if this node's versions differ from the driver's.
        """
        self._number, self._queue = str(config["worker"]), queue
        group = groups[config["worker"]]
        self._kind, self._work = group.kind, group.work
        self._every_s = max(_EVERY_S, len(groups) / _WORKERS_A_SECOND)
        self._steps: Any = None
        self._crashed = False
        self._done: list[str] = []  # packs to report with the next request; one call each would double the queue's work
        self._where = {"worker": f"{self._local_ip}:{os.getpid()}", "node": ray.get_runtime_context().get_node_id()}
        difference = environment.difference(versions, environment.versions())
        if difference is not None:
            raise ClusterError(f"worker {self._where['worker']} has other versions than the driver: {difference}")

    def step(self) -> dict[str, Any]:
        """Train for about a second, and return a report for `SchedulerCallback.on_trial_result`.

        With more than 50 workers it takes longer, in proportion to their number.

        Returns:
            The ``events``; ``idle``, True if there are no packs now; ``done``, True if none may follow either; and the
            worker's ``worker`` and ``node``.

        Raises:
            RuntimeError: after a crash on a GPU, so that Tune restarts this worker in a new process.
            RayError: if the queue doesn't answer.
        """
        if self._crashed and self._kind == GPU:
            raise RuntimeError(BEGIN_ANEW)
        events: list[Event] = []
        until = time.monotonic() + self._every_s
        while time.monotonic() < until and not self._crashed:
            if self._steps is None:
                wait_s = 0.0 if events else self._every_s  # report events before waiting
                done, self._done = self._done, []
                packs, was_restarted, may_grow = self._queue.hand_out(
                    self._number, self._kind, self._where["node"], done, wait_s
                )
                if was_restarted:
                    events.append(Notice(_QUEUE_AGAIN))
                if not packs:
                    return {"events": events, "done": not may_grow, "idle": True, **self._where}
                self._steps = concurrently(self._work, packs)
            news = next(self._steps, None)
            if news is None:
                self._steps = None
                continue
            events += [self._settled(event) for event in news]
            if any(isinstance(event, Preparing) for event in news):
                break  # report before compiling, when the worker is silent
        self._crashed = self._crashed and self._kind == GPU
        return {"events": events, "done": False, "idle": False, **self._where}

    def _settled(self, event: Event) -> Event:
        """Report a crash to the queue, note a finished pack for the next request, and return the driver's event."""
        if isinstance(event, PackDone):
            self._done.append(event.pack_id)
        if isinstance(event, PackCrashed):
            self._crashed = True
            is_retried = self._queue.call("crashed", self._number, event.pack_id)
            return event if is_retried else PackFailed(event.pack_id, event.error)
        return event

    def cleanup(self) -> None:
        """End early, with a checkpoint of each pack; Tune calls this."""
        if self._steps is not None:
            self._steps.close()
