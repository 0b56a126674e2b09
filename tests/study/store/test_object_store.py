"""A store on a real S3 server: one driver at a time, outages, and messages about wrong addresses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import obstore
import pytest

from study.api import index
from study.errors import BusyError, StoreAwayError, StoreError
from study.records import Notice
from study.store import Store
from study.store.lease import Lease, Timing, Version
from study.store.objects import ObjectFolder, open_objects
from study.tracking import published
from study.worker.pack_work import PackWork
from tests.commands import invoke
from tests.study.builders import small_pack

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

SPEC = """
study: little
task: {name: simple}
models: [NMU]
seeds: 2
fixed: {batch_size: 16}
protocol: {iterations: 40, evaluate_every: 10, evaluation_rows: 50}
"""
OFTEN = 0.05
NEVER = 1e9
DEADLINE_S = 240
HOLD = """
import sys
import time
from study.store.lease import Timing
from study.store.objects import open_objects
with open_objects(sys.argv[1], Timing(0.05, 1e9)).below("demo").lock(print) as held:
    print("held", flush=True)
    sys.stdin.readline()
    while held.lost is None:  # until the next renewal
        time.sleep(0.01)
    print(held.lost, flush=True)
"""


@pytest.fixture
def url(s3) -> str:
    """Return the address of an empty store."""
    return f"{s3.bucket()}/studies"


@pytest.fixture
def holder(url: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that holds the study `demo`."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, url], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def demo(url: str, dead_after_s: float) -> ObjectFolder:
    return open_objects(url, Timing(OFTEN, dead_after_s)).below("demo")


def content(folder: ObjectFolder) -> dict[str, object]:
    lock: dict[str, object] = json.loads(folder.read("lock") or b"{}")
    return lock


def until(condition: Callable[[], object], event: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s for {event}"
        time.sleep(0.01)


# one driver at a time


def test_a_holder_that_lives_is_left_alone(url, holder):
    """A second driver sees the lock's heartbeat, and is told the holder."""
    folder = demo(url, NEVER)
    notices: list[str] = []
    with pytest.raises(BusyError, match=rf"'demo'.*process {holder.pid} on "), folder.lock(notices.append):
        pass
    assert len(notices) == 1
    assert f"process {holder.pid} on" in notices[0]
    assert content(folder)["pid"] == holder.pid


def test_a_holder_that_was_killed_is_followed(url, holder):
    """After kill -9 the lock has no heartbeat, and a driver that watched it long enough takes it over."""
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    notices: list[str] = []
    folder = demo(url, dead_after_s=10 * OFTEN)
    with folder.lock(notices.append) as held:
        assert content(folder)["pid"] == os.getpid()
        assert held.lost is None
    assert "taken over" in notices[-1]
    with folder.lock(notices.append):
        pass
    assert len(notices) == 2  # released, it is free at once


def test_a_paused_holder_detects_the_lost_lock(url, holder):
    """A driver that slept too long finds another's name in its lock, and leaves the lock alone."""
    holder.send_signal(signal.SIGSTOP)
    folder = demo(url, dead_after_s=10 * OFTEN)
    with folder.lock(lambda sentence: None) as held:
        holder.send_signal(signal.SIGCONT)
        output, _ = holder.communicate("go on\n", timeout=DEADLINE_S)
        assert f"'demo' was taken over by process {os.getpid()} on " in output
        assert content(folder)["pid"] == os.getpid()
        assert held.lost is None


class Deaf(ObjectFolder):
    """A client that receives only every second response to a conditional write."""

    asked = 0

    def put_if(self, key: str, data: bytes, version: Version | None) -> Version | None:
        put = super().put_if(key, data, version)
        self.asked += 1
        if put is not None and version is not None and self.asked % 2:
            raise StoreAwayError("the answer was lost")
        return put


def test_a_renewal_whose_answer_is_lost_loses_nothing(url):
    """The driver recognises its own write even without its response."""
    real = demo(url, NEVER)
    folder = Deaf(real._store, real.where, "Amazon S3", "demo/", Timing(OFTEN, NEVER))
    with folder.lock(print) as held:
        beat = content(folder)["beat"]
        until(lambda: held.lost or content(folder)["beat"] > beat + 6, "renewals")
        assert held.lost is None


class Careless(ObjectFolder):
    """A client of a server that ignores some conditions of writes."""

    def __init__(self, real: ObjectFolder, ignored: str) -> None:
        super().__init__(real._store, real.where, "Amazon S3", "demo/", Timing(OFTEN, NEVER))
        self.ignored = ignored

    def put_if(self, key: str, data: bytes, version: Version | None) -> Version | None:
        if ("If-None-Match" if version is None else "If-Match") not in self.ignored.split(" and "):
            return super().put_if(key, data, version)
        return {"e_tag": obstore.put(self._store, self._prefix + key, data)["e_tag"]}


