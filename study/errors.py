"""Hierarchy of the errors that users can cause or encounter, with the exit codes of the command line.

An error says what was given, what must hold and how to fix it. `units` and `tasks` raise `ValueError` instead, since
they don't depend on studies; `spec` turns those into problems of the study file.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass


class StudyError(Exception):
    """Base class of failures with a cause that can be explained to the user."""

    exit_code = 1


class InputError(StudyError):
    """Unusable input; nothing was started and nothing was lost."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a study file.

    Args:
        where: path of the key, such as ``grid.hidden_size``.
        line: 1-based line in the file, or None when the mistake has no line (a missing key).
        message: what was given, what must hold, and the nearest valid name where there is one.
        source: place of a mistake without a line: the file, or a value that replaces one of the file.
    """

    where: str
    line: int | None
    message: str
    source: str = "file"


class SpecError(InputError):
    """Mistakes in a study file; the message lists all of them."""

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
    """Unknown study: the store has none of that name."""


class StoreError(StudyError):
    """Failure to read or write the store."""


class StoreAwayError(StoreError):
    """Temporary failure of the store, such as a full disk or a server that is down. Waiting may help."""


PATIENCE_S = 600.0
"""Default seconds for which a store may be away before this error ends a study."""


class StudyGoneError(StoreAwayError):
    """Study that has gone from the store: removed, renamed, or on an unmounted file system."""


class ConflictError(StoreError):
    """Contradiction between two files of the store, to be resolved by the user."""

    exit_code = 2


class BusyError(StudyError):
    """Study that another process is running on this store."""


class TrackingError(StudyError):
    """Unreachable tracking server, or a request that it refused; training never raises this."""


class ClusterError(StudyError):
    """Failure to start or reach the cluster, or a lack of requested resources."""


class DeviceError(InputError):
    """Requested device that doesn't exist."""


class MissingPackageError(InputError):
    """Package that a request needs, but that isn't installed."""


class DeviceMemoryError(DeviceError):
    """Device with too little memory for a pack."""


def reason_of(error: Exception) -> str:
    """Return the message of an error, preceded by its type if it isn't a `StudyError`.

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
    r"""Return the last line of an error's text that isn't blank; without one, ``it gave no reason``.

    In a traceback, this is the message, or its last line.

    Example:
        >>> last_line("Traceback (most recent call last):\n  ...\nValueError: no\n")
        'ValueError: no'
    """
    lines = error.split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it gave no reason")
