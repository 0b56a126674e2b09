"""User settings, from files and the environment.

The order of precedence is: the command line, the environment, ``study.toml`` in the working folder, the user's own
``study.toml``, and a command's defaults.

The working folder and its ``study.toml`` may be somebody else's: cloned, unpacked, shared. Servers receive tokens and
passwords. So a server from this file is used only if it is on this machine, or if the user's own file names it, too. A
command from this file is never run.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import click

from study.addresses import holds_secret, without_secret
from study.errors import InputError, nearest

FILE = "study.toml"
MEANINGS = {
    "cluster": "address of the Ray dashboard: http://HEAD:8265",
    "store": "folder or URL of the studies' results",
    "tracking_uri": "MLflow server, or 'off'",
    "optuna_storage": "database for Optuna's dashboard, or 'off'",
}
"""Meaning of each setting."""

NOTIFY = "notify"
"""Setting with a command to run when a study ends."""

PLACES = ("study", "ending", "finding", "report")
"""Placeholders, in braces, in the words of that command."""

ENVIRONMENT = {
    "cluster": "STUDY_CLUSTER",
    "store": "STUDY_STORE",
    "tracking_uri": "MLFLOW_TRACKING_URI",
    "optuna_storage": "OPTUNA_STORAGE",
}
"""Environment variable of each setting."""

# Servers that receive the user's token or password.
_SERVERS = ("cluster", "tracking_uri", "optuna_storage")


@dataclass(frozen=True, slots=True)
class Setting:
    """Value of a setting, and its file.

    Args:
        value: the value as written in the file.
        source: the file.
        confirmed: False for a server on another machine that only the working folder's ``study.toml`` sets.
    """

    value: str
    source: Path
    confirmed: bool = True


def user_file() -> Path:
    """Return the path of the user's own settings file."""
    return Path(click.get_app_dir("study")) / FILE


def load_settings(files: Sequence[Path] | None = None) -> dict[str, Setting]:
    """Return the settings by name, from the settings files that exist, without `NOTIFY`.

    Args:
        files: in order of precedence; by default ``study.toml`` in the working folder and the user's own.

    Raises:
        InputError: if a file can't be read or has mistakes; the message lists all of them.
    """
    settings: dict[str, Setting] = {}
    mistakes: list[str] = []
    for path in [Path(FILE), user_file()] if files is None else files:
        values, wrong = _read(path)
        mistakes += [f"  {path}: {mistake}" for mistake in wrong]
        for name, value in values.items():
            if name == NOTIFY:
                continue
            if name not in settings:
                is_remote = path == Path(FILE) and name in _SERVERS and not _is_here(value)
                settings[name] = Setting(value, path, confirmed=not is_remote)
            elif not settings[name].confirmed and settings[name].value == value:
                settings[name] = Setting(value, path)
    _check_none(mistakes)
    return settings


def notify_command() -> Sequence[str]:
    """Return the words of the command to run when a study ends, from the user's own file; empty without one.

    Raises:
        InputError: if that file can't be read or has mistakes; the message lists all of them.
    """
    values, wrong = _read(user_file())
    _check_none([f"  {user_file()}: {mistake}" for mistake in wrong])
    return tuple(values.get(NOTIFY, ()))


def folder_notifies() -> bool:
    """Return True if the working folder's ``study.toml`` has a valid `NOTIFY`; it is ignored there.

    False if that file is the user's own.
    """
    return NOTIFY in _read(Path(FILE))[0] and Path(FILE).resolve() != user_file().resolve()


def _check_none(mistakes: Sequence[str]) -> None:
    if mistakes:
        count = f"{len(mistakes)} mistake{'s' if len(mistakes) > 1 else ''}"
        raise InputError("\n".join([f"settings: {count}, nothing was started", *mistakes]))


def confirmed(name: str, setting: Setting) -> str:
    """Return a setting's value if it may be used.

    Raises:
        InputError: if it is a server on another machine that only the working folder's ``study.toml`` sets.

    Example:
        >>> confirmed("cluster", Setting("http://head:8265", Path("study.toml"), confirmed=False))
        Traceback (most recent call last):
        ...
        study.errors.InputError: cluster: http://head:8265 is another machine, and only study.toml in this
        folder names it. The file may be somebody else's, and the machine would get your token or password, so...
    """
    if not setting.confirmed:
        raise InputError(
            f"{name}: {without_secret(setting.value)} is another machine, and only {FILE} in this folder names it. The "
            "file may be somebody else's, and the machine would get your token or password, so nothing was sent. To "
            f"use it, write the same line into {user_file()}, or give it as {flag(name)} or {ENVIRONMENT[name]}"
        )
    return setting.value


