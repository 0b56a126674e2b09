"""Nested runs: inherited values, and the runs that aren't trials."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = npt.NDArray[np.bool_]


def inherited(table: pa.Table, names: Collection[str], above: Sequence[int | None]) -> tuple[pa.Table, list[str]]:
    """Fill missing values (null or empty) of nested runs from the nearest run above that has one.

    Args:
        table: one row a run.
        names: the columns to fill.
        above: the row of each run's parent, or None.

    Returns:
        The table, and the names of the changed columns.

    Raises:
        KeyError: if the table lacks a column.

    Example:
        >>> table = pa.table({"lr": ["0.1", None, None], "seed": [None, "0", "1"]})
        >>> inherited(table, ["lr"], [None, 0, 0])[0]["lr"].to_pylist()
        ['0.1', '0.1', '0.1']
    """
    changed = []
    for name in names:
        own = table[name].to_pylist()
        values = [_value(own, row, above) for row in range(len(own))]
        if values != own:
            changed.append(name)
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.chunked_array([pa.array(values, table[name].type)]))
    return table, changed


def _value(own: Sequence[object], row: int, above: Sequence[int | None]) -> object:
    """Return a run's own value, or that of the nearest run above; its own missing value if none has one."""
    place: int | None = row
    for _ in own:  # limits the steps, in case runs are nested in a cycle
        if place is None:
            break
        if own[place] not in (None, ""):
            return own[place]
        place = above[place]
    return own[row]


def with_trials_below(has_seed: Rows, above: Sequence[int | None]) -> Rows:
    """Mark the runs that have a nested run with a seed: the nested run is the trial then.

    Args:
        has_seed: True for runs with a seed of their own.
        above: the row of each run's parent, or None.

    Example:
        >>> with_trials_below(np.array([True, True, True, False]), [None, 0, None, 2]).tolist()
        [True, False, False, False]
    """
    has_trials = np.zeros(len(has_seed), bool)
    for row in np.flatnonzero(has_seed):
        place = above[int(row)]
        while place is not None and not has_trials[place]:
            has_trials[place] = True
            place = above[place]
    return has_trials
