"""HTTP server on this machine for the index of a store and its reports."""

from __future__ import annotations

import getpass
import hashlib
import os
import signal
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

_HOST = "127.0.0.1"
# Prevents DNS rebinding: another host's page could otherwise read reports by a name that resolves to this machine.
_NAMES = {"127.0.0.1", "localhost", "[::1]"}
_TYPES = {
    **{".html": "text/html; charset=utf-8", ".md": "text/plain; charset=utf-8", ".csv": "text/csv; charset=utf-8"},
    **{".yaml": "text/plain; charset=utf-8", ".tex": "text/plain; charset=utf-8", ".pdf": "application/pdf"},
    **{".svg": "image/svg+xml", ".png": "image/png", ".txt": "text/plain; charset=utf-8", ".jpg": "image/jpeg"},
    **{".json": "text/plain; charset=utf-8", ".jsonl": "text/plain; charset=utf-8"},
}
_SECONDS = 30


@dataclass(frozen=True)
class ServedFile:
    """A file to serve.

    Args:
        path: its path.
        is_ours: True if this package wrote the file; browsers sandbox all others, without scripts.
    """

    path: Path
    is_ours: bool = True


FileOf = Callable[[str], ServedFile | None]
"""Returns the file at a URL's path without its leading slash; None if no such file exists."""


@contextmanager
def served(file_of: FileOf, port: int) -> Iterator[int]:
    """Serve files to browsers on this machine, in threads.

    Args:
        file_of: returns the file at a path; paths without a file are answered with 404.
        port: the port to listen on; any free port if it is 0, taken, forbidden or out of range.

    Yields:
        The port.

    Raises:
        OSError: if no port is free.
    """
    try:
        server = _Server(file_of, port)
    except (OSError, OverflowError):
        server = _Server(file_of, 0)
    with server:
        thread = threading.Thread(target=_serve, args=(server,), name="pages", daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def _serve(server: _Server) -> None:
    """Serve requests until the server is shut down."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))  # for the main thread
    server.serve_forever(poll_interval=0.1)


class _Server(ThreadingHTTPServer):
    """A server on the loopback interface; port 0 means any free port."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, file_of: FileOf, port: int) -> None:
        self.file_of = file_of
        super().__init__((_HOST, port), _Pages)

    def server_bind(self) -> None:
        """Bind without the slow lookup of the host's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = _HOST, int(self.server_address[1])


class _Pages(BaseHTTPRequestHandler):
    """The request handler for files of reports."""

    timeout: ClassVar[float] = _SECONDS
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "study", ""
    server: _Server

    def do_GET(self) -> None:
        """Answer with a file."""
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        """Answer with the headers of a file."""
        self._answer(with_content=False)

    def log_message(self, *_: object) -> None:
        """Do nothing: the terminal shows addresses only."""

    def _answer(self, *, with_content: bool) -> None:
        """Answer a request: 403 for a foreign host name, 404 without a file, 304 for an unchanged one."""
        name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        content = self._content() if name in _NAMES else None
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND if name in _NAMES else HTTPStatus.FORBIDDEN)
            return
        kind, data, is_ours = content
        version = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        if self.headers.get("If-None-Match") == version:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self.send_header("ETag", version)
            self.end_headers()
            return
        self.send_response(HTTPStatus.OK)
        headers = {"Content-Type": kind, "Content-Length": str(len(data)), "Cache-Control": "no-cache"}
        headers |= {"ETag": version}
        headers |= {} if is_ours else {"Content-Security-Policy": "sandbox"}
        for header, value in (headers | {"X-Content-Type-Options": "nosniff"}).items():
            self.send_header(header, value)
        self.end_headers()
        if with_content:
            self.wfile.write(data)

    def _content(self) -> tuple[str, bytes, bool] | None:
        """Return the requested file's type, content and `is_ours`; None if it can't be read, or is a symbolic link."""
        file = self.server.file_of(unquote(urlsplit(self.path).path).removeprefix("/"))
        if file is None:
            return None
        try:
            with os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
                kind = _TYPES.get(file.path.suffix, "application/octet-stream")
                return kind, opened.read(), file.is_ours
        except (OSError, ValueError):  # a missing file, a link, a folder, or a name with a null byte
            return None


def ssh_command(ports: Sequence[int]) -> str:
    """Return the ssh command that forwards ports of this machine to another one.

    Example:
        >>> ssh_command([5001, 5000])
        'ssh -N -L 5001:127.0.0.1:5001 -L 5000:127.0.0.1:5000 ...'
    """
    try:
        user = f"{getpass.getuser()}@"
    except (OSError, KeyError):  # a container without a name for its user
        user = ""
    return " ".join(["ssh -N", *(f"-L {port}:{_HOST}:{port}" for port in ports), f"{user}{socket.gethostname()}"])