@pytest.mark.parametrize("ignored", ["If-None-Match", "If-Match", "If-None-Match and If-Match"])
def test_a_server_without_conditions_is_refused(url, ignored):
    """If the lock would exclude nobody, nobody is admitted; the ignored condition is named."""
    folder = Careless(demo(url, NEVER), ignored)
    message = f"ignores conditional writes \\({ignored.partition(' and ')[0]}\\)"
    for _ in range(2):  # the second finds the lock released by the first
        with pytest.raises(StoreError, match=message), folder.lock(print):
            pass


def test_one_of_two_contenders_gets_the_lock(url):
    """Two contenders write conditionally on the version that they saw, and the second write is refused."""
    folder = demo(url, NEVER)
    folder.write("lock", b"{}")
    lock = folder.read_versioned("lock")
    assert lock is not None
    first, second = Lease(folder, "lock", "demo", Timing()), Lease(folder, "lock", "demo", Timing())
    assert first._put(lock[1])
    assert not second._put(lock[1])


# wrong addresses


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder with a study file."""
    monkeypatch.chdir(tmp_path)
    for name in ("STUDY_STORE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "little.yaml").write_text(SPEC)
    return tmp_path


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("ftp://host/studies", "results can't be kept at ftp://"),
        ("https://host/studies", "results can't be kept at https://"),
        ("file:///studies", "a folder is given by its path alone"),
        ("memory:///", "results can't be kept at memory://"),
        ("s3://", "the name of a bucket must follow"),
        ("s3:/bucket/studies", "two slashes"),
        ("s3://bucket/a//b", "must not have an empty part"),
        ("s3://me:hush@bucket/studies", "must not contain a password"),
        ("s3://hush@bucket/studies", "must not contain a password"),
        ("abfss://me:hush@account/studies", "must not contain a password"),
        ("az://bucket/studies?sig=hush", "must not contain a password"),
        ("s3://bucket/studies#hush", "must not contain a password"),
    ],
)
def test_a_wrong_address_is_reported(workspace, store, message):
    """An invalid store is refused before anything starts, and no message shows a password."""
    for words in (("run", "little.yaml", "--local"), ("list",)):
        result = invoke(*words, "--store", store)
        assert result.exit_code == 2
        assert message in result.output
        assert "hush" not in result.output
        assert "Traceback" not in result.output


def test_a_store_that_is_a_file_is_refused(workspace):
    """A file in place of the folder is a wrong option."""
    result = invoke("list", "--store", "little.yaml")
    assert result.exit_code == 2
    assert "is a file" in result.output


@pytest.mark.parametrize("words", [("run", "little.yaml", "--local"), ("list",), ("show", "little")])
def test_no_such_bucket(workspace, s3, words):
    """A missing bucket is named, whatever the first request."""
    result = invoke(*words, "--store", "s3://no-such-bucket/studies")
    assert result.exit_code == 2
    assert "no bucket s3://no-such-bucket; make it first" in result.output


@pytest.mark.parametrize("words", [("list",), ("show", "little"), ("report", "little"), ("sync", "little")])
def test_a_mistyped_prefix_is_reported(workspace, url, words):
    """A prefix with nothing below it doesn't exist, because object stores have no empty folders."""
    uri = ("--tracking-uri", "sqlite:///mlflow.db") if words[0] == "sync" else ()
    result = invoke(*words, *uri, "--store", f"{url}/typo")
    assert result.exit_code == 2
    assert f"no store at {url}/typo" in result.output
    Store(url).study("little").write_spec("study: little\n")
    assert "no store at" not in invoke(*words, *uri, "--store", url).output


@pytest.mark.parametrize("words", [("run", "little.yaml", "--local"), ("list",)])
def test_no_server(workspace, s3, monkeypatch, words):
    """An unreachable server is reported without waiting."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    result = invoke(*words, "--store", "s3://bucket/studies")
    assert result.exit_code == 1
    assert "no answer from the server at 127.0.0.1:9" in result.output
    assert "Trying again" not in result.output


def test_wrong_keys(workspace, own_s3, monkeypatch):
    """Refused keys are reported as such, without showing them."""
    url = own_s3.bucket()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hushhush")
    own_s3.asked("POST", "/moto-api/reset-auth", b"0")  # from now on it checks keys
    for words in (("run", "little.yaml", "--local"), ("list",)):
        result = invoke(*words, "--store", url)
        assert result.exit_code == 1
        assert "refuses these credentials (403 Forbidden)" in result.output
        assert "hush" not in result.output


def test_no_keys(workspace, s3, monkeypatch):
    """Without keys the message lists the places searched."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("HOME", str(workspace))
    result = invoke("list", "--store", "s3://bucket/studies")
    assert result.exit_code == 1
    assert "no credentials for Amazon S3" in result.output
    assert "AWS_ACCESS_KEY_ID" in result.output


