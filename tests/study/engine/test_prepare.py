"""Engines prepared in a process of their own."""

from __future__ import annotations

import time
from pathlib import Path

from study.engine import ENGINES
from study.engine.prepare import preparing


def test_what_is_compiled_is_on_disk(tmp_path, monkeypatch, small_pack):
    """Once an engine is prepared, every worker finds it compiled; ended early, no process is left."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    engines = [(ENGINES["fused"], small_pack(0).trials[0].cell)]
    with preparing(engines) as prepared:
        assert not prepared()
    assert prepared()
    assert not list(Path(tmp_path).rglob("*train*.nbc"))
    with preparing(engines) as prepared:
        while not prepared():
            time.sleep(0.05)
    assert list(Path(tmp_path).rglob("*train*.nbc"))
