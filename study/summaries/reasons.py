"""Reasons of failed trials, from stored error texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from study.errors import last_line
from study.visible import uncoloured

_MOST_CHARACTERS = 600
_MOST_LINES = 24
_ENDS_WITH_PLACE = re.compile(r"\([^()]+:\d+\)$")
_PLACE = re.compile(rf"{_ENDS_WITH_PLACE.pattern}|\.py:\d+")
_VARYING = re.compile(
    r"(?P<place>[^\s()\"]+\.py:\d+)"
    r"|0x[0-9a-fA-F]+"
    r"|tmp[a-z0-9_]{8}"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"
    r"|[-+]?\d[\d_]*(?:[.,]\d+)*(?:[eE][-+]?\d+)?"
    r"|[-+]?\b(?:nan|inf)\b"
)
_FRAME = re.compile(r'\s+File "(?P<file>.+)", line (?P<line>\d+)')
_HEAD = "Traceback (most recent call last)"
_MODULE = re.compile(r"^(?:[a-z_]\w*\.)+(?=[A-Z])")
_COPY = re.compile(r"(?<![^\s\"(])[^\s\"(]*/seeded-study/code/[^/\s\"]+/")
_LIBRARY = re.compile(r"<frozen |/(?:site|dist)-packages/|/lib/python\d")
_OURS = tuple(f"{Path(__file__).parents[2] / package}/" for package in ("study", "tasks", "units"))

# Causes outside the user's code: the next attempt may succeed with the same seed.
_PASSING_TYPES = re.compile(
    r"(?:MemoryError|OutOfMemory\w*|DeviceMemoryError|Store\w*Error|StudyGoneError|BusyError|ClusterError|TimeoutError"
    r"|BlockingIOError|BrokenPipeError|Connection\w*Error|OSError|InterruptedError|URLError|HTTPError|CancelledError"
    r"|(?:Ray|Actor|Worker|Node|Object)\w*Error)\b"
)
_PASSING_TEXTS = re.compile(
    r"out of memory|running low on memory|no space left|time limit|timed out|ended by SIG(?:KILL|TERM|BUS|HUP|INT)\b"
    r"|died without a word|machines were lost|was interrupted|CUDA error",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reason:
    """Why a trial failed.

    Args:
        text: the type and message of the exception in one line, with the place in the user's code if it is known.
        key: the text without numbers and addresses, which vary by seed; equal keys mean the same reason.
        traceback: the frames of the user's code and the exception; without such frames, the last lines of an error that
            is repeated; empty if the text is complete.
        is_repeated: True if the same code with the same seed is expected to fail in the same way again.
    """

    text: str
    key: str
    traceback: str
    is_repeated: bool


@lru_cache(maxsize=1024)
def failure_reason(error: str) -> Reason:
    r"""Extract the reason of a failure from a stored error text.

    Args:
        error: the text of a failed result: a traceback, a sentence, or a traceback and a sentence. If it is empty, the
            reason says that none was given.

    Example:
        >>> error = 'Traceback (most recent call last):\n  File "a.py", line 3, in train\n    f()\nValueError: bad 17'
        >>> reason = failure_reason(error)
        >>> reason.text, reason.key, reason.is_repeated
        ('ValueError: bad 17 (a.py:3)', 'ValueError: bad # (a.py:3)', True)
        >>> failure_reason("MemoryError").is_repeated
        False
    """
    error = _COPY.sub("", uncoloured(error))
    lines = [line.rstrip() for line in error.splitlines() if line.strip()]
    text = _text(lines, error)
    place = _users_place(lines)
    if place and not _PLACE.search(text):
        text = f"{text} ({place})"
    is_repeated = _PASSING_TYPES.match(text) is None and _PASSING_TEXTS.search(text) is None
    traceback = _users_traceback(lines)
    if not traceback and is_repeated and len(lines) > 1:
        traceback = _bounded(lines)
    return Reason(text, _VARYING.sub(lambda match: match["place"] or "#", text), traceback, is_repeated)


def _text(lines: list[str], error: str) -> str:
    """Return the line that names the exception: the last line, or the first line of a message of several lines.

    The exception's module is removed, and a long line is cut.
    """
    text = last_line(error).strip()
    frames = [number for number, line in enumerate(lines) if _FRAME.match(line)]
    if frames and not _ENDS_WITH_PLACE.search(text):
        after = (line for line in lines[frames[-1] + 1 :] if not line[0].isspace())
        text = next(after, text)
    text = _MODULE.sub("", text)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."


def _users_place(lines: list[str]) -> str:
    """Return file and line of the innermost frame of the user's code; empty without such a frame."""
    frames = [match for line in lines if (match := _FRAME.match(line)) and _is_users(match["file"])]
    return f"{frames[-1]['file']}:{frames[-1]['line']}" if frames else ""


def _users_traceback(lines: list[str]) -> str:
    """Return a traceback without frames of libraries and of this program; empty if no frame is left."""
    starts = [number for number, line in enumerate(lines) if _HEAD in line]
    if not starts or not _users_place(lines):
        return ""
    kept, is_kept = [_HEAD + ":"], True
    for line in lines[starts[0] + 1 :]:
        if match := _FRAME.match(line):
            is_kept = _is_users(match["file"])
        elif not line[0].isspace():
            is_kept = True
        if is_kept:
            kept.append(line)
    # The function engine repeats the exception and its place below the traceback.
    is_twice = len(kept) > 2 and not kept[-2][0].isspace() and _ENDS_WITH_PLACE.search(kept[-1])
    return _bounded(kept[:-1] if is_twice else kept)


def _is_users(file: str) -> bool:
    """Return True for a file that belongs neither to a library nor to this program."""
    return not _LIBRARY.search(file) and not file.startswith(_OURS)


def _bounded(lines: list[str]) -> str:
    """Join lines; of more than 24, leave out the middle ones, and cut long ones."""
    if len(lines) > _MOST_LINES:
        lines = [lines[0], "  ...", *lines[2 - _MOST_LINES :]]
    return "\n".join(line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 3]}..." for line in lines)
