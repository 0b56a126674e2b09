"""Where MLflow is, how to reach it without its chatter, and how to serve it."""

from __future__ import annotations

import getpass
import logging
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from study.tracking.trouble import explaining_errors

if TYPE_CHECKING:
    from mlflow import MlflowClient

_SQLITE = "sqlite:///"
_SERVED = "mlflow-artifacts:"
_BUSY_S = 30.0  # longest wait for a database that another process writes to
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # A server that is down must cost no time, and a repeated request could make a second run: the publisher checks
    # what is there before it tries again.
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
}
"""Environment variables for MLflow's client and server; those already set take precedence."""


def default_uri(store_root: Path) -> str:
    """Return the address of the database inside the store.

    Example:
        >>> default_uri(Path("/data/studies"))
        'sqlite:////data/studies/mlflow.db'
    """
    return f"{_SQLITE}{Path(store_root).absolute() / 'mlflow.db'}"


def connect(uri: str) -> MlflowClient:
    """Return a client that prints nothing."""
    client_class = imported()
    path = database(uri)
    fresh = path is not None and not path.exists()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    client = client_class(tracking_uri=uri)
    client.search_experiments(max_results=1)
    if fresh and path is not None:
        log_ahead(path)
    return client


def log_ahead(path: Path) -> None:
    """Give a file's database a write-ahead log, so that it can be read and written at once; the file keeps the setting.

    Args:
        path: the database; an empty one is made if there is none.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def count_rows(uri: str) -> None:
    """Have a file's database collect statistics, so that it plans the dashboard's queries well; do nothing for others.

    With 20,000 runs, the first hundred by a metric take 18 s without them and 1 s with them; collecting takes 1 s.
    """
    path = database(uri)
    if path is not None and path.exists():
        with closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection:
            connection.execute("PRAGMA analysis_limit=1000")
            connection.execute("ANALYZE")


def check_reachable(uri: str) -> None:
    """Request an experiment, as a study would, but don't make a database that isn't there.

    Raises:
        TrackingError: if MLflow can't be reached, or refuses the credentials of the environment.
    """
    path = database(uri)
    if path is None or path.exists():
        with explaining_errors(uri):
            connect(uri)


def imported() -> type[MlflowClient]:
    """Import MLflow so that it prints nothing, and only when it is needed, since that takes seconds."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return MlflowClient


def artifacts(uri: str) -> Path | None:
    """Return the folder for files next to a database in a file; None for a server, which has its own."""
    path = database(uri)
    return None if path is None else path.absolute().with_name("mlflow-artifacts")


def place_of_files(uri: str, study: str) -> str | None:
    """Return the address of a study's files; None where the server chooses it.

    A database that isn't a file doesn't say where files go: they belong to the server that shows it.
    """
    folder = artifacts(uri)
    if folder is not None:
        return (folder / study).as_uri()
    return None if uri.startswith("http") else f"{_SERVED}/{study}"


def can_keep_files(uri: str, place: str) -> bool:
    """Return whether files can be written from here: a server's files can be written only through the server."""
    return uri.startswith("http") or not place.startswith(_SERVED)


def database(uri: str) -> Path | None:
    """Return the path of a database in a file; None for a server.

    Example:
        >>> database("sqlite:////data/studies/mlflow.db").name
        'mlflow.db'
    """
    return Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None


def user() -> Mapping[str, str]:
    """Return the tag with the user's name, where that is known."""
    try:
        return {"mlflow.user": getpass.getuser()}
    except (OSError, KeyError):  # a container without a name for its user
        return {}
