"""From trials to packs, and from packs to the bundles that devices train side by side."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields

from study.records import Cell, Pack, Trial

ShapeKey = tuple[object, ...]


_MAY_DIFFER = {
    "sparsity_strength",
    "sparsity_start",
    "sparsity_end",
    "learning_rate",
    "init_variance",
    "interpolation_range",
    "extrapolation_range",
    "success_epsilon",
    "success_threshold",
}


_WHEN_OFF = {"sparsity_shape": "linear", "sparsity_scaling": "linear"}


# One Python step an iteration costs a pack that much, whatever its trials: more trials share it.
_STEP_US = 300.0


# Float32 numbers of a pack's activations beyond which more trials only fall out of the cache.
_PACK_NUMBERS = 2**20


_SMALLEST_CAP, _LARGEST_CAP = 16, 256


# Packs that one worker keeps going on a device: each is a thread, and the interpreter serves one at a time.
MOST_CONCURRENT = 32


def shape_key(cell: Cell) -> ShapeKey:
    """Give what must be equal among the trials of a pack.

    A cell whose sparsity regulariser is off trains beside those of the default shape and scaling.
    """
    off = not cell.sparsity_strength
    return tuple(
        _WHEN_OFF[f.name] if off and f.name in _WHEN_OFF else getattr(cell, f.name)
        for f in fields(cell)
        if f.name not in _MAY_DIFFER
    )


def cost(cell: Cell) -> float:
    """Estimate the microseconds that one trial adds to an iteration of its pack, on one core.

    Rows are those of the batch and, spread over the iterations between them, those of the evaluations, which
    are forward passes only. Each row costs its inputs, drawn once and multiplied by each hidden unit, and the
    hidden units.
    """
    rows = cell.batch_size + 2 * cell.evaluation_rows / cell.evaluate_every / 3
    return rows * (cell.input_size * (1e-3 + 1.5e-3 * cell.hidden_size) + 0.02 * cell.hidden_size + 0.02)


def pack_cost(trials: Sequence[Trial]) -> float:
    """Estimate the microseconds that a pack takes on one core."""
    cell = trials[0].cell
    return (cell.iterations + 1) * (_STEP_US + len(trials) * cost(cell))


AtOnce = Callable[[Cell], int | None]
"""Gives how many trials of a cell a device trains side by side; None if a pack may be of any size."""


def make_packs(
    trials: Iterable[Trial],
    *,
    slots: int,
    size: int | None = None,
    kept: Sequence[Sequence[str]] = (),
    at_once: AtOnce | None = None,
) -> list[Pack]:
    """Sort trials into packs; how never changes a result.

    Args:
        trials: what is to be done.
        slots: packs that can run side by side; sizes are such that all slots end at about the same time.
        size: trials in a pack at most; None to choose it.
        kept: trial ids of packs that have a checkpoint: formed again as they were, if all of their trials are
            still to be done; of two that overlap, the first.
        at_once: of the devices; None for cores, which train one trial after the other.

    Returns:
        The costliest first; every trial in exactly one.

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
    again = _form_again(pending, kept)
    groups: dict[ShapeKey, list[Trial]] = {}
    for trial in pending.values():
        groups.setdefault(shape_key(trial.cell), []).append(trial)
    if at_once is None:
        counts = [_fewest(group, size) for group in groups.values()]
    else:
        shares = sum(bundle_share(group, at_once) for group in (*groups.values(), *(p.trials for p in again)))
        counts = [_filling(group, size, at_once, min(1, shares / slots)) for group in groups.values()]
    if size is None and at_once is None:
        counts = _balanced(list(groups.values()), counts, [pack_cost(p.trials) for p in again], slots)
    new = [Pack(p) for group, n in zip(groups.values(), counts, strict=True) for p in _cut(group, n)]
    return sorted((*again, *new), key=lambda pack: pack_cost(pack.trials), reverse=True)


def _form_again(pending: dict[str, Trial], kept: Sequence[Sequence[str]]) -> list[Pack]:
    """Take the trials of unfinished packs out of those pending."""
    again = []
    for trial_ids in kept:
        if trial_ids and len(set(trial_ids)) == len(trial_ids) and all(i in pending for i in trial_ids):
            trials = tuple(pending[i] for i in trial_ids)
            if len({shape_key(trial.cell) for trial in trials}) == 1:
                again.append(Pack(trials))
                for trial_id in trial_ids:
                    del pending[trial_id]
    return again


