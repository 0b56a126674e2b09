"""Seed designs: the choice of a study's seeds, and the tests and intervals valid for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Sizes = Literal["fixed", "adaptive"]
"""Choice of the number of seeds: fixed in advance, or adaptive, depending on results."""

_CAUTIONS = {
    "fixed": "",
    "adaptive": "added seeds depending on results: intervals here don't allow for that",
    "combined": "",
    "searched": "is a search: its rows include candidates that were chosen by these same trials",
}


def sizes_of_all(sizes: Iterable[Sizes]) -> Sizes:
    """Combine the choices of several studies or files: adaptive if any is adaptive."""
    return "adaptive" if "adaptive" in sizes else "fixed"


@dataclass(frozen=True)
class SeedDesign:
    """The choice of the seeds of a study's cells.

    Args:
        kind: ``fixed`` in advance; ``adaptive``, added until a rule is satisfied; ``combined``, of several sources of
            randomness; ``searched``, given to the better candidates of a search.
        rule: the rule of adaptive seeds: ``half_width``, ``different_from`` or ``claims``.
        metric: the metric of the rule; None for success.

    Example:
        >>> SeedDesign("adaptive").sizes, SeedDesign("combined").are_combined, SeedDesign().is_plain
        ('adaptive', True, True)
    """

    kind: Literal["fixed", "adaptive", "combined", "searched"] = "fixed"
    rule: Literal["", "half_width", "different_from", "claims"] = ""
    metric: str | None = None

    @property
    def is_plain(self) -> bool:
        """True if trials are independent, and their number was fixed in advance."""
        return self.kind == "fixed"

    @property
    def is_adaptive(self) -> bool:
        """True if seeds are added to cells until a rule is satisfied."""
        return self.kind == "adaptive"

    @property
    def are_combined(self) -> bool:
        """True if trials share seeds of sources of randomness, so that they aren't independent."""
        return self.kind == "combined"

    @property
    def is_search(self) -> bool:
        """True if a search chose the cells by results of earlier trials."""
        return self.kind == "searched"

    @property
    def may_extend(self) -> bool:
        """True if results may add trials."""
        return self.kind in ("adaptive", "searched")

    @property
    def sizes(self) -> Sizes:
        """``fixed`` if the number of seeds was fixed in advance, ``adaptive`` if it depended on results."""
        return "adaptive" if self.may_extend else "fixed"

    @property
    def reason_not_fixed(self) -> str:
        """Why adaptive or combined seeds invalidate tests for a fixed number of independent trials; else empty."""
        return {"adaptive": "the number of seeds followed from results", "combined": "trials share seeds"}.get(
            self.kind, ""
        )

    @property
    def caution(self) -> str:
        """A warning for readers of the trials outside their study; empty if there is none."""
        return _CAUTIONS[self.kind]
