"""Supervision of a driver on a cluster: one that is killed by a signal is started again.

A process that runs out of memory dies without a word, and its job with it. What this starts again goes on from the
store. SIGTERM and SIGINT reach the driver by themselves, as Ray sends them to every process of a job: this passes
nothing on, since the second one would end the driver at once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

RESTARTS = 5
INTERRUPTED = 130
_ASKED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_PERHAPS = {
    signal.SIGKILL: "perhaps the machine ran out of memory",
    signal.SIGBUS: "perhaps the disk is full",
    signal.SIGSEGV: "it crashed",
    signal.SIGABRT: "it crashed",
}


def keep(command: Sequence[str], notify: Callable[[str], None], *, restarts: int = RESTARTS) -> int:
    """Run a driver, and start it again whenever it is killed.

    Args:
        command: the driver's, as for `subprocess.Popen`.
        notify: called with what happened, in words.
        restarts: how often it is started again, at most.

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
    with _asked_to_end() as asked:
        for restart in range(restarts + 1):
            process = subprocess.Popen(command)
            if asked.is_set():  # before it was there to be asked itself
                process.terminate()
            code = process.wait()
            if code >= 0:
                return code
            number = signal.Signals(-code)
            if asked.is_set() or number in _ASKED:
                return INTERRUPTED
            what = f"the driver was killed by {number.name}"
            what += f" ({_PERHAPS[number]})" if number in _PERHAPS else ""
            if restart < restarts:
                notify(
                    f"{what}: it is started again, {restart + 1} of {restarts} times, and goes on from the store"
                )
    notify(f"{what} again, and {restarts} restarts didn't help")
    return 1


@contextmanager
def _asked_to_end() -> Iterator[threading.Event]:
    """Note a request to end instead of ending: the driver got it too, and says when it is through."""
    asked = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        asked.set()

    before = {number: signal.signal(number, on_signal) for number in _ASKED}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def driver(arguments: Sequence[str]) -> list[str]:
    """Give the command of a driver: this program with other arguments.

    -P: nothing is imported that happens to lie in the working folder.
    """
    return [sys.executable, "-P", "-m", "study", *arguments]
