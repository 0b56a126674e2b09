"""The queue of packs: their assignment to workers, and reassignment after a crash.

A worker trains packs sequentially on a core, a GPU or a share of a GPU, and requests more when it has none left. So
fast and slow workers end at about the same time, and workers may start, end or fall silent at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from study.plan.packs import MOST_CONCURRENT
from study.records import Pack

CPU, GPU = "cpu", "cuda"
RETRIES = 2
"""Number of retries of a pack that crashed or whose worker died."""
NODES = 3
"""Number of different nodes lost while training a pack after which the pack fails."""


class PackQueue:
    """Assignment of packs to workers.

    If a node is lost, the pack that caused it isn't known, so all its packs are marked with the node. A pack with
    `NODES` - 1 marks is a suspect: it is tried last, and alone on its node, so that no pack fails because of another
    one. A restarted node counts as another node.

    Args:
        bundles: bundles in descending order of cost; one worker trains the packs of a bundle in parallel.
        shares: each pack's share of a GPU, by its id, if cores and GPUs work on the same bundles. A worker with a GPU
            then takes bundles from the front until it is full. A worker with a core takes a bundle from the back, so
            that the last bundles on slow cores are cheap.

    Example:
        >>> from study.spec import load_spec
        >>> from study.plan.packs import make_packs
        >>> from study.plan.plan import make_plan
        >>> first, *rest = make_packs(make_plan(load_spec("simple")).trials, slots=4)
        >>> queue = PackQueue([(first,)])
        >>> queue.next("worker 1", CPU, "node 1") == (first,), queue.next("worker 2", CPU, "node 2")
        (True, ())
        >>> queue.lost("worker 1", blame=True), queue.next("worker 2", CPU, "node 2") == (first,)
        ([], True)
    """

    def __init__(self, bundles: Sequence[tuple[Pack, ...]], shares: Mapping[str, float] | None = None) -> None:
        self._queue: deque[tuple[Pack, ...]] = deque(bundles)
        self._suspects: deque[Pack] = deque()
        self._shares = shares
        self._held: dict[str, dict[str, Pack]] = {}
        self._kinds: dict[str, str] = {}
        self._nodes: dict[str, str] = {}  # the node of each worker
        self._workers: dict[str, set[str]] = {}  # the workers of each node
        self._alone: set[str] = set()  # workers that train a suspect
        self._strikes: dict[str, int] = {}
        self._lost_nodes: dict[str, set[str]] = {}  # by pack
        self._ended: set[str] = set()  # done or finally failed

    def add(self, bundles: Sequence[tuple[Pack, ...]], shares: Mapping[str, float] | None = None) -> None:
        """Add bundles, as in the constructor, except packs that are queued or assigned already.

        A pack that had ended is run again. Shares are added only if the queue has shares.
        """
        waiting = {pack.id for bundle in self._queue for pack in bundle} | {pack.id for pack in self._suspects}
        present = waiting.union(*self._held.values())
        new = (tuple(pack for pack in bundle if pack.id not in present) for bundle in bundles)
        self._queue.extend(bundle for bundle in new if bundle)
        self._ended -= {pack.id for bundle in bundles for pack in bundle}
        if self._shares is not None and shares is not None:
            self._shares = {**self._shares, **shares}

    def next(self, worker: str, kind: str, node: str) -> tuple[Pack, ...]:
        """Take back the packs that a worker hasn't reported, and return its next ones; none if none are left for it.

        Once the queue is empty, a GPU gets packs that slow cores are training, if the queue has shares. A worker gets
        none while a suspect trains on its node, and no suspect while other workers are busy there. It may end then,
        since the busy workers will request packs later.

        Args:
            worker: the requesting worker.
            kind: ``cpu`` or ``cuda``.
            node: id of the worker's node.
        """
        # Take back packs that it had but never reported. No blame, since a failure can't be reported from here.
        self.lost(worker, blame=False)
        self._kinds[worker], self._nodes[worker] = kind, node
        neighbours = self._workers.setdefault(node, set())
        neighbours.add(worker)
        busy = [other for other in neighbours if self._held.get(other)]
        packs: tuple[Pack, ...] = ()
        if self._alone.isdisjoint(busy):
            packs = self._queued(kind) or (() if busy else self._suspect(worker)) or self._slow_packs(kind)
        self._held[worker] = {pack.id: pack for pack in packs}
        return packs

    def node_of(self, worker: str) -> str | None:
        """Return the id of a worker's node; None if the worker is unknown or was lost since its last request."""
        return self._nodes.get(worker)

    def done(self, worker: str, pack_id: str) -> None:
        """Record that a pack is stored; another worker that trains it may continue or stop."""
        self._held.get(worker, {}).pop(pack_id, None)
        self._ended.add(pack_id)

    def crashed(self, worker: str, pack_id: str) -> bool:
        """Record that a pack crashed, and return True unless it has failed too often to be tried again.

        The result is also True for a pack that has ended with another worker, though it isn't tried again. If the
        worker doesn't hold the pack here, the pack was taken back meanwhile, or was assigned by a queue that has died
        since. Then another worker has it, or it is queued.
        """
        pack = self._held.get(worker, {}).pop(pack_id, None)
        return pack is None or self._retry(pack, blame=True)

    def lost(self, worker: str, *, blame: bool, with_node: bool = False) -> list[str]:
        """Take back the packs of a worker that died or fell silent.

        Args:
            worker: the worker; an unknown one has no packs.
            blame: True if its packs may be the cause.
            with_node: True if its node was lost.

        Returns:
            The ids of the packs that have failed too often to be tried again.
        """
        packs, node = self._held.pop(worker, {}).values(), self._nodes.pop(worker, None)
        if node is not None:
            self._workers[node].discard(worker)
        was_alone = worker in self._alone
        self._alone.discard(worker)
        if with_node and node is not None:
            for pack in packs:
                # A suspect that wasn't alone may not be the cause.
                if was_alone or not self._is_suspect(pack.id):
                    self._lost_nodes.setdefault(pack.id, set()).add(node)
        return [pack.id for pack in packs if not self._retry(pack, blame=blame)]

    def _retry(self, pack: Pack, *, blame: bool) -> bool:
        """Queue a pack again unless it is done or another worker has it; return False if it has failed too often."""
        if pack.id in self._ended:
            return True
        self._strikes[pack.id] = self._strikes.get(pack.id, 0) + blame
        if self._strikes[pack.id] > RETRIES or len(self._lost_nodes.get(pack.id, ())) >= NODES:
            self._ended.add(pack.id)
            return False
        if any(pack.id in held for held in self._held.values()):
            return True
        if self._is_suspect(pack.id):
            self._suspects.append(pack)
        else:
            self._queue.appendleft((pack,))
        return True

    def _is_suspect(self, pack_id: str) -> bool:
        return len(self._lost_nodes.get(pack_id, ())) >= NODES - 1

    def _queued(self, kind: str) -> tuple[Pack, ...]:
        if not self._queue:
            return ()
        if self._shares is None:
            return self._queue.popleft()
        return self._fill(self._shares) if kind == GPU else self._queue.pop()

    def _suspect(self, worker: str) -> tuple[Pack, ...]:
        if not self._suspects:
            return ()
        self._alone.add(worker)
        return (self._suspects.popleft(),)

    def _fill(self, shares: Mapping[str, float]) -> tuple[Pack, ...]:
        """Take bundles from the front of the queue until they fill a GPU or its limit of packs; at least one."""
        packs: list[Pack] = []
        room = 1.0 + 1e-9
        while self._queue:
            needed = sum(shares[pack.id] for pack in self._queue[0])
            if packs and (needed > room or len(packs) + len(self._queue[0]) > MOST_CONCURRENT):
                break
            packs += self._queue.popleft()
            room -= needed
        return tuple(packs)

    def _slow_packs(self, kind: str) -> tuple[Pack, ...]:
        """Return packs that slow cores are training, for an idle GPU: the first result counts; none for a core."""
        if kind != GPU or self._shares is None:
            return ()
        here = [held for worker, held in self._held.items() if self._kinds[worker] == GPU]
        slow = [
            (pack,)
            for worker, held in self._held.items()
            if self._kinds[worker] == CPU
            for pack in held.values()
            if pack.id not in self._ended
            and not self._is_suspect(pack.id)
            and not any(pack.id in held for held in here)
        ]
        self._queue.extend(slow)
        return self._fill(self._shares) if slow else ()
