"""Threads that training functions left running, which keep Python from exiting unless they are daemons."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection

_left: list[threading.Thread] = []


def running_threads() -> set[threading.Thread]:
    """Return the threads that keep Python from exiting; those of thread pools, which Python ends itself, don't."""
    pools = getattr(sys.modules.get("concurrent.futures.thread"), "_threads_queues", ())
    return {thread for thread in threading.enumerate() if not thread.daemon and thread not in pools}


def note_left(before: Collection[threading.Thread]) -> list[str]:
    """Remember the threads that run now and didn't before, and return their names."""
    left = sorted(running_threads().difference(before), key=lambda thread: thread.name)
    _left.extend(left)
    return [thread.name for thread in left]


def keeps_from_exiting() -> bool:
    """Return whether a thread that a training function left is still running."""
    return any(thread.is_alive() for thread in _left)
