"""A cluster's address and token."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from study.addresses import without_secret
from study.errors import InputError
from study.settings import check_no_secret, is_loopback

_EXAMPLE = "http://HEAD:8265"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of Ray's dashboard.

    Args:
        url: the dashboard's URL, without a slash at its end.
        host: the URL's host alone.
        encrypted: whether the URL is https.
    """

    url: str
    host: str
    encrypted: bool

    @property
    def is_loopback(self) -> bool:
        """True if the address can only mean this machine.

        Example:
            >>> [parse_address(f"http://{host}:8265").is_loopback for host in ("127.0.0.1", "[::1]", "head")]
            [True, True, False]
        """
        return is_loopback(self.host)


def parse_address(text: str) -> Address:
    """Parse the address of a cluster's dashboard.

    Raises:
        InputError: if it isn't such an address, or holds, or may hold, a password.

    Example:
        >>> parse_address("http://head:8265/").url
        'http://head:8265'
        >>> parse_address("head:6379")
        Traceback (most recent call last):
        ...
        study.errors.InputError: --cluster must be the address of Ray's dashboard, such as http://HEAD:8265, but got
        'head:6379'
    """
    check_no_secret(text, "--cluster")
    try:
        parts = urlsplit(text.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise InputError(
            f"--cluster must be the address of Ray's dashboard, such as {_EXAMPLE}, but got {without_secret(text)!r}"
        )
    return Address(text.strip().rstrip("/"), host, parts.scheme == "https")


def token(environment: Mapping[str, str] = os.environ) -> str | None:
    """Read the token from where Ray reads it: RAY_AUTH_TOKEN, else RAY_AUTH_TOKEN_PATH, else ~/.ray/auth_token.

    Args:
        environment: the process's environment variables.

    Returns:
        The token; None if RAY_AUTH_MODE is ``disabled``, if the file is empty, or if ~/.ray/auth_token is missing or
        can't be read.

    Raises:
        InputError: if the file that RAY_AUTH_TOKEN_PATH names can't be read.

    Example:
        >>> token({"RAY_AUTH_TOKEN": "0123"}), token({"RAY_AUTH_TOKEN": "0123", "RAY_AUTH_MODE": "disabled"})
        ('0123', None)
    """
    if environment.get("RAY_AUTH_MODE", "").lower() == "disabled":
        return None
    if environment.get("RAY_AUTH_TOKEN", "").strip():
        return environment["RAY_AUTH_TOKEN"].strip()
    setting = environment.get("RAY_AUTH_TOKEN_PATH")
    path = Path(setting) if setting else Path.home() / ".ray" / "auth_token"
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError) as error:
        if not setting:
            return None
        raise InputError(f"the token's file {path} (RAY_AUTH_TOKEN_PATH) can't be read: {error}") from error