def _fewest(group: Sequence[Trial], size: int | None) -> int:
    """Count the packs of a group if each is as large as helps."""
    cell = group[0].cell
    numbers = cell.batch_size * (cell.input_size + 4 * cell.hidden_size)
    cap = size or min(max(_PACK_NUMBERS // numbers, _SMALLEST_CAP), _LARGEST_CAP)
    return -(-len(group) // cap)


def bundle_share(trials: Sequence[Trial], at_once: AtOnce) -> float:
    """Give the share of a device that some trials of equal shape fill; all of it where that isn't known."""
    most = at_once(trials[0].cell)
    return len(trials) / most if most else 1.0


def _filling(group: Sequence[Trial], size: int | None, at_once: AtOnce, share: float) -> int:
    """Count the packs of a group if each fills a device, or that share of it if there are more devices than work."""
    most = at_once(group[0].cell)
    if size is not None or most is None:
        return _fewest(group, size)
    return -(-len(group) // max(1, int(most * share)))


def make_bundles(
    packs: Sequence[Pack], *, slots: int, at_once: AtOnce | None = None
) -> list[tuple[Pack, ...]]:
    """Put packs together that a device trains side by side; on cores, each is alone.

    Args:
        packs: the costliest first: so those put together end at about the same time.
        slots: devices.
        at_once: as for `packs`.

    Returns:
        Every pack in exactly one bundle, in their order.

    Example:
        >>> from study.plan.plan import make_plan
        >>> from study.spec import load_spec
        >>> made = make_packs(make_plan(load_spec("simple")).trials, slots=1, at_once=lambda cell: 528)
        >>> [len(pack.trials) for pack in made], len(make_bundles(made, slots=1, at_once=lambda cell: 528))
        ([100, 100, 100, 100], 1)
    """
    if at_once is None:
        return [(pack,) for pack in packs]
    shares = [bundle_share(pack.trials, at_once) for pack in packs]
    count = max(math.ceil(sum(shares) - 1e-9), min(slots, len(packs)))
    while count < len(packs):
        made = _cut_by(shares, count)
        if all(
            sum(shares[i] for i in bundle) < 1 + 1e-9 and len(bundle) <= MOST_CONCURRENT for bundle in made
        ):
            return [tuple(packs[i] for i in bundle) for bundle in made]
        count += 1
    return [(pack,) for pack in packs]


def _cut_by(shares: Sequence[float], count: int) -> list[list[int]]:
    """Cut a row of shares, in order, into parts of about the same sum; those without any are left out."""
    made: list[list[int]] = [[] for _ in range(count)]
    total, before = sum(shares), 0.0
    for i, share in enumerate(shares):
        made[min(count - 1, int((before + share / 2) / total * count))].append(i)
        before += share
    return [part for part in made if part]


def _cut(group: Sequence[Trial], count: int) -> list[tuple[Trial, ...]]:
    """Cut a group into parts whose sizes differ by one at most."""
    edges = [len(group) * i // count for i in range(count + 1)]
    return [tuple(group[a:b]) for a, b in itertools.pairwise(edges)]


def _balanced(
    groups: Sequence[Sequence[Trial]], counts: list[int], again: Sequence[float], slots: int
) -> list[int]:
    """Split the costliest packs further while that lets all slots end earlier."""
    if slots == 1:
        return counts
    now = best = list(counts)
    shortest = _makespan(groups, best, again, slots)
    for _ in range(3 * slots):
        largest = [_part_cost(group, count) for group, count in zip(groups, now, strict=True)]
        can = [i for i, group in enumerate(groups) if now[i] < len(group)]
        if not can:
            break
        costliest = max(can, key=largest.__getitem__)
        now = [count + (i == costliest) for i, count in enumerate(now)]
        length = _makespan(groups, now, again, slots)
        if length < 0.97 * shortest:
            best, shortest = now, length
    return best


def _part_cost(group: Sequence[Trial], count: int) -> float:
    return pack_cost(group[: -(-len(group) // count)])


def _makespan(
    groups: Sequence[Sequence[Trial]], counts: Sequence[int], again: Sequence[float], slots: int
) -> float:
    """Estimate when the last slot ends if each takes the costliest pack that is left."""
    parts = [_part_cost(g, n) for g, n in zip(groups, counts, strict=True) for _ in range(n)]
    ends = [0.0] * slots
    for one in sorted((*parts, *again), reverse=True):
        heapq.heapreplace(ends, ends[0] + one)
    return max(ends)
