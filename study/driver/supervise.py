"""Supervision of a driver on a cluster: a driver that a signal kills is restarted.

A process that runs out of memory dies without a message, and its job ends with it. A restarted driver continues from
the store. Ray sends SIGTERM and SIGINT to every process of a job, so they reach the driver directly. They aren't passed
on: a second one would end the driver at once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from study.interface.stop_signals import set_handlers, signal_name
from study.words import count_of

RESTARTS = 5
INTERRUPTED = 130
_REQUESTS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_LIKELY_CAUSES: dict[int, str] = {
    signal.SIGKILL: "perhaps the machine ran out of memory",
    signal.SIGBUS: "perhaps the disk is full",
    signal.SIGSEGV: "it crashed",
    signal.SIGABRT: "it crashed",
}


def keep(command: Sequence[str], notify: Callable[[str], None], *, restarts: int = RESTARTS) -> int:
    """Run a driver, and restart it whenever a signal kills it, unless the signal was a request to end.

    Meanwhile this process notes SIGTERM, SIGINT and SIGHUP, the requests to end, and goes on until the driver has
    ended.

    Args:
        command: the driver's command, as for `subprocess.Popen`.
        notify: called with a sentence on each event.
        restarts: maximum number of restarts.

    Returns:
        The driver's exit code, if it ended by itself. Otherwise 130 if such a request killed it, or reached this
        process, or 1 if it was killed more than `restarts` times.

    Raises:
        OSError: if the command can't be started.
        ValueError: outside the main thread.

    Example:
        >>> keep([sys.executable, "-c", "raise SystemExit(2)"], print)
        2
        >>> kill_itself = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        >>> keep([sys.executable, "-c", kill_itself], print, restarts=1)
        the driver was killed by SIGKILL (perhaps the machine ran out of memory): it is started again, 1 of 1
        times, and goes on from the store
        the driver was killed by SIGKILL (perhaps the machine ran out of memory) again, and 1 restart didn't help
        1
    """
    with _end_requests() as end:
        for restart in range(restarts + 1):
            process = subprocess.Popen(command)
            if end.is_set():  # the request came before the driver's start
                process.terminate()
            code = process.wait()
            if code >= 0:
                return code
            if end.is_set() or -code in _REQUESTS:
                return INTERRUPTED
            event = f"the driver was killed by {signal_name(-code)}"
            event += f" ({_LIKELY_CAUSES[-code]})" if -code in _LIKELY_CAUSES else ""
            if restart < restarts:
                notify(f"{event}: it is started again, {restart + 1} of {restarts} times, and goes on from the store")
    notify(f"{event} again, and {count_of(restarts, 'restart')} didn't help")
    return 1


@contextmanager
def _end_requests() -> Iterator[threading.Event]:
    """Record a request to end instead of ending: the driver gets it too, and ends when it is ready."""
    end = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        end.set()

    before = {number: signal.signal(number, on_signal) for number in _REQUESTS}
    try:
        yield end
    finally:
        set_handlers(before)


def driver(arguments: Sequence[str]) -> list[str]:
    """Return the command of a driver: this program with other arguments.

    With -P, nothing is imported from the working folder.
    """
    return [sys.executable, "-P", "-m", "study", *arguments]
