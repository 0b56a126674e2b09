"""The queue of packs: hands them out to workers, takes them back after a crash, hands them out again.

A worker trains packs one after another on a core, a GPU or a share of one. It asks for more when it has none left, so
fast and slow workers end at about the same time, and a worker may come, go or fall silent at any moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from study.plan.packs import MOST_CONCURRENT
from study.records import Pack

CPU, GPU = "cpu", "cuda"
RETRIES = 2
"""How often a pack that crashed, or whose worker died, is tried again."""
NODES = 3
"""A pack has failed when so many different nodes were lost while they trained it."""


class PackQueue:
    """Hands out packs to workers.

    A lost node doesn't say which pack ended it, so all packs that it trained are marked with it. A pack with a mark
    from all but one of the `NODES` that it may cost is a suspect: it is tried when nothing else is left, and alone on
    its node, so that no pack fails for what another one did. A node that was started again counts as another node.

    Args:
        bundles: the costliest first; one worker trains the packs of a bundle side by side.
        shares: where cores and GPUs work on the same bundles, how much of a GPU each pack fills, by its id. A worker
            with a GPU then takes bundles from the front until it is full. One with a core takes a bundle from the
            back: what is left at the end should be cheap where training is slow.

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

    def __init__(
        self, bundles: Sequence[tuple[Pack, ...]], shares: Mapping[str, float] | None = None
    ) -> None:
        self._queue: deque[tuple[Pack, ...]] = deque(bundles)
        self._suspects: deque[Pack] = deque()
        self._shares = shares
        self._held: dict[str, dict[str, Pack]] = {}
        self._kinds: dict[str, str] = {}
        self._nodes: dict[str, str] = {}  # where a worker is
        self._alone: set[str] = set()  # workers that train a suspect
        self._strikes: dict[str, int] = {}
        self._lost_nodes: dict[str, set[str]] = {}  # by pack
        self._through: set[str] = set()  # done, or failed for good

    def add(self, bundles: Sequence[tuple[Pack, ...]], shares: Mapping[str, float] | None = None) -> None:
        """Add bundles, as in the constructor, but for packs that wait here already or are with a worker."""
        waiting = {pack.id for bundle in self._queue for pack in bundle} | {
            pack.id for pack in self._suspects
        }
        known = waiting.union(*self._held.values())
        new = (tuple(pack for pack in bundle if pack.id not in known) for bundle in bundles)
        self._queue.extend(bundle for bundle in new if bundle)
        self._through -= {pack.id for bundle in bundles for pack in bundle}
        if self._shares is not None and shares is not None:
            self._shares = {**self._shares, **shares}

    def next(self, worker: str, kind: str, node: str) -> tuple[Pack, ...]:
        """Hand a worker what it trains next; nothing if nothing is left for it.

        A worker also gets nothing where a suspect trains, or where others are busy and only suspects are left. It may
        end then: the workers that are busy there will ask later.

        Args:
            worker: which one asks.
            kind: ``cpu`` or ``cuda``.
            node: id of the node that it is on.
        """
        # What it had and never reported is taken back; nobody here can be notified of a failure.
        self.lost(worker, blame=False)
        self._kinds[worker], self._nodes[worker] = kind, node
        busy = [other for other, at in self._nodes.items() if at == node and self._held.get(other)]
        packs: tuple[Pack, ...] = ()
        if self._alone.isdisjoint(busy):
            packs = self._queued(kind) or (() if busy else self._suspect(worker)) or self._slow_ones(kind)
        self._held[worker] = {pack.id: pack for pack in packs}
        return packs

    def node_of(self, worker: str) -> str | None:
        """Return the id of the node from which a worker asked for packs; None if it hasn't since it was last lost."""
        return self._nodes.get(worker)

    def done(self, worker: str, pack_id: str) -> None:
        """Note that a pack is stored; another worker that still trains it may go on or stop."""
        self._held.get(worker, {}).pop(pack_id, None)
        self._through.add(pack_id)

    def crashed(self, worker: str, pack_id: str) -> bool:
        """Note that a pack crashed, and return whether it is tried again.

        A pack that the worker isn't known to have was taken back meanwhile, or was handed out by a queue that has died
        since: it is with another worker, or waits.
        """
        pack = self._held.get(worker, {}).pop(pack_id, None)
        return pack is None or self._again(pack, blame=True)

    def lost(self, worker: str, *, blame: bool, with_node: bool = False) -> list[str]:
        """Take back what a worker had that died or fell silent.

        Args:
            worker: which one.
            blame: whether its packs may have been the cause.
            with_node: whether its whole node was lost.

        Returns:
            The packs that aren't tried again.
        """
        packs, node = self._held.pop(worker, {}).values(), self._nodes.pop(worker, None)
        was_alone = worker in self._alone
        self._alone.discard(worker)
        if with_node and node is not None:
            for pack in packs:
                # A suspect that had company may be as innocent as its company.
                if was_alone or not self._is_suspect(pack.id):
                    self._lost_nodes.setdefault(pack.id, set()).add(node)
        return [pack.id for pack in packs if not self._again(pack, blame=blame)]

    def _again(self, pack: Pack, *, blame: bool) -> bool:
        if pack.id in self._through:
            return True
        self._strikes[pack.id] = self._strikes.get(pack.id, 0) + blame
        if self._strikes[pack.id] > RETRIES or len(self._lost_nodes.get(pack.id, ())) >= NODES:
            self._through.add(pack.id)
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
        packs: list[Pack] = []
        room = 1.0 + 1e-9
        while self._queue:
            needed = sum(shares[pack.id] for pack in self._queue[0])
            if packs and (needed > room or len(packs) + len(self._queue[0]) > MOST_CONCURRENT):
                break
            packs += self._queue.popleft()
            room -= needed
        return tuple(packs)

    def _slow_ones(self, kind: str) -> tuple[Pack, ...]:
        """Hand an idle GPU the packs that cores still train: it finishes before them, and the first result counts."""
        if kind != GPU or self._shares is None:
            return ()
        here = [held for worker, held in self._held.items() if self._kinds[worker] == GPU]
        slow = [
            (pack,)
            for worker, held in self._held.items()
            if self._kinds[worker] == CPU
            for pack in held.values()
            if pack.id not in self._through
            and not self._is_suspect(pack.id)
            and not any(pack.id in held for held in here)
        ]
        self._queue.extend(slow)
        return self._fill(self._shares) if slow else ()
