"""Validity of the compose file, and limits of its services' access."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

# pip's programs lie beside Python, which need not be on the PATH.
BIN = Path(sys.executable).parent
FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "compose"
FILE = FOLDER / "compose.yaml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """Return the file as Docker Compose resolves it, with all services and default settings."""
    environment = {"PATH": os.environ["PATH"], "STUDY_UID": "1000", "STUDY_GID": "1000"}
    words = [str(BIN / "docker-compose"), "-f", str(FILE), "--profile", "*", "config", "--no-path-resolution"]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    read: dict[str, Any] = yaml.safe_load(completed.stdout)
    return read


@pytest.fixture(scope="module")
def secrets_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the secrets for a host in a new folder."""
    folder = tmp_path_factory.mktemp("made")
    subprocess.run([FOLDER / "secrets.sh", "--out", folder, "--host", "study.example.org"], check=True)
    return folder


def test_docker_compose_refuses_unknown_keys(tmp_path: Path) -> None:
    """Docker Compose rejects a misspelt key by its schema."""
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(FILE.read_text().replace("healthcheck: &ray-health", "heathcheck: &ray-health", 1))
    environment = {"PATH": os.environ["PATH"], "STUDY_UID": "1000", "STUDY_GID": "1000"}
    words = [str(BIN / "docker-compose"), "-f", str(wrong), "config", "--quiet"]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode != 0
    assert "heathcheck" in completed.stderr


def test_nothing_starts_without_secrets() -> None:
    """Without the secrets of secrets.sh, Docker Compose names the command to run, and starts nothing."""
    environment = {"PATH": os.environ["PATH"]}
    words = [str(BIN / "docker-compose"), "-f", str(FILE), "--env-file", os.devnull, "config", "--quiet"]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode != 0
    assert "run deploy/compose/secrets.sh first" in completed.stderr


def test_services_have_minimal_rights(compose: dict[str, Any]) -> None:
    """Every service runs as nobody, on a read-only file system, without privileges and with limits."""
    for name, service in compose["services"].items():
        assert service["user"] == "1000:1000", name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "tls" else []), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "network_mode", "pid", "ipc"} & set(service), name
        assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"]), name


def test_services_are_watched_and_come_back(compose: dict[str, Any]) -> None:
    """Every service but those that run once has a health check, and restarts when it dies."""
    for name, service in compose["services"].items():
        runs_once = name.startswith("bucket-")
        assert service["restart"] == ("no" if runs_once else "unless-stopped"), name
        assert runs_once or service["healthcheck"]["test"], name
        for other, how in service.get("depends_on", {}).items():
            waits = "service_completed_successfully" if other.startswith("bucket-") else "service_healthy"
            assert how["condition"] == waits, (name, other)


def test_only_tls_is_published_and_only_to_this_machine(compose: dict[str, Any]) -> None:
    """The host listens for TLS alone, on loopback by default; all other networks have no way out."""
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert set(published) == {"tls"}
    assert {port["host_ip"] for port in published["tls"]} == {"127.0.0.1"}
    outside = {name for name, network in compose["networks"].items() if not network.get("internal")}
    assert outside == {"front"}
    assert [name for name, service in compose["services"].items() if "front" in service["networks"]] == ["tls"]
    on_database = {name for name, service in compose["services"].items() if "database" in service["networks"]}
    assert on_database == {"postgres", "mlflow"}


def test_each_service_gets_only_the_secrets_it_needs(compose: dict[str, Any], secrets_folder: Path) -> None:
    """Every secret is a file from secrets.sh; none is in the environment or in a command."""
    files = {name: Path(secret["file"]) for name, secret in compose["secrets"].items()}
    assert {secrets_folder / path for path in files.values()} == set((secrets_folder / "secrets").iterdir())
    secrets = [(secrets_folder / path).read_text().strip() for path in files.values()]
    shown = FILE.read_text() + (FOLDER / "mlflow-auth.ini").read_text()
    for name, service in compose["services"].items():
        assert not any(secret in shown for secret in secrets)
        for variable in service.get("environment") or {}:
            hidden = re.search(r"PASSWORD|SECRET|TOKEN|ACCESS_KEY", variable)
            assert not hidden or variable.endswith(("_FILE", "_PATH")), (name, variable)
            if hidden:
                secret = service["environment"][variable].removeprefix("/run/secrets/")
                assert secret in {entry["source"] for entry in service["secrets"]}, (name, variable)
    users = {
        secret: {name for name, service in compose["services"].items() if secret in str(service.get("secrets"))}
        for secret in files
    }
    assert users["postgres_password"] == {"postgres", "mlflow"}
    assert users["tls_key"] == {"tls"}
    assert users["s3_identities"] == {"s3"}
    assert users["s3_mlflow_secret"] == {"mlflow", "bucket-mlflow"}


