"""What the tests of training functions share: a user's module, which processes of trials find by its name."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def mytrials(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the user's module from its folder, which is on the path while a test runs."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return importlib.import_module("mytrials")
