"""The error tree: every failure a user can cause or meet, with the exit code the command line gives it.

An error says what was given, what must hold and how to fix it. `units` and `tasks` raise `ValueError`
instead, since they know nothing of studies; `spec` turns those into problems of the study file.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass


class StudyError(Exception):
    """Any failure of the service whose cause can be explained to the user."""

    exit_code = 1


class InputError(StudyError):
    """The user's input can't be used; nothing was started and nothing was lost."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a study file.

    Args:
        where: path of the key, such as ``grid.hidden_size``.
        line: 1-based line in the file, or None when the mistake has no line (a missing key).
        message: what was given, what must hold, and the nearest valid name where there is one.
        source: where a mistake without a line is: in the file, or in a value that stands in for one of the file.
    """

    where: str
    line: int | None
    message: str
    source: str = "file"


class SpecError(InputError):
    """A study file has mistakes; the message lists all of them."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{source}: {count} mistake{'s' if count != 1 else ''}, nothing was started"
        lines = [
            f"  {f'line {p.line}' if p.line is not None else p.source}: {p.where}: {p.message}" for p in self.problems
        ]
        super().__init__("\n".join([head, *lines]))


class UnknownStudyError(InputError):
    """No study of that name is in the store."""


class StoreError(StudyError):
    """The store can't be read or written."""


class StoreAwayError(StoreError):
    """The store can't be reached or written to for now: a full disk, a server that is down. Waiting may help."""


PATIENCE_S = 600.0
"""Seconds for which a store may be away, by default, before this error ends a study."""


class StudyGoneError(StoreAwayError):
    """The study isn't in the store any more: removed, renamed, or on a file system that isn't mounted at present."""


class ConflictError(StoreError):
    """Two files of the store contradict each other: a person must decide which is wrong."""

    exit_code = 2


class BusyError(StudyError):
    """Another process is running this study on this store."""


class TrackingError(StudyError):
    """The tracking server can't be reached or refused; training never raises this."""


class ClusterError(StudyError):
    """The cluster can't be started or reached, or lacks what was requested."""


class DeviceError(InputError):
    """The requested device isn't there."""


class MissingPackageError(InputError):
    """A package that the request needs isn't installed."""


class DeviceMemoryError(DeviceError):
    """The device has too little memory for a pack."""


def reason_of(error: Exception) -> str:
    """Return the message of a failure, with its type if it isn't one of those above.

    Example:
        >>> reason_of(InputError("no such study")), reason_of(KeyError("metrics"))
        ('no such study', "KeyError: 'metrics'")
    """
    return str(error) if isinstance(error, StudyError) else f"{type(error).__name__}: {error}"


def nearest(name: object, names: Collection[str]) -> str:
    """Return the end of a sentence that suggests the nearest valid name; empty if none is near.

    Example:
        >>> nearest("hiden_size", ["hidden_size", "input_size"])
        "; did you mean 'hidden_size'?"
    """
    by_lower = {valid.lower(): valid for valid in names}
    matches = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[matches[0]]!r}?" if matches else ""


def last_line(error: str) -> str:
    r"""Return the last line of an error's text that isn't empty, which says what the error is.

    Example:
        >>> last_line("Traceback (most recent call last):\n  ...\nValueError: no\n")
        'ValueError: no'
    """
    lines = error.split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it gave no reason")
