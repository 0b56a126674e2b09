"""Which packs have not ended yet: what workers say about any other pack is outdated."""

from __future__ import annotations

from collections.abc import Iterable

from study.records import Pack, PackSplit


class OpenPacks:
    """The packs whose end has not been reported, and the parts that some of them were split into.

    Several workers may train the same pack: a GPU repeats what a slow core still trains, and a worker that was given up
    may go on. So the end of a pack may be reported before, between or after the ends of its parts, and more than once.
    When a pack ends, all its parts end; when all its parts have ended, the pack itself still has to.

    Args:
        packs: the packs that have not ended yet.

    Example:
        >>> from study.spec import load_spec
        >>> from study.plan.packs import make_packs
        >>> from study.plan.plan import make_plan
        >>> whole, *others = make_packs(make_plan(load_spec("simple")).trials, slots=1)
        >>> first, second = Pack(whole.trials[:8]), Pack(whole.trials[8:])
        >>> open_packs = OpenPacks([whole])
        >>> open_packs.split(PackSplit(whole.id, (first, second)))
        True
        >>> open_packs.end(first.id)
        >>> open_packs.ending_with(whole.id) == [second]
        True
        >>> open_packs.end(whole.id)
        >>> second.id in open_packs, open_packs.split(PackSplit(whole.id, (first, second)))
        (False, False)
    """

    def __init__(self, packs: Iterable[Pack]) -> None:
        self._open: dict[str, Pack] = {}
        self._parts: dict[str, tuple[Pack, ...]] = {}
        self.add(packs)

    def __contains__(self, pack_id: str) -> bool:
        """Whether a pack, or a part of one, has not ended."""
        return pack_id in self._open

    def add(self, packs: Iterable[Pack]) -> None:
        """Add packs that have not ended yet."""
        self._open.update((pack.id, pack) for pack in packs)

    def split(self, split: PackSplit) -> bool:
        """Record that a pack is trained in parts, and return whether that is news."""
        if split.pack_id not in self._open or split.pack_id in self._parts:
            return False
        self._parts[split.pack_id] = split.parts
        self.add(split.parts)
        return True

    def ending_with(self, pack_id: str) -> list[Pack]:
        """Return what ends when a pack does: itself, or those of its smallest parts that have not ended before."""
        if pack_id not in self._open:
            return []
        if pack_id not in self._parts:
            return [self._open[pack_id]]
        return [pack for part in self._parts[pack_id] for pack in self.ending_with(part.id)]

    def end(self, pack_id: str) -> None:
        """Record that a pack has ended."""
        self._open.pop(pack_id, None)
        for part in self._parts.pop(pack_id, ()):
            self.end(part.id)
