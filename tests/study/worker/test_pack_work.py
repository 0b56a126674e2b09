"""A worker's handling of packs, also if the device or the store is full."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from study import environment
from study.arrow import table_results, table_weights
from study.engine.base import Engine, Training
from study.errors import BusyError, DeviceMemoryError, StoreAwayError
from study.records import (
    Cell,
    Checkpoint,
    Event,
    Notice,
    Outcome,
    Pack,
    PackDone,
    PackSplit,
    Preparing,
    Progress,
    Result,
    Tick,
)
from study.store import Store, retry
from study.worker import prepare
from study.worker.pack_work import PackWork
from tasks.arithmetic.engine.cpu.engine import FusedEngine
from tests.engines import ENGINES, use_engines
from tests.study.builders import small_pack


class Full(Engine):
    """A GPU engine without memory for any trial."""

    name = "full"
    devices = ("cuda",)

    def refuses(self, cell: Cell) -> None:
        """Accept any cell."""

    def prepare(self, cell: Cell) -> None:
        """Compile nothing."""

    def memory_mb(self, pack: Any) -> float:
        return 1.0

    def start(self, pack: Any, *, device: str, checkpoint: Any = None) -> Any:
        assert device == "cuda"
        raise DeviceMemoryError("device: the GPU has no room for a pack of 2 trials")


@pytest.mark.parametrize("engine", ["auto", "full"])
def test_a_pack_that_finds_no_room_trains_on_the_cpu(engine, tmp_path, monkeypatch):
    """A pack that doesn't fit into the GPU trains on the CPU, with a notice; its results name the CPU's engine."""
    use_engines(monkeypatch, {**ENGINES, "fused-gpu" if engine == "auto" else engine: Full()})
    monkeypatch.setattr(prepare, "_prepared", set())
    folder = Store(tmp_path).study("s")
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), engine, "cuda")
    events = list(work(small_pack(0, 1)))
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "no room" in notices[0]
    assert "on the CPU instead" in notices[0]
    results = table_results(folder.read_results())
    assert [(r.engine, r.device) for r in results] == [("fused", "cpu")] * 2


class Small(FusedEngine):
    """A GPU engine with memory for 10 trials at a time."""

    name = "small"
    devices = ("cuda",)

    def prepare(self, cell: Cell) -> None:
        """Compile nothing."""

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        if len(pack.trials) > 10:
            raise DeviceMemoryError(f"device: the GPU has no room for a pack of {len(pack.trials)} trials")
        return super().start(pack, device="cpu", checkpoint=checkpoint)


def test_a_pack_that_is_too_large_trains_in_halves(tmp_path, monkeypatch):
    """A too large pack is halved until it fits; parts are reported before the whole, with the bits of trials alone."""
    use_engines(monkeypatch, {**ENGINES, "small": Small()})
    monkeypatch.setattr(environment, "_device_name", str)
    pack = small_pack(*range(33))
    folder = Store(tmp_path / "halved").study("s")
    events = list(PackWork(tmp_path / "halved", "s", folder.begin_attempt(), "small", "cuda")(pack))
    splits = {event.pack_id: event.parts for event in events if isinstance(event, PackSplit)}
    assert [trial for part in splits[pack.id] for trial in part.trials] == list(pack.trials)
    parts = {part.id: len(part.trials) for parts in splits.values() for part in parts}
    assert sorted(count for pack_id, count in parts.items() if pack_id not in splits) == [8, 8, 8, 9]
    done = [event.pack_id for event in events if isinstance(event, PackDone)]
    assert sorted(done) == sorted(parts)
    whole_study = Store(tmp_path / "whole").study("s")
    list(PackWork(tmp_path / "whole", "s", whole_study.begin_attempt(), "fused", "cpu")(pack))
    ours, theirs = (
        [replace(r, training_s=0.0, engine="", device="") for r in table_results(study.read_results())]
        for study in (folder, whole_study)
    )
    assert ours == theirs


def test_a_pack_is_stored_with_its_weights(tmp_path):
    """The worker stores the engine's weights unchanged."""
    folder, pack = Store(tmp_path).study("s"), small_pack(0, 1)
    for _ in PackWork(str(tmp_path), "s", folder.begin_attempt(), "torch", "cpu")(pack):
        pass
    training = ENGINES["torch"].start(pack, device="cpu")
    training.advance(1e9)
    expected = {weights.trial_id: weights for weights in training.finish()[2]}
    weights_read = table_weights(folder.read_weights())
    assert {weights.trial_id for weights in weights_read} == set(expected) == {trial.id for trial in pack.trials}
    for weights in weights_read:
        assert weights.iteration == 41
        for name, array in expected[weights.trial_id].arrays.items():
            assert weights.arrays[name].tobytes() == array.tobytes()


