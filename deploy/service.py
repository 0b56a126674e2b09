"""The parts of the service as local processes, with the programs, options and secrets of deploy/compose.

Everything listens on loopback, on free ports, except Ray's own processes, which listen everywhere and require the
token. All processes carry a mark in their environment, by which they are ended.
"""

from __future__ import annotations

import os
import pwd
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from processes import MARK, ServiceError, free_ports, say, wait

COMPOSE = Path(__file__).resolve().parent / "compose"
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "USER", "LOGNAME")
_S3_PARTS = ("s3", "master", "volume", "filer")
_PORTS = [
    *("postgres", "mlflow", "gcs", "dashboard", "agent0", "agent1", "agent2", "ray_front", "mlflow_front", "health"),
    *_S3_PARTS,
    *(f"{part}_grpc" for part in _S3_PARTS),
]


class Service:
    """The parts of the service, started one after the other.

    Environments, clients and requests need the secrets that `start_all` makes.

    Args:
        folder: folder of all files. Its path must be short: it holds Ray's sockets.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.secrets = folder, folder / "secrets"
        self.port = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        self.postgres = found[-1] if found else Path(shutil.which("initdb") or "").parent
        self.environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
            **MARK,
            "HOME": str(folder / "home"),  # neither settings nor tokens of the caller
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
        }
        for name in ("home", "logs"):
            (folder / name).mkdir()

    def start_all(self) -> None:
        """Make the secrets, and start all parts, each after the parts that it needs.

        Raises:
            ServiceError: if a part doesn't start.
            FileNotFoundError: if a program of a part isn't installed.
        """
        say("making secrets")
        self.run([COMPOSE / "secrets.sh", "--out", self.folder])
        self._start_postgres()
        self._start_s3()
        self._start_mlflow()
        self._start_ray()
        self._start_front()

    @property
    def cluster(self) -> str:
        """Address of Ray's dashboard, through TLS."""
        return f"https://localhost:{self.port['ray_front']}"

    @property
    def dashboard(self) -> str:
        """Address of MLflow, through TLS."""
        return f"https://localhost:{self.port['mlflow_front']}"

    def secret(self, name: str) -> str:
        """Return the content of a secret's file, without surrounding white space.

        Raises:
            FileNotFoundError: if there is no such secret, or `start_all` hasn't made it yet.
        """
        return (self.secrets / name).read_text().strip()

    def user_environment(self) -> dict[str, str]:
        """Return the environment of a user of the service, as in docs/guides/deploy.md."""
        return self.ray_environment() | {
            "STUDY_CLUSTER": self.cluster,
            "REQUESTS_CA_BUNDLE": str(self.secrets / "tls.crt"),
            "SSL_CERT_FILE": str(self.secrets / "tls.crt"),
        }

    def ray_environment(self) -> dict[str, str]:
        """Return the environment of the cluster's nodes."""
        return self.s3_environment("study") | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.secrets / "ray_token"),
            "RAY_USAGE_STATS_ENABLED": "0",
            "STUDY_STORE": "s3://study",
            "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{self.port['mlflow']}",
            "MLFLOW_TRACKING_USERNAME": "admin",
            "MLFLOW_TRACKING_PASSWORD": self.secret("mlflow_admin_password"),
        }

    def s3_environment(self, user: str) -> dict[str, str]:
        """Return the environment of one of the object store's users, ``study`` or ``mlflow``."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port['s3']}",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": self.secret(f"s3_{user}_key"),
            "AWS_SECRET_ACCESS_KEY": self.secret(f"s3_{user}_secret"),
        }

    def database_environment(self) -> dict[str, str]:
        """Return the environment of the users of MLflow's database."""
        return {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port["postgres"]),
            "PGUSER": "mlflow",
            "PGDATABASE": "mlflow",
            "PGPASSWORD": self.secret("postgres_password"),
        }

    def in_postgres(self, command: str, given: bytes = b"") -> bytes:
        """Run a shell command, written for PostgreSQL's container, on this machine, and return its output.

        Args:
            command: the command.
            given: its standard input.

        Raises:
            ServiceError: if it fails, with its error output.
        """
        at = {name: self.database_environment()[name] for name in ("PGHOST", "PGPORT")}
        done = subprocess.run(
            ["sh", "-c", command.replace("/run/secrets/", f"{self.secrets}/")],
            check=False, capture_output=True, input=given, cwd="/",
            env=self.environment | at | {"PATH": f"{self.postgres}:{self.environment['PATH']}"},
        )  # fmt: skip
        if done.returncode:
            raise ServiceError(f"{command} failed with exit code {done.returncode}: {done.stderr.decode()}")
        return done.stdout

    def s3(self, user: str) -> Any:
        """Return a boto3 client of the object store as one of its users, ``study`` or ``mlflow``.

        Raises:
            ImportError: if boto3 isn't installed.
            FileNotFoundError: if there is no such user, or `start_all` hasn't made the secrets yet.
        """
        import boto3

        given = self.s3_environment(user)
        return boto3.client(
            "s3",
            endpoint_url=given["AWS_ENDPOINT_URL"],
            region_name=given["AWS_REGION"],
            aws_access_key_id=given["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
        )

    def ask(self, url: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """Send an HTTP GET request, and return status and body; 0 and an empty body if nothing answers within 10 s.

        Raises:
            FileNotFoundError: if `start_all` hasn't made the certificate yet.
        """
        trusted = ssl.create_default_context(cafile=str(self.secrets / "tls.crt"))
        request = urllib.request.Request(url, headers=dict(headers or {}))
        try:
            with urllib.request.urlopen(
                request, timeout=10, context=trusted if url.startswith("https") else None
            ) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 0, b""

    def run(
        self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None, user: str | None = None
    ) -> None:
        """Run a program to its end.

        Args:
            command: the program and its arguments.
            environment: variables added to the service's environment.
            user: the operating system's user to run it as; None for the current one.

        Raises:
            ServiceError: if it fails, with its error output.
            FileNotFoundError: if the program isn't installed.
        """
        words = [str(word) for word in command]
        done = subprocess.run(
            words, check=False, capture_output=True, text=True, cwd="/", user=user,
            env=self.environment | dict(environment or {}),
        )  # fmt: skip
        if done.returncode:
            raise ServiceError(f"{words[0]} failed with exit code {done.returncode}: {done.stderr.strip()[-2000:]}")

    def _start(
        self,
        name: str,
        command: Sequence[str | Path],
        ready: Callable[[], Any],
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        """Start a part, and wait until it answers; raise ServiceError with the end of its log if it doesn't."""
        say(f"starting {name}")
        log = self.folder / "logs" / f"{name.replace(' ', '-')}.log"
        with log.open("wb") as to:
            process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=to, stderr=to, cwd="/",
                user=user, env=self.environment | dict(environment or {}), start_new_session=True,
            )  # fmt: skip
        try:
            wait(lambda: process.poll() is not None or ready(), f"{name} to answer")
            if process.poll() is not None:
                raise ServiceError(f"{name} ended with exit code {process.returncode}")
        except ServiceError as error:
            end = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise ServiceError(f"{error}; the end of {log}:\n{end}") from None

    def _answers(self, url: str) -> bool:
        return self.ask(url)[0] == 200

    def _start_postgres(self) -> None:
        program, folder, user = self.postgres, self.folder / "postgres", None
        folder.mkdir()
        password = folder / "password"
        shutil.copy(self.secrets / "postgres_password", password)
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            user = "postgres" if "postgres" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"
            for path in (folder, password):
                shutil.chown(path, user)
        self.run(
            [program / "initdb", "--username=mlflow", f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8",
             "--no-locale", f"--pgdata={folder}/data"], user=user,
        )  # fmt: skip
        password.unlink()
        at = ["--host=127.0.0.1", f"--port={self.port['postgres']}"]

        def ready() -> bool:
            asked = [str(program / "pg_isready"), "--quiet", *at]
            return subprocess.run(asked, check=False, env=self.environment).returncode == 0

        self._start(
            "postgres",
            [program / "postgres", "-D", folder / "data", "-p", str(self.port["postgres"]),
             "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"],
            ready,
            user=user,
        )  # fmt: skip
        self.run([program / "createdb", "mlflow"], self.database_environment())

    def _start_s3(self) -> None:
        ports = [f"-{part}.port={self.port[part]}" for part in _S3_PARTS]
        ports += [f"-{part}.port.grpc={self.port[f'{part}_grpc']}" for part in _S3_PARTS]
        sockets = [f"-{part}.localSocket={self.folder}/{part}.sock" for part in ("filer", "s3")]
        self._start(
            "s3",
            ["weed", "-logtostderr=true", "server", f"-dir={self.folder}/data/s3", "-ip=127.0.0.1",
             "-ip.bind=127.0.0.1", "-master.telemetry=false", "-master.volumeSizeLimitMB=256", "-volume.max=0",
             "-s3", f"-s3.config={self.secrets}/s3.json", "-s3.ip.bind=127.0.0.1", "-s3.port.iceberg=0",
             "-s3.port.lance=0", *ports, *sockets],
            lambda: self._answers(f"http://127.0.0.1:{self.port['s3']}/healthz"),
        )  # fmt: skip
        for name in ("study", "mlflow"):
            self.s3(name).create_bucket(Bucket=name)

    def _start_mlflow(self) -> None:
        at, front = f"127.0.0.1:{self.port['mlflow']}", self.port["mlflow_front"]
        self._start(
            "mlflow",
            ["mlflow", "server", "--app-name=basic-auth", "--host=127.0.0.1", f"--port={self.port['mlflow']}",
             "--workers=1", "--backend-store-uri=postgresql+psycopg://", "--artifacts-destination=s3://mlflow",
             f"--allowed-hosts={at},localhost:{front},127.0.0.1:{front}",
             f"--cors-allowed-origins=https://localhost:{front}"],
            lambda: self._answers(f"http://{at}/health"),
            self.s3_environment("mlflow")
            | {
                "MLFLOW_AUTH_CONFIG_PATH": str(COMPOSE / "mlflow-auth.ini"),
                "MLFLOW_AUTH_ADMIN_PASSWORD": self.secret("mlflow_admin_password"),
                "MLFLOW_FLASK_SERVER_SECRET_KEY": self.secret("mlflow_secret_key"),
                "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
                "MLFLOW_DISABLE_TELEMETRY": "true",
            }
            | self.database_environment(),
        )  # fmt: skip

    def _start_ray(self) -> None:
        gcs, dashboard = self.port["gcs"], self.port["dashboard"]
        head = ["--head", f"--port={gcs}", "--num-cpus=0", "--dashboard-host=127.0.0.1",
                f"--dashboard-port={dashboard}", f"--temp-dir={self.folder}/ray"]  # fmt: skip
        worker = [f"--address=127.0.0.1:{gcs}", "--num-cpus=2"]
        for number, (name, own) in enumerate((("head", head), ("worker 1", worker), ("worker 2", worker))):
            agent = self.port[f"agent{number}"]
            self._start(
                name,
                ["ray", "start", "--block", "--node-ip-address=127.0.0.1", "--object-store-memory=134217728",
                 f"--dashboard-agent-listen-port={agent}", "--disable-usage-stats", *own],
                lambda at=agent: self._answers(f"http://127.0.0.1:{at}/api/healthz"),
                self.ray_environment(),
            )  # fmt: skip
        wait(lambda: self._answers(f"http://127.0.0.1:{dashboard}/api/gcs_healthz"), "the dashboard")

    def _start_front(self) -> None:
        health = self.port["health"]
        self._start(
            "tls",
            ["caddy", "run", "--config", COMPOSE / "Caddyfile", "--adapter", "caddyfile"],
            lambda: self._answers(f"http://127.0.0.1:{health}/"),
            {
                "STUDY_BIND": "127.0.0.1",
                "STUDY_TLS_CERT": str(self.secrets / "tls.crt"),
                "STUDY_TLS_KEY": str(self.secrets / "tls.key"),
                "STUDY_RAY_PORT": str(self.port["ray_front"]),
                "STUDY_RAY_UPSTREAM": f"127.0.0.1:{self.port['dashboard']}",
                "STUDY_MLFLOW_PORT": str(self.port["mlflow_front"]),
                "STUDY_MLFLOW_UPSTREAM": f"127.0.0.1:{self.port['mlflow']}",
                "STUDY_HEALTH_PORT": str(health),
            },
        )
