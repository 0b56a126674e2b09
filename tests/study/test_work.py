"""What a worker does with a pack when its device can't take it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from study import prepare, provenance
from study.engine import ENGINES
from study.engine.base import Engine, Training
from study.engine.fused_engine import FusedEngine
from study.errors import DeviceMemoryError
from study.records import Cell, Checkpoint, Notice, Pack, PackDone, PackSplit
from study.store import Store
from study.table import table_results, table_weights
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


class Small(FusedEngine):
    """Takes the place of an engine for a GPU that has room for 10 trials at a time."""

    name = "small"
    devices = ("cuda",)

    def prepare(self, cell: Cell) -> None:
        """Compile nothing."""

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        if len(pack.trials) > 10:
            raise DeviceMemoryError(f"device: the GPU has no room for a pack of {len(pack.trials)} trials")
        return super().start(pack, device="cpu", checkpoint=checkpoint)


def test_a_pack_that_is_too_large_trains_in_halves(tmp_path, small_pack, monkeypatch):
    """Halved until it fits: each part is told done before the whole, and every trial has the bits it has alone."""
    monkeypatch.setitem(ENGINES, "small", Small())
    monkeypatch.setattr(provenance, "_device_name", str)
    pack = small_pack(*range(33))
    folder = Store(tmp_path / "halved").study("s")
    events = list(PackWork(tmp_path / "halved", "s", folder.begin_attempt(), "small", "cuda")(pack))
    splits = {event.pack_id: event.parts for event in events if isinstance(event, PackSplit)}
    assert [trial for part in splits[pack.id] for trial in part.trials] == list(pack.trials)
    parts = {part.id: len(part.trials) for parts in splits.values() for part in parts}
    assert sorted(count for pack_id, count in parts.items() if pack_id not in splits) == [8, 8, 8, 9]
    done = [event.pack_id for event in events if isinstance(event, PackDone)]
    assert sorted(done) == sorted(parts)
    whole = Store(tmp_path / "whole").study("s")
    list(PackWork(tmp_path / "whole", "s", whole.begin_attempt(), "fused", "cpu")(pack))
    ours, theirs = (
        [replace(r, training_s=0.0, engine="", device="") for r in table_results(one.read_results())]
        for one in (folder, whole)
    )
    assert ours == theirs


def test_a_pack_is_stored_with_its_weights(tmp_path, small_pack):
    """The worker stores the very weights that the engine gives."""
    folder, pack = Store(tmp_path).study("s"), small_pack(0, 1)
    for _ in PackWork(tmp_path, "s", folder.begin_attempt(), "torch", "cpu")(pack):
        pass
    training = ENGINES["torch"].start(pack, device="cpu")
    training.advance(1e9)
    expected = {weights.trial_id: weights for weights in training.finish()[2]}
    found = table_weights(folder.read_weights())
    assert {weights.trial_id for weights in found} == set(expected) == {trial.id for trial in pack.trials}
    for weights in found:
        assert weights.iteration == 41
        for name, array in expected[weights.trial_id].arrays.items():
            assert weights.arrays[name].tobytes() == array.tobytes()
