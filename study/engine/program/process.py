"""A program in its own process; this process's end also ends the program and everything it has started."""

from __future__ import annotations

import atexit
import json
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from study.engine.calls import guard
from study.engine.calls.guard import GRACE_S
from study.engine.calls.helper import Helper

_MOST_S = 3600.0


class _Guard(Helper):
    """A process that starts programs for this one; see `study.engine.calls.guard`."""

    def __init__(self) -> None:
        super().__init__(guard.__file__, "programs")

    def close(self) -> None:
        """Let the guard end its program and itself, and wait for that."""
        super().close()
        self.process.wait()


_idle: dict[int, list[_Guard]] = {}
"""Guards without a program, by the process that may use them: a fork starts its own."""


@atexit.register
def _end_idle() -> None:
    for idle in _idle.pop(os.getpid(), []):
        idle.close()


class ProgramError(Exception):
    """A program that can't be started or guarded; the message has the reason."""


class Process:
    """A running program.

    Args:
        words: the program and its arguments.
        environment: environment variables.
        folder: working directory.
        output: file descriptor for stdout and stderr.
        memory_gb: GiB that it may allocate; None for no limit.

    Raises:
        OSError: if its guard can't be started or has just been killed.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        output: int,
        memory_gb: float | None = None,
    ) -> None:
        self._guard = _take_guard()
        self._program = words[0]
        self._arrived = b""
        self._failure: str | None = None
        self.exit_code: int | None = None
        """The exit code once it has ended; negative for a signal."""
        start = {"words": words, "environment": environment, "folder": str(folder), "memory_gb": memory_gb}
        command = json.dumps({"start": {**start, "words": list(words), "environment": dict(environment)}})
        message = f"{command}\n".encode()
        sent = socket.send_fds(self._guard.commands, [message], [output])
        self._guard.commands.sendall(message[sent:])

    def wait(self, timeout_s: float, *others: int) -> None:
        """Wait until the program has ended, one of the given file descriptors is readable, or the time is over.

        Raises:
            ProgramError: if the program couldn't be started, or its guard was killed.
        """
        if self.exit_code is None and self._guard.commands in wait(
            [self._guard.commands, *others], max(0.0, min(timeout_s, _MOST_S))
        ):
            self._receive()

    def terminate(self, grace_s: float = GRACE_S) -> None:
        """Send SIGTERM, and SIGKILL after `grace_s` seconds if the program still runs; a no-op once it has ended.

        `wait` waits for its end.
        """
        if self.exit_code is None:
            with suppress(OSError):
                self._guard.commands.sendall(json.dumps({"end": grace_s}).encode() + b"\n")

    def _receive(self) -> None:
        """Read the exit code from the guard if it has arrived; the guard is then idle again.

        If the program can't be run or the guard was killed, raise ProgramError.
        """
        try:
            data = self._guard.commands.recv(2**16)
        except ConnectionResetError:  # it was killed with an unread command
            data = b""
        self._arrived += data
        if not data:
            self.exit_code = -9
            self._guard.close()
            raise ProgramError("its guard process was killed, and the program with it")
        if b"\n" not in self._arrived:
            return
        answer: dict[str, Any] = json.loads(self._arrived)
        _idle[os.getpid()].append(self._guard)
        if "failed" in answer:
            self.exit_code = 127
            raise ProgramError(f"{self._program} can't be run: {answer['failed']}")
        self.exit_code = answer["exit"]


def _take_guard() -> _Guard:
    guards = _idle.setdefault(os.getpid(), [])
    while guards:
        if (idle := guards.pop()).is_running:
            return idle
        idle.close()
    return _Guard()
