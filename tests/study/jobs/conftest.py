"""A web server for a test, asked over HTTP like Ray's dashboard."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

Answer = Callable[[str, str], tuple[int, bytes]]
"""From a request's path and token to status and body."""


@pytest.fixture
def server() -> Iterator[Callable[[Answer], str]]:
    """Yield a function that starts a web server and returns its address; the server ends with the test."""
    started: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(answer: Answer) -> str:
        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # called by this name
                token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                status, body = answer(self.path, token)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                """Log nothing."""

        listening = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))  # poll interval of its shutdown
        thread.start()
        started.append((listening, thread))
        return f"http://127.0.0.1:{listening.server_port}"

    yield start
    for listening, thread in started:
        listening.shutdown()
        thread.join()
        listening.server_close()
