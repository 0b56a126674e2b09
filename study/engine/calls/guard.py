"""The program that starts trials in their own processes, and ends them even if the worker is killed.

It is run by its path and imports nothing of this package, whose import of torch takes seconds. It has two modes:

- `guard.py CONNECTION END` guards one process that runs a module of this package (`guarded.py`), such as a trial of a
  function. The process is a fork of the guard. Its exit code is written to the file descriptor END.
- `guard.py programs SOCKET` starts programs, one after another, on commands from the socket. Starting Python for each
  program would take longer than many programs run.

Each trial has its own process group. The guard kills it on the worker's command, and when the worker ends, which closes
the guard's input. All processes that the trial has started are then killed, also when the trial ends by itself. On
Linux this includes processes in their own sessions: the guard becomes the parent of processes whose parents have ended.
The guard runs no user code, so user code can't prevent this.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
GRACE_S = 5.0
"""Seconds from SIGTERM until a program is killed."""

_LOWEST_DESCRIPTOR = 500
"""The lowest descriptor of the trial's pipe, out of reach of user code that closes or writes to low ones."""


def main() -> None:
    """Guard one trial of a function, or serve programs."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if sys.argv[1] == "programs":
        Programs(socket.socket(fileno=int(sys.argv[2]))).serve()
    else:
        guard_function(int(sys.argv[1]), int(sys.argv[2]))


def guard_function(connection: int, end: int) -> None:
    """Fork a process, such as a trial; at its end kill all it has started, and write its exit code (-N for signal N).

    The process is killed once the input of this one is closed. Off Linux, only its process group is killed.

    Args:
        connection: file descriptor of the process's connection to its worker.
        end: file descriptor to which the exit code is written.
    """
    import threading  # imported here, so that the guard of programs starts quickly

    guard = os.getpid()
    trial = os.fork()
    if trial == 0:
        os.close(end)
        _run_trial(guard, connection)
    with suppress(OSError):  # the trial has done it already, or has ended
        os.setpgid(trial, trial)
    os.close(connection)
    threading.Thread(target=_kill_when_input_ends, args=(trial,), daemon=True).start()
    _, status = os.waitpid(trial, 0)
    _kill(trial)  # the processes that it has left
    _kill_adopted(guard)
    with suppress(OSError):  # the worker has ended
        os.write(end, str(os.waitstatus_to_exitcode(status)).encode())


class Programs:
    """A server that starts programs, one after another, and reports their exit codes.

    A command is a line of JSON:

    - `start`: a table with `words`, `environment`, `folder` and `memory_gb`, sent with the file descriptor of the
      program's output. The answer is `{"failed": reason}` if the program can't be run; otherwise there is none;
    - `end`: seconds from SIGTERM until the program is killed.

    `{"exit": code}` is sent once the program and everything it has started have ended; negative for a signal.

    Args:
        commands: the socket.
    """

    def __init__(self, commands: socket.socket) -> None:
        self._commands = commands
        self._commands.set_inheritable(False)  # programs must not inherit it
        self._arrived = bytearray()
        self._outputs: list[int] = []
        self._program: int | None = None
        self._kill_at_s = float("inf")
        self._is_closed = False

    def serve(self) -> None:
        """Execute commands until the socket is closed and the last program has ended.

        When the socket is closed, a running program gets SIGTERM, and is killed `GRACE_S` seconds later. After an
        `end` command, it is killed at the time of that command instead.
        """
        ended, wake = os.pipe()
        for descriptor in (ended, wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while self._program is not None or not self._is_closed:
            left_s = None if self._kill_at_s == float("inf") else max(0.0, self._kill_at_s - time.monotonic())
            sources: list[Any] = [ended] if self._is_closed else [ended, self._commands]
            ready, _, _ = select.select(sources, [], [], left_s)
            if ended in ready:
                os.read(ended, 4096)
                self._reap()
            if self._commands in ready:
                self._receive()
            if self._program is not None and time.monotonic() >= self._kill_at_s:
                self._kill_at_s = float("inf")
                _kill(self._program)

    def _receive(self) -> None:
        """Read from the socket and execute the complete commands; once it is closed, end the program."""
        data, outputs, _, _ = socket.recv_fds(self._commands, 2**16, 4)
        for output in outputs:
            os.set_inheritable(output, False)
        self._outputs += outputs
        self._arrived += data
        if not data:
            self._is_closed = True
            self._end(GRACE_S)
        *lines, self._arrived = self._arrived.split(b"\n")
        for line in lines:
            command = json.loads(line)
            if "start" in command:
                self._start(self._outputs.pop(0), **command["start"])
            else:
                self._end(command["end"])

    def _start(
        self, output: int, words: list[str], environment: dict[str, str], folder: str, memory_gb: float | None
    ) -> None:
        """Start a program in a fork, and answer if it can't be run."""
        failed, failure = os.pipe()
        guard = os.getpid()
        program = os.fork()
        if program == 0:
            try:
                os.setpgid(0, 0)
                _die_with(guard)
                signal.set_wakeup_fd(-1)
                _execute(output, words, environment, folder, memory_gb)
            except BaseException as error:
                os.write(failure, (getattr(error, "strerror", None) or str(error)).encode())
            os._exit(127)
        os.close(failure)
        os.close(output)
        with suppress(OSError):
            os.setpgid(program, program)
        if reason := os.read(failed, 4096):  # empty once the fork has executed the program
            os.waitpid(program, 0)
            self._answer({"failed": reason.decode(errors="replace")})
        else:
            self._program = program
        os.close(failed)

    def _end(self, grace_s: float) -> None:
        if self._program is not None and self._kill_at_s == float("inf"):
            with suppress(OSError):
                os.killpg(self._program, signal.SIGTERM)
            self._kill_at_s = time.monotonic() + grace_s

    def _reap(self) -> None:
        """Collect the processes that have ended; if the program is one of them, answer with its exit code."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self._program:
                _kill(process)  # the processes that it has left
                _kill_adopted(os.getpid())
                self._program, self._kill_at_s = None, float("inf")
                self._answer({"exit": os.waitstatus_to_exitcode(status)})

    def _answer(self, content: dict[str, Any]) -> None:
        with suppress(OSError):  # the worker has ended
            self._commands.sendall(json.dumps(content).encode() + b"\n")


def _execute(output: int, words: list[str], environment: dict[str, str], folder: str, memory_gb: float | None) -> None:
    """Replace this process by a program with this output, environment, working folder and memory limit (GiB)."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if memory_gb is not None:
        limit = int(memory_gb * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores SIGPIPE, and programs would inherit that
    os.chdir(folder)
    os.execvpe(words[0], words, environment)


def _kill_when_input_ends(trial: int) -> None:
    os.read(0, 1)
    _kill(trial)


def _kill(trial: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # no process is left; on macOS, only ended ones are
        os.killpg(trial, signal.SIGKILL)


def _kill_adopted(guard: int) -> None:
    """Kill the children that the guard has adopted, and their children in turn."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        if not any(list(map(_is_killed, _children(guard)))):
            return  # they belong to other users
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


def _run_trial(guard: int, connection: int) -> None:
    """Run the module that the worker's request names, and exit: with 0, or with 1 after an error."""
    import importlib
    from multiprocessing.connection import Connection

    code = 1
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        _die_with(guard)
        with open(os.devnull) as nothing:  # noqa: PTH123 (pathlib isn't needed otherwise)
            os.dup2(nothing.fileno(), 0)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a crash would lose buffered lines
        parent = Connection(_move_descriptor(connection))
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


def _move_descriptor(descriptor: int) -> int:
    """Return a descriptor moved to a high number, out of reach of user code; its own if no high one is free."""
    import fcntl

    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LOWEST_DESCRIPTOR)
    except OSError:  # the limit on open files is lower
        os.set_inheritable(descriptor, False)
        return descriptor
    os.close(descriptor)
    return moved


def _die_with(guard: int) -> None:
    """Let Linux kill this process when the guard dies, as when someone kills the guard alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)


if __name__ == "__main__":
    main()
