"""Division of groups of trials into packs that share rows and balance the slots."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping, Sequence

from study.interface.family import Family
from study.plan.costs import by_draw, count_draws, pack_cost
from study.plugins.families import family_of
from study.records import Cell, Trial


def with_whole_draws(count: int, draws: int) -> int:
    """Raise the number of packs, so that each needs at most `draws // count` whole draws.

    Args:
        count: the number of packs.
        draws: the number of draws of rows; with fewer draws than packs, `count` is returned.
    """
    return count if draws < count else -(-draws // (draws // count))


def cut_by_number(group: Sequence[Trial], count: int) -> list[tuple[Trial, ...]]:
    """Divide a group, in order, into `count` >= 1 parts whose sizes differ by at most one; some may be empty."""
    edges = [len(group) * i // count for i in range(count + 1)]
    return [tuple(group[a:b]) for a, b in itertools.pairwise(edges)]


def cut_by_cost(group: Sequence[Trial], count: int, family: Family | None) -> list[tuple[Trial, ...]]:
    """Divide a group into `count` parts of about equal cost: between draws, or within them if there are too few.

    Args:
        group: the trials; at least `count`.
        count: the number of parts.
        family: as for `make_packs`.

    Raises:
        ValueError: if `family` is None, and no installed family has a trial's task.
        InputError: if `family` is None, and a trial's family can't be imported, or several packages offer it.
    """
    cost_us = {cell: pack_cost([Trial(cell, 0)], family) for cell in {trial.cell for trial in group}}
    draws = by_draw(group, family)
    costs = [sum(cost_us[trial.cell] for trial in trials) for trials in draws]
    if count <= len(draws):
        parts = [list(itertools.chain.from_iterable(draws[i] for i in part)) for part in _cut_in_order(costs, count)]
    else:
        wanted = zip(draws, _shares(costs, [len(trials) for trials in draws], count), strict=True)
        parts = [part for trials, parts_of in wanted for part in _divide(trials, parts_of, cost_us)]
    return [tuple(part) for part in parts]


def _cut_in_order(costs: Sequence[float], count: int) -> list[list[int]]:
    """Divide the indices of costs, in order, into `count` nonempty parts with about equal sums of costs."""
    parts: list[list[int]] = [[] for _ in range(count)]
    total, before, at = sum(costs), 0.0, 0
    for i, cost in enumerate(costs):
        wanted, left = int((before + cost / 2) / total * count), len(costs) - i
        # Each part begins at its share of the total cost.
        if parts[at] and at < count - 1 and (at < wanted or left < count - at):
            at += 1
        parts[at].append(i)
        before += cost
    return parts


def _shares(costs: Sequence[float], most: Sequence[int], count: int) -> list[int]:
    """Return each draw's number of parts by its cost: at least 1, at most its number of trials, `count` in all."""
    shares = [1] * len(costs)
    for _ in range(count - len(costs)):
        candidates = [i for i, share in enumerate(shares) if share < most[i]]
        shares[max(candidates, key=lambda i: costs[i] / shares[i])] += 1
    return shares


def _divide(trials: Sequence[Trial], count: int, cost_us: Mapping[Cell, float]) -> list[list[Trial]]:
    """Divide trials into parts of about equal cost: the costliest first, each into the cheapest part so far."""
    parts: list[list[int]] = [[] for _ in range(count)]
    cheapest = [(0.0, part) for part in range(count)]
    for place in sorted(range(len(trials)), key=lambda place: -cost_us[trials[place].cell]):
        cost, part = cheapest[0]
        parts[part].append(place)
        heapq.heapreplace(cheapest, (cost + cost_us[trials[place].cell], part))
    return [[trials[place] for place in sorted(part)] for part in parts]


class Work:
    """Cost model of a group of trials as a function of its number of packs.

    Args:
        group: the trials; at least one.
        family: as for `make_packs`.

    Attributes:
        trials: the number of trials.
        draws: the number of their draws of rows.
    """

    def __init__(self, group: Sequence[Trial], family: Family | None) -> None:
        self.trials = len(group)
        cells = [trial.cell for trial in group]
        group_family = family or family_of(cells[0])
        self.draws = count_draws(group, family)
        self._cost_us = group_family.cost_us(cells, self.draws)
        # Overhead of another pack: its own steps, and drawing rows that another pack also draws.
        self._overhead_us = 2 * group_family.cost_us(cells[:1], 1) - group_family.cost_us(cells[:1] * 2, 1)

    def part_us(self, count: int) -> float:
        """Estimate the microseconds of each of `count` packs."""
        return (self._cost_us + (count - 1) * self._overhead_us) / count


def balanced(groups: Sequence[Work], counts: list[int], formed_costs: Sequence[float], slots: int) -> list[int]:
    """Raise the numbers of packs of groups with the costliest packs, where this shortens the total time by over 3%.

    Args:
        groups: the groups of trials.
        counts: the number of packs of each group.
        formed_costs: the microseconds of other packs, which stay as they are.
        slots: the number of packs that run side by side; with one, `counts` is returned.

    Returns:
        The number of packs of each group.
    """
    if slots == 1:
        return counts
    now = best = list(counts)
    shortest = _makespan(groups, best, formed_costs, slots)
    for _ in range(3 * slots):
        largest = [group.part_us(count) for group, count in zip(groups, now, strict=True)]
        candidates = [i for i, group in enumerate(groups) if now[i] < group.trials]
        if not candidates:
            break
        costliest = max(candidates, key=largest.__getitem__)
        now = [count + (i == costliest) for i, count in enumerate(now)]
        length = _makespan(groups, now, formed_costs, slots)
        if length < 0.97 * shortest:
            best, shortest = now, length
    return best


def _makespan(groups: Sequence[Work], counts: Sequence[int], formed_costs: Sequence[float], slots: int) -> float:
    """Estimate the end of the last slot, in microseconds, if a free slot takes the costliest remaining pack."""
    parts = [group.part_us(n) for group, n in zip(groups, counts, strict=True) for _ in range(n)]
    ends = [0.0] * slots
    for pack_us in sorted((*parts, *formed_costs), reverse=True):
        heapq.heapreplace(ends, ends[0] + pack_us)
    return max(ends)
