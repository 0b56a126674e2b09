"""Which trials of a pack train from one draw of rows, and where each has its numbers while they do.

What a trial sees is a function of its seed, its ranges and the iteration. So trials of one seed and one range, whatever
their models, are a group: their rows are drawn once, and go through all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from study.stream.stream_simd import LANES, padded
from tasks.arithmetic.engine.compiled.codes import NAC, NALU
from tasks.arithmetic.engine.compiled.formulas import PLAIN
from tasks.arithmetic.engine.cpu.first_layers import PRODUCTS, spare_rows
from tasks.arithmetic.engine.cpu.layers import room_rows
from tasks.arithmetic.engine.cpu.tables import PackTables

# Rows of stacked weights that are multiplied at a time: with a block's sums and their gradients, they stay in the
# second-level cache.
MOST_STACKED = 48

# Float32 numbers of a group's weights, and as many of their gradients: a megabyte each, so that 45 cells of the largest
# published layers draw once. They needn't stay in the second-level cache, for they are passed one after the other: the
# hidden-size study takes 6% less than with 48 * 1024. A larger group is cut, and draws once more.
_MOST_NUMBERS = 256 * 1024

PLACES = 10
"""Of a trial: five of each layer, in the order of `Layer`."""


class Groups(NamedTuple):
    """Groups of trials, and where each of these has its numbers.

    Args:
        order: places of the trials in the pack, group by group, int64 [trials].
        ends: where each group ends in that order, int64 [groups].
        has_logs: whether any trial of a group multiplies logarithms, bool [groups].
        target: which trials have the same targets of the same rows, int64 [all trials of the pack].
        sums: first row of a trial's sums with inputs among those of its group, int64 [all trials].
        log_sums: the same, of its sums with logarithms.
        stacked: rows of sums with inputs, and with logarithms, of a trial, int64 [all trials, 2].
        places: of its weights, int64 [all trials, PLACES].
        logs_at: where weights of logarithms begin; those of inputs begin at 0.
    """

    order: Any
    ends: Any
    has_logs: Any
    target: Any
    sums: Any
    log_sums: Any
    stacked: Any
    places: Any
    logs_at: int


class Sizes(NamedTuple):
    """How large the arrays are that groups are trained in.

    Args:
        numbers: of a group's weights.
        stacked: rows of sums at a time.
        spare: rows that first layers use in turn.
        room: rows that second layers use in turn.
    """

    numbers: int
    stacked: int
    spare: int
    room: int


class _Needs:
    """What the trials of each shape need."""

    def __init__(self, tables: PackTables) -> None:
        self.inputs = tables.inputs
        self.hidden = tables.shapes["hidden"].astype(np.int64)
        first, second = tables.codes[:, 0], tables.codes[:, 1]
        self.products = np.array([PRODUCTS[int(family)] for family in first["family"]], np.int64) * self.hidden[:, None]
        size = self.hidden * self.inputs
        of_rest = np.stack(
            [
                _factors(first) * size,
                np.where(first["activation"] == PLAIN, 0, self.hidden),
                np.where(second["family"] >= NALU, 3, 1) * _whole(self.hidden),
                _factors(second) * self.hidden,
                np.where(second["activation"] == PLAIN, 0, 1),
            ],
            axis=1,
        )
        self.of_rest = _whole(of_rest)


def _whole(counts: Any) -> Any:
    """Round counts up to whole vectors."""
    return -(-counts // LANES) * LANES


def _factors(codes: Any) -> npt.NDArray[np.int64]:
    """Count the factors that are kept of each weight."""
    separate = (codes["family"] == NALU) & ~codes["shared"]
    return np.where(codes["weights"] == NAC, np.where(separate, 4, 2), 0).astype(np.int64)


def new_groups(
    tables: PackTables, which: npt.NDArray[np.int64], same_rows: npt.NDArray[np.int64], most: int = _MOST_NUMBERS
) -> tuple[Groups, Sizes]:
    """Put some trials into groups, and give each trial places for its numbers.

    Args:
        tables: of the pack.
        which: places of the trials in the pack.
        same_rows: a number that is the same for trials that see the same rows, [all trials].
        most: numbers of a group's weights; a trial that has more is a group of its own.
    """
    needs, target = _Needs(tables), _same_targets(tables)
    order = which[np.lexsort((tables.shape[which], target[which], same_rows[which]))]
    shape = tables.shape[order]
    products, rest = needs.products[shape], needs.of_rest[shape]
    weights = products.sum(1) * needs.inputs + rest.sum(1)
    ends = _ends(same_rows[order], weights, most)
    begins = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    rows, widest = _within(products, begins, ends)
    flat, longest = _within(rest.reshape(len(order), -1), begins, ends, cumulate_columns=True)
    logs_at, factors_at, rest_at = (int(end) for end in np.cumsum(widest * needs.inputs))
    rest_at = padded(rest_at, LANES)
    places = _places(needs, shape, rows, flat, (0, logs_at, factors_at), rest_at)
    trials = len(tables.shape)
    logs = np.array([bool(products[a:b, 1].any()) for a, b in zip(begins, ends, strict=True)])
    groups = Groups(
        order=order,
        ends=ends,
        has_logs=logs,
        target=target,
        sums=_spread(rows[:, 0], order, trials),
        log_sums=_spread(rows[:, 1], order, trials),
        stacked=_spread(products[:, :2], order, trials),
        places=_spread(places, order, trials),
        logs_at=logs_at,
    )
    hidden = needs.hidden[shape]
    sizes = Sizes(
        numbers=rest_at + int(longest),
        stacked=max(MOST_STACKED, int(products[:, :2].sum(1).max())),
        spare=int(spare_rows(needs.inputs, int(hidden.max()))),
        room=int(room_rows(int(hidden.max()), 1)),
    )
    return groups, sizes


def _same_targets(tables: PackTables) -> npt.NDArray[np.int64]:
    operation = tables.shapes["operation"][tables.shape]
    subsets = tables.shapes["subsets"][tables.shape]
    rows = np.column_stack([operation, subsets, tables.starts, tables.stops])
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _ends(same_rows: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Cut a sequence of trials where other rows begin, and where a group would have too many weights."""
    ends: list[int] = []
    total = 0
    for place, size in enumerate(weights.tolist()):
        if place and (same_rows[place] != same_rows[place - 1] or total + size > most):
            ends.append(place)
            total = 0
        total += size
    return np.array([*ends, len(weights)], np.int64)


