"""The engines of the arithmetic family by name, and substitutes for them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from study.engine import Engine, engine_named
from tasks.arithmetic.family import ArithmeticFamily
from tasks.arithmetic.own_family import ARITHMETIC

ENGINES: Mapping[str, Engine] = {name: engine_named(name) for name in ARITHMETIC.engines}


def use_engines(monkeypatch: pytest.MonkeyPatch, engines: Mapping[str, Engine]) -> None:
    """Restrict arithmetic cells to some engines, the preferred first."""
    monkeypatch.setattr(ArithmeticFamily, "engines", tuple(engines))
    monkeypatch.setattr("study.engine.registry.engine_named", engines.__getitem__)
