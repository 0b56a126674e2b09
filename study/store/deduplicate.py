"""Removal of duplicate trials from overlapping result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import unified
from study.errors import ConflictError
from study.records import Outcome

_FREE_TO_DIFFER = ("training_s", "engine", "device", "error")
_BY_CRITERION = ("outcome", "threshold", "criterion", "solved_at_iteration")
"""Columns that depend on a trial's criterion, which isn't part of its id."""


def one_a_trial(tables: Sequence[pa.Table], names: Sequence[str]) -> pa.Table:
    """Return one row per trial: a result, else a trial stopped early, else a failure; the first in case of a tie.

    The rows keep the order of the files. Two results of a trial by one engine and kind of device must be equal, except
    for training time and, if their criteria differ, the judgement.

    Args:
        tables: the rows of each file; at least one.
        names: names of the files, for errors.

    Raises:
        ConflictError: if another result of a trial differs from the returned one where they must be equal.
        ValueError, TypeError, OverflowError: an error of `unified`, if tables with different columns can't be joined.
    """
    table = unified(tables)
    if pc.count_distinct(table["trial_id"]).as_py() == len(table):
        return table
    table = table.combine_chunks()
    lengths = [len(rows) for rows in tables]
    files = np.repeat(np.arange(len(tables)), lengths)
    row_in_file = np.concatenate([np.arange(1, length + 1) for length in lengths])
    trials = table["trial_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    rank = np.select([_are(table, Outcome.FAILED), _are(table, Outcome.STOPPED)], [2, 1])
    order = np.lexsort((files, rank, trials))
    first = np.append(True, trials[order][1:] != trials[order][:-1])
    keep = order[first]
    row_of_trial = np.empty(len(keep), np.int64)
    row_of_trial[trials[keep]] = keep
    for row in order[~first & (rank[order] == 0)]:  # a second result of its trial
        pair = (row_of_trial[trials[row]], row)
        _check_same(table, pair, [f"{names[files[at]]}, row {row_in_file[at]}" for at in pair])
    return table.take(np.sort(keep))


def _are(table: pa.Table, outcome: Outcome) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows with an outcome."""
    return np.asarray(pc.equal(table["outcome"], str(outcome)))


def _check_same(table: pa.Table, pair: tuple[np.int64, np.int64], places: Sequence[str]) -> None:
    """Raise ConflictError if two results of a trial by one engine and kind of device differ where they must agree."""
    first, second = (table.slice(row, 1).to_pylist()[0] for row in pair)
    if _made_by(first) != _made_by(second):  # another engine or device may change the last bits
        return
    free = _FREE_TO_DIFFER if first["criterion"] == second["criterion"] else (*_FREE_TO_DIFFER, *_BY_CRITERION)
    differ = [name for name in first if name not in free and first[name] != second[name]]
    if differ:
        raise ConflictError(
            f"trial {first['trial_id']} has two results that differ in {', '.join(differ)}: in {places[0]}, "
            f"and {places[1]}, though one engine and device kind gives one result. Find out which is wrong "
            "and move that file out of the results folder"
        )


def _made_by(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the engine and the kind of device of a result."""
    return row["engine"], row["device"].split(":")[0]
