"""Successive halving over seeds: candidates begin with few seeds, and the best of them get more.

Jamieson & Talwalkar, AISTATS 2016, halve over the length of training. Here every trial has its full length, and the
sample size grows. All candidates have the same seeds, so that they are compared on equally hard ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from study.records import Cell
from study.search.objectives import ranked
from study.spec.tables import Search
from study.summaries.search import Objective, Value

ValueAt = Callable[[Cell, int], Value | None]
"""Returns a candidate's values by its first n seeds; None while a result is pending."""


@dataclass(frozen=True)
class Round:
    """The state of a comparison of candidates.

    Args:
        seeds: the number of seeds that each candidate has earned so far, in the candidates' order.
        values: each candidate's values by these seeds; None while a result is pending.
    """

    seeds: tuple[int, ...]
    values: tuple[Value, ...] | None


def rungs(search: Search, most_seeds: int) -> tuple[int, ...]:
    """Return the rungs: the seed counts of the comparisons between candidates.

    Example:
        >>> rungs(Search(objective="success_rate", trials=600), 40)
        (5, 15, 40)
    """
    counts = [min(search.first_seeds, most_seeds)]
    while counts[-1] < most_seeds:
        counts.append(min(most_seeds, math.ceil(counts[-1] / search.keep - 1e-9)))
    return tuple(counts)


def survivors(search: Search, count: int) -> int:
    """Return the number of `count` candidates that advance to the next rung: the share `keep`, rounded up."""
    return math.ceil(search.keep * count - 1e-9)


def cost(search: Search, most_seeds: int, count: int) -> int:
    """Return the number of trials of a round of `count` candidates.

    Example:
        >>> cost(Search(objective="success_rate", trials=600), 40, 12)  # 12 x 5 + 4 x 10 + 2 x 25
        150
    """
    total = before = 0
    for rung in rungs(search, most_seeds):
        total += count * (rung - before)
        before, count = rung, survivors(search, count)
    return total


def affordable(search: Search, most_seeds: int, trials: int) -> int:
    """Return the most candidates of a round of at most `trials` trials, up to the search's round size; 0 if none."""
    fitting = (n for n in range(search.candidates, 0, -1) if cost(search, most_seeds, n) <= trials)
    return next(fitting, 0)


def compare(
    search: Search, objectives: Sequence[Objective], most_seeds: int, cells: Sequence[Cell], value_at: ValueAt
) -> Round:
    """Compute the number of seeds that each candidate has earned, with its values.

    Args:
        search: the settings of the search.
        objectives: the objectives to compare by.
        most_seeds: the most seeds of a candidate.
        cells: the candidates, in the order of suggestion.
        value_at: returns a candidate's values by its first seeds.
    """
    steps = rungs(search, most_seeds)
    earned = [steps[0]] * len(cells)
    values: list[Value | None] = [None] * len(cells)
    alive = list(range(len(cells)))
    for step, n in enumerate(steps):
        for i in alive:
            earned[i], values[i] = n, value_at(cells[i], n)
        results = [value for i in alive if (value := values[i]) is not None]
        if len(results) < len(alive):
            return Round(tuple(earned), None)
        if step + 1 < len(steps):
            best = ranked(results, objectives)[: survivors(search, len(alive))]
            alive = sorted(alive[place] for place in best)
    return Round(tuple(earned), tuple(value for value in values if value is not None))
