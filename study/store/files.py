"""Reading and writing of the store's files, with checks that they are complete and from this package.

Any other content raises `UnbelievableError`, or an error of its reader. A newer package's file raises `InputError`,
since it is valid but can't be read. An earlier package's file is converted to the current format
(`study.store.formats`).
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from study.errors import InputError, StoreError
from study.interface.json_text import parse_json
from study.records import Checkpoint
from study.store import formats
from study.store.formats import Members
from study.visible import visible

UNREADABLE = (
    *(pa.ArrowException, zipfile.BadZipFile, zlib.error, struct.error),
    *(OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError),
)
"""Errors raised by reading a truncated or foreign table."""

_VERSION_KEY, _PROVENANCE_KEY = b"study.schema_version", b"study.provenance"
_HEADER = "checkpoint"  # the member that describes a checkpoint; arrays are members array.<name>


class UnbelievableError(Exception):
    """A file whose content doesn't fit its name; the message is the reason."""


def parquet(table: pa.Table, provenance: Mapping[str, Any], compression: str, **encoding: Any) -> bytes:
    """Return a table as Parquet bytes with schema version, provenance and page checksums; see `pq.write_table`.

    Raises:
        TypeError: if the provenance isn't JSON.
    """
    metadata = {
        _VERSION_KEY: str(formats.SCHEMA_VERSION),
        _PROVENANCE_KEY: json.dumps(dict(provenance), sort_keys=True),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata(metadata), sink, compression=compression, write_page_checksum=True, **encoding
    )
    return bytes(sink.getvalue())


def open_parquet(where: str, data: bytes, kind: str) -> pq.ParquetFile:
    """Open the bytes of a Parquet file that this package wrote.

    Raises:
        InputError: if a newer package wrote it.
        StoreError: if an earlier package wrote it and its columns don't match that version.
        UnbelievableError: if this package didn't write it, or its columns don't match the current version.
        Exception: another of `UNREADABLE`, if the bytes aren't a complete Parquet file with valid metadata.
    """
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    metadata = file.metadata.metadata or {}
    if _VERSION_KEY not in metadata or _PROVENANCE_KEY not in metadata:
        raise UnbelievableError("this package didn't write it: its metadata lacks the schema version or the provenance")
    version = version_of(where, metadata)
    complaint = formats.FORMATS[version].complaint(kind, file.schema_arrow.remove_metadata())
    if complaint is not None:
        reason = f"it has other columns than schema version {version}, {complaint}"
        if version < formats.SCHEMA_VERSION:  # perhaps this package is wrong about that version
            raise StoreError(
                f"{where} can't be read, and is left where it is: {reason}. Move it away if it isn't needed"
            )
        raise UnbelievableError(reason)
    _parsed_provenance(metadata[_PROVENANCE_KEY])
    return file


def read_table(where: str, file: pq.ParquetFile, kind: str, columns: list[str] | None = None) -> pa.Table:
    """Read an opened Parquet file as a table of the current format.

    Args:
        where: the file's address, for errors.
        file: the file, as `open_parquet` returned it.
        kind: ``results``, ``curves`` or ``weights``.
        columns: columns to read; None for all. A column that the file lacks is left out.

    Raises:
        StoreError: if an earlier version's table can't be converted to the current format.
        KeyError: if an earlier version's table, once converted, lacks a column.
        Exception: another of `UNREADABLE`, if the data are damaged.
    """
    version = version_of(where, file.metadata.metadata)
    if formats.is_unchanged(columns, version):
        return file.read(columns=columns, use_threads=False).replace_schema_metadata(None)
    stored = file.read(use_threads=False).replace_schema_metadata(None)
    table = formats.upgraded(kind, stored, version, where)
    return table if columns is None else table.select(columns)


