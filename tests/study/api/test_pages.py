"""Pages of a store: `study ui`, started and ended as by a user, and the index written from Python."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import study
from study.errors import InputError
from tests.commands import DEADLINE_S, invoke
from tests.processes import answers, below, free_port, wait_for

# MLflow and its imports must fix their own warnings.
pytestmark = pytest.mark.filterwarnings("ignore")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(name="store")
def _store(finished_study: Path, tmp_path: Path) -> Path:
    """Return a copy of a store with one study."""
    return Path(shutil.copytree(finished_study / "studies", tmp_path / "studies"))


@pytest.fixture(name="ui")
def _ui(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts `study ui` in the test's folder; it is ended after the test."""
    started = []

    def start(*words: str, **options: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "study", "ui", *words]
        started.append(subprocess.Popen(command, cwd=tmp_path, text=True, **{"stdout": subprocess.PIPE} | options))
        return started[-1]

    yield start
    for process in started:
        process.terminate()  # its MLflow server would survive SIGKILL, and keep the pipe open
        process.communicate(timeout=DEADLINE_S)


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    """Read the first lines that the process prints."""
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def ended(process: subprocess.Popen[str]) -> int:
    """End the process as a service manager does, and return its exit code."""
    process.send_signal(signal.SIGTERM)
    return process.wait(DEADLINE_S)


def test_the_index_is_written_from_python(store: Path, tmp_path: Path) -> None:
    """The index is the store's own file; a missing store is an error and isn't created."""
    page = study.index(store=store)
    assert page == store / "index.html"
    assert 'data-study="little"' in page.read_text()
    with pytest.raises(InputError, match="there is no store at"):
        study.index(store=tmp_path / "typo")
    assert not (tmp_path / "typo").exists()


def test_a_separate_tracking_server_is_linked(store: Path, ui: Start) -> None:
    """With a tracking server the index is updated live, and the printed address omits the user and password."""
    port = free_port()
    process = ui("--store", str(store), env=os.environ | {"MLFLOW_TRACKING_URI": f"http://me:secret@127.0.0.1:{port}"})
    studies, elsewhere, dashboard = lines(process, 3)
    assert (studies.partition("http://")[0], dashboard) == (
        "studies:   ",
        f"dashboard: http://127.0.0.1:{port}/#/experiments?workflowType=machine_learning (Ctrl-C ends)",
    )
    own = int(studies.removesuffix("/").rpartition(":")[2])
    assert f"ssh -N -L {own}:127.0.0.1:{own} " in elsewhere
    assert str(port) not in elsewhere
    assert 'data-live="yes"' in (store / "index.html").read_text()
    assert ended(process) == 0
    assert 'data-live="no"' in (store / "index.html").read_text()


def test_without_mlflow_there_is_an_index(store: Path, ui: Start) -> None:
    """With tracking off, `study ui` reports the missing dashboard, and doesn't need a port for it."""
    process = ui("--store", str(store), "--tracking-uri", "off")
    assert lines(process, 3)[2].startswith("dashboard: none")
    assert "MLflow" not in (store / "index.html").read_text().split("</style>")[1].split('<script type="application')[0]
    assert ended(process) == 0


def test_a_missing_store_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`study ui` ends with an error if there is neither a store nor a database to serve."""
    monkeypatch.chdir(tmp_path)
    for uri in ("off", "http://127.0.0.1:9"):
        result = invoke("ui", "--store", "typo", "--tracking-uri", uri)
        assert result.exit_code == 2
        assert "there is no store at typo" in result.output


def test_the_index_opens_only_from_a_terminal(store: Path, tmp_path: Path, ui: Start) -> None:
    """A browser opens the index if standard output is a terminal, unless --no-browser is given."""
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    browser.chmod(0o755)
    words = ("--store", str(store), "--tracking-uri", "off")
    environment = os.environ | {"BROWSER": f"{browser} %s"}
    process = ui(*words, env=environment)
    lines(process, 3)
    assert ended(process) == 0
    main, side = pty.openpty()
    process = ui(*words, "--no-browser", env=environment, stdout=side)
    with os.fdopen(main, "rb", buffering=0) as screen:
        wait_for(lambda: b"dashboard" in screen.read(4096), "both addresses")
        assert ended(process) == 0
        assert not opened.exists()
        process = ui(*words, env=environment, stdout=side)
        wait_for(lambda: b"dashboard" in screen.read(4096), "both addresses")
        wait_for(opened.exists, "the browser")
        assert ended(process) == 0
    os.close(side)
    assert opened.read_text().startswith("http://127.0.0.1:")


@pytest.mark.slow
def test_an_empty_store_is_served(tmp_path: Path, ui: Start) -> None:
    """Both pages are served for an empty store; its database can be read while it is written."""
    (tmp_path / "studies").mkdir()
    port = free_port()
    process = ui("--port", str(port))
    studies, elsewhere, dashboard = lines(process, 3)
    own = int(studies.removesuffix("/").rpartition(":")[2])
    assert f"-L {own}:127.0.0.1:{own} -L {port}:127.0.0.1:{port} " in elsewhere
    wait_for(lambda: answers(f"http://127.0.0.1:{own}/"), "the index")
    assert dashboard.startswith(f"dashboard: http://127.0.0.1:{port}/#/experiments?")
    assert dashboard.endswith(", with nothing published yet (Ctrl-C ends)")
    wait_for(lambda: answers(f"http://127.0.0.1:{port}/health"), "the dashboard")
    with closing(sqlite3.connect(tmp_path / "studies" / "mlflow.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ended(process) == 0


@pytest.mark.slow
def test_a_killed_server_ends_the_pages(store: Path, ui: Start) -> None:
    """If MLflow's server is killed, `study ui` says so and fails, and the index is no longer live."""
    port = free_port()
    process = ui("--store", str(store), "--port", str(port), stderr=subprocess.PIPE)
    wait_for(lambda: answers(f"http://127.0.0.1:{port}/health"), "the dashboard")
    os.kill(below(process.pid)[-1], signal.SIGKILL)
    assert process.wait(DEADLINE_S) == 1
    assert process.stderr is not None
    assert "MLflow's server was ended by SIGKILL; start `study ui` again" in process.stderr.read()
    assert 'data-live="no"' in (store / "index.html").read_text()
