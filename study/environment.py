"""Provenance of results, and versions that must be equal among machines."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_NO_REPOSITORY: Mapping[str, Any] = {}
_EARLIER_NAMES = {"git_commit": "service_git_commit", "git_dirty": "service_git_dirty"}
_PACKAGES_OF_PROVENANCE = ("seeded-study", "torch", "numpy", "numba", "ray", "mlflow")


def provenance(device: str, repository: Mapping[str, Any] = _NO_REPOSITORY) -> dict[str, Any]:
    """Return the provenance of a result made here and now.

    Args:
        device: ``cpu``, or ``cuda`` if this process can use a GPU.
        repository: fields of the user's repository, ``user_git_commit`` and others; see `study.driver.repository`.

    Returns:
        This package's git commit and whether its tree was dirty, as at this process's first call (None outside a
        checkout or without git), the fields of `repository`, versions of Python and packages, device and UTC time.
    """
    here = {"device": _device_name(device), "created_at": datetime.now(UTC).isoformat(timespec="seconds")}
    return _source() | dict(repository) | here


def labelled(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored provenance with the current names of its fields, also in its list `original`, if it has one.

    Earlier versions called this package's commit `git_commit`. Entries of `original` that aren't mappings are left out.

    Example:
        >>> labelled({"git_commit": "abc", "git_dirty": False, "python": "3.11.7"})
        {'service_git_commit': 'abc', 'service_git_dirty': False, 'python': '3.11.7'}
    """
    named = {_EARLIER_NAMES.get(name, name): value for name, value in stored.items()}
    originals = named.get("original")  # of results that were adopted from another study
    if isinstance(originals, list):
        named["original"] = [labelled(original) for original in originals if isinstance(original, Mapping)]
    return named


@cache
def _source() -> dict[str, Any]:
    commit = _git("rev-parse", "HEAD")
    return {
        "service_git_commit": commit,
        "service_git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no")) if commit else None,
        "packages": {name: version(name) for name in _PACKAGES_OF_PROVENANCE if _release(name) != _MISSING},
        "python": platform.python_version(),
    }


def _git(*words: str) -> str | None:
    here = Path(__file__).resolve().parent
    if not (here.parent / ".git").exists():  # installed: a repository around it belongs to another project
        return None
    try:
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@cache
def _device_name(device: str) -> str:
    if device == "cuda":
        import torch

        return str(torch.cuda.get_device_name())
    return f"{platform.machine()}, {os.cpu_count()} cores"


_PACKAGES_TO_MATCH = ("ray", "torch", "numpy", "numba", "llvmlite")
_CODE = ("study", "units", "tasks")
_SUFFIXES = {".py", ".j2", ".css", ".js"}


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, this package, and the packages that results and the cluster depend on most.

    ``study`` is this package's version. ``code`` is a digest of its code and templates; it distinguishes checkouts of
    one version. Build labels (``+cpu``) are omitted, since nodes with and without GPUs work together. A package that
    isn't installed has the version ``missing``.

    Example:
        >>> sorted(versions())
        ['code', 'llvmlite', 'numba', 'numpy', 'python', 'ray', 'study', 'torch']
    """
    packages = {"study": _release("seeded-study"), "code": _digest(), "python": platform.python_version()}
    return packages | {name: _release(name) for name in _PACKAGES_TO_MATCH}


def difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str | None:
    """Describe the differences between two machines' versions; None if they are equal.

    Args:
        ours: the result of `versions` here.
        theirs: the result of `versions` there.

    Example:
        >>> difference({"ray": "2.60.0", "numba": "0.68.0"}, {"ray": "2.61.1", "numba": "0.68.0"})
        'ray 2.60.0 here, 2.61.1 there'
        >>> difference({"ray": "2.60.0"}, {"ray": "2.60.0"}) is None
        True
    """
    names = [*ours, *(name for name in theirs if name not in ours)]
    differences = [
        f"{name} {ours.get(name, 'missing')} here, {theirs.get(name, 'missing')} there"
        for name in names
        if ours.get(name, "missing") != theirs.get(name, "missing")
    ]
    return "; ".join(differences) or None


_MISSING = "missing"


def _release(package: str) -> str:
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return _MISSING


def _digest() -> str:
    """Return a digest (16 hexadecimal digits) of the code, templates, styles and scripts of this package."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for folder in _CODE:
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in _SUFFIXES):
            name = path.relative_to(root).as_posix()
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()[:16]
