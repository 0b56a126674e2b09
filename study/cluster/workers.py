"""A group of workers of one kind, and what they are handed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from study.records import Pack
from study.worker.concurrent import Work

Load = tuple[Pack, ...]
"""Packs that a device trains side by side."""


More = Callable[[], tuple[Sequence[Load], Mapping[str, float] | None]]
"""Gives more loads, and the shares that they fill of a GPU; no load when there is nothing more to do."""


HandedOut = tuple[tuple[Pack, ...], bool, bool]
"""What a lane gets: packs, whether the desk was started again, and whether there may be more when there are none."""


@dataclass(frozen=True)
class Lanes:
    """Some lanes of one kind.

    Args:
        kind: ``cpu`` or ``cuda``.
        count: how many.
        work: what they do with a pack; travels to the workers.
        gpu_share: share of a GPU that each takes.
    """

    kind: str
    count: int
    work: Work
    gpu_share: float = 0.0

    @property
    def resources(self) -> dict[str, float]:
        """Give what Ray reserves for one."""
        return {"CPU": 1, "GPU": self.gpu_share} if self.gpu_share else {"CPU": 1}


BEGIN_ANEW = "a crash may have left the device's context unusable: begin anew"
"""What a lane ends with on purpose, for Tune to start it again."""
