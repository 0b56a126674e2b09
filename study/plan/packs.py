"""Division of trials into packs, and of packs into bundles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from study.interface.family import Family
from study.plan.costs import by_draw, pack_cost
from study.plan.cuts import Work, balanced, cut_by_cost, cut_by_number, with_whole_draws
from study.plugins.families import family_of
from study.records import Cell, Pack, Trial

ShapeKey = tuple[object, ...]


# Most packs of a bundle: each has a thread, and the interpreter runs one thread at a time.
MOST_CONCURRENT = 32


def shape_key(cell: Cell) -> ShapeKey:
    """Return the part of a cell that must be equal among the trials of a pack.

    Raises:
        ValueError: if no installed family has the cell's task.
        InputError: if the family can't be imported, or several packages offer it.
    """
    return (cell.task, *family_of(cell).shape(cell))


KeyOf = Callable[[Cell], ShapeKey]
"""Function that returns the part of a cell that must be equal among the trials of a pack."""

AtOnce = Callable[[Cell], int | None]
"""Function that returns the number of a cell's trials that fill a device; None if packs may have any size."""


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

    Trials with the same rows share a pack if that leaves no slot idle, so that an engine may draw the rows once.

    Args:
        trials: the trials to run.
        slots: the number of packs that can run side by side; pack sizes let all slots end at about the same time.
        size: the maximum number of trials in a new pack; None to choose it.
        checkpointed: trial ids of packs that have a checkpoint. A pack is formed again if all of its trials are among
            `trials`, with equal `key_of`; of two that overlap, only the first.
        at_once: the number of a cell's trials that fill a device; None for cores, which train one trial after another.
        family: the study's family, which estimates costs and limits packs; None for that of each task's name.
        key_of: the part of a cell that must be equal among the trials of a pack, chosen by the engine.

    Returns:
        The packs, the costliest first; every trial is in exactly one.

    Raises:
        ValueError: if `slots` or `size` is below 1, or if no installed family has a trial's task.
        InputError: if a trial's family can't be imported, or several packages offer it; not if both `family` and
            another `key_of` are given.

    Example:
        >>> from study.plan.plan import make_plan
        >>> from study.spec import load_spec
        >>> trials = make_plan(load_spec("simple")).trials
        >>> sorted({len(pack.trials) for pack in make_packs(trials, slots=2, size=40)})
        [33, 34]
    """
    if slots < 1 or (size is not None and size < 1):
        raise ValueError(f"slots and size must be >= 1, but got slots={slots} and size={size}")
    pending = {trial.id: trial for trial in trials}
    formed = _form_again(pending, checkpointed, key_of)
    trials_by_key: dict[ShapeKey, list[Trial]] = {}
    for trial in pending.values():
        trials_by_key.setdefault(key_of(trial.cell), []).append(trial)
    groups = [list(itertools.chain.from_iterable(by_draw(group, family))) for group in trials_by_key.values()]
    if at_once is None:
        counts = [_fewest(group, size, slots, family) for group in groups]
    else:
        shares = sum(bundle_share(group, at_once) for group in (*groups, *(p.trials for p in formed)))
        share = min(1, shares / slots)
        counts = [_filling(group, size, at_once, share, slots, family) for group in groups]
    cut = cut_by_number
    if size is None and at_once is None:
        formed_costs = [pack_cost(p.trials, family) for p in formed]
        work = [Work(group, family) for group in groups]
        counts = [with_whole_draws(count, group_work.draws) for count, group_work in zip(counts, work, strict=True)]
        counts, cut = balanced(work, counts, formed_costs, slots), partial(cut_by_cost, family=family)
    new = [Pack(p) for group, n in zip(groups, counts, strict=True) for p in cut(group, n)]
    return sorted((*formed, *new), key=lambda pack: pack_cost(pack.trials, family), reverse=True)


def _form_again(pending: dict[str, Trial], checkpointed: Sequence[Sequence[str]], key_of: KeyOf) -> list[Pack]:
    """Form checkpointed packs again, and remove their trials from `pending`."""
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
    """Return a group's number of packs of the given size, or else of the maximum useful size."""
    caps = ((family or family_of(cell)).most_in_pack(cell, len(group), slots) for cell in {t.cell for t in group})
    return -(-len(group) // (size or min(caps)))


def bundle_share(trials: Sequence[Trial], at_once: AtOnce) -> float:
    """Return the share of a device that trials of equal shape, at least one, fill: 1 if unknown.

    It is above 1 if they don't fit at once.
    """
    most = at_once(trials[0].cell)
    return len(trials) / most if most else 1.0


def _filling(
    group: Sequence[Trial], size: int | None, at_once: AtOnce, share: float, slots: int, family: Family | None
) -> int:
    """Return a group's number of packs if each fills the given share of a device.

    With a size, or if the number of trials that fill a device is unknown, return that of `_fewest`.
    """
    most = at_once(group[0].cell)
    if size is not None or most is None:
        return _fewest(group, size, slots, family)
    return -(-len(group) // max(1, int(most * share)))


def make_bundles(packs: Sequence[Pack], *, slots: int, at_once: AtOnce | None = None) -> list[tuple[Pack, ...]]:
    """Group packs into bundles of at most `MOST_CONCURRENT` that a device trains side by side.

    Each pack is a bundle of its own on cores, and also if any of the packs doesn't fit a device at once.

    Args:
        packs: the packs, the costliest first, so that packs of a bundle end at about the same time.
        slots: the number of devices.
        at_once: as for `make_packs`.

    Returns:
        The bundles, with every pack in exactly one, in the packs' order.

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
    """Divide the indices of shares, in order, into at most `count` nonempty parts with about equal sums of shares."""
    parts: list[list[int]] = [[] for _ in range(count)]
    total, before = sum(shares), 0.0
    for i, share in enumerate(shares):
        parts[min(count - 1, int((before + share / 2) / total * count))].append(i)
        before += share
    return [part for part in parts if part]
