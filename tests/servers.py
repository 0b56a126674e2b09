"""Real servers for tests and benchmarks: PostgreSQL, an S3 store, and MLflow with passwords on top of both.

All servers listen on loopback only, on free ports. Passwords are generated each time. They are in files that only this
user can read, and in the environment of the process that needs them, never among its arguments.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.processes import READY_S, Server, answers, free_port

_POSTGRES = ("/usr/lib/postgresql/*/bin", "/usr/local/bin", "/usr/pgsql-*/bin")
_BUCKET = "mlflow"
_INI = """\
[mlflow]
default_permission = READ
database_uri = {database}
admin_username = admin
admin_password = {password}
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
auth_cache_ttl_seconds = {cache_s}
"""


class Postgres(Server):
    """A PostgreSQL server that requires a password, for one test.

    Args:
        folder: the folder of its data; readable by the user that runs it.
    """

    def __init__(self, folder: Path) -> None:
        programs = postgres_programs()
        assert programs is not None
        # PostgreSQL refuses to run as root.
        user = unprivileged_user() if os.geteuid() == 0 else None
        self.port = free_port()
        self._programs = programs
        self._data = folder / "data"
        self._sockets = folder
        self.password_file = folder / "pgpass"
        password = secrets.token_urlsafe(24)
        first = folder / "first-password"
        for path, content in ((first, password), (self.password_file, f"*:*:*:mlflow:{password}\n")):
            path.touch(mode=0o600)
            path.write_text(content)
        if user is not None:
            for path in (folder, first):
                shutil.chown(path, user, user)
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC", "HOME": str(folder)}
        super().__init__(
            name="PostgreSQL",
            command=[
                *(str(programs / "postgres"), "-D", str(self._data), "-p", str(self.port)),
                *("-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"),
            ],
            is_ready=self._is_accepting,
            log=folder / "postgres.log",
            environment=environment,
            user=user,
            stop_signal=signal.SIGINT,  # the fast shutdown, which doesn't wait for clients
        )
        words = ["-D", str(self._data), "--username=mlflow", f"--pwfile={first}", "--auth=scram-sha-256"]
        self._run("initdb", *words, "--encoding=UTF8", "--no-instructions")
        first.unlink()

    def database(self, name: str) -> str:
        """Make a database, and return its address; the password is only in `password_file`."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "mlflow", name)
        return f"postgresql+psycopg://mlflow@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        """Start it; after a kill, first wait until the server's last process has ended, as PostgreSQL requires."""
        deadline = time.monotonic() + READY_S
        while True:
            try:
                super().start()
            except RuntimeError as error:
                if "pre-existing shared memory" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _is_accepting(self) -> bool:
        command = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, check=False).returncode == 0

    def _run(self, program: str, *words: str) -> None:
        if program == "initdb":
            identity = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
            environment = dict(self.environment)
        else:  # a client, which reads the password
            identity, environment = {}, os.environ | {"PGPASSFILE": str(self.password_file)}
        subprocess.run(
            [self._programs / program, *words],
            env=environment,
            cwd=self._sockets,
            check=True,
            capture_output=True,
            **identity,  # type: ignore[call-overload]
        )


def postgres_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None if it isn't installed."""
    folders = [path for pattern in _POSTGRES for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    installed = [path for path in folders if (path / "initdb").exists() and (path / "pg_isready").exists()]
    return installed[-1] if installed else None


def unprivileged_user() -> str:
    """Return the name of a user other than root; Debian's PostgreSQL package creates one."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def object_store(folder: Path) -> tuple[Server, dict[str, str]]:
    """Return an S3 server in memory (moto), and the environment of its clients."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    # moto checks no password, but clients require one.
    environment = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(24),
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": address,
        "MLFLOW_S3_ENDPOINT_URL": address,
    }
    server = Server("moto", command, partial(answers, f"{address}/moto-api/"), folder / "moto.log")
    return server, environment


