"""The bytes of our files, believed only when they are ours.

Anything else found under one of our names raises `UnbelievableError` or one of `UNREADABLE`; a file of a
newer package raises `InputError`, since it is good, only not for us.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from study.errors import InputError
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


class UnbelievableError(Exception):
    """A file isn't what its name says; the message is the reason."""


def parquet(table: pa.Table, provenance: Mapping[str, Any], compression: str, **encoding: Any) -> bytes:
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
    return bytes(sink.getvalue())


def open_parquet(where: str, data: bytes, schema: pa.Schema) -> pq.ParquetFile:
    """Open the bytes of a Parquet file of ours.

    Raises:
        InputError: if a newer package wrote it.
        UnbelievableError: if it isn't ours, or has other columns than the schema.
    """
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    metadata = file.metadata.metadata or {}
    if _VERSION_KEY not in metadata or _PROVENANCE_KEY not in metadata:
        raise UnbelievableError("it isn't one of ours: its metadata has no schema version and provenance")
    check_version(where, metadata)
    if not file.schema_arrow.equals(schema):
        differ = set(schema.names) ^ set(file.schema_arrow.names)
        what = f"differing in {', '.join(sorted(differ))}" if differ else "differing in order or type"
        raise UnbelievableError(f"it has other columns than schema version {SCHEMA_VERSION}, {what}")
    return file


def check_version(where: object, metadata: Mapping[bytes, bytes]) -> None:
    """Check that a Parquet file, if it is ours, isn't newer than this package.

    Raises:
        InputError: if it is.
        UnbelievableError: if its version isn't one.
    """
    if _VERSION_KEY in metadata:
        _check_version(where, int(metadata[_VERSION_KEY]))


def provenance_of(file: pq.ParquetFile) -> dict[str, Any]:
    """Give the provenance that a file of ours carries."""
    return dict(json.loads(file.metadata.metadata[_PROVENANCE_KEY]))


def npz(checkpoint: Checkpoint) -> bytes:
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
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def parse_checkpoint(where: str, data: bytes, pack_id: str, with_arrays: bool) -> Checkpoint:
    """Read a pack's checkpoint, or only what it is of.

    Raises:
        InputError: if a newer package wrote it.
        UnbelievableError: if it isn't ours, or is of another pack than its name says.
    """
    members = np.load(io.BytesIO(data), allow_pickle=False)
    if not isinstance(members, np.lib.npyio.NpzFile) or _HEADER not in members:
        raise UnbelievableError(f"it isn't one of ours: it has no member {_HEADER!r}")
    header = json.loads(str(members[_HEADER]))
    _check_version(where, header["schema_version"])
    if header["pack_id"] != pack_id:
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


def _check_version(where: object, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{where} has schema version {version}, but this package reads up to {SCHEMA_VERSION}: "
            "upgrade the package"
        )
    if version < 1:
        raise UnbelievableError(f"it claims schema version {version}")