def test_secrets_are_made_once_for_their_owner_alone(secrets_folder: Path) -> None:
    """Each secret is long, unique and readable by one user; a second call reports them and changes nothing."""
    paths = sorted((secrets_folder / "secrets").iterdir())
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    owner = {
        line.split("=")[0]: int(line.split("=")[1]) for line in (secrets_folder / ".env").read_text().splitlines()[1:]
    }
    assert {(path.stat().st_uid, path.stat().st_gid) for path in paths} == {(owner["STUDY_UID"], owner["STUDY_GID"])}
    assert owner["STUDY_UID"] > 0
    before = {path: path.read_bytes() for path in paths}
    words = [value.strip() for path, value in before.items() if path.suffix == "" and "key" not in path.name]
    assert len(set(words)) == len(words)
    assert all(len(word) == 64 for word in words)
    repeated = subprocess.run(
        [FOLDER / "secrets.sh", "--out", secrets_folder], capture_output=True, text=True, check=False
    )
    assert repeated.returncode == 1
    assert "nothing was changed" in repeated.stderr
    assert before == {path: path.read_bytes() for path in sorted((secrets_folder / "secrets").iterdir())}


def test_the_certificate_has_the_given_names(secrets_folder: Path) -> None:
    """The certificate is trusted for localhost and the given name, and its key is its own."""
    names = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", secrets_folder / "secrets" / "tls.crt"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "DNS:localhost, IP Address:127.0.0.1, DNS:study.example.org" in names
    context = ssl.create_default_context(cafile=str(secrets_folder / "secrets" / "tls.crt"))
    assert context.get_ca_certs()
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
        secrets_folder / "secrets" / "tls.crt", secrets_folder / "secrets" / "tls.key"
    )


def test_bad_names_make_no_certificate(tmp_path: Path) -> None:
    """An invalid name is refused before anything is made."""
    words = [FOLDER / "secrets.sh", "--out", tmp_path, "--host", "a,IP:8.8.8.8"]
    completed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_openssl_is_shown(tmp_path: Path) -> None:
    """An error of openssl is shown, and leaves no partial secrets."""
    programs, out = tmp_path / "bin", tmp_path / "out"
    for folder in (programs, out):
        folder.mkdir()
    real = shutil.which("openssl")
    (programs / "openssl").write_text(f'#!/bin/sh\n[ "$1" = req ] && set -- req -unheard-of\nexec {real} "$@"\n')
    (programs / "openssl").chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    words = [FOLDER / "secrets.sh", "--out", out]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 1
    assert "unheard-of" in completed.stderr
    assert "the certificate could not be made by " in completed.stderr
    assert [path.name for path in out.iterdir()] == ["data"]


def test_caddy_accepts_its_file(secrets_folder: Path) -> None:
    """Caddy accepts its file with the certificate, and forwards both ports."""
    environment = os.environ | {
        "STUDY_TLS_CERT": str(secrets_folder / "secrets" / "tls.crt"),
        "STUDY_TLS_KEY": str(secrets_folder / "secrets" / "tls.key"),
    }
    words = [str(BIN / "caddy"), "validate", "--adapter", "caddyfile", "--config", str(FOLDER / "Caddyfile")]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    result = subprocess.run(
        [str(BIN / "caddy"), "adapt", "--adapter", "caddyfile", "--config", str(FOLDER / "Caddyfile")],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert {"head:8265", "mlflow:5000"} == set(re.findall(r'"dial":"([^"]+)"', result))
    assert '"admin":{"disabled":true' in result
