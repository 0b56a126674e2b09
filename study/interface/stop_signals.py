"""Stops by a signal, told apart from exceptions that a user's code raised.

Ctrl-C raises KeyboardInterrupt in the user's code, and Ray's SIGTERM raises SystemExit there. The code may raise both
by itself, which fails its trial alone, and it may catch both, which must not keep the process from stopping. So the
exception that a signal's handler raises is remembered here.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from study.interface.error_text import entries_of, error_line

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_stop: BaseException | None = None
_depth = 0


def requested_stop() -> BaseException | None:
    """Return the exception by which a signal's handler stops this process, inside `noting_stops`; otherwise None."""
    return _stop if _depth else None


def set_handlers(handlers: Mapping[signal.Signals, Any]) -> None:
    """Set handlers of signals, as `signal.getsignal` gave them.

    Example:
        >>> set_handlers({signal.SIGINT: signal.getsignal(signal.SIGINT)})
    """
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def noting_stops() -> Iterator[None]:
    """Remember what the handlers of SIGINT and SIGTERM raise inside, and raise it at the end if it was swallowed.

    Only the main thread may set handlers. In other threads this does nothing, since Python runs handlers in the main
    thread. Signals go unnoticed while the user's code has handlers of its own. Calls may be nested.

    Example:
        >>> def swallow():
        ...     try:
        ...         signal.raise_signal(signal.SIGINT)
        ...     except BaseException:
        ...         pass
        >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
        >>> try:
        ...     with noting_stops():
        ...         swallow()
        ... except KeyboardInterrupt:
        ...     print("stopped")
        ... finally:
        ...     _ = signal.signal(signal.SIGINT, before)
        stopped
    """
    global _stop, _depth
    if _depth or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    _stop = None
    _depth += 1
    try:
        set_handlers({number: _noting(handler, handlers) for number, handler in handlers.items()})
        yield
        if _stop is not None:
            raise _stop
    finally:
        _depth -= 1
        set_handlers(handlers)


class UnusualError(Exception):
    """Stands for an exception that a user's code raised and that isn't an `Exception`, such as a panic in Rust."""


@contextmanager
def exceptions_only() -> Iterator[None]:
    """Raise as `UnusualError` what a user's code raises inside and isn't an `Exception`; a stop by a signal remains.

    Example:
        >>> with exceptions_only():
        ...     raise GeneratorExit("no")
        Traceback (most recent call last):
        ...
        study.interface.stop_signals.UnusualError: GeneratorExit: no
    """
    with noting_stops():
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            if requested_stop() is not None:
                raise
            raise UnusualError(error_line(error)).with_traceback(entries_of(error)) from None


def _noting(
    handler: Callable[[int, FrameType | None], Any], before: Mapping[signal.Signals, Any]
) -> Callable[[int, FrameType | None], Any]:
    def note(number: int, frame: FrameType | None) -> Any:
        global _stop
        try:
            return handler(number, frame)
        except BaseException as stop:
            _stop = stop
            set_handlers(before)  # now, since what is raised here may end the code that would do it later
            raise

    return note
