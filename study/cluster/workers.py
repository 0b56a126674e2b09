"""Groups of workers of one kind, and what they are handed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from study.records import Event, Pack
from study.worker.concurrent import Work

Bundle = tuple[Pack, ...]
"""Packs that a worker trains in parallel."""

More = Callable[[], tuple[Sequence[Bundle], Mapping[str, float] | None]]
"""Returns more bundles, with the shares of a GPU that their packs fill; no bundles if there is nothing left to do."""

HandedOut = tuple[Bundle, bool, bool]
"""What a worker gets: packs, whether the queue was started again, and whether more may come when there are none."""


@dataclass(frozen=True)
class WorkerGroup:
    """Workers of one kind.

    Args:
        kind: ``cpu`` or ``cuda``.
        count: number of workers.
        work: trains a pack; sent to the workers.
        gpu_share: GPUs, or the share of one, that each needs.
        cpus: cores that each needs.
    """

    kind: str
    count: int
    work: Work
    gpu_share: float = 0.0
    cpus: int = 1

    @property
    def resources(self) -> dict[str, float]:
        """What Ray reserves for one worker."""
        return {"CPU": self.cpus, "GPU": self.gpu_share} if self.gpu_share else {"CPU": self.cpus}


class Scheduler(Protocol):
    """Runs packs on workers: on a cluster, or one after another in this process or in one beside it."""

    @property
    def left(self) -> Sequence[Bundle]:
        """Bundles that `run` has left for another scheduler."""
        ...

    def run(
        self, bundles: Sequence[Bundle], shares: Mapping[str, float] | None, on_event: Callable[[Event], None]
    ) -> set[str]:
        """Run bundles, and those that follow them, to their end.

        Args:
            bundles: the bundles to run, the costliest first.
            shares: as for `study.cluster.queue.PackQueue`, if workers of both kinds take the same bundles.
            on_event: called with each event, in this process.

        Returns:
            The workers that were used, as ``host:process``.

        Raises:
            ClusterError: if no worker can work.
            Exception: the error that `on_event` or `more` raised, once all workers have stopped.
        """
        ...


BEGIN_ANEW = "a crash may have left the device's context unusable: begin anew"
"""The error with which a worker ends on purpose, for Tune to start it again."""