def flag(name: str) -> str:
    """Return the name of a command-line option, from the name of its setting or parameter.

    Example:
        >>> flag("tracking_uri")
        '--tracking-uri'
    """
    return f"--{name.replace('_', '-')}"


def find_setting(name: str) -> str | None:
    """Return a setting's value from the environment, or else from the files; None if neither has it.

    Raises:
        InputError: if a file can't be read or has mistakes, even if the environment has a value; or if the value may
            not be used (see `confirmed`).
    """
    setting = load_settings().get(name)
    return os.environ.get(ENVIRONMENT[name]) or (None if setting is None else confirmed(name, setting))


def default_map(commands: Iterable[click.Command], settings: Mapping[str, Setting]) -> dict[str, dict[str, Any]]:
    """Return click's defaults: by command, its settings by name; for a group of commands, also the defaults of each."""
    defaults: dict[str, dict[str, Any]] = {}
    for command in commands:
        options = {param.name for param in command.params}
        below = default_map(command.commands.values(), settings) if isinstance(command, click.Group) else {}
        own = {name: setting.value for name, setting in settings.items() if name in options}
        defaults[command.name or ""] = own | below
    return defaults


def is_loopback(host: str) -> bool:
    """Return True if a host can only be this machine; the names of hosts aren't looked up.

    Example:
        >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "head")]
        [True, True, True, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parts(address: str) -> SplitResult | None:
    """Split an address; None if that fails, as with a / or ? in an unquoted password."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_here(address: str) -> bool:
    """Return True for a server that is certainly on this machine (on loopback, or a database's file), and for off."""
    parts = _parts(address)
    if address == "off" or (parts is not None and parts.scheme == "sqlite"):
        return True
    # A database's query can name another host.
    return parts is not None and not parts.query and is_loopback(parts.hostname or "")


def check_no_secret(address: str, where: str) -> None:
    """Reject an address with a password where others could read it.

    Args:
        address: a folder, a URL, or a database's address.
        where: the option or file that has the address.

    Raises:
        InputError: if it holds, or may hold, a password or a token; the message doesn't contain it.
    """
    if holds_secret(address):
        raise InputError(f"{where}: {_NO_SECRETS_ALLOWED}")


_NO_SECRETS_ALLOWED = (
    "must not hold a password or a token (a web address must have nothing before an @ or after a ? or #), since "
    "anybody could read it there; leave it out of the address, and give it in the environment "
    "(MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, AWS_SECRET_ACCESS_KEY, ...) or a file (PGPASSFILE)"
)


def _read(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return a file's valid values, and the mistakes in the others; both are empty if the file is missing."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}, []
    except OSError as error:
        return {}, [f"can't be read: {error.strerror}"]
    except ValueError as error:  # not TOML, or not even text
        return {}, [f"isn't TOML: {error}"]
    values: dict[str, Any] = {}
    mistakes: list[str] = []
    for name, value in content.items():
        mistake = _mistake(path, name, value)
        if mistake is None:
            values[name] = value
        else:
            mistakes.append(f"{name}: {mistake}")
    return values, mistakes


def _mistake(path: Path, name: str, value: Any) -> str | None:
    if name == NOTIFY:
        return _mistake_in_command(value)
    if name not in MEANINGS:
        valid = [*MEANINGS, NOTIFY]
        return f"unknown setting{nearest(name, valid) or '; choose from ' + ', '.join(valid)}"
    if not isinstance(value, str) or not value.strip():
        return f"must be text, {MEANINGS[name]}, but got {value!r}"
    if holds_secret(value):
        return _NO_SECRETS_ALLOWED
    if name == "store" and "://" not in value and path != Path(FILE) and not Path(value).is_absolute():
        return f"must be a URL or an absolute path, since it holds in every folder, but got {value!r}"
    return None


def _mistake_in_command(words: Any) -> str | None:
    example = 'such as ["notify-send", "{study}", "{finding}"]'
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        return f"must be a command as a list of words, {example}, but got {words!r}"
    for place in (name for word in words for name in re.findall(r"\{([a-z_]+)\}", word)):
        if place not in PLACES:
            return f"{{{place}}} isn't a placeholder; choose from {', '.join(f'{{{name}}}' for name in PLACES)}"
    return None
