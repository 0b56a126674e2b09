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

from study.tracking.trouble import reached

if TYPE_CHECKING:
    from mlflow import MlflowClient

_SQLITE = "sqlite:///"
_SERVED = "mlflow-artifacts:"
_BUSY_S = 30.0  # of a database that another process writes to
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # A server that is down must cost nothing, and a request sent again could make a second run: what failed
    # is looked up before it is published again.
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
}
"""What MLflow's client and server shall know, unless the environment says otherwise."""


def default_uri(store_root: Path) -> str:
    """Name the database inside the store.

    Example:
        >>> default_uri(Path("/data/studies"))
        'sqlite:////data/studies/mlflow.db'
    """
    return f"{_SQLITE}{Path(store_root).absolute() / 'mlflow.db'}"


def connect(uri: str) -> MlflowClient:
    """Make a quiet client."""
    client_class = imported()
    path = database(uri)
    fresh = path is not None and not path.exists()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    client = client_class(tracking_uri=uri)
    client.search_experiments(max_results=1)
    if fresh and path is not None:
        # With a write-ahead log the dashboard reads while we write; the file remembers it.
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    return client


def count_rows(uri: str) -> None:
    """Have a database in a file count its rows, so that it plans well what the dashboard asks; nothing elsewhere.

    Of 20,000 runs, the first hundred by a metric take 18 s without that and 1 s with it; counting takes 1 s.
    """
    path = database(uri)
    if path is not None and path.exists():
        with closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection:
            connection.execute("PRAGMA analysis_limit=1000")
            connection.execute("ANALYZE")


def check_reachable(uri: str) -> None:
    """Ask for an experiment, as a study would; a database that isn't there isn't made.

    Raises:
        TrackingError: if MLflow can't be reached, or refuses the credentials of the environment.
    """
    path = database(uri)
    if path is None or path.exists():
        with reached(uri):
            connect(uri)


def imported() -> type[MlflowClient]:
    """Import MLflow, quietly. That takes seconds, so it waits until somebody asks."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return MlflowClient


def artifacts(uri: str) -> Path | None:
    """Give the folder for files beside a database; a server has its own place."""
    path = database(uri)
    return None if path is None else path.absolute().with_name("mlflow-artifacts")


def place_of_files(uri: str, study: str) -> str | None:
    """Name the place of a study's files; None where the server knows it.

    A database that is no file says nothing of files: they belong to the server that shows it.
    """
    folder = artifacts(uri)
    if folder is not None:
        return (folder / study).as_uri()
    return None if uri.startswith("http") else f"{_SERVED}/{study}"


def can_keep_files(uri: str, place: str) -> bool:
    """Say whether files can be written from here: those that a server keeps are written through it only."""
    return uri.startswith("http") or not place.startswith(_SERVED)


def database(uri: str) -> Path | None:
    """Give the file of a database in a file; None of a server.

    Example:
        >>> database("sqlite:////data/studies/mlflow.db").name
        'mlflow.db'
    """
    return Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None


def user() -> Mapping[str, str]:
    """Give the tag that says who ran it, where that is known."""
    try:
        return {"mlflow.user": getpass.getuser()}
    except (OSError, KeyError):  # a container without a name for its user
        return {}
