"""Files of results with checked rows: ids are the hashes of their content, texts are what engines write.

Reading many small files takes longer than checking their rows, unless each is checked by itself: so the rows of many
are checked together. A process doesn't check the same bytes twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from study.arrow import complaint, with_short_errors
from study.store.files import UnbelievableError, open_parquet, read_table

_right: set[bytes] = set()
"""Digests of the files whose rows this process has found right: 16 bytes for a file."""


@dataclass(frozen=True)
class Results:
    """A file of results.

    Args:
        table: the columns that are wanted; all of them if the rows must still be checked.
        columns: the columns that are wanted; None for all.
        digest: of the file.
    """

    table: pa.Table
    columns: list[str] | None
    digest: bytes

    @property
    def wanted(self) -> pa.Table:
        """The columns that are wanted."""
        return with_short_errors(self.table if self.columns is None else self.table.select(self.columns))


def open_results(where: str, data: bytes, columns: list[str] | None) -> Results:
    """Read the bytes of a file of results, without checking its rows.

    Args:
        where: the file's address, for errors.
        data: the bytes.
        columns: the columns that are wanted; None for all.

    Raises:
        InputError: as `open_parquet` does.
        StoreError: as `open_parquet` and `read_table` do.
        UnbelievableError: as `open_parquet` does.
    """
    file = open_parquet(where, data, "results")
    digest = hashlib.blake2b(data, digest_size=16).digest()
    read = columns if digest in _right else None
    return Results(read_table(where, file, "results", read), columns, digest)


def are_right(files: Sequence[Results]) -> bool:
    """Return whether all rows of some files are right."""
    unchecked = [file for file in files if file.digest not in _right]
    try:
        for table in _joined([file.table for file in unchecked]):
            check_rows(table)
    except MemoryError:
        raise
    except Exception:  # which of the files is wrong, and why, is found out by checking each
        return False
    _right.update(file.digest for file in unchecked)
    return True


def check_results(file: Results) -> Results:
    """Check the rows of a file.

    Raises:
        UnbelievableError: if one is wrong.
    """
    if file.digest not in _right:
        check_rows(file.table)
        _right.add(file.digest)
    return file


def check_rows(results: pa.Table) -> None:
    """Check that rows are what this package writes.

    Raises:
        UnbelievableError: if one isn't.
    """
    reason = complaint(results)
    if reason is not None:
        raise UnbelievableError(reason)


def _joined(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Join tables of one schema."""
    of_schema: list[list[pa.Table]] = []
    for table in tables:
        alike = (group for group in of_schema if group[0].schema.equals(table.schema, check_metadata=True))
        group = next(alike, None)
        if group is None:
            of_schema.append([table])
        else:
            group.append(table)
    return [pa.concat_tables(group).combine_chunks() for group in of_schema]
