"""Who trains which pack: packs are handed out to lanes, come back done or crashed, and go out again; pure.

A lane is a place where packs train one after another: a core, a GPU or a share of one. It asks for more when it has
nothing left, so fast and slow lanes end at about the same time, and a lane may come, go or fall silent at any moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from study.plan.packs import MOST_ABREAST
from study.records import Pack

CPU, GPU = "cpu", "cuda"
RETRIES = 2
"""How often a pack that crashed, or whose worker died, is tried again."""
NODES = 3
"""A pack has failed when so many different nodes were lost while they trained it."""


class Desk:
    """Hands out packs.

    A node that is lost says nothing of who ended it, so all packs that it trained are marked with it. One that has a
    mark from all but one of the `NODES` that it may cost is a suspect: it is tried when nothing else is left, and alone
    on its node, so that no pack fails for what another one did. A node that was started again counts as another.

    Args:
        loads: the costliest first; the packs of a load train side by side in one lane.
        shares: where cores and GPUs work on the same loads, how much of a GPU each pack fills, by its id: a lane with
            a GPU then takes loads from the front until it is full, and one with a core takes one from the back, for
            what is left at the end had better be cheap where it is slow.

    Example:
        >>> from study.spec import load_spec
        >>> from study.plan.plan import packs, plan
        >>> first, *rest = packs(plan(load_spec("simple")).trials, slots=4)
        >>> desk = Desk([(first,)])
        >>> desk.next("lane 1", CPU, "node 1") == (first,), desk.next("lane 2", CPU, "node 2")
        (True, ())
        >>> desk.lost("lane 1", blame=True), desk.next("lane 2", CPU, "node 2") == (first,)
        ([], True)
    """

    def __init__(self, loads: Sequence[tuple[Pack, ...]], shares: Mapping[str, float] | None = None) -> None:
        self._queue: deque[tuple[Pack, ...]] = deque(loads)
        self._suspects: deque[Pack] = deque()
        self._shares = shares
        self._held: dict[str, dict[str, Pack]] = {}
        self._kinds: dict[str, str] = {}
        self._nodes: dict[str, str] = {}  # where a lane is
        self._alone: set[str] = set()  # lanes that train a suspect
        self._strikes: dict[str, int] = {}
        self._lost_nodes: dict[str, set[str]] = {}  # by pack
        self._through: set[str] = set()  # done, or failed for good

    def add(self, loads: Sequence[tuple[Pack, ...]], shares: Mapping[str, float] | None = None) -> None:
        """Take in more loads, arguments as above: of packs, those that are neither waiting here nor with a lane."""
        waiting = {pack.id for load in self._queue for pack in load} | {pack.id for pack in self._suspects}
        known = waiting.union(*self._held.values())
        new = (tuple(pack for pack in load if pack.id not in known) for load in loads)
        self._queue.extend(load for load in new if load)
        self._through -= {pack.id for load in loads for pack in load}
        if self._shares is not None and shares is not None:
            self._shares = {**self._shares, **shares}

    def next(self, lane: str, kind: str, node: str) -> tuple[Pack, ...]:
        """Give a lane what it trains next; nothing if there is nothing left for it.

        A lane gets nothing, too, where a suspect trains, or where others are busy when only suspects are left. It may
        end then: those that are busy there ask later.

        Args:
            lane: which.
            kind: ``cpu`` or ``cuda``.
            node: id of the node that it is on.
        """
        # What it had and said nothing of is taken back; whom to tell of a failure isn't known here.
        self.lost(lane, blame=False)
        self._kinds[lane], self._nodes[lane] = kind, node
        beside = [other for other, at in self._nodes.items() if at == node and self._held.get(other)]
        packs: tuple[Pack, ...] = ()
        if self._alone.isdisjoint(beside):
            packs = self._queued(kind) or (() if beside else self._suspect(lane)) or self._slow_ones(kind)
        self._held[lane] = {pack.id: pack for pack in packs}
        return packs

    def node_of(self, lane: str) -> str | None:
        """Give the id of the node on which a lane asked for packs; None if it has not since it was last lost."""
        return self._nodes.get(lane)

    def done(self, lane: str, pack_id: str) -> None:
        """Take in that a pack is stored; whoever else still trains it may go on or stop."""
        self._held.get(lane, {}).pop(pack_id, None)
        self._through.add(pack_id)

    def crashed(self, lane: str, pack_id: str) -> bool:
        """Take in that a pack crashed, and say whether it is tried again.

        One that the lane isn't known to have was taken back meanwhile, or handed out by a desk that died since: it is
        with others, or in the queue.
        """
        pack = self._held.get(lane, {}).pop(pack_id, None)
        return pack is None or self._again(pack, blame=True)

    def lost(self, lane: str, *, blame: bool, with_node: bool = False) -> list[str]:
        """Take back what a lane had that died or fell silent.

        Args:
            lane: which.
            blame: whether its packs may have been the cause.
            with_node: whether its whole node was lost.

        Returns:
            The packs that aren't tried again.
        """
        packs, node = self._held.pop(lane, {}).values(), self._nodes.pop(lane, None)
        was_alone = lane in self._alone
        self._alone.discard(lane)
        if with_node and node is not None:
            for pack in packs:
                if was_alone or not self._is_suspect(
                    pack.id
                ):  # one that had company may be as innocent as that
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

    def _suspect(self, lane: str) -> tuple[Pack, ...]:
        if not self._suspects:
            return ()
        self._alone.add(lane)
        return (self._suspects.popleft(),)

    def _fill(self, shares: Mapping[str, float]) -> tuple[Pack, ...]:
        packs: list[Pack] = []
        room = 1.0 + 1e-9
        while self._queue:
            needed = sum(shares[pack.id] for pack in self._queue[0])
            if packs and (needed > room or len(packs) + len(self._queue[0]) > MOST_ABREAST):
                break
            packs += self._queue.popleft()
            room -= needed
        return tuple(packs)

    def _slow_ones(self, kind: str) -> tuple[Pack, ...]:
        """Give an idle GPU the packs that cores still train: it is through before them, and the first counts."""
        if kind != GPU or self._shares is None:
            return ()
        here = [held for lane, held in self._held.items() if self._kinds[lane] == GPU]
        slow = [
            (pack,)
            for lane, held in self._held.items()
            if self._kinds[lane] == CPU
            for pack in held.values()
            if pack.id not in self._through
            and not self._is_suspect(pack.id)
            and not any(pack.id in held for held in here)
        ]
        self._queue.extend(slow)
        return self._fill(self._shares) if slow else ()
