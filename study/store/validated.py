"""Reading of a study's files; invalid ones are moved to quarantine, with the reason."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from study.errors import InputError, StudyError
from study.records import Checkpoint
from study.store.believable import Results, are_right, check_results, check_rows, open_results
from study.store.files import UnbelievableError, open_parquet, parse_checkpoint, read_table
from study.store.folder import Folder, NotAFileError
from study.store.formats import NoUpgradeError

T = TypeVar("T")

_WHY = ".why.txt"
_ROWS_AT_ONCE = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class ValidatedFiles:
    """Reader of a study's files; invalid ones are moved to quarantine.

    If the bucket of an object store doesn't exist, every method that reads raises an `InputError`.

    Args:
        folder: the study's folder.
        read_only: leave every file in place, even invalid ones.

    Attributes:
        notices: sentences for the user about files that were set aside or skipped.
    """

    def __init__(self, folder: Folder, read_only: bool) -> None:
        self.notices: list[str] = []
        self._folder = folder
        self._read_only = read_only

    def keys(self, kind: str) -> list[str]:
        """Return the keys of the files of a kind whose names are valid pack ids, sorted by name.

        Raises:
            StoreError: if the store fails.
        """
        suffix = _suffix(kind)
        names = self._folder.names(kind, suffix)
        return [f"{kind}/{name}" for name in names if _NAME.fullmatch(name.removesuffix(suffix))]

    def table(self, key: str, columns: list[str] | None = None) -> pa.Table | None:
        """Read a Parquet file, or some columns of it; return None if it is missing, or invalid and so quarantined.

        Raises:
            InputError: if a newer package wrote it.
            StoreError: if the store fails, or an earlier version's file can't be converted.
            KeyError: if a file of results lacks one of the columns.
        """
        ((_, table),) = self.tables([key], columns)
        return table

    def tables(
        self, keys: Sequence[str], columns: list[str] | None = None, only: pa.Array | None = None
    ) -> Iterator[tuple[str, pa.Table | None]]:
        """Yield each key with its Parquet file as a table of the current format, or None if missing or invalid.

        Invalid files are moved to quarantine.

        Args:
            keys: the files to read, all of one kind.
            columns: columns to read; None for all.
            only: ids of the trials to read; None for all.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if the store fails, or an earlier version's file can't be converted.
            KeyError: if a file of results lacks one of the columns.
        """
        for key, table in self._results(keys, columns) if _are_results(keys) else self._others(keys, columns):
            yield key, table if table is None or only is None else table.filter(pc.is_in(table["trial_id"], only))

    def whole(self, key: str) -> bytes | None:
        """Return the bytes of a Parquet file; None if it is missing, or not completely valid and so quarantined.

        Raises:
            InputError: if a newer package wrote it.
            StoreError: if the store fails, or an earlier version's file can't be converted.
        """

        def check(where: str, data: bytes) -> bytes:
            """Return the bytes; raise an error if they are invalid."""
            table = read_table(where, open_parquet(where, data, kind_of(key)), kind_of(key))
            if kind_of(key) == "results":
                check_rows(table)
            return data

        ((_, data),) = self._read_all([key])
        return None if data is None else self._parsed(key, check, self._folder.where_is(key), data)

    def _others(self, keys: Sequence[str], columns: list[str] | None) -> Iterator[tuple[str, pa.Table | None]]:
        """Yield each key with its table of curves or weights, or None; move invalid files to quarantine."""
        for key, file in self.opened(keys):
            where = self._folder.where_is(key)
            yield key, None if file is None else self._parsed(key, read_table, where, file, kind_of(key), columns)

    def _results(self, keys: Sequence[str], columns: list[str] | None) -> Iterator[tuple[str, pa.Table | None]]:
        """Yield each key with its table of results, or None; move invalid files to quarantine."""
        batch = []
        for key, data in self._read_all(keys):
            where = self._folder.where_is(key)
            batch.append((key, None if data is None else self._parsed(key, open_results, where, data, columns)))
            if sum(1 if results is None else 1 + len(results.table) for _, results in batch) >= _ROWS_AT_ONCE:
                yield from self._believable(batch)
                batch = []
        yield from self._believable(batch)

    def _believable(self, batch: Sequence[tuple[str, Results | None]]) -> Iterator[tuple[str, pa.Table | None]]:
        """Yield each key of a batch with its table, or None if missing or invalid; move invalid files to quarantine."""
        all_right = are_right([results for _, results in batch if results is not None])
        for key, results in batch:
            is_right = results is not None and (all_right or self._parsed(key, check_results, results) is not None)
            yield key, results.wanted if results is not None and is_right else None

    def opened(self, keys: Sequence[str]) -> Iterator[tuple[str, pq.ParquetFile | None]]:
        """Yield each key with its opened Parquet file, or None if it is missing, or invalid and so quarantined.

        Rows aren't checked.

        Raises:
            InputError: if a newer package wrote one of the files.
            StoreError: if the store fails, or an earlier version's file can't be converted.
        """
        for key, data in self._read_all(keys):
            where = self._folder.where_is(key)
            yield key, None if data is None else self._parsed(key, open_parquet, where, data, kind_of(key))

    def checkpoints(self, keys: Sequence[str], *, with_arrays: bool) -> list[Checkpoint]:
        """Return the valid checkpoints in the order of their keys, with or without their arrays.

        Invalid ones are moved to quarantine. One from whose version training can't resume is left out, with a notice.

        Raises:
            InputError: if a newer package wrote one of them.
            StoreError: if the store fails, or an earlier version's checkpoint can't be converted.
        """
        checkpoints = []
        for key, data in self._read_all(keys):
            if data is not None:
                where, pack_id = self._folder.where_is(key), pack_of(key)
                checkpoints.append(self._parsed(key, parse_checkpoint, where, data, pack_id, with_arrays))
        return [checkpoint for checkpoint in checkpoints if checkpoint is not None]

    def notice(self, sentence: str) -> None:
        """Add a notice for the user, once."""
        if sentence not in self.notices:
            self.notices.append(sentence)

    def _read_all(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Yield each key with its bytes, or None if it is missing, or not a file and so moved to quarantine."""
        for key, content in self._folder.read_all(keys):
            if isinstance(content, NotAFileError):
                self._quarantine(key, content.reason)
            yield key, None if isinstance(content, NotAFileError) else content

    def _parsed(self, key: str, parse: Callable[..., T], *arguments: Any) -> T | None:
        """Parse a file; if it is invalid, move it to quarantine and return None.

        A checkpoint of a version without an upgrade stays in place, with a notice. A StudyError is raised.
        """
        try:
            return parse(*arguments)
        except (StudyError, MemoryError):  # the file may be valid, but of another version or too large
            raise
        except NoUpgradeError as error:
            self.notice(str(error))
        except UnbelievableError as error:
            self._quarantine(key, str(error))
        except Exception as error:  # a truncated or foreign file can make its reader raise anything
            self._quarantine(key, f"it can't be read ({type(error).__name__}: {error})")
        return None

    def _quarantine(self, key: str, why: str) -> None:
        """Move a file to quarantine with the reason, and add a notice; if read-only, only add a notice."""
        where = self._folder.where_is(key)
        if self._read_only:
            self.notice(f"{where} was skipped: {why}")
            return
        plain = key.replace("/", "-")
        names = itertools.chain([plain], (f"again-{count}-{plain}" for count in itertools.count(2)))
        name = next(name for name in names if not self._is_quarantined(name))
        if self._folder.move(key, f"quarantine/{name}"):  # else another process was quicker
            self._folder.write(f"quarantine/{name}{_WHY}", f"{where}: {why}\n".encode())
            self.notice(f"{where} was set aside as {self._folder.where_is(f'quarantine/{name}')}: {why}")

    def _is_quarantined(self, name: str) -> bool:
        """Return True if quarantine has a file of that name, or the reason of one."""
        return any(self._folder.exists(f"quarantine/{name}{end}") for end in ("", _WHY))


