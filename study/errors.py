"""The error tree: every failure a user can cause or meet, with the exit code the command line gives it.

An error says what was given, what must hold and how to mend it. `units` and `tasks` raise `ValueError`
instead, since they know nothing of studies; `spec` turns those into problems of the file.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass


class StudyError(Exception):
    """Any failure of the service that has a cause the user can be told."""

    exit_code = 1


class InputError(StudyError):
    """What the user gave can't be used; nothing was started and nothing was lost."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a study file.

    Args:
        where: path of the key, such as ``grid.hidden_size``.
        line: 1-based line in the file, or None when the mistake has no line (a missing key).
        message: what was given, what must hold, and the nearest valid name where there is one.
    """

    where: str
    line: int | None
    message: str


class SpecError(InputError):
    """A study file has mistakes: all of them, in one message."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{source}: {count} mistake{'s' if count != 1 else ''}, nothing was started"
        lines = [
            f"  {f'line {p.line}' if p.line is not None else 'file'}: {p.where}: {p.message}"
            for p in self.problems
        ]
        super().__init__("\n".join([head, *lines]))


class UnknownStudyError(InputError):
    """No study of that name is in the store."""


class StoreError(StudyError):
    """The store can't be read or written."""


class StoreAwayError(StoreError):
    """The store can't be reached, or takes nothing, for now: a full disk, a server that is down. Waiting may help."""


class StudyGoneError(StoreAwayError):
    """The study isn't in the store any more: removed, renamed, or on a file system that isn't mounted just now."""


class ConflictError(StoreError):
    """Two files of the store contradict each other: a person must say which is wrong."""

    exit_code = 2


class BusyError(StudyError):
    """Another process is running this study on this store."""


class TrackingError(StudyError):
    """The tracking server can't be reached or refused; training never raises this."""


class ClusterError(StudyError):
    """The cluster can't be started or reached, or lacks what was asked for."""


class DeviceError(InputError):
    """The device asked for isn't there."""


class DeviceMemoryError(DeviceError):
    """The device has no room for a pack."""


def nearest(given: object, names: Collection[str]) -> str:
    """Suggest the nearest valid name, as the end of a sentence; nothing if none is near.

    Example:
        >>> nearest("hiden_size", ["hidden_size", "input_size"])
        "; did you mean 'hidden_size'?"
    """
    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(str(given).lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[found[0]]!r}?" if found else ""


def last_line(error: str) -> str:
    r"""Give the line of an error's text that says what it is.

    Example:
        >>> last_line("Traceback (most recent call last):\n  ...\nValueError: no\n")
        'ValueError: no'
    """
    lines = error.split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it gave no reason")
