"""The program of an isolated trial: a guard, and the process of the trial itself.

It is run by its path, since importing this package would import torch, which takes seconds; the guard imports nothing
of ours. The trial is a fork of
the guard in a process group of its own. The guard waits for two things: that the trial ends, whose exit code it prints;
and that its own input ends, which happens when the worker ends in whatever way, or wants the trial to end: then it
kills the trial with all that it has started. It runs no code of a user, so nothing can keep it from doing so.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

_PR_SET_PDEATHSIG = 1  # of prctl(2)


def main() -> None:
    """Start the trial, guard it, and print its exit code; negative for a signal."""
    guard, connection = os.getpid(), int(sys.argv[1])
    trial = os.fork()
    if trial == 0:
        _trial(guard, Connection(connection))
    with suppress(OSError):  # the trial has done it already, or has ended
        os.setpgid(trial, trial)
    os.close(connection)
    threading.Thread(target=_kill_when_input_ends, args=(trial,), daemon=True).start()
    _, status = os.waitpid(trial, 0)
    _kill(trial)  # what it has left behind
    print(os.waitstatus_to_exitcode(status), flush=True)


def _kill_when_input_ends(trial: int) -> None:
    os.read(0, 1)
    _kill(trial)


def _kill(trial: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nothing is left; on macOS, only what has ended is left
        os.killpg(trial, signal.SIGKILL)


def _trial(guard: int, parent: Connection) -> None:
    """Run the trial, and end this process."""
    code = 1
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        _die_with(guard)
        with open(os.devnull) as nothing:  # noqa: PTH123 (pathlib isn't needed otherwise)
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)  # what the user's code prints; the guard's output is for the exit code
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a crash would take lines along
        request: dict[str, Any] = json.loads(parent.recv_bytes())
        sys.argv, sys.path[:] = sys.argv[:1], request["path"]
        importlib.import_module("tasks.function.child").run(parent, request)
        code = 0
    finally:
        if code:
            sys.excepthook(*sys.exc_info())
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _die_with(guard: int) -> None:
    """End this process when the guard ends without having ended it: somebody has killed the guard alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)


if __name__ == "__main__":
    main()
