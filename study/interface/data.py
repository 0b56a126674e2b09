"""Data files of tasks: which fields of a task name some, and where this process has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataFile:
    """Marks the field of a task that names data: ``Annotated[str, DataFile()]``.

    A study file gives a path, relative to its own folder or to that of ``$STUDY_DATA``. In a trial's id, and as the
    value that the task is made with, the digest of the content stands for it: ``sha256:...``.

    Args:
        files: names of the files that a folder must have, each as it is or compressed by gzip, as ``NAME.gz``; without
            any, the path is that of one file.
        known: values of the field that name no path, such as that of data which come along.
        where: where to get such files, for an error; empty if that isn't known.

    Example:
        >>> DataFile(known=("digits",)).names_path("digits"), DataFile().names_path("ingots.csv")
        (False, True)
    """

    files: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    where: str = ""

    def names_path(self, value: str) -> bool:
        """Tell whether a value is a path, neither known nor a digest."""
        return value not in self.known and not is_digest(value)


def is_digest(value: str) -> bool:
    """Tell whether a value is the digest of data.

    Example:
        >>> is_digest("sha256:" + 64 * "0"), is_digest("ingots.csv")
        (True, False)
    """
    return re.fullmatch("sha256:[0-9a-f]{64}", value) is not None


def data_path(digest: str) -> Path:
    """Return where this process has data: a file, or a folder of files.

    Args:
        digest: the value of a task's field, ``sha256:...``.

    Raises:
        ValueError: if it has no such data.
    """
    try:
        return _paths[digest]
    except KeyError:
        raise ValueError(
            f"must name data of the study's file, whose digest is part of the id, but got {digest}"
        ) from None


def provide_data(digest: str, path: Path) -> None:
    """Say where this process has data; the content must have that digest."""
    _paths[digest] = path


_paths: dict[str, Path] = {}
