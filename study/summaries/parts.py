"""Parts of a report that can fail independently, with the reasons of failures."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from study.errors import StudyError, last_line

T = TypeVar("T")


class ReportError(StudyError):
    """Parts of a report failed; the other parts are written, and results are unaffected."""


@dataclass(frozen=True)
class PartFailure:
    """A part of a report that failed.

    Args:
        part: its name, such as ``figure survival`` or ``cells.tex``.
        reason: the exception, with the line that raised it.
    """

    part: str
    reason: str

    def __str__(self) -> str:
        return f"{self.part} failed, and is left out: {self.reason}"


@dataclass
class Parts:
    """The parts of one report.

    Attributes:
        failures: the distinct failures so far.

    Example:
        >>> parts = Parts()
        >>> parts.attempt("the mean", lambda: 1 / 2, 0.0), parts.attempt("the ratio", lambda: 1 / 0, 0.0)
        (0.5, 0.0)
        >>> [failure.part for failure in parts.failures]
        ['the ratio']
    """

    failures: list[PartFailure] = field(default_factory=list)

    def attempt(self, part: str, make: Callable[[], T], fallback: T) -> T:
        """Return a part of the report, or the fallback if it fails.

        Args:
            part: its name.
            make: makes the part.
            fallback: the value if `make` raises; the failure is recorded, once.

        Raises:
            StudyError: if `make` raises one, such as a store that can't be reached: it explains itself to the user.
        """
        try:
            return make()
        except StudyError:
            raise
        except Exception as error:
            failure = PartFailure(part, _reason(error))
            if failure not in self.failures:
                self.failures.append(failure)
            return fallback

    def check(self, where: str) -> None:
        """Check that no part failed.

        Args:
            where: the location of the other parts, for the message.

        Raises:
            ReportError: if any part failed; it lists all failures.
        """
        if self.failures:
            raise ReportError("\n".join([*map(str, self.failures), f"all other parts of the report are in {where}"]))


def _reason(error: Exception) -> str:
    """Return an exception's type, message and place in one line."""
    try:
        message = last_line(str(error))
    except Exception:  # its own __str__ may fail
        message = "its message can't be read"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{place}"
