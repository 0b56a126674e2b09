"""Changes of a module's values by a trial are detected, whatever else the module holds."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from study.interface.function.shared_state import changed_state, shared_state


class Raises(Mapping[str, int]):
    """A mapping with unreadable values, like a weak mapping whose keys died meanwhile."""

    def __getitem__(self, name: str) -> int:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class RaisesOnAttributes:
    """An object whose attributes all raise."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.fixture
def module(monkeypatch):
    """Return an imported user's module with a list."""
    module = types.ModuleType("lab")
    module.COUNTS = [1]
    monkeypatch.setitem(sys.modules, "lab", module)
    return module


@pytest.mark.parametrize("make", [Raises, lambda: [{"nested": Raises()}], RaisesOnAttributes])
def test_values_that_cannot_be_read_are_left_out(module, make):
    """Unreadable objects don't fail a trial, and changes of other values are still detected."""
    module.WEAK = make()
    before = shared_state({"lab"})
    assert set(before) == {"lab.COUNTS"}
    module.COUNTS.append(2)
    assert changed_state(before, shared_state({"lab"})) == ("lab.COUNTS (list)",)
