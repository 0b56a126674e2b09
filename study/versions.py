"""What versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version


def versions() -> dict[str, str]:
    """Name what is installed."""
    return {"seeded-study": version("seeded-study"), "python": platform.python_version()}


def difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str | None:
    """Say what differs, or None."""
    return None if ours == theirs else f"{ours} {theirs}"
