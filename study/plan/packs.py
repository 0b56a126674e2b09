"""From trials to packs, and from packs to the bundles that devices train side by side."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from study.records import Cell, Pack, Trial
from tasks.families import family_of
from tasks.family import Family

ShapeKey = tuple[object, ...]


# Packs that one worker runs on a device at once: each is a thread, and the interpreter serves one at a time.
MOST_CONCURRENT = 32


def shape_key(cell: Cell) -> ShapeKey:
    """Return what must be equal among the trials of a pack."""
    return (cell.task, *family_of(cell).shape(cell))


def count_draws(trials: Iterable[Trial], family: Family | None = None) -> int:
    """Count the draws of rows that trials need if those that see the same rows share one.

    Args:
        trials: some trials.
        family: as for `make_packs`.

    Example:
        >>> from study.plan.plan import make_plan
        >>> from study.spec import load_spec
        >>> trials = make_plan(load_spec("simple")).trials
        >>> len(trials), count_draws(trials)
        (400, 100)
    """
    return len(set(_draws(trials, family)))


def _draws(trials: Iterable[Trial], family: Family | None) -> list[object]:
    """Tell of each trial which rows it sees."""
    rows: dict[Cell, object] = {}
    found: list[object] = []
    for trial in trials:
        cell = trial.cell
        if cell not in rows:
            rows[cell] = (family or family_of(cell)).rows_of(cell)
        found.append(trial.id if rows[cell] is None else (trial.seed, rows[cell]))
    return found


def pack_cost(trials: Sequence[Trial], family: Family | None = None) -> float:
    """Estimate the microseconds that a pack takes on one core.

    Args:
        trials: those of the pack.
        family: as for `make_packs`.
    """
    cells = [trial.cell for trial in trials]
    return (family or family_of(cells[0])).cost_us(cells, count_draws(trials, family))


KeyOf = Callable[[Cell], ShapeKey]
"""Returns what must be equal among the trials of a pack."""

AtOnce = Callable[[Cell], int | None]
"""Returns how many trials of a cell a device trains side by side; None if a pack may be of any size."""


def make_packs(
    trials: Iterable[Trial],
    *,
    slots: int,
    size: int | None = None,
    checkpointed: Sequence[Sequence[str]] = (),
    at_once: AtOnce | None = None,
    family: Family | None = None,
    key_of: KeyOf = shape_key,
) -> list[Pack]:
    """Group trials into packs; the grouping never changes a result.

    Trials that see the same rows come into the same pack, if that leaves no slot idle: an engine may draw them once.

    Args:
        trials: the trials to be done.
        slots: packs that can run side by side; sizes are such that all slots end at about the same time.
        size: the most trials in a pack; None to choose it.
        checkpointed: trial ids of packs that have a checkpoint: these are formed again as they were, if all of their
            trials are still to be done; of two that overlap, only the first.
        at_once: how many trials a device trains side by side; None for cores, which train one trial after the other.
        family: what the study declares, which knows how long updates take and how large packs may be; None to go by
            the name of the task.
        key_of: what must be equal among the trials of a pack, which is up to the engine that trains them.

    Returns:
        The packs, the costliest first; every trial is in exactly one.

    Example:
        >>> from study.plan.plan import make_plan
        >>> from study.spec import load_spec
        >>> trials = make_plan(load_spec("simple")).trials
        >>> sorted({len(pack.trials) for pack in make_packs(trials, slots=2, size=40)})
        [33, 34]
    """
    if slots < 1 or (size is not None and size < 1):
        raise ValueError(f"slots >= 1 and size >= 1 must hold, but got slots={slots} and size={size}")
    pending = {trial.id: trial for trial in trials}
    formed = _form_again(pending, checkpointed, key_of)
    of_key: dict[ShapeKey, list[Trial]] = {}
    for trial in pending.values():
        of_key.setdefault(key_of(trial.cell), []).append(trial)
    groups = [_by_rows(group, family) for group in of_key.values()]
    if at_once is None:
        counts = [_fewest(group, size, slots, family) for group in groups]
    else:
        shares = sum(bundle_share(group, at_once) for group in (*groups, *(p.trials for p in formed)))
        share = min(1, shares / slots)
        counts = [_filling(group, size, at_once, share, slots, family) for group in groups]
    cut = _cut_by_number
    if size is None and at_once is None:
        formed_costs = [pack_cost(p.trials, family) for p in formed]
        work = [_Work(group, family) for group in groups]
        counts = [_with_whole_draws(count, one.draws) for count, one in zip(counts, work, strict=True)]
        counts, cut = _balanced(work, counts, formed_costs, slots), partial(_cut_by_cost, family=family)
    new = [Pack(p) for group, n in zip(groups, counts, strict=True) for p in cut(group, n)]
    return sorted((*formed, *new), key=lambda pack: pack_cost(pack.trials, family), reverse=True)


def _by_rows(group: Sequence[Trial], family: Family | None) -> list[Trial]:
    """Put trials that see the same rows next to each other, in the order in which the rows occur."""
    together: dict[object, list[Trial]] = {}
    for trial, draw in zip(group, _draws(group, family), strict=True):
        together.setdefault(draw, []).append(trial)
    return list(itertools.chain.from_iterable(together.values()))


def _form_again(pending: dict[str, Trial], checkpointed: Sequence[Sequence[str]], key_of: KeyOf) -> list[Pack]:
    """Form unfinished packs again, and take their trials out of those pending."""
    formed = []
    for trial_ids in checkpointed:
        if trial_ids and len(set(trial_ids)) == len(trial_ids) and all(i in pending for i in trial_ids):
            trials = tuple(pending[i] for i in trial_ids)
            if len({key_of(trial.cell) for trial in trials}) == 1:
                formed.append(Pack(trials))
                for trial_id in trial_ids:
                    del pending[trial_id]
    return formed


def _fewest(group: Sequence[Trial], size: int | None, slots: int, family: Family | None) -> int:
    """Count the packs of a group if each is as large as is useful."""
    caps = ((family or family_of(cell)).most_in_pack(cell, len(group), slots) for cell in {t.cell for t in group})
    return -(-len(group) // (size or min(caps)))


def bundle_share(trials: Sequence[Trial], at_once: AtOnce) -> float:
    """Return the share of a device that trials of equal shape fill; 1 where that isn't known."""
    most = at_once(trials[0].cell)
    return len(trials) / most if most else 1.0


