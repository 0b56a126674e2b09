"""Verdicts on cells and pairs of cells, and the protocol of rules that add seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from study.plan.plan import Plan
from study.records import Cell, Interval

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Verdict:
    """Verdict on a cell, or on a pair of cells.

    Args:
        cell: the cell, or the first of the pair.
        versus: the second of the pair; None for a single cell.
        seeds: the number of seeds that have a result.
        is_sure: whether they are enough.
        interval: the interval of the cell's success rate, or of its metric's mean; None for a pair, or without one.
        p_value: the p-value of the sign test; None for a single cell.
        wins: for a pair, the number of seeds that only the first cell solved, or at which its metric is better.
        losses: for a pair, the number of seeds that only the second cell solved, or at which its metric is better.
        metric: the judged metric; empty for success.
        mean: the mean of the metric; None for a pair, or without one.
        without: the number of trials that ended without a value of the metric; if any, the mean is unknown.
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
    """Rule that adds seeds to cells by the results so far."""

    phrase: str
    """Plural predicate for the cells, pairs or claims that it has decided, such as "cells are sure"."""

    def counts(self) -> Mapping[str, int]:
        """Return the number of seeds that each cell needs by the results so far, by its id."""

    def verdicts(self, plan: Plan) -> Sequence[Verdict]:
        """Return a verdict on each cell, or pair of cells, of a plan with these counts; empty for claims."""

    def sure(self, plan: Plan) -> tuple[int, int]:
        """Return the number of decided cells, pairs or claims, and that of all."""

    def expected(self, now: Mapping[str, int]) -> dict[str, int]:
        """Estimate the final number of seeds of each cell, by its id, from the current numbers."""