def test_keys_in_the_users_file(workspace, s3, monkeypatch):
    """The credentials file of Amazon's tools is read."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(workspace / "credentials"))
    (workspace / "credentials").write_text("[default]\naws_access_key_id = me\naws_secret_access_key = mine\n")
    store = Store(s3.bucket())
    store.study("demo").write_spec("name: demo\n")
    assert store.studies() == ["demo"]


# a study there


def test_from_file_to_report(workspace, url):
    """run, list, show, report, plan and sync work with a study in an object store."""
    result = invoke("run", "little.yaml", "--local", "--store", url)
    assert result.exit_code == 0, result.output
    assert "nothing is published to MLflow" in result.output
    assert f"report:    {url}/little/report/report.html" in result.output
    folder = Store(url).study("little")
    assert len(folder.done()) == 2
    assert not folder.checkpoints()
    assert b"NMU" in (folder._folder.read("report/report.html") or b"")
    assert {path.name for path in workspace.iterdir()} == {"little.yaml"}
    assert "little" in invoke("list", "--store", url).output
    assert "NMU" in invoke("show", "little", "--store", url).output
    assert "nothing is left to do" in invoke("plan", "little.yaml", "--store", url).output

    result = invoke("report", "little", "--store", url)
    assert result.exit_code == 0, result.output
    assert "report:    little-report" in result.output
    assert (workspace / "little-report" / "report.html").is_file()
    result = invoke("report", "little", "--by", "model", "--store", url)
    assert result.exit_code == 0, result.output
    assert (workspace / "little-tables" / "report.html").is_file()

    assert index(store=url) == Path("study-index.html")
    assert "NMU" in (workspace / "study-index.html").read_text(encoding="utf-8")
    for words in (("sync", "little"), ("report", "little", "--from", "mlflow")):
        result = invoke(*words, "--store", url)
        assert result.exit_code == 2
        assert "give --tracking-uri" in result.output
    uri = f"sqlite:///{workspace}/mlflow.db"
    result = invoke("sync", "little", "--store", url, "--tracking-uri", uri)
    assert "2 trials published" in result.output
    assert published(uri, "little") == folder.done()


def test_an_old_report_leaves_nothing_behind(url, tmp_path):
    """Files of an earlier report that the new one lacks are removed."""
    folder = Store(url).study("demo")
    for name in ("report.html", "old.svg"):
        (tmp_path / name).write_text(name)
    folder.keep_report([tmp_path / "report.html", tmp_path / "old.svg"])
    folder.keep_report([tmp_path / "report.html"])
    assert folder._folder.names("report", "") == ["report.html"]
    assert folder.page == f"{url}/demo/report/report.html"


# outages


class Wire:
    """A connection to a server that can be cut."""

    def __init__(self, to: str) -> None:
        self._to = (urlsplit(to).hostname, urlsplit(to).port)
        self._open: list[socket.socket] = []
        self.port = 0
        self.heal()

    def heal(self) -> None:
        """Listen at the same port again."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        for connection in [self._listener, *self._open]:
            with suppress(OSError):  # it may have ended already
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._to)
            self._open += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=pair, daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError), source, sink:
            while data := source.recv(65536):
                sink.sendall(data)


def test_results_wait_for_a_store_that_is_away(s3, monkeypatch):
    """A worker whose store is cut off after training waits with its results, and says so."""
    wire, url = Wire(s3.address), s3.bucket()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{wire.port}")
    folder = Store(url).study("s")
    work = PackWork(url, "s", folder.begin_attempt(), "torch", "cpu")
    pack = small_pack(0, 1)
    events = []
    for event in work(pack):
        if not events:
            wire.cut()
        events.append(event)
        if isinstance(event, Notice) and "Trying again" in event.text:
            wire.heal()
    wire.cut()
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert len(notices) == 2
    assert f"no answer from the server at 127.0.0.1:{wire.port}" in notices[0]
    assert "the store is back" in notices[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.address)
    assert Store(url).study("s").done() == {trial.id for trial in pack.trials}


def test_patience_ends(s3, monkeypatch):
    """A store that stays unavailable is finally an error."""
    wire, url = Wire(s3.address), s3.bucket()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{wire.port}")
    folder = Store(url).study("s")
    work = PackWork(url, "s", folder.begin_attempt(), "torch", "cpu", patience_s=0.1)
    events = work(small_pack(0, 1))
    next(events)
    wire.cut()
    with pytest.raises(StoreAwayError, match="no answer"):
        list(events)
