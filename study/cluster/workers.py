"""Groups of equal workers, and the interface of schedulers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from study.records import Event, Pack
from study.worker.concurrent import Work

Bundle = tuple[Pack, ...]
"""Packs that a worker trains in parallel."""

More = Callable[[], tuple[Sequence[Bundle], Mapping[str, float] | None]]
"""Function that returns more bundles and their packs' shares of a GPU; no bundles if the study is complete."""

HandedOut = tuple[Bundle, bool, bool]
"""Answer to a worker: its packs, True if the queue was restarted, and True if more packs may follow."""


@dataclass(frozen=True)
class WorkerGroup:
    """Workers of one kind.

    Args:
        kind: ``cpu`` or ``cuda``.
        count: number of workers.
        work: trains a pack; sent to the workers.
        gpu_share: number of GPUs, or share of a GPU, per worker.
        cpus: number of cores per worker.
    """

    kind: str
    count: int
    work: Work
    gpu_share: float = 0.0
    cpus: int = 1

    @property
    def resources(self) -> dict[str, float]:
        """The resources that Ray reserves for one worker: ``CPU``, and ``GPU`` if it uses one."""
        return {"CPU": self.cpus, "GPU": self.gpu_share} if self.gpu_share else {"CPU": self.cpus}


class Scheduler(Protocol):
    """Interface of schedulers, for packs on a cluster, in this process, or in one beside it."""

    @property
    def left(self) -> Sequence[Bundle]:
        """The bundles that `run` left for another scheduler; empty if none."""
        ...

    def run(
        self, bundles: Sequence[Bundle], shares: Mapping[str, float] | None, on_event: Callable[[Event], None]
    ) -> set[str]:
        """Run bundles, and those that follow, until all are done, a stop is requested, or the others are in `left`.

        Args:
            bundles: the bundles to run, in descending order of cost.
            shares: as for `study.cluster.queue.PackQueue`, if workers of both kinds take the same bundles.
            on_event: called with each event, in this process.

        Returns:
            The workers that were used, as ``host:process``.

        Raises:
            ClusterError: if no worker can work.
            Exception: the error of `on_event` or `more`, once all workers have stopped.
        """
        ...


BEGIN_ANEW = "a crash may have left the device's context unusable: begin anew"
"""The error of a worker that ends itself, so that Tune restarts it."""
