"""Supervision of a driver on a cluster: one that is killed by a signal is started again.

A process that runs out of memory dies without a message, and its job ends with it. A restarted driver goes on from the
store. Ray sends SIGTERM and SIGINT to every process of a job, so they reach the driver without us; they are not passed
on, since a second one would end the driver at once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from study.interface.stop_signals import set_handlers

RESTARTS = 5
INTERRUPTED = 130
_REQUESTS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_PERHAPS = {
    signal.SIGKILL: "perhaps the machine ran out of memory",
    signal.SIGBUS: "perhaps the disk is full",
    signal.SIGSEGV: "it crashed",
    signal.SIGABRT: "it crashed",
}


def keep(command: Sequence[str], notify: Callable[[str], None], *, restarts: int = RESTARTS) -> int:
    """Run a driver, and start it again whenever it is killed.

    Args:
        command: the driver's command, as for `subprocess.Popen`.
        notify: called with a sentence that says what happened.
        restarts: how often the driver is started again at most.

    Returns:
        The driver's exit code; 130 if it was asked to end, 1 if it was killed too often.

    Example:
        >>> keep([sys.executable, "-c", "raise SystemExit(2)"], print)
        2
        >>> kill_itself = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        >>> keep([sys.executable, "-c", kill_itself], print, restarts=1)
        the driver was killed by SIGKILL (perhaps the machine ran out of memory): it is started again, 1 of 1
        times, and goes on from the store
        the driver was killed by SIGKILL (perhaps the machine ran out of memory) again, and 1 restarts didn't help
        1
    """
    with _end_requests() as end:
        for restart in range(restarts + 1):
            process = subprocess.Popen(command)
            if end.is_set():  # the request came before the driver was there to get it
                process.terminate()
            code = process.wait()
            if code >= 0:
                return code
            number = signal.Signals(-code)
            if end.is_set() or number in _REQUESTS:
                return INTERRUPTED
            what = f"the driver was killed by {number.name}"
            what += f" ({_PERHAPS[number]})" if number in _PERHAPS else ""
            if restart < restarts:
                notify(f"{what}: it is started again, {restart + 1} of {restarts} times, and goes on from the store")
    notify(f"{what} again, and {restarts} restarts didn't help")
    return 1


@contextmanager
def _end_requests() -> Iterator[threading.Event]:
    """Note a request to end instead of ending: the driver got it too, and ends when it is ready."""
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

    With -P, nothing is imported that happens to lie in the working folder.
    """
    return [sys.executable, "-P", "-m", "study", *arguments]
