"""Settings for the examples in the documents: each runs in a folder of its own, and leaves no registry entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.arithmetic import MODELS, TASKS
from units import UNITS
from units.traits import TRAITS


@pytest.fixture(autouse=True)
def restored_registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run an example in a folder of its own, and restore the registries after it."""
    monkeypatch.chdir(tmp_path)
    registries: tuple[dict[str, Any], ...] = (UNITS, TRAITS, MODELS, TASKS)
    before = [dict(registry) for registry in registries]
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)
