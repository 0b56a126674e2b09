"""Successive halving over seeds: candidates begin with few seeds, and the best of them get more.

Jamieson & Talwalkar, AISTATS 2016, halve over the length of training; here every training has its full length, and
the sample grows. All candidates have the same seeds, so that a hard seed is hard for all of them.
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
"""Returns a candidate's values by that many of its first seeds; None while a result is pending."""


@dataclass(frozen=True)
class Round:
    """How far the candidates that are compared have come.

    Args:
        seeds: the number of seeds that each has earned so far, in the candidates' order.
        values: the values of each by those seeds; None while a result is pending.
    """

    seeds: tuple[int, ...]
    values: tuple[Value, ...] | None


def rungs(search: Search, most_seeds: int) -> tuple[int, ...]:
    """Return the numbers of seeds after which candidates are compared.

    Example:
        >>> rungs(Search(objective="success_rate", trials=600), 40)
        (5, 15, 40)
    """
    counts = [min(search.first_seeds, most_seeds)]
    while counts[-1] < most_seeds:
        counts.append(min(most_seeds, math.ceil(counts[-1] / search.keep - 1e-9)))
    return tuple(counts)


def survivors(search: Search, count: int) -> int:
    """Return how many of `count` candidates go on to the next rung."""
    return math.ceil(search.keep * count - 1e-9)


def cost(search: Search, most_seeds: int, count: int) -> int:
    """Return how many trials a round of `count` candidates takes.

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
    """Return how many candidates can be compared in so many trials, up to the size of the search's rounds."""
    fitting = (n for n in range(search.candidates, 0, -1) if cost(search, most_seeds, n) <= trials)
    return next(fitting, 0)


def compare(
    search: Search, objectives: Sequence[Objective], most_seeds: int, cells: Sequence[Cell], value_at: ValueAt
) -> Round:
    """Compute how many seeds each candidate has earned.

    Args:
        search: how they are compared.
        objectives: by what.
        most_seeds: the most seeds that a candidate can have.
        cells: the candidates, in the order in which they were suggested.
        value_at: their values.
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
