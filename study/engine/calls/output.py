"""The logs of trials: stdout and stderr of the trial that runs."""

from __future__ import annotations

import atexit
import io
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from study.engine.calls import pump
from study.engine.calls.helper import Helper

_TAIL_BYTES, _TAIL_LINES = 20_000, 60


class _Pump(Helper):
    """The process that writes the logs of this process's trials; see `study.engine.calls.pump`."""

    def __init__(self) -> None:
        super().__init__(pump.__file__)

    def open(self, log: Path) -> int:
        """Return a new file descriptor whose content is copied to a log."""
        reading, writing = os.pipe()
        try:
            socket.send_fds(self.commands, [json.dumps({"log": str(log)}).encode() + b"\n"], [reading])
        finally:
            os.close(reading)
        return writing

    def wait(self) -> str:
        """Wait until everything written to the latest descriptor so far is in its log.

        Returns:
            The end of the text that couldn't be written; empty if all was, or if the pump was killed.
        """
        answer = b""
        with suppress(OSError):  # it was killed
            self.commands.sendall(b'{"wait": true}\n')
            while not answer.endswith(b"\n") and (data := self.commands.recv(2**16)):
                answer += data
        return str(json.loads(answer)) if answer else ""


_pumps: dict[int, _Pump] = {}


def _pump() -> _Pump:
    """Return the running pump of this process; start it if there is none, as in a fork."""
    running = _pumps.get(os.getpid())
    if running is not None and not running.is_running:
        running.close()
        running = None
    if running is None:
        running = _pumps[os.getpid()] = _Pump()
        atexit.register(running.close)
    return running


class TrialOutput:
    """The log of a trial that runs in this process or in a child of it.

    Args:
        log: the log's path; the first output creates it.
        is_shared: whether this process also has output of its own, such as in a terminal or a notebook. Then only the
            output of Python is logged, and it is printed as well.
    """

    def __init__(self, log: Path, *, is_shared: bool) -> None:
        self._log = log
        self._is_shared = is_shared
        self._streams: tuple[TextIO, TextIO] | None = None
        self._pump: _Pump | None = None
        self._descriptor = -1
        self.is_closed = False

    @property
    def descriptor(self) -> int:
        """File descriptor of the log; it is -1 once an opened log is closed.

        The first access opens the log, even after `close`.

        Raises:
            OSError: if the process that writes the log can't be started or reached.
        """
        if self._pump is None:
            self._pump = _pump()
            self._descriptor = self._pump.open(self._log)
        return self._descriptor

    def write(self, text: str) -> None:
        """Write a text and a line break to the log; a no-op once it is closed."""
        self.write_bytes(f"{text}\n".encode(errors="backslashreplace"))

    def write_bytes(self, data: bytes) -> None:
        """Write to the log; a no-op once it is closed. Data that can't be written are lost."""
        with suppress(OSError):
            while data and not self.is_closed:
                data = data[os.write(self.descriptor, data) :]

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Log all output within the context; if the output is shared, only that of Python.

        The first use replaces `sys.stdout` and `sys.stderr`; the caller restores them.

        Raises:
            OSError: if the output isn't shared and the log can't be opened.
        """
        if self._streams is None:
            self._streams = (self._stream(sys.stdout), self._stream(sys.stderr))
            sys.stdout, sys.stderr = self._streams
        if self._is_shared:
            yield
            return
        before = [os.dup(1), os.dup(2)]
        for number in (1, 2):
            os.dup2(self.descriptor, number)
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr, *self._streams):
                with suppress(Exception):  # user code may have replaced or closed it
                    stream.flush()
            for number, descriptor in zip((1, 2), before, strict=True):
                os.dup2(descriptor, number)
                os.close(descriptor)

    def last_lines(self) -> list[str]:
        """Return at most 60 lines from the log's last 20,000 bytes, without trailing empty lines; empty without output.

        Before `close`, the end of the text that couldn't be written to the log is included.
        """
        lost = self._pump.wait() if self._pump is not None and not self.is_closed else ""
        text = ""
        with suppress(OSError), self._log.open("rb") as log:  # the log doesn't exist without output
            log.seek(max(0, log.seek(0, io.SEEK_END) - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
        return f"{text}{lost}".rstrip().splitlines()[-_TAIL_LINES:]

    def close(self) -> None:
        """Close the log, once all output is in it."""
        self.is_closed = True
        if self._pump is not None and self._descriptor >= 0:
            self._pump.wait()
            os.close(self._descriptor)
            self._descriptor = -1

    def _stream(self, usual: TextIO | None) -> TextIO:
        """Return a text stream that writes to the log, and also to the usual stream if the output is shared."""
        if self._is_shared and usual is not None:
            return _Tee(usual, self)  # type: ignore[return-value]
        return io.TextIOWrapper(
            cast(BinaryIO, _Raw(self)),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
            write_through=True,
        )


class _Raw(io.RawIOBase):
    """The log as a byte stream, without a descriptor of its own that user code could close."""

    def __init__(self, output: TrialOutput) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._output.write_bytes(bytes(data))
        return len(data)

    def fileno(self) -> int:
        return self._output.descriptor


class _Tee:
    """A text stream that is also logged."""

    def __init__(self, usual: TextIO, output: TrialOutput) -> None:
        self._usual, self._output = usual, output

    def write(self, text: str) -> int:
        self._output.write_bytes(text.encode(errors="backslashreplace"))
        return self._usual.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)
