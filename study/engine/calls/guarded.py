"""A new process of Python that runs a program of ours, and ends with this process, with all that it has started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from study.engine.calls import guard

_REASONS: dict[int, str] = {
    signal.SIGSEGV: "a segmentation fault",
    signal.SIGBUS: "a bus error",
    signal.SIGILL: "an illegal instruction",
    signal.SIGFPE: "an arithmetic error",
    signal.SIGABRT: "it aborted",
    signal.SIGKILL: "perhaps the machine ran out of memory",
}


class GuardedProcess:
    """A process that runs ``run(connection, request)`` of a module; `study.engine.calls.guard` ends it.

    Args:
        program: the module's name.
        request: data of JSON for the program; ``path`` is its `sys.path`.
        environment: of the process; None for that of this one.
        output: file descriptor for what it prints; None to drop it.
        folder: the folder that it runs in; None for that of this process.

    Attributes:
        connection: this end of the connection to the program.
        end: file descriptor that can be read once the process has ended.
    """

    def __init__(
        self,
        program: str,
        request: Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        output: int | None = None,
        folder: Path | None = None,
    ) -> None:
        (self.connection, theirs), (end, guards_end) = Pipe(), os.pipe()
        self._end = os.fdopen(end, "rb")
        self.end = end
        descriptors = (theirs.fileno(), guards_end)
        printed = subprocess.DEVNULL if output is None else output
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-P", guard.__file__, *map(str, descriptors)],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=printed,
                cwd=folder,
                env=environment,
                pass_fds=descriptors,
                start_new_session=True,  # Ctrl-C is for this process, which ends the other
            )
        finally:
            theirs.close()
            os.close(guards_end)
        self.send({"program": program, **request})

    def send(self, data: Any) -> None:
        """Send data of JSON to the program; if it has ended, its end says so."""
        with suppress(OSError):
            self.connection.send_bytes(json.dumps(data).encode())

    def has_ended(self, timeout_s: float) -> bool:
        """Wait for the end of the process, and return whether it has ended."""
        return bool(wait([self.end], timeout_s))

    def exit_code(self) -> int:
        """Wait for the end of the process, and return its exit code; negative for a signal.

        A guard that was killed has taken the process along, so the code is then that of SIGKILL.
        """
        return int(self._end.read() or -signal.SIGKILL)

    def close(self) -> None:
        """End the process and everything that it has started."""
        self.kill()
        self.connection.close()
        self._guard.wait()
        self._end.close()

    def kill(self) -> None:
        """Begin to end the process; `exit_code` waits for it."""
        assert self._guard.stdin is not None
        with suppress(OSError):
            self._guard.stdin.close()  # at which the guard kills the process


def import_path() -> list[str]:
    """Return the folders that this process imports from, for a process that runs elsewhere."""
    return [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100 (an empty entry is the working folder)


def ending(code: int, memory_gb: float | None = None) -> str:
    """Say how a process ended.

    Args:
        code: its exit code; negative for a signal.
        memory_gb: GiB that it was allowed to allocate; None for no limit.

    Example:
        >>> ending(3)
        'exit code 3'
        >>> ending(-9)
        'SIGKILL (perhaps the machine ran out of memory)'
    """
    if code >= 0:
        return f"exit code {code}"
    known = {int(number): number.name for number in signal.Signals}
    why = _REASONS.get(-code, "")
    if memory_gb is not None and -code in (signal.SIGABRT, signal.SIGSEGV):
        why += f"; perhaps its memory_gb of {memory_gb:g} wasn't enough"
    return known.get(-code, f"signal {-code}") + (f" ({why})" if why else "")
