"""A small process that serves this one, with commands over a socket."""

from __future__ import annotations

import socket
import subprocess
import sys


class Helper:
    """A process that runs a Python file by its path, with a socket as its last argument.

    The file imports nothing of this package, so the process starts in hundredths of a second. It ends when the socket
    is closed, and so when this process ends.

    Args:
        path: the file's path.
        words: its arguments before the socket.

    Attributes:
        commands: this process's end of the socket.
    """

    def __init__(self, path: str, *words: str) -> None:
        self.commands, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", path, *words, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is for this process
            )

    @property
    def is_running(self) -> bool:
        """True until the process has ended."""
        return self.process.poll() is None

    def close(self) -> None:
        """Close the socket; the process ends once its work is done."""
        self.commands.close()
