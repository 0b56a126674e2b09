"""A store's index and reports over HTTP: only these files, and only for this machine."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.results.index import Index
from study.results.serve import served
from tests.processes import free_port

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(name="store")
def _store(finished_study: Path, tmp_path: Path) -> Path:
    """Return a copy of a store with one study."""
    return Path(shutil.copytree(finished_study / "studies", tmp_path / "studies"))


@pytest.fixture(name="port")
def _port(store: Path) -> Iterator[int]:
    """Serve the store's index, and return the port."""
    index = Index(store)
    index.write()
    with served(index.file_of, 0) as port:
        yield port


def get(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    """Request a path without normalising it as a browser does, and return status and content."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.usefixtures("figures")
def test_the_index_and_its_reports_are_served(store: Path, port: int) -> None:
    """Links of the index resolve below it; a query is ignored, and HEAD has no content."""
    assert get(port, "/") == (200, (store / "index.html").read_bytes())
    assert get(port, "/index.html?now")[0] == 200
    report = store / "little" / "report"
    for name in ("report.html", "cells.csv", "figure.svg"):
        assert get(port, f"/little/report/{name}") == (200, (report / name).read_bytes())
    assert get(port, "/little/report/report.html", "HEAD") == (200, b"")


def test_a_page_that_is_unchanged_is_not_sent_again(store: Path, port: int) -> None:
    """A browser that sends its version gets no content until the page changes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    version = answer.headers["ETag"]
    connection.close()
    assert get(port, "/", **{"If-None-Match": version}) == (304, b"")
    (store / "index.html").write_bytes(b"another")
    assert get(port, "/", **{"If-None-Match": version}) == (200, b"another")


@pytest.mark.parametrize("path", [
    "/little", "/little/", "/little/report", "/little/report/", "/little/report/.report.json", "/little/spec.yaml",
    "/mlflow.db", "/little/report/../spec.yaml", "/little/report/%2e%2e/spec.yaml", "/little/report/..%2fspec.yaml",
    "/../../../../etc/passwd", "//etc/passwd", "/%2fetc/passwd", "/little/report/report.html%00", "/%ff",
    "/other/report/report.html",
])  # fmt: skip
def test_nothing_else_is_served(port: int, path: str) -> None:
    """Results, folders and files outside the store aren't served."""
    assert get(port, path)[0] == 404


def test_files_of_trials_are_served_and_run_nothing(store: Path, port: int, tmp_path: Path) -> None:
    """A page written by a trial can't read the reports beside it; links and other folders aren't followed."""
    folder = store / "little" / "files" / "0c0917e1597f2da3"
    (folder / "plots").mkdir(parents=True)
    (folder / "log.txt").write_text("printed")
    (folder / "plots" / "a b.html").write_text("<script>")
    (folder / "link.txt").symlink_to(store / "mlflow.db")
    (folder / "up").symlink_to(tmp_path)
    base = "/little/files/0c0917e1597f2da3"
    assert get(port, f"{base}/log.txt") == (200, b"printed")
    assert get(port, f"{base}/plots/a%20b.html") == (200, b"<script>")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"{base}/plots/a%20b.html")
    assert connection.getresponse().headers["Content-Security-Policy"] == "sandbox"
    connection.close()
    for path in ("link.txt", "up/studies/index.html", "plots", "..%2f..%2fspec.yaml", "nosuch.txt"):
        assert get(port, f"{base}/{path}")[0] == 404


def test_links_are_not_followed(store: Path, port: int, tmp_path: Path) -> None:
    """Links from files or folders of a report are refused."""
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "report.html").write_text("secret")
    report = store / "little" / "report"
    (report / "report.md").unlink()
    (report / "report.md").symlink_to(secret / "report.html")
    assert get(port, "/little/report/report.md")[0] == 404
    shutil.rmtree(report)
    report.symlink_to(secret)
    assert get(port, "/little/report/report.html")[0] == 404


def test_pages_of_other_hosts_cant_read_it(port: int) -> None:
    """A foreign host name that resolves to this machine is refused; forwarded ports may have other numbers."""
    assert get(port, "/", Host="evil.example")[0] == 403
    assert get(port, "/", Host="evil.example:5001")[0] == 403
    assert get(port, "/", Host="localhost:8080")[0] == 200
    assert get(port, "/", "POST")[0] == 501


def test_other_machines_cant_reach_it(port: int) -> None:
    """The server listens on the loopback interface only."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing, but selects this machine's address on the network
        own = probe.getsockname()[0]
    if own.startswith("127."):
        pytest.skip("this machine has no other interface")
    with socket.socket() as other, pytest.raises(ConnectionRefusedError):
        other.connect((own, port))


def test_a_port_that_is_taken_is_left_alone(store: Path) -> None:
    """If the wanted port is taken, another free one is used."""
    index = Index(store)
    with served(index.file_of, wanted := free_port()) as first, served(index.file_of, wanted) as second:
        assert first == wanted
        assert second not in (0, first)


def test_an_index_in_the_working_folder_is_served(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store isn't writable, the index is outside it, and its links are still served."""
    (tmp_path / "here" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "deep")
    index = Index(store)
    index.path = Path("study-index.html")
    index.write()
    assert 'href="../../studies/little/report/report.html"' in index.path.read_text()
    with served(index.file_of, 0) as port:
        assert get(port, "/")[0] == 200
        content = (store / "little" / "report" / "report.html").read_bytes()
        assert get(port, "/studies/little/report/report.html") == (200, content)
        assert get(port, f"/{os.path.relpath('/etc/passwd')}")[0] == 404
