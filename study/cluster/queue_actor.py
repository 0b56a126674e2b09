"""The queue of packs as a Ray actor on the driver's machine; imported late, since importing Ray takes seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from study.cluster.queue import PackQueue
from study.cluster.workers import Bundle, HandedOut


class QueueActor:
    """Actor that assigns packs while the driver is busy with its store.

    If it dies, Ray restarts it with its initial packs; packs that are stored already are assigned again, and end at
    once. Each call passes the arguments of `PackQueue`, as a list of one Ray object, so that a restarted actor has
    them. The driver adds later packs again when all workers are idle.
    """

    def __init__(self) -> None:
        self._queue: PackQueue | None = None
        self._may_grow = False
        self._added = asyncio.Event()
        self._to_report = bool(ray.get_runtime_context().was_current_actor_reconstructed)

    async def hand_out(
        self, worker: str, kind: str, node: str, done: Sequence[str], wait_s: float, packs: list[Any]
    ) -> HandedOut:
        """Record that packs of a worker are done, and return its next ones.

        Args:
            worker: the requesting worker.
            kind: ``cpu`` or ``cuda``.
            node: id of the worker's node.
            done: ids of the packs that are done.
            wait_s: seconds to wait for packs if there are none but more may follow.
            packs: the arguments of `PackQueue`, as a list of one Ray object, like those of the other methods.

        Returns:
            The packs, True once after a restart of the queue, and True if more packs may follow (`HandedOut`).
        """
        queue = await self._opened(packs)
        for pack_id in done:
            queue.done(worker, pack_id)
        handed = queue.next(worker, kind, node)
        if not handed and self._may_grow and wait_s:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._added.wait(), wait_s)
            handed = queue.next(worker, kind, node)
        to_report, self._to_report = self._to_report, False
        return handed, to_report, self._may_grow

    async def crashed(self, worker: str, pack_id: str, packs: list[Any]) -> bool:
        """Record that a worker's pack crashed, and return True if it is tried again; see `PackQueue.crashed`."""
        return (await self._opened(packs)).crashed(worker, pack_id)

    async def node_of(self, worker: str, packs: list[Any]) -> str | None:
        """Return the id of a worker's node; None if it is unknown."""
        return (await self._opened(packs)).node_of(worker)

    async def take_back(self, worker: str, blame: bool, with_node: bool, packs: list[Any]) -> list[str]:
        """Take back a lost worker's packs; return the ids of those that aren't tried again (`PackQueue.lost`)."""
        return (await self._opened(packs)).lost(worker, blame=blame, with_node=with_node)

    async def add(self, bundles: list[Bundle], shares: Mapping[str, float] | None, packs: list[Any]) -> None:
        """Add bundles and shares of a GPU (`PackQueue.add`), and wake the workers that wait for packs."""
        (await self._opened(packs)).add(bundles, shares)
        self._added.set()
        self._added = asyncio.Event()

    async def _opened(self, packs: list[Any]) -> PackQueue:
        if self._queue is None:
            bundles, shares, may_grow = await packs[0]
            if self._queue is None:  # another call may have been quicker
                self._queue, self._may_grow = PackQueue(bundles, shares), may_grow
        return self._queue


@dataclass(frozen=True)
class QueueHandle:
    """Handle of the queue, for any process of the cluster.

    Args:
        actor: Ray's handle of the `QueueActor`.
        packs: the initial arguments of the queue, as a list of one Ray object; passed with each call.
    """

    actor: Any
    packs: list[Any]

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the actor, and return its result.

        Raises:
            RayError: if the actor doesn't answer, or the method fails.
        """
        return ray.get(getattr(self.actor, method).remote(*arguments, self.packs))

    def hand_out(self, worker: str, kind: str, node: str, done: Sequence[str], wait_s: float) -> HandedOut:
        """Record that packs of a worker are done, and return its next ones, as `QueueActor.hand_out` does.

        Raises:
            RayError: if the actor doesn't answer.
        """
        handed: HandedOut = self.call("hand_out", worker, kind, node, done, wait_s)
        return handed


@contextmanager
def open_queue(bundles: Sequence[Bundle], shares: Mapping[str, float] | None, may_grow: bool) -> Iterator[QueueHandle]:
    """Start a queue on this machine, and yield its handle; end it with the block.

    Args:
        bundles: as for `PackQueue`.
        shares: as for `PackQueue`.
        may_grow: True if workers wait for more packs when the queue is empty.
    """
    # Not soft: from a head without cores, Ray would move the queue to a worker node, whose loss would end it.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    remote: Any = ray.remote(QueueActor)
    options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "scheduling_strategy": here}
    queue = QueueHandle(remote.options(**options).remote(), [ray.put((list(bundles), shares, may_grow))])
    try:
        yield queue
    finally:
        with suppress(RayError):
            ray.kill(queue.actor)
