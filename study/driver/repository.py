"""The git repository of a study's file and code, for the provenance of its results."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from study.addresses import page_of
from study.interface.json_text import parse_json
from study.spec import Spec

REPOSITORY: Final = "STUDY_REPOSITORY"
"""Environment variable with a job's repository, which is on the machine that submitted the job."""

_NAMES = ("user_git_commit", "user_git_dirty", "user_git_remote")
_TIMEOUT_S = 10


def repository_of(spec: Spec) -> dict[str, Any]:
    """Return commit, state and remote of the repository of a study's file, as fields of a provenance.

    The values are those of `read_repository`: all None without a repository, a commit or git, or if git refuses to read
    it. A preset has no fields, nor has a study read from a store. A job has those that the submitting machine has
    written into `REPOSITORY`.

    Args:
        spec: the study, as read from the user's file.
    """
    submitted = _submitted(os.environ.get(REPOSITORY))
    if submitted is not None:
        return submitted
    folder, file, code = spec.source_folder, spec.source_file, spec.source_code
    if folder is None:
        return {}
    names = [*([] if file is None else [file.name]), *([] if code is None else code.files)]
    return read_repository(folder, [name for name in names if (folder / name).is_file()])


def read_repository(folder: Path, files: Sequence[str] = ()) -> dict[str, Any]:
    """Return commit, state and remote of a folder's repository, as fields of a provenance.

    Args:
        folder: the folder.
        files: names of files in the folder. The repository is dirty if it doesn't track one of them; other untracked
            files don't count.

    Returns:
        ``user_git_commit``, ``user_git_dirty`` and ``user_git_remote``, the address of ``origin`` without a password.
        None for each that isn't known; all are None without a commit.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return dict.fromkeys(_NAMES)
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    if changes == "" and files and _git(folder, "ls-files", "--error-unmatch", "--", *files) is None:
        changes = "untracked"
    remote = _git(folder, "config", "--get", "remote.origin.url")
    values = (commit, None if changes is None else bool(changes), None if remote is None else _without_user(remote))
    return dict(zip(_NAMES, values, strict=True))


def _git(folder: Path, *words: str) -> str | None:
    # A repository's own settings could make git start a program that watches its files.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _without_user(remote: str) -> str:
    """Return a remote's address without user and password; SSH's short form may keep a user's name."""
    user, _, host = remote.rpartition("@")
    return page_of(remote) if "://" in remote else host if ":" in user else remote


def _submitted(text: str | None) -> dict[str, Any] | None:
    try:
        values: Mapping[str, Any] = parse_json(text or "")
        return {name: values[name] for name in _NAMES if name in values}
    except (ValueError, TypeError):
        return None
