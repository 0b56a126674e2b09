r"""Text of errors raised by user code: a line, and the traceback. These functions never raise.

A user's exception may have a `__str__` that raises, or a message of megabytes or one that UTF-8 can't encode. The
result is always text that the store can keep.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

_LONGEST_MESSAGE = 500
_LONGEST_TRACEBACK = 20_000
_LIBRARY = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
_PACKAGES = {"site-packages", "dist-packages"}


def attempt(act: Callable[[], T], otherwise: T) -> T:
    """Call a function that may run user code, and return a fallback if it raises anything.

    This also swallows a signal's KeyboardInterrupt; `study.interface.stop_signals` raises it again.

    Args:
        act: the function.
        otherwise: the fallback.
    """
    try:
        return act()
    except BaseException:
        return otherwise


def storable(text: str) -> str:
    r"""Return text that UTF-8 can encode, with surrogates (undecodable bytes of file names) replaced by escapes.

    Example:
        >>> storable("caf\udce9.csv")
        'caf\\udce9.csv'
    """
    return str.encode(text, "utf-8", "backslashreplace").decode()


def shortened(text: str, longest: int = _LONGEST_MESSAGE) -> str:
    """Return a text; one longer than `longest` >= 3 characters is truncated to that, with an ellipsis at its end.

    Example:
        >>> shortened("no convergence", 10)
        'no conv...'
    """
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def type_name(value: object) -> str:
    """Return the name of a value's type, without running code of its metaclass.

    Example:
        >>> type_name(ValueError("no"))
        'ValueError'
    """
    return storable(vars(type)["__name__"].__get__(type(value)))


def error_line(error: BaseException) -> str:
    r"""Describe an error by its type and message, in one line of at most about 500 characters.

    Example:
        >>> error_line(ValueError("no\nconvergence")), error_line(SystemExit(3))
        ('ValueError: no convergence', 'it ended Python by sys.exit(3)')
        >>> class Unprintable(Exception):
        ...     def __str__(self):
        ...         raise OSError
        >>> error_line(Unprintable())
        'Unprintable: its message is missing, because its __str__ raised OSError'
    """
    name = type_name(error)
    if issubclass(type(error), SystemExit):
        return _written(lambda: f"it ended Python by sys.exit({_one_line(repr(error.code))})", name, "__repr__")  # type: ignore[attr-defined]
    message = _written(lambda: _one_line(str(error)), "", "__str__")
    return f"{name}: {message}" if message else name


def error_traceback(error: BaseException, top: TracebackType | None, limit: int | None = None) -> str:
    """Format an error's traceback, causes and message as Python does.

    The middle of a text of more than 20,000 characters is left out. An error that Python can't format gives its
    `error_line`.

    Args:
        error: the error.
        top: the first entry of its traceback to show; None to show only its causes and message.
        limit: the number of entries to show; negative to count from the last one, None for all.
    """

    def write() -> str:
        return storable("".join(traceback.format_exception(type(error), error, top, limit=limit)))

    text = attempt(write, "") or f"{error_line(error)}\n"
    if len(text) <= _LONGEST_TRACEBACK:
        return text
    head, tail = _LONGEST_TRACEBACK // 4, 3 * _LONGEST_TRACEBACK // 4
    return f"{text[:head]}\n[{len(text) - head - tail:,} characters left out]\n{text[-tail:]}"


def entries_of(error: BaseException) -> TracebackType | None:
    """Return an error's traceback, without running code of its class; None without one, as before it is raised."""
    top: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)
    return top


def is_users_file(file: str) -> bool:
    """Return True unless a file is of the standard library or an installed package, or isn't a file (``<string>``)."""
    return not file.startswith(("<", *_LIBRARY)) and not _PACKAGES.intersection(Path(file).parts)


def _one_line(text: str) -> str:
    return shortened(" ".join(storable(text[: 20 * _LONGEST_MESSAGE]).split()))


def _written(write: Callable[[], str], fallback: str, method: str) -> str:
    try:
        return write()
    except BaseException as error:  # user code may raise anything
        missing = f"its message is missing, because its {method} raised {type_name(error)}"
        return f"{fallback}: {missing}" if fallback else missing
