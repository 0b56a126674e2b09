"""What a worker does with a pack when its device can't take it."""

from __future__ import annotations

from typing import Any

import pytest

from study import prepare
from study.engine import ENGINES
from study.engine.base import Engine
from study.errors import DeviceMemoryError
from study.records import Cell, Notice
from study.store import Store
from study.table import table_results
from study.work import PackWork


class Full(Engine):
    """An engine for a GPU that has no room for anything."""

    name = "full"
    devices = ("cuda",)

    def prepare(self, cell: Cell) -> None:
        """Compile nothing."""

    def refuses(self, cell: Cell) -> str | None:
        return None

    def memory_mb(self, pack: Any) -> float:
        return 1.0

    def start(self, pack: Any, *, device: str, checkpoint: Any = None) -> Any:
        assert device == "cuda"
        raise DeviceMemoryError("device: the GPU has no room for a pack of 2 trials")


@pytest.mark.parametrize("engine", ["auto", "full"])
def test_a_pack_that_finds_no_room_trains_on_the_cpu(engine, tmp_path, small_pack, monkeypatch):
    """Out of memory, a pack says so and goes to the CPU's engine; its results say where they come from."""
    monkeypatch.setitem(ENGINES, "fused-gpu" if engine == "auto" else engine, Full())
    monkeypatch.setattr(prepare, "_prepared", set())
    folder = Store(tmp_path).study("s")
    work = PackWork(tmp_path, "s", folder.begin_attempt(), engine, "cuda")
    told = list(work(small_pack(0, 1)))
    notices = [event.text for event in told if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "no room" in notices[0]
    assert "on the CPU instead" in notices[0]
    results = table_results(folder.read_results())
    assert [(r.engine, r.device) for r in results] == [("fused", "cpu")] * 2
