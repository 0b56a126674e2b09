"""Packs on real Ray workers: all slots busy, crashes retried, the same bits as in this process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from study import cluster
from study.errors import ClusterError
from study.records import Event, Pack, PackDone, PackFailed, Progress, Result
from study.store import Store, StudyStore
from study.table import table_results
from study.work import PackWork

SLOTS = 2


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    """Start Ray once for this file."""
    with cluster.connection(None, SLOTS):
        yield


def work_in(root: Path, engine: str = "torch") -> tuple[StudyStore, PackWork]:
    folder = Store(root).study("s")
    return folder, PackWork(root, "s", folder.begin_attempt(), engine, "cpu", checkpoint_every_s=0.2)


def on_tune(packs: list[Pack], work: PackWork, on_event: Callable[[Event], None]) -> set[str]:
    return cluster.run_on_tune(
        [(pack,) for pack in packs], work, on_event, stop=threading.Event(), slots=SLOTS, gpu_share=0
    )


def bits(folder: StudyStore) -> list[Result]:
    """Give what must not depend on how packs were run."""
    return sorted(
        (replace(result, training_s=0.0) for result in table_results(folder.read_results())),
        key=lambda result: result.trial.id,
    )


def workers() -> set[int]:
    """Find the processes of Ray's workers that train packs."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"PackTrainable" in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
        except OSError:  # it has ended in the meantime
            continue
    return found


def test_slots_are_counted(tmp_path):
    """There are as many slots as cores were asked for, and asking for a GPU that isn't there is said in words."""
    assert cluster.slots(0) == SLOTS
    with pytest.raises(ClusterError, match=r"1 CPU and 0\.5 GPU"):
        cluster.slots(0.5)


def test_packs_of_a_load_share_a_worker(tmp_path, small_pack):
    """Each pack of a load is told done once, and comes out as in this process."""
    packs = [small_pack(seed, seed + 100) for seed in range(6)]
    folder, work = work_in(tmp_path / "tune")
    events: list[Event] = []
    loads = [packs[:1], packs[1:3], packs[3:]]
    cluster.run_on_tune(loads, work, events.append, stop=threading.Event(), slots=SLOTS, gpu_share=0)
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted(pack.id for pack in packs)
    here, work = work_in(tmp_path / "here")
    cluster.run_here(packs, work, events.append, stop=threading.Event())
    assert bits(here) == bits(folder)


class BreaksOne:
    """Does the work of all packs but one, which crashes each time."""

    def __init__(self, work: PackWork, bad: str) -> None:
        self._work, self._bad = work, bad

    def __call__(self, pack: Pack) -> Iterator[Event]:
        if pack.id == self._bad:
            raise RuntimeError("this one breaks")
        yield from self._work(pack)


def test_a_load_fails_for_the_pack_that_crashes_alone(tmp_path, small_pack):
    """The others of its load are done, told once though the load was tried again, and not failed."""
    packs = [small_pack(seed) for seed in range(3)]
    folder, work = work_in(tmp_path)
    events: list[Event] = []
    cluster.run_on_tune(
        [packs], BreaksOne(work, packs[1].id), events.append, stop=threading.Event(), slots=1, gpu_share=0
    )
    assert [e.pack_id for e in events if isinstance(e, PackFailed)] == [packs[1].id]
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted([packs[0].id, packs[2].id])
    assert len(folder.done()) == 2


def test_a_worker_answers():
    """A question is answered by a worker, in a process of its own."""
    assert cluster.ask(os.getpid, 0) != os.getpid()


def test_every_slot_is_used_and_every_pack_done_once(tmp_path, small_pack):
    """Packs far shorter than a worker's start use all workers, and give the bits of a run in this process."""
    packs = [small_pack(seed, seed + 100) for seed in range(16)]
    folder, work = work_in(tmp_path / "tune")
    events: list[Event] = []
    used = on_tune(packs, work, events.append)
    assert len(used) == SLOTS
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted(pack.id for pack in packs)
    assert not [e for e in events if isinstance(e, PackFailed)]

    here, work = work_in(tmp_path / "here")
    cluster.run_here(packs, work, events.append, stop=threading.Event())
    assert bits(here) == bits(folder)


def test_a_killed_worker_loses_at_most_a_checkpoint_interval(tmp_path, small_pack):
    """After kill -9 of a worker in mid-pack, the pack goes on from its checkpoint to the same bits."""
    pack = small_pack(*range(4), iterations=6000, evaluate_every=500)
    folder, work = work_in(tmp_path / "killed")
    killed: list[int] = []
    seen: list[Progress] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Progress):
            seen.append(event)
            if not killed and folder.checkpoints():
                killed.extend(workers())
                for process in killed:
                    os.kill(process, signal.SIGKILL)

    on_tune([pack], work, on_event)
    assert killed
    after = [e.iteration for e in seen]
    assert all(b > 0 for b in after)
    here, work = work_in(tmp_path / "undisturbed")
    cluster.run_here([pack], work, lambda event: None, stop=threading.Event())
    assert bits(folder) == bits(here)
    assert not folder.checkpoints()


def test_a_pack_that_always_crashes_fails_alone(tmp_path, small_pack):
    """A pack that crashes on every try is told as failed, with the reason; the others are done."""
    good, bad = small_pack(0), small_pack(1, task="no such task")
    folder, work = work_in(tmp_path)
    events: list[Event] = []
    on_tune([bad, good], work, events.append)
    (failure,) = [e for e in events if isinstance(e, PackFailed)]
    assert failure.pack_id == bad.id
    assert "no such task" in failure.error
    assert folder.done() == {good.trials[0].id}


def test_stopping_keeps_checkpoints(tmp_path, small_pack):
    """Told to stop, running packs keep a checkpoint and end; run again, they end with the undisturbed bits."""
    packs = [small_pack(seed, iterations=8000, evaluate_every=2000) for seed in range(SLOTS)]
    folder, work = work_in(tmp_path / "stopped")
    work = replace(work, checkpoint_every_s=1e9)
    stop = threading.Event()

    def on_event(event: Event) -> None:
        if isinstance(event, Progress):
            stop.set()

    cluster.run_on_tune([(pack,) for pack in packs], work, on_event, stop=stop, slots=SLOTS, gpu_share=0)
    deadline = time.monotonic() + 20
    while len(folder.checkpoints()) + len(folder.pack_ids()) < SLOTS and time.monotonic() < deadline:
        time.sleep(0.05)
    assert folder.checkpoints()
    assert not folder.done()
    on_tune(packs, work, lambda event: None)
    here, work = work_in(tmp_path / "undisturbed")
    cluster.run_here(packs, work, lambda event: None, stop=threading.Event())
    assert bits(folder) == bits(here)
