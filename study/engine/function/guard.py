"""The program of an isolated trial: a guard, and the process of the trial itself.

It is run by its path, since importing this package would import torch, which takes seconds; the guard imports nothing
of ours. The trial is a fork of the guard in a process group of its own. The guard waits for two things:

- that the trial ends: then it reports the trial's exit code;
- that its own input ends, which happens when the worker ends in whatever way, or wants the trial to end: then it kills
  the trial.

Either way it kills all that the trial has started. On Linux, processes in sessions of their own are among that: the
guard becomes the parent of those whose parents have ended. It runs no code of a user, so nothing can keep it from doing
so.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_OUT_OF_THE_WAY = 500
"""The pipe's descriptor in the trial, at least: code that closes, or writes to, the usual ones doesn't meet it."""


def main() -> None:
    """Start the trial, guard it, and report its exit code; negative for a signal."""
    guard, connection, end = os.getpid(), int(sys.argv[1]), int(sys.argv[2])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    trial = os.fork()
    if trial == 0:
        os.close(end)
        _trial(guard, connection)
    with suppress(OSError):  # the trial has done it already, or has ended
        os.setpgid(trial, trial)
    os.close(connection)
    threading.Thread(target=_kill_when_input_ends, args=(trial,), daemon=True).start()
    _, status = os.waitpid(trial, 0)
    _kill(trial)  # what it has left behind
    _kill_adopted(guard)
    os.write(end, str(os.waitstatus_to_exitcode(status)).encode())


def _kill_when_input_ends(trial: int) -> None:
    os.read(0, 1)
    _kill(trial)


def _kill(trial: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nothing is left; on macOS, only what has ended is left
        os.killpg(trial, signal.SIGKILL)


def _kill_adopted(guard: int) -> None:
    """Kill the processes that have become children of the guard, and those that become so when these end."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        if not any(list(map(_is_killed, _children(guard)))):
            return  # those of other users
        os.waitpid(-1, 0)


def _children(guard: int) -> list[int]:
    children = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (pathlib isn't needed otherwise)
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
                if int(stat.read().rpartition(b")")[2].split()[1]) == guard:
                    children.append(int(name))
    return children


def _is_killed(process: int) -> bool:
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        return False
    return True


def _trial(guard: int, connection: int) -> None:
    """Run the trial, and end this process."""
    code = 1
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        _die_with(guard)
        with open(os.devnull) as nothing:  # noqa: PTH123 (pathlib isn't needed otherwise)
            os.dup2(nothing.fileno(), 0)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a crash would take lines along
        parent = Connection(_moved(connection))
        request: dict[str, Any] = json.loads(parent.recv_bytes())
        sys.argv, sys.path[:] = sys.argv[:1], request["path"]
        importlib.import_module(request.get("program", "study.interface.function.child")).run(parent, request)
        code = 0
    finally:
        if code:
            sys.excepthook(*sys.exc_info())
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _moved(descriptor: int) -> int:
    """Move a descriptor out of the way of the user's code; programs that it starts don't get it."""
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
    except OSError:  # the process may not have so many
        os.set_inheritable(descriptor, False)
        return descriptor
    os.close(descriptor)
    return moved


def _die_with(guard: int) -> None:
    """End this process when the guard ends without having ended it: somebody has killed the guard alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)


if __name__ == "__main__":
    main()
