"""A new Python process that runs a module of this package, and ends with this process."""

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
from study.interface.stop_signals import signal_name

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
        request: JSON data for the module; its ``path`` becomes `sys.path`.
        environment: environment variables; None for those of this process.
        output: file descriptor for stdout and stderr; None to drop them.
        folder: working directory; None for that of this process.

    Attributes:
        connection: this end of the connection to the process.
        end: file descriptor that is readable once the process has ended.

    Raises:
        OSError: if the process can't be started.
        TypeError: if the request isn't JSON.
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
        """Send JSON data to the process; a no-op if it has ended.

        Raises:
            TypeError: if the data aren't JSON.
        """
        with suppress(OSError):
            self.connection.send_bytes(json.dumps(data).encode())

    def has_ended(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds for the process to end; return True if it has."""
        return bool(wait([self.end], timeout_s))

    def exit_code(self) -> int:
        """Wait until the process has ended, and return its exit code; negative for a signal.

        If the guard was killed, the process died with it: the code is that of SIGKILL.
        """
        return int(self._end.read() or -signal.SIGKILL)

    def close(self) -> None:
        """Kill the process and everything it has started, and wait until they have ended."""
        self.kill()
        self.connection.close()
        self._guard.wait()
        self._end.close()

    def kill(self) -> None:
        """Begin to end the process; `exit_code` waits for its end."""
        assert self._guard.stdin is not None
        with suppress(OSError):
            self._guard.stdin.close()  # the guard then kills the process


def import_path() -> list[str]:
    """Return this process's import path with absolute entries, for a process in another folder."""
    return [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100 (an empty entry is the working folder)


def ending(code: int, memory_gb: float | None = None) -> str:
    """Return an exit code in words.

    Args:
        code: the exit code; negative for a signal.
        memory_gb: the process's memory limit, in GiB, as a possible reason of SIGABRT and SIGSEGV; None for no limit.

    Example:
        >>> ending(3)
        'exit code 3'
        >>> ending(-9)
        'SIGKILL (perhaps the machine ran out of memory)'
    """
    if code >= 0:
        return f"exit code {code}"
    why = _REASONS.get(-code, "")
    if memory_gb is not None and -code in (signal.SIGABRT, signal.SIGSEGV):
        why += f"; perhaps its memory_gb of {memory_gb:g} wasn't enough"
    return signal_name(-code) + (f" ({why})" if why else "")
