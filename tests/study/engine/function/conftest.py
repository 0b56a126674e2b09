"""Fixtures for tests of training functions, among them a user's module that trial processes import."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def mytrials(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the user's module; its folder is on the path during a test."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return importlib.import_module("mytrials")


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Return a function that raises SIGINT. Python's handler is set, since background processes ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
