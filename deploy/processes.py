"""Processes started by the smoke test, and their descendants, identified by a mark in their environment."""

from __future__ import annotations

import os
import signal
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

READY_S = 180.0
MARK = {"STUDY_SERVICE": uuid.uuid4().hex}
"""Environment variable of all processes started here."""

_LOOK_S = 0.2


class ServiceError(Exception):
    """A failed check or start of the service."""


def say(words: str) -> None:
    """Print a line of progress, with the prefix ``smoke:``."""
    print(f"smoke: {words}", flush=True)


def wait(until: Callable[[], Any], what: str, timeout_s: float = READY_S) -> Any:
    """Poll a condition until it returns a true value, and return that value.

    Args:
        until: the condition.
        what: the awaited event, for the message.
        timeout_s: seconds until the timeout.

    Raises:
        ServiceError: at the timeout.
    """
    deadline = time.monotonic() + timeout_s
    while not (seen := until()):
        if time.monotonic() > deadline:
            raise ServiceError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(_LOOK_S)
    return seen


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that are free on loopback, as the kernel chooses them.

    The default settings of a Linux kernel exclude 10002 to 19999, the ports of Ray's workers.
    """
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def processes() -> list[tuple[int, str]]:
    """List our processes and their descendants: each process id and its command line.

    Ray's workers overwrite their environment, and so the mark: they are identified by their parents.
    """
    ((name, value),) = MARK.items()
    mark, ours = f"{name}={value}".encode(), set[int]()
    parents, commands = dict[int, int](), dict[int, str]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                process = int(entry.name)
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                parents[process] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if words:  # else it has ended, and its parent hasn't noticed yet
                    commands[process] = words
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    ours.add(process)
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return [(process, commands[process]) for process in sorted(ours) if process in commands]


def listening() -> list[tuple[str, int, str]]:
    """List our listening TCP sockets: address, port and the process's command line."""
    found: dict[str, tuple[str, int]] = {}
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":  # LISTEN
                packed, _, port = words[1].partition(":")
                # Words of 32 bits, in the machine's byte order.
                numbers = b"".join(bytes.fromhex(packed[at : at + 8])[::-1] for at in range(0, len(packed), 8))
                found[f"socket:[{words[9]}]"] = (socket.inet_ntop(family, numbers), int(port, 16))
    there = []
    for process, command in processes():
        with suppress(OSError):
            for path in Path(f"/proc/{process}/fd").iterdir():
                with suppress(OSError):  # closed meanwhile
                    if (link := str(path.readlink())) in found:
                        there.append((*found[link], command))
    return there


def end_all() -> None:
    """End all our processes by SIGTERM, and by SIGKILL those that still run ten seconds later.

    It waits for their end, for at most ten seconds after each signal.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process, _ in processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)
        with suppress(ServiceError):
            return wait(lambda: not processes(), "processes to end", 10.0)
    return None
