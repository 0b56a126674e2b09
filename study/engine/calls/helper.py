"""A small process beside this one, which serves it by commands over a socket."""

from __future__ import annotations

import socket
import subprocess
import sys


class Helper:
    """A process that runs a file of Python by its path, with a socket as its last argument.

    The file imports nothing of ours, so the process starts in some hundredths of a second. It ends when the socket is
    closed, and so also when this process ends.

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
        """True until it has ended."""
        return self.process.poll() is None

    def close(self) -> None:
        """Let it end, once it has done what is left to do."""
        self.commands.close()
