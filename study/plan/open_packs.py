"""Packs that have not ended; reports about other packs are outdated."""

from __future__ import annotations

from collections.abc import Iterable

from study.records import Pack, PackSplit


class OpenPacks:
    """Packs without a reported end, and the parts of split packs.

    Several workers may train the same pack: a GPU repeats a slow core's pack, and an abandoned worker may continue. So
    the end of a pack may be reported before, between or after the ends of its parts, and more than once. When a pack
    ends, all its parts end. When all its parts have ended, the pack itself is still open.

    Args:
        packs: packs that have not ended.

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
        """Return True if the pack, or the part of a pack, is known and has not ended."""
        return pack_id in self._open

    def add(self, packs: Iterable[Pack]) -> None:
        """Add packs that have not ended."""
        self._open.update((pack.id, pack) for pack in packs)

    def split(self, split: PackSplit) -> bool:
        """Record the split of an open pack, and return True; return False if it isn't open, or was split before."""
        if split.pack_id not in self._open or split.pack_id in self._parts:
            return False
        self._parts[split.pack_id] = split.parts
        self.add(split.parts)
        return True

    def ending_with(self, pack_id: str) -> list[Pack]:
        """Return the open packs that end with a pack: itself, or its smallest open parts if it was split.

        Empty if the pack isn't open, or if it was split and all its parts have ended.
        """
        if pack_id not in self._open:
            return []
        if pack_id not in self._parts:
            return [self._open[pack_id]]
        return [pack for part in self._parts[pack_id] for pack in self.ending_with(part.id)]

    def end(self, pack_id: str) -> None:
        """Record the end of a pack and of its parts; a no-op if it isn't open."""
        self._open.pop(pack_id, None)
        for part in self._parts.pop(pack_id, ()):
            self.end(part.id)
