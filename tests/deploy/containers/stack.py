"""deploy/compose on a Docker engine, used from outside as in docs/guides/deploy.md."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import requests

from tests.deploy.containers.docker import IMAGE, ROOT, Docker, run
from tests.processes import free_port, wait_for

_BIN = Path(sys.executable).parent
_COMPOSE = ROOT / "deploy" / "compose"
_OURS = Path(__file__).parent / "compose.yaml"


class Stack:
    """All services, with secrets and data in a folder, and a user with a folder."""

    def __init__(self, docker: Docker, folder: Path) -> None:
        self.docker, self.folder, self.user = docker, folder, folder / "user"
        self.user.mkdir()
        self.ports = {"RAY": free_port(), "MLFLOW": free_port()}
        for name in ("Caddyfile", "mlflow-auth.ini"):
            shutil.copy(_COMPOSE / name, folder)
        run([_COMPOSE / "secrets.sh", "--out", folder])
        with (folder / ".env").open("a") as settings:
            settings.write("STUDY_WORKER_CPUS=1\n")
            settings.writelines(f"STUDY_{name}_PORT={port}\n" for name, port in self.ports.items())

    def compose(self, *words: str, given: bytes = b"", image: str = IMAGE) -> bytes:
        """Run a command of Docker Compose, and return its output."""
        files = [
            "--project-directory",
            str(self.folder),
            "--file",
            str(_COMPOSE / "compose.yaml"),
            "--file",
            str(_OURS),
        ]
        environment = self.docker.environment | {"STUDY_IMAGE": image}
        return run([_BIN / "docker-compose", *files, *words], given=given, environment=environment)

    def up(self, image: str = IMAGE) -> None:
        """Start services that don't run, or run another image, and wait until all are healthy."""
        self.compose("up", "--wait", "--no-build", image=image)

    def inside(self, service: str, *words: str, given: bytes = b"") -> bytes:
        """Run a command in a service's container, with the service's secrets."""
        return self.compose("exec", "-T", service, "study-entrypoint", *words, given=given)

    @property
    def cluster(self) -> str:
        return f"https://localhost:{self.ports['RAY']}"

    def secret(self, name: str) -> str:
        return (self.folder / "secrets" / name).read_text()

    def study(self, *words: str) -> str:
        """Run a command of the service as its user does, outside."""
        certificate = str(self.folder / "secrets" / "tls.crt")
        environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.folder / "secrets" / "ray_token"),
            "REQUESTS_CA_BUNDLE": certificate,
            "SSL_CERT_FILE": certificate,
            "STUDY_CLUSTER": self.cluster,
        }
        command = [_BIN / "study", *words]
        script = 'cd "$0" && exec "$@"'
        return run(["bash", "-c", script, self.user, *command], environment=environment).decode()

    def mlflow(self, method: str, path: str, **arguments: Any) -> Any:
        """Send MLflow a request as its administrator, from outside."""
        answer = requests.request(
            method,
            f"https://localhost:{self.ports['MLFLOW']}/api/2.0/mlflow/{path}",
            auth=("admin", self.secret("mlflow_admin_password")),
            verify=str(self.folder / "secrets" / "tls.crt"),
            timeout=60,
            **arguments,
        )
        assert answer.ok, answer.text
        return answer.json()

    def runs(self, study: str) -> list[str]:
        """List the states of MLflow's runs of a study's trials."""
        experiment = self.mlflow("GET", "experiments/get-by-name", params={"experiment_name": study})
        query = {
            "experiment_ids": [experiment["experiment"]["experiment_id"]],
            "filter": "tags.`study.trial_id` LIKE '%'",
            "max_results": 1000,
        }
        runs = self.mlflow("POST", "runs/search", json=query).get("runs", [])
        return [run["info"]["status"] for run in runs]

    def containers(self, service: str) -> list[dict[str, Any]]:
        """Return Docker's descriptions of a service's containers."""
        ids = self.compose("ps", "--quiet", "--all", service).decode().split()
        return list(json.loads(self.docker("inspect", *sorted(ids)))) if ids else []

    def kill(self, service: str, number: int = 0) -> None:
        """Kill the first process of a container, as the kernel does when memory is short, and wait for the next."""
        killed = self.containers(service)[number]["State"]["Pid"]
        os.kill(killed, signal.SIGKILL)

        def is_back() -> bool:
            state = self.containers(service)[number]["State"]
            return state["Pid"] not in (0, killed) and state["Health"]["Status"] == "healthy"

        wait_for(is_back, f"{service} to come back")
