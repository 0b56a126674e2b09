"""Seed designs: how the seeds of a study came about, and which tests and intervals are valid for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Sizes = Literal["fixed", "adaptive"]
"""How the number of seeds came about: fixed in advance, or by rules that looked at results."""

_CAUTIONS = {
    "fixed": "",
    "adaptive": "added seeds until there were enough: intervals here don't allow for that",
    "combined": "",
    "searched": "is a search: its rows are also of candidates that were chosen by these trials",
}


def sizes_of_all(sizes: Iterable[Sizes]) -> Sizes:
    """Return how the numbers of seeds of several studies or files came about: adaptive if those of any did."""
    return "adaptive" if "adaptive" in sizes else "fixed"


@dataclass(frozen=True)
class SeedDesign:
    """How the seeds of a study's cells came about.

    Args:
        kind: ``fixed`` in advance; ``adaptive``, added until results are clear; ``combined``, of several sources of
            randomness; ``searched``, given to the better candidates of a search.
        rule: of adaptive seeds, what has to be clear: ``half_width``, ``different_from`` or ``claims``.
        metric: of which metric; None for success.

    Example:
        >>> SeedDesign("adaptive").sizes, SeedDesign("combined").are_combined, SeedDesign().is_plain
        ('adaptive', True, True)
    """

    kind: Literal["fixed", "adaptive", "combined", "searched"] = "fixed"
    rule: Literal["", "half_width", "different_from", "claims"] = ""
    metric: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether trials are independent, and their number was fixed in advance."""
        return self.kind == "fixed"

    @property
    def is_adaptive(self) -> bool:
        """Whether seeds are added to cells until a rule has enough of them."""
        return self.kind == "adaptive"

    @property
    def are_combined(self) -> bool:
        """Whether trials share seeds of sources, so that they aren't independent."""
        return self.kind == "combined"

    @property
    def is_search(self) -> bool:
        """Whether trials chose which cells were tried."""
        return self.kind == "searched"

    @property
    def may_extend(self) -> bool:
        """Whether results may ask for more trials."""
        return self.kind in ("adaptive", "searched")

    @property
    def sizes(self) -> Sizes:
        """Whether the number of seeds was fixed in advance, or followed from results."""
        return "adaptive" if self.may_extend else "fixed"

    @property
    def reason_not_fixed(self) -> str:
        """Why counts of trials can't be tested as independent trials of a fixed number; empty if they can."""
        return {"adaptive": "the number of seeds followed from results", "combined": "trials share seeds"}.get(
            self.kind, ""
        )

    @property
    def caution(self) -> str:
        """What a reader of the trials without their study must know; empty if nothing."""
        return _CAUTIONS[self.kind]