def _filling(
    group: Sequence[Trial], size: int | None, at_once: AtOnce, share: float, slots: int, family: Family | None
) -> int:
    """Count the packs of a group if each fills a device, or that share of it if there are more devices than work."""
    most = at_once(group[0].cell)
    if size is not None or most is None:
        return _fewest(group, size, slots, family)
    return -(-len(group) // max(1, int(most * share)))


def make_bundles(packs: Sequence[Pack], *, slots: int, at_once: AtOnce | None = None) -> list[tuple[Pack, ...]]:
    """Bundle packs that a device trains side by side; on cores, each pack is a bundle of its own.

    Args:
        packs: the packs, the costliest first, so that those of a bundle end at about the same time.
        slots: number of devices.
        at_once: as for `make_packs`.

    Returns:
        Every pack in exactly one bundle, in their order.

    Example:
        >>> from study.plan.plan import make_plan
        >>> from study.spec import load_spec
        >>> packs = make_packs(make_plan(load_spec("simple")).trials, slots=1, at_once=lambda cell: 528)
        >>> [len(pack.trials) for pack in packs], len(make_bundles(packs, slots=1, at_once=lambda cell: 528))
        ([100, 100, 100, 100], 1)
    """
    if at_once is None:
        return [(pack,) for pack in packs]
    shares = [bundle_share(pack.trials, at_once) for pack in packs]
    count = max(math.ceil(sum(shares) - 1e-9), min(slots, len(packs)))
    while count < len(packs):
        bundles = _cut_by(shares, count)
        if all(sum(shares[i] for i in bundle) < 1 + 1e-9 and len(bundle) <= MOST_CONCURRENT for bundle in bundles):
            return [tuple(packs[i] for i in bundle) for bundle in bundles]
        count += 1
    return [(pack,) for pack in packs]


def _cut_by(shares: Sequence[float], count: int) -> list[list[int]]:
    """Cut a sequence of shares, in order, into parts of about the same sum; empty parts are left out."""
    parts: list[list[int]] = [[] for _ in range(count)]
    total, before = sum(shares), 0.0
    for i, share in enumerate(shares):
        parts[min(count - 1, int((before + share / 2) / total * count))].append(i)
        before += share
    return [part for part in parts if part]


def _with_whole_draws(count: int, draws: int) -> int:
    """Raise the number of packs so that each can have all trials of as many draws, if there are enough of these."""
    return count if draws < count else -(-draws // (draws // count))


def _cut_by_number(group: Sequence[Trial], count: int) -> list[tuple[Trial, ...]]:
    """Cut a group into parts whose sizes differ by at most one."""
    edges = [len(group) * i // count for i in range(count + 1)]
    return [tuple(group[a:b]) for a, b in itertools.pairwise(edges)]


def _cut_by_cost(group: Sequence[Trial], count: int, family: Family | None) -> list[tuple[Trial, ...]]:
    """Cut a group, in order, into parts of about the same cost; between draws, if there are enough of these."""
    draws = [list(of_draw) for _, of_draw in itertools.groupby(group, key=_draw_of(group, family))]
    pieces = draws if count <= len(draws) else [[trial] for trial in group]
    cost_us = {cell: pack_cost([Trial(cell, 0)], family) for cell in {trial.cell for trial in group}}
    costs = [sum(cost_us[trial.cell] for trial in piece) for piece in pieces]
    total, before, at = sum(costs), 0.0, 0
    parts: list[list[Trial]] = [[] for _ in range(count)]
    for left, piece, cost in zip(range(len(pieces), 0, -1), pieces, costs, strict=True):
        # Each part begins where its share of the cost does, and none is left empty.
        wanted = int((before + cost / 2) / total * count)
        if parts[at] and at < count - 1 and (at < wanted or left < count - at):
            at += 1
        parts[at] += piece
        before += cost
    return [tuple(part) for part in parts]


def _draw_of(group: Sequence[Trial], family: Family | None) -> Callable[[Trial], object]:
    of_trials = dict(zip((trial.id for trial in group), _draws(group, family), strict=True))
    return lambda trial: of_trials[trial.id]


class _Work:
    """What the trials of a group cost, however many packs they are cut into."""

    def __init__(self, group: Sequence[Trial], family: Family | None) -> None:
        self.trials = len(group)
        cells = [trial.cell for trial in group]
        of_group = family or family_of(cells[0])
        self.draws = count_draws(group, family)
        self._cost_us = of_group.cost_us(cells, self.draws)
        # What a pack more costs: its own steps, and rows that another draws, too.
        self._more_us = 2 * of_group.cost_us(cells[:1], 1) - of_group.cost_us(cells[:1] * 2, 1)

    def part_us(self, count: int) -> float:
        """Estimate the microseconds of a pack if there are so many."""
        return (self._cost_us + (count - 1) * self._more_us) / count


def _balanced(groups: Sequence[_Work], counts: list[int], formed_costs: Sequence[float], slots: int) -> list[int]:
    """Split the costliest packs further while that lets all slots end earlier."""
    if slots == 1:
        return counts
    now = best = list(counts)
    shortest = _makespan(groups, best, formed_costs, slots)
    for _ in range(3 * slots):
        largest = [group.part_us(count) for group, count in zip(groups, now, strict=True)]
        can = [i for i, group in enumerate(groups) if now[i] < group.trials]
        if not can:
            break
        costliest = max(can, key=largest.__getitem__)
        now = [count + (i == costliest) for i, count in enumerate(now)]
        length = _makespan(groups, now, formed_costs, slots)
        if length < 0.97 * shortest:
            best, shortest = now, length
    return best


def _makespan(groups: Sequence[_Work], counts: Sequence[int], formed_costs: Sequence[float], slots: int) -> float:
    """Estimate when the last slot ends if each takes the costliest pack that is left."""
    parts = [group.part_us(n) for group, n in zip(groups, counts, strict=True) for _ in range(n)]
    ends = [0.0] * slots
    for pack_us in sorted((*parts, *formed_costs), reverse=True):
        heapq.heapreplace(ends, ends[0] + pack_us)
    return max(ends)
