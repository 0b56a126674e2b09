"""MLflow's server with passwords on PostgreSQL and S3, and publishing when its parts are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from study.arrow import results_table
from study.errors import TrackingError
from study.tracking import Publisher, links, load, published, sync
from study.tracking.address import connect
from study.tracking.experiment import Experiment
from study.tracking.serve import ui_command
from tests.processes import READY_S, Server, answers, free_port, wait_for
from tests.servers import Service
from tests.study.tracking.made import Made, curve, publish_all, runs_of, solved

# Deprecation warnings of MLflow and its libraries can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

RESULTS = [solved(seed) for seed in range(12)]
PACKS = Made(RESULTS, [curve(seed) for seed in range(12)], size=3)


def once_each(uri: str, study: str) -> None:
    """Check that every trial has one finished and exact run, and that the study's run is finished."""
    runs = runs_of(uri, study=study)
    assert len(runs) == len(RESULTS)
    assert {run.info.status for run in runs + runs_of(uri, "study", study)} == {"FINISHED"}
    assert load(uri, study, with_curves=False)[0].equals(
        results_table(RESULTS).sort_by([("cell_id", "ascending"), ("seed", "ascending")])
    )


def test_a_study_on_a_server_with_passwords(service: Service, tmp_path: Path) -> None:
    """Runs are in PostgreSQL, files in S3, links lead to the server; publishing again writes nothing."""
    page = tmp_path / "report.html"
    page.write_text("<html>")
    uri = service.mlflow.address
    assert sync(uri, "first", PACKS, spec="study: first\n", files=lambda: [page]) == len(RESULTS)
    assert sync(uri, "first", PACKS) == 0
    once_each(service.direct, "first")
    study_links = links(uri, "first")
    assert study_links is not None
    assert study_links.study.startswith(uri)
    (study,) = runs_of(uri, "study", "first")
    artifacts = connect(uri).list_artifacts(study.info.run_id)
    assert {file.path for file in artifacts} == {"report", "spec.yaml"}
    assert study.info.artifact_uri.startswith("mlflow-artifacts:/")


def test_publishing_directly_into_the_database(service: Service, tmp_path: Path) -> None:
    """A study published directly to PostgreSQL is complete except for its files, since these need the server."""
    page = tmp_path / "report.html"
    page.write_text("<html>")
    assert sync(service.direct, "direct", PACKS, spec="study: direct\n", files=lambda: [page]) == len(RESULTS)
    once_each(service.direct, "direct")
    assert not list(tmp_path.glob("mlruns"))


