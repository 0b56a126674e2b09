"""Data files of tasks: the marker of task fields, and the registry of paths in this process."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataFile:
    """Marker of a task field that names data files: ``Annotated[str, DataFile()]``.

    A study file gives a path, relative to its own folder or to ``$STUDY_DATA``. The digest of the content,
    ``sha256:...``, replaces it in trial ids and in the field of the task; `data_path` returns the path for a digest.

    Args:
        files: names of the files that the path's folder must have, each plain or compressed by gzip as ``NAME.gz``.
            Empty if the path is a single file.
        known: values of the field that aren't paths, such as the name of a bundled data set.
        where: source of such files, for error messages; empty if unknown.

    Example:
        >>> DataFile(known=("digits",)).names_path("digits"), DataFile().names_path("ingots.csv")
        (False, True)
    """

    files: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    where: str = ""

    def names_path(self, value: str) -> bool:
        """Return True if a value is a path: neither in `known` nor a digest."""
        return value not in self.known and not is_digest(value)


def is_digest(value: str) -> bool:
    """Return True if a value is the digest of data, ``sha256:`` and 64 lower-case hexadecimal digits.

    Example:
        >>> is_digest("sha256:" + 64 * "0"), is_digest("ingots.csv")
        (True, False)
    """
    return re.fullmatch("sha256:[0-9a-f]{64}", value) is not None


def data_path(digest: str) -> Path:
    """Return the path of data in this process: a file, or a folder of files.

    Args:
        digest: the value of the task's field, ``sha256:...``.

    Raises:
        ValueError: if this process has no data with this digest.
    """
    try:
        return _paths[digest]
    except KeyError:
        raise ValueError(f"must be the digest of data that the study file names, but got {digest}") from None


def provide_data(digest: str, path: Path) -> None:
    """Register the path of data in this process.

    Args:
        digest: digest of the data, ``sha256:...``; it isn't verified.
        path: a file, or a folder of files.
    """
    _paths[digest] = path


_paths: dict[str, Path] = {}