class Disk:
    """A disk whose writes fail while `full` is set."""

    full = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fsync = os.fsync

        def on_disk(number: int) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(number)

        monkeypatch.setattr(os, "fsync", on_disk)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Return a disk that is full on demand, with fast retries."""
    monkeypatch.setattr(retry, "_FIRST_PAUSE_S", 0.01)
    return Disk(monkeypatch)


def notices(events: Iterator[Event]) -> Iterator[str]:
    return (event.text for event in events if isinstance(event, Notice))


def test_results_wait_for_a_full_disk(disk, tmp_path):
    """A pack trained while the disk is full is stored once there is room, with two notices; no trial fails."""
    folder, pack = Store(tmp_path).study("s"), small_pack(0, 1)
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), "torch", "cpu", patience_s=60)
    disk.full = True
    messages = notices(work(pack))
    assert "the disk is full: free some space" in next(messages)
    assert not folder.done()
    disk.full = False
    assert "the store is back" in next(messages)
    assert list(messages) == []
    assert folder.done() == {trial.id for trial in pack.trials}


def test_training_goes_on_without_checkpoints(disk, tmp_path):
    """A failed checkpoint is reported and skipped; a later checkpoint is stored."""
    folder, pack = Store(tmp_path).study("s"), small_pack(0, iterations=100_000, evaluate_every=1000)
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), "torch", "cpu", checkpoint_every_s=0.0)
    disk.full = True
    steps = work(pack)
    assert "no checkpoint was kept, and training goes on" in next(notices(steps))
    assert not folder.checkpoints()
    disk.full = False
    assert "the store is back" in next(notices(steps))
    assert folder.checkpoints()
    steps.close()


def test_an_outage_is_reported_once(disk, tmp_path, monkeypatch):
    """Only the beginning and end of an outage are reported, however many checkpoints fail."""
    monkeypatch.setattr("study.worker.pack_work._SLICE_S", 0.01)
    folder, pack = Store(tmp_path).study("s"), small_pack(0, iterations=10_000, evaluate_every=1000)
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), "torch", "cpu", checkpoint_every_s=0.0)
    messages: list[str] = []
    steps = disk_full_for = 5
    for event in work(pack):
        if isinstance(event, Notice):
            messages.append(event.text)
        steps -= isinstance(event, Progress)
        disk.full = 0 < steps < disk_full_for
    assert [text.partition(":")[0] for text in messages] == [
        "no checkpoint was kept, and training goes on",
        "the store is back",
    ]
    assert folder.done()


def test_results_stored_by_another_worker_stay(tmp_path):
    """A worker whose pack another worker has stored ends, keeps the stored results, and leaves no checkpoint."""
    folder, pack = Store(tmp_path).study("s"), small_pack(0, iterations=100_000, evaluate_every=1000)
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), "torch", "cpu", checkpoint_every_s=0.0)
    steps = work(pack)
    while not folder.checkpoints():
        next(steps)
    quicker = [Result(trial=trial, outcome=Outcome.UNSOLVED, iterations=7) for trial in pack.trials]
    folder.write_pack(pack.id, quicker, [], [], {"created_at": "never"})
    list(steps)
    assert [result.iterations for result in table_results(folder.read_results())] == [7]
    assert not folder.checkpoints()


def test_progress_has_the_skipped_updates(tmp_path):
    """A worker that resumes from a checkpoint reports the skipped updates; the first one begins at 0."""
    pack, folder = small_pack(0, iterations=40, evaluate_every=10), Store(tmp_path).study("s")
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), "torch", "cpu", checkpoint_every_s=0.0)
    training = ENGINES["torch"].start(pack, device="cpu")
    training.advance(0.0)
    folder.save_checkpoint(training.checkpoint())
    resumed = next(step for step in work(pack) if isinstance(step, Progress))
    assert resumed.begun_at == training.checkpoint().iteration > 0
    assert next(step for step in work(small_pack(1)) if isinstance(step, Progress)).begun_at == 0


def test_halves_that_are_stored_are_not_trained_again(tmp_path, monkeypatch):
    """If a worker died after one half of a pack, only the other half is trained, on any device."""
    monkeypatch.setattr(environment, "_device_name", str)
    folder, pack = Store(tmp_path).study("s"), small_pack(*range(16))
    half = Pack(pack.trials[:8])
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), "fused", "cpu")
    list(work(half))
    events = list(work(pack))
    (split,) = [event for event in events if isinstance(event, PackSplit)]
    assert split.parts[0] == half
    assert folder.pack_ids() == {part.id for part in split.parts}
    assert folder.done() == {trial.id for trial in pack.trials}


def test_a_torn_checkpoint_is_reported(tmp_path):
    """A pack with an unreadable checkpoint starts from the beginning, with a notice."""
    folder, pack = Store(tmp_path).study("s"), small_pack(0)
    attempt = folder.begin_attempt()
    (tmp_path / "s" / "checkpoints").mkdir()
    (tmp_path / "s" / "checkpoints" / f"{pack.id}.npz").write_bytes(b"PK torn")
    (message,) = notices(PackWork(str(tmp_path), "s", attempt, "torch", "cpu")(pack))
    assert "was set aside" in message


def test_a_stopped_pack_that_waits_tries_once_more(disk, tmp_path):
    """A stopped worker with unstored results tries once more to store them, and otherwise reports the reason."""
    for has_room in (True, False):
        folder, pack = Store(tmp_path).study(f"s-{has_room}"), small_pack(0)
        work = PackWork(str(tmp_path), folder.name, folder.begin_attempt(), "torch", "cpu")
        disk.full = True
        steps = work(pack)
        assert "Trying again" in next(notices(steps))
        assert isinstance(next(steps), Tick)
        disk.full = not has_room
        if has_room:
            steps.close()
        else:
            with pytest.raises(StoreAwayError, match="disk is full"):
                steps.close()
        disk.full = False
        assert bool(folder.done()) == has_room


def test_a_store_that_is_not_mounted_is_not_written_to(tmp_path):
    """If the study's folder is missing, it isn't created; after the timeout the pack ends with that error."""
    folder = Store(tmp_path / "store").study("s")
    work = PackWork(str(tmp_path / "store"), "s", folder.begin_attempt(), "torch", "cpu", patience_s=0)
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(StoreAwayError, match=r"is not in the store at .* just now"):
        list(work(small_pack(0)))
    assert not (tmp_path / "store").exists()


def test_a_worker_of_an_earlier_driver_stops_at_once(tmp_path):
    """A worker of a driver that was replaced by another driver ends without waiting."""
    folder = Store(tmp_path).study("s")
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), "torch", "cpu")
    folder.begin_attempt()
    with pytest.raises(BusyError, match="taken over by another run"):
        list(work(small_pack(0)))
    assert not folder.done()


def test_compilation_is_reported_before_a_pack_trains(tmp_path, monkeypatch):
    """A worker that compiles reports start and end with the waiting pack's name; later it reports nothing."""
    monkeypatch.setattr(prepare, "_prepared", set())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(type(ENGINES["torch"]), "is_compiled", lambda self, cell: False)
    folder = Store(tmp_path).study("s")
    work = PackWork(str(tmp_path), "s", folder.begin_attempt(), "torch", "cpu")
    for pack, expected in ((small_pack(0), ["compiling", "ready"]), (small_pack(1), [])):
        events = [event for event in work(pack) if isinstance(event, Preparing)]
        assert [(event.doing, event.engine, event.pack_id) for event in events] == [
            (doing, "torch", pack.id) for doing in expected
        ]