def test_a_wrong_password_is_reported(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variables, but not the password; the study continues."""
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "not-the-password")
    with pytest.raises(TrackingError, match="set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD") as caught:
        sync(service.mlflow.address, "refused", PACKS)
    assert "not-the-password" not in str(caught.value)
    with Publisher(service.mlflow.address, "refused", PACKS) as publisher:
        publish_all(publisher, PACKS)
        assert publisher.close(60) == len(RESULTS)
    assert "MLFLOW_TRACKING_PASSWORD" in str(publisher.trouble)


def test_a_user_who_may_only_read_is_reported(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishing as a user with read access only is reported as a missing permission."""
    uri = service.mlflow.address
    sync(uri, "not-yours", Made(RESULTS[:1]))
    somebody = {"username": "somebody", "password": "a-password-of-12"}
    admin = (service.mlflow.username, service.mlflow.password)
    requests.post(f"{uri}/api/2.0/mlflow/users/create", json=somebody, auth=admin, timeout=30).raise_for_status()
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", somebody["username"])
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", somebody["password"])
    assert len(published(uri, "not-yours")) == 1
    with pytest.raises(TrackingError, match="permission EDIT"):
        sync(uri, "not-yours", PACKS)


def test_no_process_argument_holds_a_password(service: Service) -> None:
    """Arguments of the servers' processes have no password, since other users can read them."""
    arguments = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    output = b"\n".join(arguments).decode(errors="replace")
    assert service.mlflow.address.rpartition(":")[2] in output  # the arguments can be read
    secrets = [service.mlflow.password, service.postgres.password_file.read_text().strip().rpartition(":")[2]]
    secrets.append(service.mlflow.environment["MLFLOW_FLASK_SERVER_SECRET_KEY"])
    assert not [secret for secret in secrets if secret in output]


@pytest.mark.parametrize("killed", ["mlflow", "postgres"])
def test_a_server_killed_and_restarted_within_a_study(killed: str, service: Service) -> None:
    """After SIGKILL during writing and a restart, the same publisher publishes everything.

    Messages announce the outage and its end.
    """
    uri, study = service.mlflow.address, f"killed-{killed}"
    server = getattr(service, killed)
    messages: list[str] = []
    went, is_back = threading.Event(), threading.Event()

    def notify(sentence: str) -> None:
        messages.append(sentence)
        (is_back if "can be used again, after" in sentence else went).set()

    try:
        with Publisher(uri, study, PACKS, notify=notify) as publisher:
            first, *others = PACKS.names()
            publisher.queue_pack(first, 3)
            wait_for(lambda: publisher.waiting == 0, "the first pack")
            for name in others:
                publisher.queue_pack(name, 3)
            server.kill()
            assert went.wait(READY_S)
            assert publisher.waiting
            server.start()
            assert is_back.wait(READY_S)
            assert publisher.close(READY_S) == 0
    finally:
        if server.process is None:
            server.start()
    assert publisher.trouble is None
    assert len(messages) == 2, messages
    once_each(service.direct, study)
    assert sync(uri, study, PACKS) == 0


def test_two_publishers_at_once(addresses: tuple[str, str]) -> None:
    """Two publishers that write the same packs to one study leave one run per trial."""
    uri, direct = addresses
    with Publisher(uri, "both", PACKS) as first, Publisher(direct, "both", PACKS) as second:
        publish_all(first, PACKS)
        publish_all(second, PACKS)
        assert (first.close(READY_S), second.close(READY_S)) == (0, 0)
    assert sync(uri, "both", PACKS) == 0
    once_each(direct, "both")


def test_writes_with_a_lost_response_arent_repeated(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the response to a request of any kind is lost, its retry leaves no duplicate."""
    uri = service.mlflow.address
    sent: dict[str, int] = {}
    send = requests.Session.request

    def lose_first_answers(self: requests.Session, method: str, url: str, **more: object) -> requests.Response:
        answer = send(self, method, url, **more)  # type: ignore[arg-type]
        kind = url.rpartition("/mlflow/")[2]
        sent[kind] = sent.get(kind, 0) + 1
        if method == "POST" and sent[kind] == 2 and "search" not in kind:
            raise requests.Timeout(kind)
        return answer

    monkeypatch.setattr(requests.Session, "request", lose_first_answers)
    with Publisher(uri, "late", PACKS) as publisher:
        publish_all(publisher, PACKS)
        wait_for(lambda: publisher.waiting == 0, "all to be published")
    assert min(sent[kind] for kind in ("runs/create", "runs/log-batch", "runs/update")) > 2
    once_each(service.direct, "late")


def test_a_killed_driver_leaves_nothing_running(addresses: tuple[str, str]) -> None:
    """After SIGKILL of a publishing process, the next publisher completes its runs and the study's."""
    script = (
        "import sys; from study.tracking.experiment import Experiment\n"
        "from study.tracking.rows import trials_of\n"
        "from tests.study.tracking.test_server import PACKS, RESULTS\n"
        "experiment = Experiment(sys.argv[1], 'driver')\n"
        "experiment.publish([PACKS.pack('pack-0')])\n"
        "experiment.study.tag({'mlflow.study.writing': 'pack-3'})\n"
        "half, other = list(trials_of(RESULTS[3:5], []))\n"
        "experiment._publish('pack-3', half, lambda trial_id, into: {}); experiment._begin('pack-3', other)\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    uri, direct = addresses
    with subprocess.Popen(
        [sys.executable, "-c", script, uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        driver.kill()
    assert [run.info.status for run in runs_of(uri, "study", "driver")] == ["RUNNING"]
    assert sorted(run.info.status for run in runs_of(uri, study="driver")) == ["FINISHED"] * 4 + ["RUNNING"]
    with Publisher(uri, "driver", PACKS) as publisher:
        publisher.catch_up()
    assert publisher.trouble is None
    once_each(direct, "driver")


@pytest.mark.slow
def test_the_dashboard_ends_with_all_its_processes(uri: str, tmp_path: Path) -> None:
    """After SIGTERM `study ui` leaves no server behind, and its port is free."""
    port = free_port()
    command = [sys.executable, "-m", "study", "ui", "--tracking-uri", uri, "--port", str(port)]
    ready: Callable[[], bool] = lambda: answers(f"http://127.0.0.1:{port}/health")  # noqa: E731
    dashboard = Server("study ui", command, ready, tmp_path / "ui.log")
    dashboard.start()
    assert dashboard.process is not None
    os.kill(dashboard.process.pid, signal.SIGTERM)
    assert dashboard.process.wait(READY_S) == 0
    assert not ready()
    remaining = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _has_argument(path, str(port))]
    assert not remaining


def _has_argument(path: Path, word: str) -> bool:
    try:
        return word.encode() in path.read_bytes().split(b"\0")
    except OSError:  # the process has ended
        return False


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a key and a self-signed certificate for 127.0.0.1, and return their files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, plain))
    (folder / "certificate.pem").write_bytes(signed.public_bytes(pem))
    return folder / "key.pem", folder / "certificate.pem"


@pytest.mark.slow
def test_a_private_authority_must_be_named(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrusted authority is reported; named in MLflow's own variable, it is trusted."""
    key, public = certificate(tmp_path)
    port = free_port()
    command, environment = ui_command(uri, port=port)
    command += ["--uvicorn-opts", f"--ssl-keyfile {key} --ssl-certfile {public}"]
    server = Server("MLflow", command, partial(listens, port), tmp_path / "tls.log", environment)
    address = f"https://127.0.0.1:{port}"
    try:
        server.start()
        with pytest.raises(TrackingError, match="set MLFLOW_TRACKING_SERVER_CERT_PATH"):
            sync(address, "demo", Made(RESULTS[:1]))
        monkeypatch.setenv("MLFLOW_TRACKING_SERVER_CERT_PATH", str(public))
        assert sync(address, "demo", Made(RESULTS[:1])) == 1
    finally:
        server.stop()


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def test_experiments_are_opened_cheaply(service: Service) -> None:
    """Opening a published study doesn't read its trials' runs."""
    uri = service.mlflow.address
    sync(uri, "cheap", PACKS)
    assert Experiment(uri, "cheap")._runs == {}
