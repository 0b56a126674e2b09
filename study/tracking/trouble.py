"""Explanations of MLflow's errors, with advice and without passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from study.addresses import safe_message, without_secret
from study.errors import StudyError, TrackingError

_MOST = 300  # characters of a library's message that are shown

_NOT_IN = "it doesn't accept the user's name and password: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
_NOT_ALLOWED = "this user may not write there: an administrator or the experiment's owner can grant the permission EDIT"
_WRONG_HOST = "it doesn't accept that host name: its administrator can allow it with `mlflow server --allowed-hosts`"
_WRONG_CERTIFICATE = (
    "its TLS certificate isn't trusted here: if an authority of your own signed it, "
    "set MLFLOW_TRACKING_SERVER_CERT_PATH to the authority's certificate"
)
# The messages of requests and urllib3 are three lines long, and mostly repeat the address.
_NO_ANSWER = {
    "Connection refused": "nobody answers there, so its server may be down",
    "Name or service not known": "no machine has that name",
    "Read timed out": "its answer takes too long",
    "timed out": "it can't be reached in time",
    "error responses": "its server fails, so its database may be down",
    "Connection aborted": "it closed the connection",
    "Connection reset": "it closed the connection",
}


@contextmanager
def explaining_errors(uri: str) -> Iterator[None]:
    """Convert any error of MLflow to a `TrackingError` of one sentence.

    Errors of this package pass: the body may also read the store.

    Raises:
        TrackingError: if the body raises an exception that isn't a `StudyError`.
    """
    try:
        yield
    except StudyError:
        raise
    except Exception as error:  # requests, sqlalchemy, alembic, mlflow: each has its own exceptions
        raise TrackingError(f"MLflow at {without_secret(uri)} can't be used: {explanation(error, uri)}") from error


def explanation(error: BaseException, uri: str) -> str:
    """Return the meaning of an error with advice, or else its type and first line, at most 300 characters.

    Example:
        >>> explanation(OSError("HTTPConnectionPool(host='mlflow', port=5000): ... [Errno 111] Connection refused"), "http://mlflow:5000")
        'nobody answers there, so its server may be down'
    """
    text = str(error).strip() or type(error).__name__
    status = _status(error, text)
    if status == 401:
        return _NOT_IN
    if status == 403:
        return _WRONG_HOST if "Host header" in text else _NOT_ALLOWED
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return _WRONG_CERTIFICATE
    for words, meaning in _NO_ANSWER.items():
        if words in text:
            return meaning
    return f"{type(error).__name__}: {safe_message(uri, text.splitlines()[0])}"[:_MOST]


def _status(error: BaseException, text: str) -> int | None:
    """Return the HTTP status from the error's text, or from the error code of MLflow's server; None if unknown."""
    match = re.search(r"failed with error code (\d{3}) ", text)
    if match is not None:
        return int(match[1])
    return {"UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403}.get(getattr(error, "error_code", ""))