def make_bucket(environment: Mapping[str, str], name: str = _BUCKET) -> None:
    """Make a bucket."""
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL_S3"],
        region_name=environment["AWS_DEFAULT_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    client.create_bucket(Bucket=name)


class MLflow(Server):
    """MLflow's server on PostgreSQL and S3, with users and passwords.

    Args:
        folder: the folder of its settings and its log.
        database: the address of the runs' database.
        users: the address of the users' database.
        environment: variables for access to both, and to the object store.
        cache_s: seconds for which a checked password stays valid; 0 to compute its hash at each request, as MLflow does
            by default.
    """

    def __init__(
        self, folder: Path, database: str, users: str, environment: Mapping[str, str], cache_s: int = 60
    ) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.username, self.password = "admin", secrets.token_urlsafe(24)
        settings = folder / "basic_auth.ini"
        settings.touch(mode=0o600)
        settings.write_text(_INI.format(database=users, password=self.password, cache_s=cache_s))
        command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--workers", "1"]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        super().__init__(
            name="MLflow",
            command=[*command, "--artifacts-destination", f"s3://{_BUCKET}/artifacts"],
            is_ready=partial(answers, f"{self.address}/health"),
            log=folder / "mlflow.log",
            environment=os.environ
            | dict(environment)
            | {
                "MLFLOW_AUTH_CONFIG_PATH": str(settings),
                "MLFLOW_BACKEND_STORE_URI": database,
                "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_urlsafe(24),
                "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
                "MLFLOW_DISABLE_TELEMETRY": "true",
                "DO_NOT_TRACK": "true",
            },
        )

    @property
    def client_environment(self) -> dict[str, str]:
        """The environment variables of a client."""
        return {
            "MLFLOW_TRACKING_URI": self.address,
            "MLFLOW_TRACKING_USERNAME": self.username,
            "MLFLOW_TRACKING_PASSWORD": self.password,
        }


@contextmanager
def dashboard(uri: str, folder: Path) -> Iterator[str]:
    """Serve an MLflow database as `study ui` does, and yield the server's address."""
    from study.tracking.serve import ui_command

    port = free_port()
    command, environment = ui_command(uri, port=port)
    address = f"http://127.0.0.1:{port}"
    ready = partial(answers, f"{address}/health")
    server = Server("MLflow", command, ready, folder / "mlflow.log", environment)
    try:
        server.start()
        yield address
    finally:
        server.stop()


@dataclass(frozen=True)
class Service:
    """The servers of a tracking service, all running.

    Args:
        postgres: the server that holds runs and users.
        objects: the server that holds files.
        mlflow: the server in front of both.
        direct: the address of the runs' database, for a client that bypasses MLflow's server.
        objects_environment: the environment variables of a client of the object store.
    """

    postgres: Postgres
    objects: Server
    mlflow: MLflow
    direct: str
    objects_environment: Mapping[str, str]


@contextmanager
def tracking_service(*, cache_s: int = 60) -> Iterator[Service]:
    """Start PostgreSQL, S3 and MLflow, and end them.

    Args:
        cache_s: as for `MLflow`.
    """
    # Not pytest's folder: PostgreSQL's user can't enter that, and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="tracking-"))
    folder.chmod(0o711)
    (folder / "postgres").mkdir(mode=0o700)
    started: list[Server] = []

    def begin(server: Server) -> None:
        started.append(server)
        server.start()

    try:
        objects, environment = object_store(folder)
        begin(objects)
        make_bucket(environment)
        postgres = Postgres(folder / "postgres")
        begin(postgres)
        runs, users = postgres.database("mlflow"), postgres.database("mlflow_users")
        mlflow = MLflow(folder, runs, users, environment | {"PGPASSFILE": str(postgres.password_file)}, cache_s)
        begin(mlflow)
        yield Service(postgres, objects, mlflow, runs, environment)
    finally:
        for server in reversed(started):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
