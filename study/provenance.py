"""Where results come from: code, packages, machine and time, written beside them."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("seeded-study", "torch", "numpy", "numba", "ray", "mlflow")


def provenance(device: str) -> dict[str, Any]:
    """Tell where a result made here and now comes from.

    Args:
        device: ``cpu`` or ``cuda``.

    Returns:
        Git commit and whether the tree was dirty (None outside a checkout), versions, device and UTC time.
    """
    return _source() | {
        "device": _device_name(device),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def _source() -> dict[str, Any]:
    commit = _git("rev-parse", "HEAD")
    return {
        "git_commit": commit,
        "git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no")) if commit else None,
        "packages": {name: version(name) for name in _PACKAGES},
        "python": platform.python_version(),
    }


def _git(*words: str) -> str | None:
    here = Path(__file__).resolve().parent
    if not (here.parent / ".git").exists():  # installed: a checkout around it is somebody else's
        return None
    try:
        done = subprocess.run(
            ["git", *words], cwd=here, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@cache
def _device_name(device: str) -> str:
    if device == "cuda":
        import torch

        return str(torch.cuda.get_device_name())
    return f"{platform.machine()}, {os.cpu_count()} cores"
