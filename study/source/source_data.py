"""Data files of a study file, identified by their digest."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from study.errors import InputError
from study.interface.data import DataFile, provide_data
from study.source.archive import digest_of, placed

DATA_LIMIT_BYTES: Final = 512 * 2**20
"""Largest size of a data file in bytes, before decompression."""

DATA_FOLDER: Final = "STUDY_DATA"
"""Environment variable of the folder to search for data that don't lie beside the study file."""

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class SourceData:
    """Data that trials read.

    Args:
        path: the path in the study file.
        files: uncompressed contents by file name; at least one.
        is_folder: True if the path is a folder, False if it is a single file.

    Attributes:
        digest: identity of the data in trial ids, ``sha256:...``: the SHA-256 of a single file's content, or of the
            names and contents of a folder's files.

    Example:
        >>> SourceData("a.csv", {"a.csv": b"1"}, False).digest == SourceData("b.csv", {"b.csv": b"1"}, False).digest
        True
    """

    path: str
    files: Mapping[str, bytes] = field(repr=False)
    is_folder: bool
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        content = next(iter(self.files.values()))
        digest = digest_of(self.files) if self.is_folder else hashlib.sha256(content).hexdigest()
        object.__setattr__(self, "digest", f"sha256:{digest}")

    @property
    def beside(self) -> dict[str, bytes]:
        """Uncompressed contents by path, as in the study file; of a folder, of each of `files`."""
        if not self.is_folder:
            return {self.path: next(iter(self.files.values()))}
        return {str(PurePosixPath(self.path) / name): content for name, content in self.files.items()}

    def provide(self, cache: Path) -> None:
        """Write the files into the cache, and register them for this process's tasks; later calls are no-ops.

        Args:
            cache: a folder of this machine that only this user may write to.

        Raises:
            InputError: if the copy was changed, or the cache belongs to another user or is writable for others.
            OSError: if the cache can't be written.
        """
        if self.digest not in _provided:
            folder = placed(self.files, digest_of(self.files), cache)
            provide_data(self.digest, folder if self.is_folder else folder / next(iter(self.files)))
            _provided.add(self.digest)


_provided: set[str] = set()


def read_data(path: str, kind: DataFile, folder: Path) -> SourceData:
    """Read data of a study file, and decompress gzip files.

    Of a folder, only the files that the declaration names are read, each plain or as ``.gz``.

    Args:
        path: path relative to the folder of the study file, or else to ``$STUDY_DATA``.
        kind: the declaration of the task's field.
        folder: the folder of the study file.

    Raises:
        InputError: if the path is empty, absolute or has a part ``..``, or a file doesn't exist, can't be read or
            decompressed, or is larger than `DATA_LIMIT_BYTES`.
        OSError: if the path is too long, or in a folder without permission to search it.
    """
    place = _place(path, kind, folder)
    if not kind.files:
        return SourceData(path, {place.name: _content(place)}, is_folder=False)
    return SourceData(path, {name: _content(_file_of(place, name, kind)) for name in kind.files}, is_folder=True)


def _place(path: str, kind: DataFile, folder: Path) -> Path:
    """Return the path of the data in the first folder that has them: the study's, or $STUDY_DATA.

    Raise InputError if the path isn't relative, or neither folder has the data.
    """
    parts = PurePosixPath(path)
    if not path or parts.is_absolute() or ".." in parts.parts:
        raise InputError(
            "must be a relative path inside the folder of the study file or inside "
            f"${DATA_FOLDER}, so that it is the same on every machine, but got {path!r}; put the data or a link there"
        )
    folders = [folder, *([Path(other)] if (other := os.environ.get(DATA_FOLDER)) else [])]
    for place in (root / path for root in folders):
        if place.is_dir() if kind.files else place.is_file():
            return place
    known_values = f"must be {' or '.join(kind.known)}, or " if kind.known else "must be "
    expected = f"a folder with the files {', '.join(kind.files)}" if kind.files else "a file"
    raise InputError(
        f"{known_values}{expected}, but there is no {'folder' if kind.files else 'file'} {path!r} in "
        f"{' or '.join(str(root.absolute()) for root in folders)}{_where(kind, ';')}"
        + ("" if len(folders) > 1 else f"; ${DATA_FOLDER} may name another folder to look in")
    )


def _file_of(place: Path, name: str, kind: DataFile) -> Path:
    for path in (place / name, place / f"{name}.gz"):
        if path.is_file():
            return path
    raise InputError(
        f"{place} must have the files {', '.join(kind.files)}, each plain or as .gz, but lacks {name}"
        f"{_where(kind, ';')}"
    )


def _where(kind: DataFile, separator: str) -> str:
    return f"{separator} {kind.where}" if kind.where else ""


def _content(path: Path) -> bytes:
    try:
        if (size := path.stat().st_size) > DATA_LIMIT_BYTES:
            raise InputError(f"{path} must have at most {DATA_LIMIT_BYTES >> 20} MiB, but has {size >> 20} MiB")
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == _GZIP else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} can't be read, and may be partial or damaged: {error}") from None
