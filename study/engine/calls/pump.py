"""A process that copies the output of trials live into logs of bounded size.

It is run by its path and imports nothing of this package, so it starts in hundredths of a second. A thread could
deadlock: a library that writes a lot without releasing Python's lock would wait for the thread, and the thread for the
lock.

It receives commands in JSON over a socket:

- `log`: the path of a log, sent with the reading end of a pipe;
- `wait`: answered once everything in the latest pipe so far is in its log. The answer is the end of the text that
  couldn't be written, as on a full disk.

It ends when the socket and all pipes are closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import sys

HALF = 500_000
"""Bytes kept of a log's beginning, and of its end."""

_AT_ONCE = 2**16
_MOST_LOST = 20_000


class Log:
    """A log file of bounded size: its beginning and its end. The first byte creates it.

    Args:
        path: its path.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._left_out = 0
        self._mark = b""
        self.lost = b""
        """The end of the data that couldn't be written."""

    def write(self, data: bytes) -> None:
        """Append data, and shorten a log beyond 4 * `HALF` bytes; `lost` keeps the end of data that isn't written."""
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)  # noqa: PTH103, PTH120 (pathlib takes long)
            with open(self._path, "ab") as log:  # noqa: PTH123
                log.write(data)
                size = log.tell()
            if size > 4 * HALF:
                self._shorten(size)
        except OSError:
            self.lost = (self.lost + data)[-_MOST_LOST:]

    def _shorten(self, size: int) -> None:
        """Replace the middle of the log by a line with the number of bytes left out so far."""
        with open(self._path, "rb") as log:  # noqa: PTH123
            head = log.read(HALF)
            log.seek(size - HALF)
            tail = log.read()
        self._left_out += size - len(head) - len(self._mark) - len(tail)
        self._mark = f"\n[{self._left_out:,} bytes left out]\n".encode()
        shortened = f"{self._path}.short"
        with open(shortened, "wb") as log:  # noqa: PTH123
            log.write(head + self._mark + tail)
        os.replace(shortened, self._path)  # noqa: PTH105


def main() -> None:
    """Execute commands, and copy pipes into their logs, until the socket and all pipes are closed."""
    commands = socket.socket(fileno=int(sys.argv[1]))
    pipes = selectors.DefaultSelector()
    pipes.register(commands, selectors.EVENT_READ)
    latest = -1
    while pipes.get_map():
        for key, _ in pipes.select():
            if key.fileobj is commands:
                content, received, _, _ = socket.recv_fds(commands, _AT_ONCE, 8)
                if not content:
                    pipes.unregister(commands)
                for line in content.splitlines():
                    command = json.loads(line)
                    if "log" in command:
                        latest = received.pop(0)
                        os.set_blocking(latest, False)
                        pipes.register(latest, selectors.EVENT_READ, Log(command["log"]))
                    else:
                        lost = _copy_all(pipes, latest)
                        commands.sendall(json.dumps(lost.decode("utf-8", "replace")).encode() + b"\n")
            else:
                _copy(pipes, key.fd, key.data)


def _copy_all(pipes: selectors.BaseSelector, pipe: int) -> bytes:
    """Copy everything in a pipe, and return the end of its data that couldn't be written; empty for a closed pipe."""
    with contextlib.suppress(KeyError):
        log: Log = pipes.get_key(pipe).data
        while _copy(pipes, pipe, log):
            pass
        return log.lost
    return b""


def _copy(pipes: selectors.BaseSelector, pipe: int, log: Log) -> bool:
    """Copy one block from a pipe, or close the pipe at its end; return True if there may be more."""
    try:
        data = os.read(pipe, _AT_ONCE)
    except BlockingIOError:
        return False
    if data:
        log.write(data)
        return True
    pipes.unregister(pipe)
    os.close(pipe)
    return False


if __name__ == "__main__":
    main()
