"""What answers at an address is looked at before it is used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from study.errors import ClusterError
from study.jobs import connect


@pytest.fixture
def server() -> Iterator[Callable[[int, bytes], str]]:
    """Give what starts a web server that always answers the same."""
    started: list[tuple[HTTPServer, threading.Thread]] = []

    def start(status: int, body: bytes) -> str:
        class Same(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the name that is called
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                """Say nothing."""

        listening = HTTPServer(("127.0.0.1", 0), Same)
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        started.append((listening, thread))
        return f"http://127.0.0.1:{listening.server_port}"

    yield start
    for listening, thread in started:
        listening.shutdown()
        thread.join()
        listening.server_close()


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (404, b"", r"it is no Ray dashboard \(status 404\)"),
        (200, b"<html>", "it is no Ray dashboard"),
        (200, b"{}", "is no Ray dashboard: it doesn't know Ray's version"),
        (200, b"[]", "is no Ray dashboard"),
        (200, b'{"ray_version": "1.13.0"}', r"runs Ray 1\.13\.0, but here is Ray 2\."),
        (200, b'{"ray_version": "2.9.3"}', r"runs Ray 2\.9\.3, .* needs 2\.60 or newer"),
        (200, b'{"ray_version": "x"}', "is no version of Ray that we know"),
        (401, b"", "token"),
    ],
)
def test_what_is_no_cluster_of_ours_is_told(server, status, body, told):
    """A server that isn't Ray's dashboard, or of a version too far away, is an error that says so."""
    with pytest.raises(ClusterError, match=told):
        connect(server(status, body))
