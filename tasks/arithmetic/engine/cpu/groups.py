"""Groups of a pack's trials that train from one draw of rows, and the places of their numbers.

A trial's rows are a function of its seed, its ranges and the iteration. Trials with equal seed and range form a group,
whatever their models: their rows are drawn once and used by all of them.
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

# Rows of stacked weights multiplied at a time: with a block's sums and their gradients, they stay in the second-level
# cache.
MOST_STACKED = 48

# Float32 numbers of a group's weights, and as many of their gradients: a megabyte each, so that 45 cells of the largest
# published layers share a draw. They needn't stay in the second-level cache, since they are processed in sequence: the
# hidden-size study takes 6% less time than with 48 * 1024. A larger group is split, which costs another draw.
_MOST_NUMBERS = 256 * 1024

PLACES = 10
"""Number of a trial's places: five for each layer, in the order of `Layer`."""


class Groups(NamedTuple):
    """Groups of trials, and the places of the trials' numbers.

    Args:
        order: places of the trials in the pack, group by group, int64 [trials].
        ends: end of each group in that order, int64 [groups].
        has_logs: True if a trial of the group multiplies logarithms, bool [groups].
        target: equal numbers for trials that compute equal targets from equal rows, int64 [all trials of the pack].
        sums: first row of a trial's sums with inputs, within its group, int64 [all trials].
        log_sums: the same for its sums with logarithms.
        stacked: how many rows of sums a trial has, with inputs and with logarithms, int64 [all trials, 2].
        places: places of a trial's weights, int64 [all trials, PLACES].
        logs_at: first place of the weights of logarithms; those of inputs begin at 0.
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
    """Sizes of a group's arrays.

    Args:
        numbers: numbers of a group's weights.
        stacked: rows of sums computed at a time.
        spare: rows that first layers use in turn.
        room: rows that second layers use in turn.
    """

    numbers: int
    stacked: int
    spare: int
    room: int


class _Requirements:
    """Array sizes that the trials of each shape need."""

    def __init__(self, tables: PackTables) -> None:
        self.inputs = tables.inputs
        self.hidden = tables.shapes["hidden"].astype(np.int64)
        first, second = tables.codes[:, 0], tables.codes[:, 1]
        self.products = np.array([PRODUCTS[int(family)] for family in first["family"]], np.int64) * self.hidden[:, None]
        size = self.hidden * self.inputs
        other_sizes = np.stack(
            [
                _factors(first) * size,
                np.where(first["activation"] == PLAIN, 0, self.hidden),
                np.where(second["family"] >= NALU, 3, 1) * _round_up(self.hidden),
                _factors(second) * self.hidden,
                np.where(second["activation"] == PLAIN, 0, 1),
            ],
            axis=1,
        )
        self.other_sizes = _round_up(other_sizes)


def _round_up(counts: Any) -> Any:
    """Round counts up to multiples of `LANES`."""
    return -(-counts // LANES) * LANES


def _factors(codes: Any) -> npt.NDArray[np.int64]:
    """Count the stored factors of a weight of each unit in `codes`: 2 for each NAC of the unit, else 0."""
    separate = (codes["family"] == NALU) & ~codes["shared"]
    return np.where(codes["weights"] == NAC, np.where(separate, 4, 2), 0).astype(np.int64)


def new_groups(
    tables: PackTables, which: npt.NDArray[np.int64], same_rows: npt.NDArray[np.int64], most: int = _MOST_NUMBERS
) -> tuple[Groups, Sizes]:
    """Group trials that see equal rows, and assign each trial's weights their places in the arrays of its group.

    Args:
        tables: the pack's tables.
        which: places of the trials in the pack, at least one.
        same_rows: equal numbers for trials that see equal rows, [all trials].
        most: greatest count of float32 numbers of a group's weights, with biases, NAC factors and padding; a trial that
            has more forms its own group. More trials that see equal rows are split into several groups.

    Returns:
        The groups, and the sizes of their arrays.
    """
    required, target = _Requirements(tables), _same_targets(tables)
    order = which[np.lexsort((tables.shape[which], target[which], same_rows[which]))]
    shape = tables.shape[order]
    products, others = required.products[shape], required.other_sizes[shape]
    weights = products.sum(1) * required.inputs + others.sum(1)
    ends = _ends(same_rows[order], weights, most)
    begins = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    rows, widest = _within(products, begins, ends)
    flat, longest = _within(others.reshape(len(order), -1), begins, ends, cumulate_columns=True)
    logs_at, factors_at, others_at = (int(end) for end in np.cumsum(widest * required.inputs))
    others_at = padded(others_at, LANES)
    places = _places(required, shape, rows, flat, (0, logs_at, factors_at), others_at)
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
    hidden = required.hidden[shape]
    sizes = Sizes(
        numbers=others_at + int(longest),
        stacked=max(MOST_STACKED, int(products[:, :2].sum(1).max())),
        spare=int(spare_rows(required.inputs, int(hidden.max()))),
        room=int(room_rows(int(hidden.max()), 1)),
    )
    return groups, sizes


def _same_targets(tables: PackTables) -> npt.NDArray[np.int64]:
    operation = tables.shapes["operation"][tables.shape]
    subsets = tables.shapes["subsets"][tables.shape]
    rows = np.column_stack([operation, subsets, tables.starts, tables.stops])
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _ends(same_rows: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Return the ends of groups: at changes of rows, and where a group would have more than `most` weights."""
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
    """Lay out sizes [trials, columns] consecutively within each group.

    Args:
        sizes: int64 [trials, columns], the trials group by group.
        begins: the first trial of each group, int64 [groups].
        ends: the trial after each group's last, int64 [groups].
        cumulate_columns: True to lay the columns of a trial out consecutively; False for each column separately.

    Returns:
        The start of each size, int64 [trials, columns], and the largest end in any group: int64 [columns], or one
            number if `cumulate_columns`.
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
    required: _Requirements, shape: npt.NDArray[np.int64], rows: npt.NDArray[np.int64],
    flat: npt.NDArray[np.int64], begins: tuple[int, int, int], others_at: int,
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Compute the places of each trial's numbers in its group's arrays, int64 [trials, PLACES]; see `Layer`."""
    n, hidden = required.inputs, required.hidden[shape]
    x, logs, factors = (begin + rows[:, k] * n for k, begin in enumerate(begins))
    counts = required.products[shape] > 0
    of_products = np.select([counts[:, 0], counts[:, 1]], [x, logs], factors)
    second = np.where(counts[:, 1], logs, factors)
    others = flat + others_at
    lines = _round_up(hidden)
    return np.stack(
        [
            of_products, second, x + hidden * n, others[:, 0], others[:, 1],
            others[:, 2], others[:, 2] + lines, others[:, 2] + 2 * lines, others[:, 3], others[:, 4],
        ],
        axis=1,
    )  # fmt: skip


def _spread(values: npt.NDArray[np.int64], order: npt.NDArray[np.int64], trials: int) -> npt.NDArray[np.int64]:
    """Write values of some trials to the trials' places in the pack, and 0 to other places."""
    table = np.zeros((trials, *values.shape[1:]), np.int64)
    table[order] = values
    return table


def distinct(rows: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Enumerate hashable rows in order of first occurrence, int64 [rows]; equal rows get equal numbers.

    Example:
        >>> distinct([(7, 1.0), (7, 2.0), (7, 1.0)]).tolist()
        [0, 1, 0]
    """
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
