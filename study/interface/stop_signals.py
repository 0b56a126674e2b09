"""Stops by a signal, distinguished from exceptions raised by user code.

Ctrl-C raises KeyboardInterrupt in user code, and Ray's SIGTERM raises SystemExit. User code may raise these exceptions
itself, which must only fail its trial. It may also catch them, which must not keep the process from stopping. So this
module records the exception that a signal's handler raises.
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
    """Return the recorded exception of a signal's handler, or None; always None outside `noting_stops`."""
    return _stop if _depth else None


def signal_name(number: int) -> str:
    """Return a signal's name, or its number for one without a name.

    Example:
        >>> signal_name(9), signal_name(1000)
        ('SIGKILL', 'signal 1000')
    """
    return next((known.name for known in signal.Signals if known == number), f"signal {number}")


def set_handlers(handlers: Mapping[signal.Signals, Any]) -> None:
    """Set signal handlers, in the form that `signal.getsignal` returns.

    Raises:
        ValueError: outside the main thread.
        TypeError: if a handler is None, which stands for one that wasn't set by Python.

    Example:
        >>> set_handlers({signal.SIGINT: signal.getsignal(signal.SIGINT)})
    """
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def noting_stops() -> Iterator[None]:
    """Record an exception of the SIGINT and SIGTERM handlers inside the block, and raise it at the end if swallowed.

    It is a no-op outside the main thread, where Python runs no signal handlers. While user code sets its own handlers,
    signals aren't recorded; the end of the block replaces them by those from before it. Blocks may be nested; the
    outermost one raises.

    Raises:
        BaseException: the recorded exception, if the block has swallowed it. If the block raises another exception,
            that one is kept.

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
    """Replacement for an exception of user code that isn't an `Exception`, such as a panic in Rust."""


@contextmanager
def exceptions_only() -> Iterator[None]:
    """Convert exceptions of user code that aren't an `Exception` to `UnusualError`; a stop by a signal is kept.

    Raises:
        UnusualError: in place of another exception that isn't an `Exception`.
        BaseException: as `noting_stops` raises.

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
    """Return a signal handler that calls another one, and records and raises its exception.

    After an exception, it sets the handlers `before` first.
    """

    def note(number: int, frame: FrameType | None) -> Any:
        global _stop
        try:
            return handler(number, frame)
        except BaseException as stop:
            _stop = stop
            set_handlers(before)  # now, since this exception may end the code that would do it later
            raise

    return note
