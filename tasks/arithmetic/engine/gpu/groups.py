"""Assignment of trials to blocks: a few trials that see the same rows share one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from study.records import Range


def same_rows(seeds: npt.NDArray[np.uint64], ranges: Sequence[Range]) -> npt.NDArray[np.int64]:
    """Enumerate the trials' training rows: two trials have equal numbers if they have equal seeds and ranges.

    Args:
        seeds: uint64 [trials].
        ranges: each trial's range of training inputs.

    Example:
        >>> same_rows(np.array([7, 8, 7, 7], np.uint64), [((1.0, 2.0),)] * 3 + [((1.0, 3.0),)]).tolist()
        [0, 1, 0, 2]
    """
    numbers: dict[tuple[int, Range], int] = {}
    return np.array([numbers.setdefault(pair, len(numbers)) for pair in zip(seeds.tolist(), ranges, strict=True)])


def deal(which: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64], most: int) -> list[npt.NDArray[np.uint64]]:
    """Assign trials to blocks of trials that see the same rows: as few blocks as possible, of about equal size.

    Args:
        which: places of trials in their pack, at least one, in any order.
        rows: result of `same_rows` for the pack.
        most: largest number of trials of a block, >= 1.

    Returns:
        For each block size, largest first, the places of the blocks' trials, [blocks, trials].

    Example:
        >>> places = np.array([0, 1, 2, 3, 4, 6], np.uint64)
        >>> [blocks.tolist() for blocks in deal(places, np.array([0, 1, 0, 0, 0, 1, 0]), 4)]
        [[[0, 2, 3]], [[4, 6]], [[1]]]
    """
    seen = rows[which.astype(np.int64)]
    order = np.argsort(seen, kind="stable")
    bounds = np.flatnonzero(np.diff(seen[order])) + 1
    blocks: dict[int, list[npt.NDArray[np.uint64]]] = {}
    for group in np.split(which[order], bounds):
        for block in np.array_split(group, -(-len(group) // most)):
            blocks.setdefault(len(block), []).append(block)
    return [np.stack(blocks[trials]) for trials in sorted(blocks, reverse=True)]
