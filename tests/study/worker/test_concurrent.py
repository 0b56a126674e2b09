"""Concurrent packs in one worker: a crash affects no other pack, and an early end loses nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.records import Event, Pack, PackCrashed, PackDone, Progress
from study.store import Store, StudyStore
from study.worker.concurrent import concurrently
from study.worker.pack_work import PackWork
from tests.study.builders import bits, small_pack


def work_in(root: Path) -> tuple[StudyStore, PackWork]:
    folder = Store(root).study("s")
    return folder, PackWork(str(root), "s", folder.begin_attempt(), "fused", "cpu", checkpoint_every_s=60)


def test_concurrent_packs_have_the_results_of_single_ones(tmp_path):
    """Each pack is reported done once, and stores the same bits as alone."""
    packs = [small_pack(seed, seed + 100, model=model) for seed in range(3) for model in ("NMU", "linear")]
    folder, work = work_in(tmp_path / "together")
    events = [event for together in concurrently(work, packs) for event in together]
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted(pack.id for pack in packs)
    folder_alone, work = work_in(tmp_path / "alone")
    for pack in packs:
        assert list(concurrently(work, [pack]))[-1] == [PackDone(pack.id)]
    assert bits(folder) == bits(folder_alone)


def test_a_crash_lets_the_others_end():
    """A crash of a pack is reported with its reason, and the other packs are reported done."""
    bad, *good = [small_pack(seed) for seed in range(4)]

    def work(pack: Pack) -> Iterator[Event]:
        yield Progress(pack.id, 1, 2, 1, 0, 0)
        if pack is bad:
            raise RuntimeError("it breaks")

    for packs in ([bad, *good], [bad]):
        events = [event for together in concurrently(work, packs) for event in together]
        (crash,) = [event for event in events if isinstance(event, PackCrashed)]
        assert crash.pack_id == bad.id
        assert "it breaks" in crash.error
        done = {event.pack_id for event in events if isinstance(event, PackDone)}
        assert done == {pack.id for pack in packs if pack is not bad}


def test_a_thread_that_ends_silently_is_reported():
    """SystemExit in a worker's thread counts as a crash of its pack, though Python ignores it."""
    bad, good = small_pack(0), small_pack(1)

    def work(pack: Pack) -> Iterator[Event]:
        if pack is bad:
            raise SystemExit(3)
        yield Progress(pack.id, 1, 2, 1, 0, 0)

    events = [event for together in concurrently(work, [bad, good]) for event in together]
    assert [event.pack_id for event in events if isinstance(event, PackCrashed)] == [bad.id]
    assert [event.pack_id for event in events if isinstance(event, PackDone)] == [good.id]


def test_each_pack_keeps_a_checkpoint_on_an_early_end(tmp_path):
    """Closed in the middle, all packs stop at their next step with a checkpoint, and none is stored."""
    packs = [small_pack(seed, iterations=10**7, evaluate_every=10**6) for seed in range(3)]
    folder, work = work_in(tmp_path)
    before = threading.active_count()
    running = concurrently(work, packs)
    assert next(running)
    running.close()
    assert {pack_id for pack_id, _, _ in folder.checkpoints()} == {pack.id for pack in packs}
    assert not folder.done()
    assert threading.active_count() == before


@pytest.mark.parametrize("count", [1, 3])
def test_closing_closes_every_work(count):
    """Closing the concurrent work closes the work of every pack, with one pack or several."""
    open_, lock = set(), threading.Lock()

    def work(pack: Pack) -> Iterator[Event]:
        with lock:
            open_.add(pack.id)
        try:
            while True:
                yield Progress(pack.id, 1, 2, 1, 0, 0)
        finally:
            with lock:
                open_.discard(pack.id)

    running = concurrently(work, [small_pack(seed) for seed in range(count)])
    assert next(running)
    running.close()
    assert not open_
