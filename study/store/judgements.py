"""When trials were solved by what judged them last, kept in a file: otherwise it is read from their curves.

Where references say what success is, every reading judges the trials, and their curves take ten times as long to read
as their results: of 10,000 solved trials 1.4 s, and 0.14 s with this file. It can be lost, or be of other trials: then
curves are read.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from study.records import Outcome
from study.store.files import UNREADABLE, parquet

FILE = "judged.parquet"

Key = tuple[str | float | None, ...]
"""A trial, how it was trained and what judged it: whatever the iteration at which it was solved depends on."""

_KEY = (
    "trial_id",
    "criterion",
    "engine",
    "device",
    "training_s",
)  # no two trainings take the same time to the last bit
_COLUMNS = (*_KEY, "solved_at_iteration")


def keys_of(results: pa.Table) -> list[Key]:
    """Return the key of each row."""
    return list(zip(*(results[name].to_pylist() for name in _KEY), strict=True))


def judgements_file(results: pa.Table) -> bytes:
    """Write the file.

    Args:
        results: rows of trials as they are judged.
    """
    solved = results.filter(pc.equal(results["outcome"], str(Outcome.SOLVED)))
    table = pa.table({name: solved[name] for name in _COLUMNS})
    return parquet(table, {}, compression="zstd")


def read_judgements(data: bytes | None) -> Mapping[Key, int | None]:
    """Read the file: when trials were solved, by their keys; nothing if it isn't there, or isn't whole."""
    if data is None:
        return {}
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        table = file.read(columns=list(_COLUMNS), use_threads=False)
        return dict(zip(keys_of(table), table["solved_at_iteration"].cast(pa.int64()).to_pylist(), strict=True))
    except UNREADABLE:
        return {}
