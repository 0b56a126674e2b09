"""Result files with checked rows.

Ids must be the hashes of their content. Texts must have a form that this package writes, such as a known outcome.

Checking each small file separately takes longer than reading it, so the rows of many files are checked together. A
process checks the same bytes only once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from study.arrow import complaint, with_short_errors
from study.store.files import UnbelievableError, open_parquet, read_table

_right: set[bytes] = set()
"""Digests, 16 bytes each, of the files whose rows this process has found valid."""


@dataclass(frozen=True)
class Results:
    """A file of results.

    Args:
        table: the requested columns; all columns if the rows must still be checked.
        columns: the requested columns; None for all.
        digest: digest of the file's bytes.
    """

    table: pa.Table
    columns: list[str] | None
    digest: bytes

    @property
    def wanted(self) -> pa.Table:
        """The requested columns, with long error texts shortened."""
        return with_short_errors(self.table if self.columns is None else self.table.select(self.columns))


def open_results(where: str, data: bytes, columns: list[str] | None) -> Results:
    """Parse a file of results without checking its rows.

    Args:
        where: the file's address, for errors.
        data: the file's bytes.
        columns: the requested columns; None for all.

    Raises:
        InputError: if a newer package wrote it.
        StoreError: if an earlier package wrote it, and it can't be converted to the current format.
        UnbelievableError: if this package didn't write it, or its columns don't match the current version.
        Exception: another of `UNREADABLE`, if the bytes aren't a complete Parquet file with valid metadata.
    """
    file = open_parquet(where, data, "results")
    digest = hashlib.blake2b(data, digest_size=16).digest()
    read = columns if digest in _right else None
    return Results(read_table(where, file, "results", read), columns, digest)


def are_right(files: Sequence[Results]) -> bool:
    """Return True if all rows of the files are valid, and remember the files in that case.

    Raises:
        MemoryError: if memory is short.
    """
    unchecked = [file for file in files if file.digest not in _right]
    try:
        for table in _joined([file.table for file in unchecked]):
            check_rows(table)
    except MemoryError:
        raise
    except Exception:  # checking each file finds the invalid one and the reason
        return False
    _right.update(file.digest for file in unchecked)
    return True


def check_results(file: Results) -> Results:
    """Check the rows of a file unless they were checked before, and return the file.

    Raises:
        UnbelievableError: if a row is invalid.
        Exception: an error of `complaint` for values that it can't decode.
    """
    if file.digest not in _right:
        check_rows(file.table)
        _right.add(file.digest)
    return file


def check_rows(results: pa.Table) -> None:
    """Check that this package could have written the rows.

    Raises:
        UnbelievableError: if a row is invalid.
        Exception: an error of `complaint`, for values that it can't decode or a missing column.
    """
    reason = complaint(results)
    if reason is not None:
        raise UnbelievableError(reason)


def _joined(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Return one table per schema, concatenated from the tables that have it."""
    groups: list[list[pa.Table]] = []
    for table in tables:
        alike = (group for group in groups if group[0].schema.equals(table.schema, check_metadata=True))
        group = next(alike, None)
        if group is None:
            groups.append([table])
        else:
            group.append(table)
    return [pa.concat_tables(group).combine_chunks() for group in groups]
