"""Threads that training functions left running; unless they are daemons, they keep Python from exiting."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection

_left_threads: list[threading.Thread] = []


def running_threads() -> set[threading.Thread]:
    """Return the running threads, with the main one, except daemons and threads of `concurrent.futures` pools.

    Any of them but the main thread keeps Python from exiting; idle pool threads end at exit.
    """
    pools = getattr(sys.modules.get("concurrent.futures.thread"), "_threads_queues", ())
    return {thread for thread in threading.enumerate() if not thread.daemon and thread not in pools}


def note_left(before: Collection[threading.Thread]) -> list[str]:
    """Record the threads of `running_threads` that aren't in `before`, and return their names in alphabetical order."""
    left = sorted(running_threads().difference(before), key=lambda thread: thread.name)
    _left_threads.extend(left)
    return [thread.name for thread in left]


def keeps_from_exiting() -> bool:
    """Return True if a recorded thread is still running."""
    return any(thread.is_alive() for thread in _left_threads)
