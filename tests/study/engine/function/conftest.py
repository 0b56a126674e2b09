"""Fixtures for tests of training functions: a user's module, which trial processes import by its name."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def mytrials(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the user's module from its folder, which is on the path during a test."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return importlib.import_module("mytrials")


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Return a function that raises SIGINT; shells ignore SIGINT in background processes, so its handler is set."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
