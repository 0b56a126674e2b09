"""Settings: what a user says once instead of with each command, in a file or in the environment.

The command line is stronger than the environment, that than ``study.toml`` in the working folder, that than the user's
own ``study.toml``, that than what a command does by default.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import click

from study.errors import InputError, nearest

FILE = "study.toml"
MEANINGS = {
    "cluster": "address of the Ray dashboard: http://HEAD:8265",
    "store": "folder or URL of the studies' results",
    "tracking_uri": "MLflow server, or 'off'",
}
"""What can be set, by name."""

ENVIRONMENT = {"cluster": "STUDY_CLUSTER", "store": "STUDY_STORE", "tracking_uri": "MLFLOW_TRACKING_URI"}
"""The environment variable of each setting."""

_SECRETS = {"password", "passwd", "pwd", "secret", "token", "access_token", "secret_access_key"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One value, and the file that it is from."""

    value: str
    source: Path


def user_file() -> Path:
    """Name the user's own settings file."""
    return Path(click.get_app_dir("study")) / FILE


def load_settings(files: Sequence[Path] | None = None) -> dict[str, Setting]:
    """Load the settings files that are there.

    Args:
        files: the stronger first; by default ``study.toml`` here and the user's own.

    Raises:
        InputError: if a file can't be read, or has mistakes: all of them, in one message.
    """
    found: dict[str, Setting] = {}
    mistakes: list[str] = []
    for path in [Path(FILE), user_file()] if files is None else files:
        values, wrong = _read(path)
        mistakes += [f"  {path}: {mistake}" for mistake in wrong]
        for name, value in values.items():
            found.setdefault(name, Setting(value, path))
    if mistakes:
        count = f"{len(mistakes)} mistake{'s' if len(mistakes) > 1 else ''}"
        raise InputError("\n".join([f"settings: {count}, nothing was started", *mistakes]))
    return found


def default_map(
    commands: Iterable[click.Command], settings: Mapping[str, Setting]
) -> dict[str, dict[str, str]]:
    """Give the settings as click's defaults of commands: to each what it has an option for."""
    given: dict[str, dict[str, str]] = {}
    for command in commands:
        takes = {param.name for param in command.params}
        given[command.name or ""] = {
            name: setting.value for name, setting in settings.items() if name in takes
        }
    return given


def holds_secret(address: str) -> bool:
    """Say whether an address has a password in it, before its host or in its query.

    Example:
        >>> holds_secret("https://me:secret@host/path"), holds_secret("postgresql://host/db?password=secret")
        (True, True)
        >>> holds_secret("https://host:5000/path"), holds_secret("s3://bucket/studies"), holds_secret("/a:b@c")
        (False, False, False)
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return re.search(r"//[^/@]*:[^/@]*@", address) is not None
    before_host, at, _ = parts.netloc.rpartition("@")
    asked = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    return bool(at and ":" in before_host) or bool(asked & _SECRETS)


def without_secret(address: str) -> str:
    """Write an address without what could be a password.

    Example:
        >>> without_secret("https://me:secret@host/path?token=secret")
        'https://***@host/path?***'
        >>> without_secret("s3://bucket/studies")
        's3://bucket/studies'
    """
    shown = re.sub(r"//[^/@]*@", "//***@", address)
    return shown.partition("?")[0] + "?***" if "?" in shown and holds_secret(address) else shown


def check_no_secret(address: str, where: str) -> None:
    """Refuse an address with a password, where others could read it.

    Args:
        address: a folder, a URL, or a database's.
        where: the option or file it is from.

    Raises:
        InputError: if it has one; the message doesn't.
    """
    if holds_secret(address):
        raise InputError(f"{where}: {_SECRET_TOLD}")


_SECRET_TOLD = (
    "must not hold a password, which everybody could read there; leave it out of the address, and give it in the "
    "environment (MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, AWS_SECRET_ACCESS_KEY, ...) or a file "
    "(PGPASSFILE)"
)


def _read(path: Path) -> tuple[dict[str, str], list[str]]:
    """Give a file's right values, and what is wrong with the others."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}, []
    except OSError as error:
        return {}, [f"can't be read: {error.strerror}"]
    except ValueError as error:  # not TOML, or not even text
        return {}, [f"isn't TOML: {error}"]
    values: dict[str, str] = {}
    mistakes: list[str] = []
    for name, value in content.items():
        mistake = _mistake(path, name, value)
        if mistake is None:
            values[name] = value
        else:
            mistakes.append(f"{name}: {mistake}")
    return values, mistakes


def _mistake(path: Path, name: str, value: Any) -> str | None:
    if name not in MEANINGS:
        return f"unknown setting{nearest(name, MEANINGS) or '; there are ' + ', '.join(MEANINGS)}"
    if not isinstance(value, str) or not value.strip():
        return f"must be text, {MEANINGS[name]}, but got {value!r}"
    if holds_secret(value):
        return _SECRET_TOLD
    if name == "store" and "://" not in value and path != Path(FILE) and not Path(value).is_absolute():
        return f"must be a URL or an absolute path, since it holds in every folder, but got {value!r}"
    return None
