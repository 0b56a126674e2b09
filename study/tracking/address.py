"""MLflow's address, settings and client."""

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
    # No retries: a server that is down must not delay the study, and a repeated request could make a second run. The
    # publisher checks the existing runs before it tries again.
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
    """Return a client that prints nothing, after a test request; make the database and its folder if they are missing.

    It sets environment variables (`imported`).

    Raises:
        Exception: an error of MLflow if it can't be reached, OSError or sqlite3.Error if the database can't be made;
            `explaining_errors` converts it.
    """
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
    """Give a database file a write-ahead log, permanently, to permit reading during writes.

    Args:
        path: the database; made empty if it is missing.

    Raises:
        sqlite3.Error: if it can't be opened, or isn't a database.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def count_rows(uri: str) -> None:
    """Collect statistics of a database file for faster queries of the dashboard; no-op without a database file.

    With 20,000 runs, listing the first hundred by a metric takes 1 s instead of 18 s; collecting takes 1 s.

    Raises:
        sqlite3.Error: if the database can't be read or written.
    """
    path = database(uri)
    if path is not None and path.exists():
        with closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection:
            connection.execute("PRAGMA analysis_limit=1000")
            connection.execute("ANALYZE")


def check_reachable(uri: str) -> None:
    """Check that MLflow answers a request; no-op for a missing database, which the first writer makes.

    Raises:
        TrackingError: if MLflow can't be reached, refuses the environment's credentials, or can't use the database.
    """
    path = database(uri)
    if path is None or path.exists():
        with explaining_errors(uri):
            connect(uri)


def imported() -> type[MlflowClient]:
    """Import MLflow without its output, and return its client class; the first import takes seconds.

    Variables of `ENVIRONMENT` that aren't set are set first.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return MlflowClient


def artifacts(uri: str) -> Path | None:
    """Return the folder for artifacts next to a database file; None for a server or another database."""
    path = database(uri)
    return None if path is None else path.absolute().with_name("mlflow-artifacts")


def place_of_files(uri: str, study: str) -> str | None:
    """Return the address of a study's artifacts; None if the server chooses it.

    For a database that isn't a file, the artifacts belong to the server that shows it.
    """
    folder = artifacts(uri)
    if folder is not None:
        return (folder / study).as_uri()
    return None if uri.startswith("http") else f"{_SERVED}/{study}"


def can_keep_files(uri: str, place: str) -> bool:
    """Return True if artifacts can be written from here; a server's artifacts need a connection to the server."""
    return uri.startswith("http") or not place.startswith(_SERVED)


def database(uri: str) -> Path | None:
    """Return the path of a database file; None for a server or another database.

    Example:
        >>> database("sqlite:////data/studies/mlflow.db").name
        'mlflow.db'
    """
    return Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None


def user() -> Mapping[str, str]:
    """Return the tag with the user's name; empty if that is unknown."""
    try:
        return {"mlflow.user": getpass.getuser()}
    except (OSError, KeyError):  # a container without a name for its user
        return {}
