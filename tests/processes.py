"""Server processes for tests: started until they answer, killed, restarted on the same port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

READY_S = 300.0
"""Timeout for a server's answer, sufficient on a busy machine."""


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], T | None], event: str, timeout_s: float = READY_S) -> T:
    """Wait until a condition returns a true value, and return that.

    Raises:
        TimeoutError: at the timeout; the message names `event`.
    """
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {event}")
        time.sleep(0.05)
    return value


def is_running(process: int) -> bool:
    """Return True if a process runs; False for a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False


def command_line(process: int) -> bytes:
    """Return the command line of a process; it is empty once the process has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def below(process_id: int) -> list[int]:
    """List the ids of a process's descendants; if one ends meanwhile, its own descendants may be missing."""
    threads: list[Path] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        threads += Path(f"/proc/{process_id}/task").glob("*/children")
    descendants = []
    for thread in threads:
        with suppress(FileNotFoundError, ProcessLookupError):  # an ended thread must not hide another's children
            for child in map(int, thread.read_text().split()):
                descendants += [*below(child), child]
    return descendants


def answers(address: str) -> bool:
    """Return True if an HTTP server answers a request for an address with 200."""
    with suppress(OSError), urllib.request.urlopen(address, timeout=5) as reply:
        return bool(reply.status == 200)
    return False


@dataclass
class Server:
    """A server process in a session of its own, to be killed and started again on the same port.

    Args:
        name: its name in messages.
        command: the program and its arguments; no secrets.
        is_ready: returns True once it answers.
        log: the file that its output goes to.
        environment: its whole environment.
        user: the user that runs it; None for this user.
        stop_signal: the signal that ends it gently.
    """

    name: str
    command: Sequence[str]
    is_ready: Callable[[], bool]
    log: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    user: str | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            RuntimeError: if it ends; the message has the end of its log.
            TimeoutError: if it takes too long.
        """
        self._begin()
        wait_for(self._is_up, f"{self.name} to answer")

    def kill(self) -> None:
        """End it and all its processes by SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it gently, then kill remaining processes by SIGKILL."""
        if self.process is not None:
            self.process.send_signal(self.stop_signal)
            self.go_on()  # a paused process handles no signal
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        self.kill()

    def pause(self) -> None:
        """Pause it and all its processes, until `go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End a pause, if there is one."""
        self._signal(signal.SIGCONT)

    def _begin(self) -> None:
        identity = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.log.parent,
                start_new_session=True,
                **identity,  # type: ignore[call-overload]
            )

    def _is_up(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            output = self.log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {output}")
        return self.is_ready()

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            self._signal(number)
            self.process.wait()
            self.process = None

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