def key_of(kind: str, pack_id: str) -> str:
    """Return the key of a pack's file of a kind.

    Raises:
        InputError: if the pack's id isn't an ASCII letter or digit, followed by any number of these, - and _.

    Example:
        >>> key_of("results", "00aa"), key_of("checkpoints", "00aa")
        ('results/00aa.parquet', 'checkpoints/00aa.npz')
    """
    if not _NAME.fullmatch(pack_id):
        raise InputError(f"{pack_id!r} can't name a pack: it must be letters, digits, - and _")
    return f"{kind}/{pack_id}{_suffix(kind)}"


def pack_of(key: str) -> str:
    """Return the id of the pack that a file belongs to.

    Example:
        >>> pack_of("results/00aa.parquet")
        '00aa'
    """
    return key.partition("/")[2].partition(".")[0]


def kind_of(key: str) -> str:
    """Return the kind of a file.

    Example:
        >>> kind_of("results/00aa.parquet")
        'results'
    """
    return key.partition("/")[0]


def _are_results(keys: Sequence[str]) -> bool:
    """Return True if keys, all of one kind, are those of result files; False without any."""
    return bool(keys) and kind_of(keys[0]) == "results"


def _suffix(kind: str) -> str:
    """Return the suffix of the files of a kind."""
    return ".npz" if kind == "checkpoints" else ".parquet"


FAILED = "-failed"
"""Suffix of the name of a pack of failed trials, which are trained again in another pack."""
