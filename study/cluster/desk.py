"""Who trains which pack: packs are handed out to lanes, come back done or crashed, and go out again; pure.

A lane is a place where packs train one after another: a core, a GPU or a share of one. It asks for more when it has
nothing left, so fast and slow lanes end at about the same time, and a lane may come, go or fall silent at any moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from study.plan import MOST_ABREAST
from study.records import Pack

CPU, GPU = "cpu", "cuda"
RETRIES = 2
"""How often a pack that crashed, or whose worker died, is tried again."""


class Desk:
    """Hands out packs.

    Args:
        loads: the costliest first; the packs of a load train side by side in one lane.
        shares: where cores and GPUs work on the same loads, how much of a GPU each pack fills, by its id: a lane with
            a GPU then takes loads from the front until it is full, and one with a core takes one from the back, for
            what is left at the end had better be cheap where it is slow.

    Example:
        >>> from study.spec import load_spec
        >>> from study.plan import packs, plan
        >>> first, *rest = packs(plan(load_spec("simple")).trials, slots=4)
        >>> desk = Desk([(first,)])
        >>> desk.next("lane 1", CPU) == (first,), desk.next("lane 2", CPU)
        (True, ())
        >>> desk.lost("lane 1", blame=True), desk.next("lane 2", CPU) == (first,)
        ([], True)
    """

    def __init__(self, loads: Sequence[tuple[Pack, ...]], shares: Mapping[str, float] | None = None) -> None:
        self._queue: deque[tuple[Pack, ...]] = deque(loads)
        self._shares = shares
        self._held: dict[str, dict[str, Pack]] = {}
        self._kinds: dict[str, str] = {}
        self._strikes: dict[str, int] = {}
        self._through: set[str] = set()  # done, or failed for good

    def add(self, loads: Sequence[tuple[Pack, ...]], shares: Mapping[str, float] | None = None) -> None:
        """Take in more loads, arguments as above: of packs, those that are neither waiting here nor with a lane."""
        known = {pack.id for load in self._queue for pack in load}.union(*self._held.values())
        new = (tuple(pack for pack in load if pack.id not in known) for load in loads)
        self._queue.extend(load for load in new if load)
        self._through -= {pack.id for load in loads for pack in load}
        if self._shares is not None and shares is not None:
            self._shares = {**self._shares, **shares}

    def next(self, lane: str, kind: str) -> tuple[Pack, ...]:
        """Give a lane what it trains next; nothing if there is nothing left for it.

        Args:
            lane: which.
            kind: ``cpu`` or ``cuda``.
        """
        self.lost(
            lane, blame=False
        )  # what it had and said nothing of: whom to tell of a failure isn't known here
        self._kinds[lane] = kind
        if self._shares is None:
            packs = self._queue.popleft() if self._queue else ()
        else:
            packs = self._fill(self._shares) if kind == GPU else (self._queue.pop() if self._queue else ())
        packs = packs or self._slow_ones(kind)
        self._held[lane] = {pack.id: pack for pack in packs}
        return packs

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

    def lost(self, lane: str, *, blame: bool) -> list[str]:
        """Take back what a lane had that died or fell silent.

        Args:
            lane: which.
            blame: whether its packs may have been the cause; the loss of a whole machine isn't.

        Returns:
            The packs that aren't tried again.
        """
        packs = self._held.pop(lane, {}).values()
        return [pack.id for pack in packs if not self._again(pack, blame=blame)]

    def _again(self, pack: Pack, *, blame: bool) -> bool:
        if pack.id in self._through:
            return True
        self._strikes[pack.id] = self._strikes.get(pack.id, 0) + blame
        if self._strikes[pack.id] > RETRIES:
            self._through.add(pack.id)
            return False
        if not any(pack.id in held for held in self._held.values()):
            self._queue.appendleft((pack,))
        return True

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
            if pack.id not in self._through and not any(pack.id in held for held in here)
        ]
        self._queue.extend(slow)
        return self._fill(self._shares) if slow else ()
