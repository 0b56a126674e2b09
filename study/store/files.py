"""Files that appear whole or not at all, and are believed only when they are ours.

Anything else found under one of our names raises `UnbelievableError` or one of `UNREADABLE`; a file of a
newer package raises `InputError`, since it is good, only not for us.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from study.errors import InputError, StoreError
from study.records import Checkpoint

SCHEMA_VERSION = 1
"""Written into every file: raised when a column or the layout of a checkpoint changes."""

UNREADABLE = (
    *(pa.ArrowException, zipfile.BadZipFile, zlib.error, struct.error),
    *(OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError),
)
"""What reading a torn or foreign file raises."""

_VERSION_KEY, _PROVENANCE_KEY = b"study.schema_version", b"study.provenance"
_HEADER = "checkpoint"  # the member of a checkpoint that says what it is; arrays are called array.<name>
_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space and run again",
    errno.EDQUOT: "your quota is used up: free some space and run again",
    errno.EACCES: "allow this user to read and write there, or choose another store",
    errno.EPERM: "allow this user to read and write there, or choose another store",
    errno.EROFS: "that file system is read-only: choose another store",
}


class UnbelievableError(Exception):
    """A file isn't what its name says; the message is the reason."""


@contextmanager
def explained(path: Path, doing: str, let_pass: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Turn the system's errors into ones that say what to do."""
    try:
        yield
    except let_pass:
        raise
    except OSError as error:
        number = error.errno or 0
        advice = _ADVICE.get(number, "check the store's folder and its file system")
        raise StoreError(
            f"can't {doing} {path}: {error.strerror or error}; what was stored before is untouched; {advice}"
        ) from error


def write_whole(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Put a file in place whole, on the disk, or leave what is there."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    with explained(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_parquet(
    path: Path, table: pa.Table, provenance: Mapping[str, Any], compression: str, **encoding: Any
) -> None:
    """Write a table with its schema version and provenance; pages carry checksums; see `pq.write_table`."""
    metadata = {
        _VERSION_KEY: str(SCHEMA_VERSION),
        _PROVENANCE_KEY: json.dumps(dict(provenance), sort_keys=True),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata(metadata),
        sink,
        compression=compression,
        write_page_checksum=True,
        **encoding,
    )
    write_whole(path, lambda file: file.write(sink.getvalue()))


def open_parquet(path: Path, data: bytes, schema: pa.Schema) -> pq.ParquetFile:
    """Open the bytes of a Parquet file of ours.

    Raises:
        InputError: if a newer package wrote it.
        UnbelievableError: if it isn't ours, or has other columns than the schema.
    """
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    metadata = file.metadata.metadata or {}
    if _VERSION_KEY not in metadata or _PROVENANCE_KEY not in metadata:
        raise UnbelievableError("it isn't one of ours: its metadata has no schema version and provenance")
    check_version(path, metadata)
    if not file.schema_arrow.equals(schema):
        differ = set(schema.names) ^ set(file.schema_arrow.names)
        what = f"differing in {', '.join(sorted(differ))}" if differ else "differing in order or type"
        raise UnbelievableError(f"it has other columns than schema version {SCHEMA_VERSION}, {what}")
    return file


def check_version(path: Path, metadata: Mapping[bytes, bytes]) -> None:
    """Check that a Parquet file, if it is ours, isn't newer than this package.

    Raises:
        InputError: if it is.
        UnbelievableError: if its version isn't one.
    """
    if _VERSION_KEY in metadata:
        _check_version(path, int(metadata[_VERSION_KEY]))


def provenance_of(file: pq.ParquetFile) -> dict[str, Any]:
    """Give the provenance that a file of ours carries."""
    return dict(json.loads(file.metadata.metadata[_PROVENANCE_KEY]))


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint as npz.

    Raises:
        ValueError: if an array would need pickle.
    """
    for name, array in checkpoint.arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"array {name!r} of dtype {array.dtype} needs pickle: use numbers or text")
    header = {
        "schema_version": SCHEMA_VERSION,
        "pack_id": checkpoint.pack_id,
        "trial_ids": list(checkpoint.trial_ids),
        "iteration": checkpoint.iteration,
        "training_s": checkpoint.training_s,
        "engine": checkpoint.engine,
    }
    arrays: dict[str, Any] = {f"array.{name}": array for name, array in checkpoint.arrays.items()}
    arrays[_HEADER] = np.array(json.dumps(header))
    write_whole(path, lambda file: np.savez(file, **arrays))


def parse_checkpoint(path: Path, file: BinaryIO, with_arrays: bool) -> Checkpoint:
    """Read a checkpoint, or only what it is of.

    Raises:
        InputError: if a newer package wrote it.
        UnbelievableError: if it isn't ours, or is of another pack than its name says.
    """
    members = np.load(file, allow_pickle=False)
    if not isinstance(members, np.lib.npyio.NpzFile) or _HEADER not in members:
        raise UnbelievableError(f"it isn't one of ours: it has no member {_HEADER!r}")
    header = json.loads(str(members[_HEADER]))
    _check_version(path, header["schema_version"])
    if header["pack_id"] != path.stem:
        raise UnbelievableError(f"it is the checkpoint of another pack, {header['pack_id']}")
    names = [name for name in members.files if name != _HEADER] if with_arrays else []
    return Checkpoint(
        pack_id=header["pack_id"],
        trial_ids=tuple(header["trial_ids"]),
        iteration=header["iteration"],
        arrays={name.removeprefix("array."): members[name] for name in names},
        training_s=header["training_s"],
        engine=header["engine"],
    )


def _check_version(path: Path, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{path} has schema version {version}, but this package reads up to {SCHEMA_VERSION}: "
            "upgrade the package"
        )
    if version < 1:
        raise UnbelievableError(f"it claims schema version {version}")