def _within(
    sizes: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    *,
    cumulate_columns: bool = False,
) -> tuple[npt.NDArray[np.int64], Any]:
    """Lay sizes [trials, columns] one after the other within each group.

    Args:
        sizes: to lay out.
        begins: of the groups.
        ends: of the groups.
        cumulate_columns: whether the columns of a trial lie one after the other; otherwise each column by itself.

    Returns:
        Where each begins, and the largest end: of each column, or of all.
    """
    if cumulate_columns:
        line, largest = _within(sizes.reshape(-1, 1), begins * sizes.shape[1], ends * sizes.shape[1])
        return line.reshape(sizes.shape), largest[0]
    before = np.cumsum(sizes, axis=0) - sizes
    starts = before.copy()
    largest = np.zeros(sizes.shape[1], np.int64)
    for a, b in zip(begins, ends, strict=True):
        starts[a:b] -= before[a]
        largest = np.maximum(largest, starts[b - 1] + sizes[b - 1])
    return starts, largest


def _places(
    needs: _Needs, shape: npt.NDArray[np.int64], rows: npt.NDArray[np.int64],
    flat: npt.NDArray[np.int64], begins: tuple[int, int, int], rest: int,
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Find the places of each trial's numbers, [trials, PLACES]."""
    n, hidden = needs.inputs, needs.hidden[shape]
    x, logs, factors = (begin + rows[:, k] * n for k, begin in enumerate(begins))
    counts = needs.products[shape] > 0
    of_products = np.select([counts[:, 0], counts[:, 1]], [x, logs], factors)
    second = np.where(counts[:, 1], logs, factors)
    others = flat + rest
    lines = _whole(hidden)
    return np.stack(
        [
            of_products, second, x + hidden * n, others[:, 0], others[:, 1],
            others[:, 2], others[:, 2] + lines, others[:, 2] + 2 * lines, others[:, 3], others[:, 4],
        ],
        axis=1,
    )  # fmt: skip


def _spread(values: npt.NDArray[np.int64], order: npt.NDArray[np.int64], trials: int) -> npt.NDArray[np.int64]:
    """Put values of some trials at the trials' places in the pack."""
    table = np.zeros((trials, *values.shape[1:]), np.int64)
    table[order] = values
    return table


def distinct(rows: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Number rows [trials, columns] so that equal ones have the same number.

    Example:
        >>> distinct([(7, 1.0), (7, 2.0), (7, 1.0)]).tolist()
        [0, 1, 0]
    """
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