def is_ours(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Return True if the metadata of a Parquet file has a schema version."""
    return _VERSION_KEY in (metadata or {})


def version_of(where: object, metadata: Mapping[bytes, bytes]) -> int:
    """Return the schema version in the metadata of a Parquet file.

    Raises:
        InputError: if it is newer than this package.
        UnbelievableError: if it is less than 1.
        KeyError: if the metadata has none.
        ValueError: if it isn't a whole number.
    """
    version = int(metadata[_VERSION_KEY])
    _check_version(where, version)
    return version


def provenance_of(file: pq.ParquetFile) -> dict[str, Any]:
    """Return the provenance in the metadata of a Parquet file that `open_parquet` opened.

    Raises:
        UnbelievableError: if it isn't a JSON object, or has control characters.
        ValueError: if it isn't JSON.
    """
    return parse_json(_parsed_provenance(file.metadata.metadata[_PROVENANCE_KEY]))  # type: ignore[no-any-return]


@lru_cache(maxsize=8)  # a study's files have few provenances
def _parsed_provenance(text: bytes) -> bytes:
    """Return the text of a provenance; raise ValueError if it isn't JSON, UnbelievableError if otherwise invalid."""
    content = parse_json(text)
    if not isinstance(content, dict):
        raise UnbelievableError("its provenance isn't a JSON object")
    if (wrong := _first_unprintable(content)) is not None:
        raise UnbelievableError(f"its provenance has control characters: {wrong[:100]!a}")
    return text


def _first_unprintable(content: Any) -> str | None:
    """Return the first text of JSON content that has control characters; None if none has."""
    if isinstance(content, str):
        return None if visible(content) == content else content
    if isinstance(content, dict):
        content = [*content, *content.values()]
    texts = map(_first_unprintable, content if isinstance(content, list) else [])
    return next((text for text in texts if text is not None), None)


def npz(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as npz bytes.

    Raises:
        ValueError: if an array would need pickle.
    """
    for name, array in checkpoint.arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"array {name!r} of dtype {array.dtype} needs pickle: use numbers or text")
    header = {
        "schema_version": formats.SCHEMA_VERSION,
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
    """Parse a pack's checkpoint, or only its header.

    Raises:
        InputError: if a newer package wrote it.
        NoUpgradeError: if an earlier package wrote it, and training can't resume from it.
        StoreError: if its conversion to the current format fails.
        UnbelievableError: if this package didn't write it, it is damaged, or it belongs to another pack.
        Exception: another of `UNREADABLE`, if the bytes aren't a complete file.
    """
    header, arrays = _members(data, with_arrays)
    version = header["schema_version"]
    _check_version(where, version)
    if version < formats.SCHEMA_VERSION:
        header, arrays = formats.upgraded_checkpoint(_members(data, True), version, where)
    if header["pack_id"] != pack_id:
        raise UnbelievableError(f"it is the checkpoint of another pack, {header['pack_id']}")
    return Checkpoint(
        pack_id=header["pack_id"],
        trial_ids=tuple(header["trial_ids"]),
        iteration=header["iteration"],
        arrays=arrays if with_arrays else {},
        training_s=header["training_s"],
        engine=header["engine"],
    )


def _members(data: bytes, with_arrays: bool) -> Members:
    # Check all checksums first: numpy parses an array's header before reading the whole array checks it.
    """Return a checkpoint's header, and its arrays if requested; raise UnbelievableError if damaged or foreign."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise UnbelievableError("it is compressed, but this package doesn't compress checkpoints")
        damaged = archive.testzip()
    if damaged is not None:
        raise UnbelievableError(f"its member {damaged!r} is torn: its checksum is another")
    members = np.load(io.BytesIO(data), allow_pickle=False)
    if not isinstance(members, np.lib.npyio.NpzFile) or _HEADER not in members:
        raise UnbelievableError(f"this package didn't write it: it has no member {_HEADER!r}")
    names = [name for name in members.files if name != _HEADER] if with_arrays else []
    header: dict[str, Any] = parse_json(str(members[_HEADER]))
    return header, {name.removeprefix("array."): members[name] for name in names}


def _check_version(where: object, version: int) -> None:
    """Raise InputError for a version newer than this package, UnbelievableError for one below 1."""
    if version > formats.SCHEMA_VERSION:
        raise InputError(
            f"{where} has schema version {version}, but this package reads up to {formats.SCHEMA_VERSION}: "
            "upgrade the package"
        )
    if version < 1:
        raise UnbelievableError(f"versions start at 1, but its schema version is {version}")
