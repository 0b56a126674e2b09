"""Addresses of servers, stores and databases: made absolute, and shown without passwords."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>/*)(?P<remainder>.*)", re.DOTALL)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_SQLITE_FILE = re.compile(r"sqlite(\+\w+)?:///(?=[^/:])")
_WEB = ("http", "https")
# The first part of such an address is a bucket or container@account. The path after it may contain any character.
_OBJECTS = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss")
_OF_FILES = ("sqlite", "file")
_OF_FOLDERS = ("/", ".", "~")
# Query parameters that may hold a secret. _NO_SECRET has the exceptions: parameters of drivers that hold file names.
_SECRET = re.compile(r"pass|pwd|secret|token|key|signature|credential|bearer|jwt|^sig$|^auth(orization)?$", re.I)
_NO_SECRET = {"passfile", "sslkey", "ssl_key", "sslkeylogfile"}


def absolute(address: str | Path) -> str:
    """Return a folder's absolute path: user code may change the working directory.

    Args:
        address: a folder, or a URL, which is returned unchanged.

    Example:
        >>> absolute("studies") == str(Path.cwd() / "studies"), absolute("s3://bucket/studies")
        (True, 's3://bucket/studies')
    """
    text = str(address)
    return text if _URL.match(text) else str(Path(text).absolute())


def absolute_database(address: str) -> str:
    """Return the address of MLflow or a database with an absolute path, if it is a path or a file ``sqlite:///FILE``.

    A text without a scheme is a path if it contains a slash or begins with a dot. Other addresses stay unchanged.

    Example:
        >>> absolute_database("sqlite:///runs.db") == f"sqlite:///{Path.cwd() / 'runs.db'}"
        True
        >>> [absolute_database(one) for one in ("sqlite:////data/runs.db", "http://head:5000", "off", "databricks")]
        ['sqlite:////data/runs.db', 'http://head:5000', 'off', 'databricks']
    """
    if match := _SQLITE_FILE.match(address):
        return f"{match[0]}{Path(address[match.end() :]).absolute()}"
    is_path = _SCHEME.match(address) is None and (os.sep in address or address.startswith("."))
    return str(Path(address).absolute()) if is_path else address


def shown_path(path: Path) -> str:
    """Return a path for output: relative if it is below the working directory.

    Example:
        >>> shown_path(Path.cwd() / "studies"), shown_path(Path("/data/studies"))
        ('studies', '/data/studies')
    """
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the working directory is gone
        return str(path)


@dataclass(frozen=True, slots=True)
class _AddressParts:
    """The parts of an address.

    Args:
        scheme: scheme with its colon and slashes; empty for a path.
        user: text before the host's @; None without one.
        place: host and path, or the path.
        query: text after the first ? or #; None without one.
    """

    scheme: str
    user: str | None
    place: str
    query: str | None


def without_secret(address: str) -> str:
    """Return an address with ``***`` for the text before the last @ and after a ? or #, which could hold a password.

    Unquoted passwords may contain any of these characters, so the host begins after the last @. If an @ follows a ?
    or #, all but the scheme is masked. Exceptions, where these characters belong to names:

    - a path that begins with ``/``, ``.`` or ``~``, or a text with neither a scheme nor an @: nothing is masked
    - a file's address: only a ? masks
    - an object store: an @ after the bucket masks nothing, nor does the @ of Azure's ``container@account``

    Example:
        >>> without_secret("https://me:p@ss@host/path?token=secret"), without_secret("postgresql://me:1/ss@host/db")
        ('https://***@host/path?***', 'postgresql://***@host/db')
        >>> without_secret("s3://bucket/a@b"), without_secret("sqlite:////data/a:b@c.db"), without_secret("/a:b@c")
        ('s3://bucket/a@b', 'sqlite:////data/a:b@c.db', '/a:b@c')
    """
    parts = _parts(address)
    user = "" if parts.user is None else "***@" if parts.place else "***"
    return f"{parts.scheme}{user}{parts.place}{'' if parts.query is None else '?***'}"


def page_of(address: str) -> str:
    """Return a server's address for a browser, without user name, password, query and fragment.

    Only the scheme is left if an @ follows a ? or #, since either may be part of the password.

    Example:
        >>> page_of("https://me:p@ss@host/mlflow?token=secret")
        'https://host/mlflow'
    """
    parts = _parts(address)
    return f"{parts.scheme}{parts.place}"


def holds_secret(address: str) -> bool:
    """Return True if an address contains, or may contain, a password or a token.

    In a web address, this is any text before an @ or after a ? or #, since services may use it as a key. A database's
    address may name a user, and have query parameters with names that don't suggest a secret.

    Example:
        >>> holds_secret("https://me:secret@host/path"), holds_secret("https://token@host"), holds_secret("http://host/?sig=a")
        (True, True, True)
        >>> holds_secret("postgresql://host/db?sslpassword=a"), holds_secret("postgresql://me@host/db?sslmode=require")
        (True, False)
        >>> holds_secret("https://host:5000/path"), holds_secret("s3://bucket/studies"), holds_secret("/a:b@c")
        (False, False, False)
    """
    parts = _parts(address)
    if parts.scheme.lower().startswith(_WEB):
        return parts.user is not None or parts.query is not None
    if parts.user is not None and (":" in parts.user or "?" in parts.user or "#" in parts.user):
        return True
    parameters = {name.lower() for name in re.findall(r"[\w.-]+(?=\s*=)", unquote(parts.query or ""))}
    return any(_SECRET.search(name) for name in parameters - _NO_SECRET)


def safe_message(address: str, text: str) -> str:
    """Return a library's message about an address, or a replacement if it could contain a part of the password.

    Passwords and queries in other addresses of the message are masked (`without_secret`).

    Args:
        address: the address that the library used.
        text: the library's message.

    Example:
        >>> safe_message("https://host", "can't parse https://me:secret@other/path")
        "can't parse https://***@other/path"
        >>> safe_message("https://me:p/ss@host", "can't parse p")
        "its message isn't shown, since it may contain the address's user name or query"
    """
    if without_secret(address) != address:
        return "its message isn't shown, since it may contain the address's user name or query"
    return _ADDRESS.sub(lambda match: without_secret(match[0]), text)


def _parts(address: str) -> _AddressParts:
    match = _SCHEME.fullmatch(address)
    if match is None and ("@" not in address or address.startswith(_OF_FOLDERS)):
        return _AddressParts("", None, address, None)
    name, scheme, remainder = "", "", address
    if match is not None:
        name, scheme, remainder = (match["scheme"].lower(), f"{match['scheme']}:{match['slashes']}", match["remainder"])
    if name.startswith(_OF_FILES):
        place, mark, query = remainder.partition("?")
        return _AddressParts(scheme, None, place, query if mark else None)
    user, at, host = remainder.rpartition("@")
    bucket = remainder.partition("/")[0]
    if name in _OBJECTS and ":" not in bucket and ("@" not in bucket or name.startswith("abfs")):
        user, at, host = "", "", remainder
    if re.search(r"[?#]", user):  # either the @ is in the query, or the ? is in the password
        return _AddressParts(scheme, remainder, "", None)
    cut = re.split(r"[?#]", host, maxsplit=1)
    return _AddressParts(scheme, user if at else None, cut[0], cut[1] if len(cut) > 1 else None)
