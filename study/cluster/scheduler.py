"""Scheduler of packs on Ray Tune: each Tune trial is a worker that trains packs until none are left.

The argument `work` trains a pack: it yields the pack's progress, and stores checkpoints and results. So Tune
checkpoints nothing, its experiment state is discarded, and a dead worker's packs continue elsewhere from the stored
checkpoints. The driver keeps only the names of finished packs.

The worker is in worker.py, the driver's side in callback.py, and the assignment of packs in queue.py. This module is
imported late, since importing Ray takes seconds.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray import tune
from ray.exceptions import RayError
from ray.tune.error import TuneError
from ray.tune.execution import class_cache

from study import environment
from study.cluster.callback import NoSurplus, SchedulerCallback, Stopper
from study.cluster.queue_actor import open_queue
from study.cluster.worker import PackTrainable
from study.cluster.workers import Bundle, More, WorkerGroup
from study.console import Console
from study.errors import ClusterError, last_line
from study.records import Event

# Tune would pass these to workers in a runtime environment, which Ray writes to logs and shows to all users of the
# cluster. Nodes have their own credentials.
_NOT_HANDED_ON = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"}


class _Silent(tune.ProgressReporter):
    """Silent reporter; in a notebook, Tune's own reporter would clear the cell's output at every report."""

    def should_report(self, trials: Any, done: bool = False) -> bool:
        return False

    def report(self, trials: Any, done: bool, *sys_info: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class TuneScheduler:
    """Scheduler on the workers of the connected cluster.

    Args:
        groups: the workers; without free resources, they start later.
        stop: set to end early, with checkpoints.
        silent_after_s: seconds without a report after which a worker is killed and its packs are reassigned.
        more: called in this process for more bundles whenever all are done, until it returns none, while workers wait.
            None if no more can follow.
    """

    groups: Sequence[WorkerGroup]
    stop: threading.Event
    silent_after_s: float = 300.0
    more: More | None = None
    left: Sequence[Bundle] = ()

    def run(
        self, bundles: Sequence[Bundle], shares: Mapping[str, float] | None, on_event: Callable[[Event], None]
    ) -> set[str]:
        """Run bundles until all are done or `stop` is set; see `study.cluster.workers.Scheduler`.

        Args:
            bundles: the bundles to run, in descending order of cost.
            shares: each pack's share of a GPU, by its id; None unless cores and GPUs take the same bundles.
            on_event: called with each event, in this process.

        Returns:
            The workers that have reported, as ``host:process``.

        Raises:
            ClusterError: if Tune itself failed, or no worker can work.
            Exception: the error of `on_event` or `more`, once all workers have stopped.
        """
        class_cache.ENV_VARS_TO_PROPAGATE -= _NOT_HANDED_ON
        callback = SchedulerCallback(bundles, shares, on_event, self.stop, self.silent_after_s, self.more)
        try:
            # A worker may die after it has reported a pack to the queue, but before it has reported it to the driver.
            # So packs that are left once all workers have ended go to a new queue; stored packs end at once there.
            while callback.left and not self.stop.is_set():
                self._round(callback)
                if callback.failure is not None:
                    raise callback.failure
                if callback.left and not callback.reported and not self.stop.is_set():
                    raise ClusterError(f"no worker of the cluster can work: {last_line(callback.last_error)}")
        except (TuneError, RayError) as error:
            raise ClusterError(f"Ray Tune stopped: {error}") from error
        return callback.workers

    def _round(self, callback: SchedulerCallback) -> None:
        """Run the remaining bundles until all workers have ended."""
        bundles = callback.bundles_left()
        # No more workers than bundles, unless more may follow, since each worker starts a process.
        groups = [
            group
            for group in self.groups
            for _ in range(group.count if callback.may_grow else min(group.count, len(bundles)))
        ]
        with (
            open_queue(bundles, callback.shares, callback.may_grow) as queue,
            tempfile.TemporaryDirectory(prefix="study-tune-") as scratch,
        ):
            callback.begin(queue)
            trainable = tune.with_parameters(PackTrainable, groups=groups, queue=queue, versions=environment.versions())
            tuner = tune.Tuner(
                tune.with_resources(
                    trainable, lambda config: tune.PlacementGroupFactory([groups[config["worker"]].resources])
                ),
                param_space={"worker": tune.grid_search(list(range(len(groups))))},
                tune_config=tune.TuneConfig(scheduler=NoSurplus(callback)),
                run_config=tune.RunConfig(
                    name=uuid.uuid4().hex,
                    storage_path=scratch,
                    failure_config=tune.FailureConfig(max_failures=-1),
                    checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                    callbacks=[callback],
                    stop=Stopper(callback),
                    verbose=0,
                    progress_reporter=_Silent() if Console().is_jupyter else None,
                ),
            )
            tuner.fit()
