"""Shared fixtures: a browser, an S3 server, an empty MLflow database; and the marks and order of tests."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import settings
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

from docs.pictures import BROWSERS, SIZES, browser_path, opened

# Two workers take whole files in this order, the longest first, so that both end at about the same time.
LONGEST_FIRST = (
    "tests/study/engine/test_contract.py",
    "tests/study/cluster/test_cluster.py",
    "tests/study/test_faults.py",
    "tests/test_examples.py",
    "tests/study/jobs/test_on_a_cluster.py",
    "tests/study/tracking/test_server.py",
    "tests/tasks/arithmetic/engine/gpu/test_phases.py",
    "tests/study/jobs/test_security.py",
    "tests/study/search/test_search_run.py",
    "tests/study/test_run_until.py",
    "tests/study/test_run.py",
    "tests/study/test_working_folder.py",
    "tests/tasks/arithmetic/engine/gpu/test_kernels.py",
    "tests/study/store/test_object_store.py",
    "tests/benchmarks/test_benchmarks.py",
    "tests/study/search/test_searching.py",
    "tests/test_notebook.py",
    "tests/tasks/test_presets.py",
    "tests/study/test_prune.py",
    "tests/study/engine/packed/test_devices.py",
    "tests/benchmarks/test_gpu.py",
    "tests/study/reports/test_page_in_browser.py",
)
PATIENCE_MS = 240_000
"""Timeout for a page's expected content, on a busy machine."""

# A browser is started for each file, and PostgreSQL with MLflow's server for the session: tests with these are slow.
SLOW_FIXTURES = {"browser", "running_service"}
_QUICK = pytest.StashKey[dict[str, bool]]()


# A slow test on a busy machine hasn't failed.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_configure() -> None:
    """Unset the terminal's size, and keep bytecode.

    pytest-xdist sets the size for its workers, which have no terminal, and that truncates tables. Without bytecode,
    each process that a test starts compiles all modules again, for half a second.
    """
    for name in ("COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark long tests and tests with slow fixtures, record the files with quick ones, and put the longest first."""
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    quick = config.stash[_QUICK] = {}
    for item in items:
        if SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())) or item.get_closest_marker("long"):
            item.add_marker(pytest.mark.slow)
        is_quick = item.get_closest_marker("slow") is None
        quick[_file_of(item)] = quick.get(_file_of(item), False) or is_quick
    items.sort(key=lambda item: places.get(_file_of(item), len(places)))


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@pytest.fixture
def is_only_slow(request: pytest.FixtureRequest) -> Callable[[str], bool]:
    """Return a function that tells if a file was collected and all of its tests are slow."""
    return lambda file: not request.config.stash[_QUICK].get(file, True)


@dataclass
class Visit:
    """A page in the browser, and a record of its requests and complaints.

    Args:
        page: the page.
        complaints: warnings and errors of the console, and uncaught exceptions.
        requests: the addresses that it requested over the network or from the disk, except its own.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser per module: asyncio can't be used while it is open, and a start takes less than a second."""
    executable = browser_path()
    if executable is None:
        pytest.skip(f"no browser on PATH: one of {', '.join(BROWSERS)} is needed")
    expect.set_options(timeout=PATIENCE_MS)
    with opened(executable) as chromium:
        yield chromium


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a file or an address with an empty cache: ``visit(path, width=390, scheme="dark")``."""
    contexts = []

    def open_page(page: Path | str, width: int = 1280, scheme: str = "light") -> Visit:
        viewport = {"width": width, "height": SIZES[width]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        opened_visit = Visit(context.new_page())
        address = page.resolve().as_uri() if isinstance(page, Path) else page

        def on_console(message: ConsoleMessage) -> None:
            if message.type in ("warning", "error"):
                opened_visit.complaints.append(message.text)

        def on_request(request: Request) -> None:
            if request.url != address:
                opened_visit.requests.append(request.url)

        context.on("console", on_console)
        context.on("weberror", lambda event: opened_visit.complaints.append(str(event.error)))
        context.on("request", on_request)
        opened_visit.page.goto(address)
        return opened_visit

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty MLflow database once: making it takes seconds, copying it doesn't."""
    from study.tracking import default_uri
    from study.tracking.address import connect  # MLflow takes seconds to import, and few tests need it

    folder = tmp_path_factory.mktemp("empty")
    connect(default_uri(folder))
    return folder / "mlflow.db"


@pytest.fixture
def uri(empty_database: Path, tmp_path: Path) -> str:
    """Return the tracking address of a store in this test's folder."""
    from study.tracking import default_uri

    (tmp_path / "mlflow.db").write_bytes(empty_database.read_bytes())
    return default_uri(tmp_path)


# moto's server, which honours conditional writes; it ends with its standard input, and so with this process.
_SERVE_S3 = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class S3:
    """A running S3 server.

    Args:
        process: the process that serves.
        address: ``http://127.0.0.1:PORT``.
    """

    process: subprocess.Popen[str]
    address: str

    def bucket(self) -> str:
        """Make a bucket, and return its URL."""
        name = f"bucket-{uuid.uuid4().hex}"
        self.asked("PUT", f"/{name}")
        return f"s3://{name}"

    def asked(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send an unsigned request, and return the answer's content; this server doesn't require a signature."""
        headers = {"Content-Type": "text/plain"}
        request = urllib.request.Request(self.address + path, data=body, headers=headers, method=method)
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
        return content


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    """Start an S3 server once; a test that disturbs its server uses `own_s3` instead."""
    server = start_s3()
    yield server
    server.process.kill()
    server.process.communicate()


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """Return the server, with its address and keys in the test's environment."""
    _point_at(s3_server, monkeypatch)
    return s3_server


def _point_at(server: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
    for name, value in (keys | {"AWS_ENDPOINT_URL": server.address}).items():
        monkeypatch.setenv(name, value)


def start_s3() -> S3:
    """Start an S3 server in a process of its own."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE_S3], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    host, port = process.stdout.readline().split()
    return S3(process, f"http://{host}:{port}")


@pytest.fixture
def own_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """Start an S3 server for one test; the test may disturb it."""
    server = start_s3()
    _point_at(server, monkeypatch)
    yield server
    server.process.kill()
    server.process.communicate()


_LITTLE = """
study: little
task: {name: simple}
models: [NMU, NAC-mul]
grid: {hidden_size: [2, 3]}
seeds: 3
fixed: {batch_size: 16}
protocol: {iterations: 40, evaluate_every: 10, evaluation_rows: 50}
"""


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a finished, reported and published study of 12 trials; tests must not change it.

    Returns:
        The folder: ``little.yaml``, and the store ``studies``.
    """
    from study.cli import main  # only here: few tests need these
    from study.reports.figures import all as all_figures
    from tests.figures import plot_all

    folder = tmp_path_factory.mktemp("finished")
    (folder / "little.yaml").write_text(_LITTLE)
    words = ["run", str(folder / "little.yaml"), "--store", str(folder / "studies"), "--local", "--engine", "torch"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_figures, "plot_all", plot_all)
        for _ in range(2):  # MLflow may be too slow for the first run; the second adds the missing trials
            result = CliRunner().invoke(main, words)
            assert result.exit_code == 0, result.output
    assert "published yet" not in result.output
    return folder
