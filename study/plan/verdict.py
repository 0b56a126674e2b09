"""What a rule that adds seeds says of cells and of pairs of cells, and what such a rule must be able to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from study.plan.plan import Plan
from study.records import Cell, Interval

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Verdict:
    """What the results say about a cell, or about a pair of cells.

    Args:
        cell: the cell, or the first of the pair.
        versus: the cell that it is compared with; None where its rate alone is estimated.
        seeds: the number of seeds that have a result.
        is_sure: whether they are enough.
        interval: of the cell's success rate, or of its metric's mean; None for a pair, or if a mean has none.
        p_value: of the sign test; None for a cell alone.
        wins: for a pair: the number of seeds that only this cell solved, or at which its metric is better.
        losses: for a pair: the number of seeds that only the other cell solved, or at which its metric is better.
        metric: the metric that is judged; empty for success.
        mean: of the metric; None for a pair, or if there is none.
        without: how many trials ended without a number, so that there is no mean.
    """

    cell: Cell
    versus: Cell | None
    seeds: int
    is_sure: bool
    interval: Interval | None = None
    p_value: float | None = None
    wins: int = 0
    losses: int = 0
    metric: str = ""
    mean: float | None = None
    without: int = 0


class Rule(Protocol):
    """Which cells have enough seeds, by the results so far."""

    phrase: str
    """What it says of those that it has judged for good, as a plural."""

    def counts(self) -> Mapping[str, int]:
        """Return how many seeds each cell gets, by its id."""

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Judge whether the seeds of a plan with these counts are enough."""

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return of how many it is sure, and of how many there are."""

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate how many seeds each cell will have needed, from those that it has now."""
