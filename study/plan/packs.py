"""From trials to packs, and from packs to the bundles that devices train side by side."""

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


# Packs that one worker runs on a device at once: each is a thread, and the interpreter serves one at a time.
MOST_CONCURRENT = 32


def shape_key(cell: Cell) -> ShapeKey:
    """Return what must be equal among the trials of a pack."""
    return (cell.task, *family_of(cell).shape(cell))


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
    groups = [list(itertools.chain.from_iterable(by_draw(group, family))) for group in of_key.values()]
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
        counts = [with_whole_draws(count, one.draws) for count, one in zip(counts, work, strict=True)]
        counts, cut = balanced(work, counts, formed_costs, slots), partial(cut_by_cost, family=family)
    new = [Pack(p) for group, n in zip(groups, counts, strict=True) for p in cut(group, n)]
    return sorted((*formed, *new), key=lambda pack: pack_cost(pack.trials, family), reverse=True)


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
