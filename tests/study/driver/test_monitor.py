"""What the driver does with what it hears: counts, stores failures, publishes, and waits for no store."""

from __future__ import annotations

import io
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from study.console import Console
from study.driver.monitor import Monitor
from study.errors import StoreAwayError, StudyGoneError
from study.plan.plan import Plan, make_plan
from study.records import Notice, Outcome, Pack, PackCrashed, PackDone, PackFailed, PackSplit, Preparing, Result
from study.spec import parse_spec
from study.store import Store, StudyStore, retry

SPEC = "{study: s, question: q, task: {name: simple}, models: [NMU], seeds: 20, fixed: {hidden_size: 2}}"


class Watched:
    """A study of 20 trials in one pack, and what a person reads of it."""

    def __init__(self, root: Path) -> None:
        self.folder: StudyStore = Store(root).study("s")
        self.plan: Plan = make_plan(parse_spec(SPEC, source="test"))
        self.pack = Pack(self.plan.trials)
        self.stop = threading.Event()
        self._out = io.StringIO()

    def begin(self) -> None:
        """Begin an attempt, and have the study as its driver has it."""
        self.folder = self.folder.of_attempt(self.folder.begin_attempt())

    @contextmanager
    def monitored(self, patience_s: float = 600.0) -> Iterator[Monitor]:
        monitor = Monitor(self.folder, None, Console(file=self._out, width=1000), self.stop, patience_s)
        monitor.begin(self.plan, [self.pack], self.plan.trials)
        with monitor.showing():
            yield monitor

    def store(self, pack: Pack) -> None:
        results = [Result(trial=trial, outcome=Outcome.UNSOLVED, iterations=1) for trial in pack.trials]
        self.folder.write_pack(pack.id, results, [], [], {"created_at": "never"})

    @property
    def told(self) -> list[str]:
        return self._out.getvalue().splitlines()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """Give a study that nothing was done of."""
    return Watched(tmp_path)


def halves(pack: Pack) -> tuple[Pack, Pack]:
    middle = len(pack.trials) // 2
    return Pack(pack.trials[:middle]), Pack(pack.trials[middle:])


def test_a_split_pack_is_counted_by_its_parts(watched):
    """Parts of parts too; the whole, told done after them, isn't counted again, nor read."""
    first, second = halves(watched.pack)
    quarters = halves(first)
    with watched.monitored() as watch:
        watch(PackSplit(watched.pack.id, (first, second)))
        watch(PackSplit(first.id, quarters))
        for part in (*quarters, second):
            watched.store(part)
        for pack in (*quarters, first, second, watched.pack):
            watch(PackDone(pack.id))
    assert "20/20 trials" in watched.told[-1]
    assert "20 unsolved" in watched.told[-1]


def test_compiling_is_told_once_a_machine(watched):
    """That an engine is being compiled, and when that is over, is told once of each machine, whoever waits there."""
    with watched.monitored() as watch:
        for machine in ("node-1", "node-2"):
            watch(Preparing("fused", machine, "compiling", watched.pack.id))
            for doing in ("waiting", "ready", "ready"):
                watch(Preparing("fused", machine, doing, "another"))
    told = [line for line in watched.told if "node-" in line]
    assert [line.split(":")[0] for line in told] == [
        "compiling the fused engine, once on node-1",
        "the fused engine is compiled on node-1",
        "compiling the fused engine, once on node-2",
        "the fused engine is compiled on node-2",
    ]


def test_a_rough_error_is_told_as_it_is(watched):
    """Brackets and escape sequences of an error, or an error without words, end nothing: the pack is tried again."""
    with watched.monitored() as watch:
        watch(PackCrashed(watched.pack.id, "RuntimeError: [/pytorch/aten] \x1b[2J"))
        watch(PackCrashed(watched.pack.id, "\n"))
        watch(PackFailed(watched.pack.id, "RuntimeError: [/pytorch/aten] \x1b[2J"))
    told = "\n".join(watched.told)
    assert r"will be retried: RuntimeError: [/pytorch/aten] \x1b[2J" in told
    assert "will be retried: it gave no reason" in told
    assert r"failed: RuntimeError: [/pytorch/aten] \x1b[2J" in told


def test_a_pack_that_was_split_and_then_trained_whole_is_counted(watched):
    """A worker dies after it has split a pack; another has room for it."""
    with watched.monitored() as watch:
        watch(PackSplit(watched.pack.id, halves(watched.pack)))
        watched.store(watched.pack)
        watch(PackDone(watched.pack.id))
    assert "20/20 trials" in watched.told[-1]


def test_of_a_split_pack_only_what_is_not_done_fails(watched):
    """The half that is done stays so."""
    first, second = halves(watched.pack)
    with watched.monitored() as watch:
        watch(PackSplit(watched.pack.id, (first, second)))
        watched.store(first)
        watch(PackDone(first.id))
        watch(PackFailed(watched.pack.id, "no room"))
    assert "20/20 trials · 0 solved · 10 unsolved · 0 diverged · 10 failed" in watched.told[-1]
    outcomes = watched.folder.read_results()["outcome"].to_pylist()
    assert outcomes.count("failed") == outcomes.count("unsolved") == 10


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Give a flag that, set, keeps the store away from who reads a pack; it is tried again at once."""
    flag, read = threading.Event(), StudyStore.read_pack

    def read_pack(folder: StudyStore, pack_id: str, *, with_curves: bool = True) -> object:
        if flag.is_set():
            raise StoreAwayError("the store is on holiday")
        return read(folder, pack_id, with_curves=with_curves)

    monkeypatch.setattr(StudyStore, "read_pack", read_pack)
    monkeypatch.setattr(retry, "_FIRST_PAUSE_S", 0.0)
    return flag


def _told_of(lines: Sequence[str], words: str) -> int:
    return sum(words in line for line in lines)


def test_the_driver_waits_for_no_store(watched, away):
    """What is done while the store is away is counted when it is back, and both are told once."""
    first, second = halves(watched.pack)
    with watched.monitored() as watch:
        watch(PackSplit(watched.pack.id, (first, second)))
        watched.store(first)
        watched.store(second)
        away.set()
        watch(PackDone(first.id))
        watch(PackDone(second.id))
        watch(PackDone(watched.pack.id))
        assert _told_of(watched.told, "on holiday. Trying again") == 1
        away.clear()
    assert "20/20 trials" in watched.told[-1]
    assert _told_of(watched.told, "the store is back") == 1
    assert _told_of(watched.told, "on holiday") == 1


def test_a_stopped_driver_does_not_wait_for_its_store(watched, away):
    """Asked to stop, it leaves to the next run what it can't read."""
    with watched.monitored() as watch:
        watched.store(watched.pack)
        away.set()
        watch(PackDone(watched.pack.id))
        watched.stop.set()
    assert "0/20 trials" in watched.told[-1]


def test_patience_ends(watched, away, monkeypatch):
    """A store that stays away ends the run with its own words."""
    monkeypatch.setattr("study.driver.monitor.Later", lambda notify, patience_s: retry.Later(notify, 0.0))
    watched.store(watched.pack)
    away.set()
    with watched.monitored() as watch:
        with pytest.raises(StoreAwayError, match="on holiday"):
            watch(PackDone(watched.pack.id))
        watched.stop.set()


@pytest.mark.parametrize(
    "event", [Notice("the study is gone"), PackCrashed("00aa", "it is gone"), PackFailed("00aa", "it is gone")]
)
def test_a_study_that_is_gone_ends_the_run_when_a_worker_tells_of_it(watched, event):
    """With the first word of it the driver's patience begins; when that is over, it ends, and has written nothing."""
    watched.begin()
    event = PackFailed(watched.pack.id, event.error) if isinstance(event, PackFailed) else event
    with watched.monitored(patience_s=0.0) as watch:
        shutil.rmtree(watched.folder.path)
        with pytest.raises(StudyGoneError, match=r"'s' is not in the store at .* just now: it was removed"):
            watch(event)
        watched.stop.set()
    assert not watched.folder.path.exists()


def test_a_study_that_comes_back_is_watched_on(watched, monkeypatch):
    """While patience lasts, a renamed study costs nothing: what it missed is counted when it is back."""
    monkeypatch.setattr(retry, "_FIRST_PAUSE_S", 0.0)
    watched.begin()
    elsewhere = watched.folder.path.with_name("elsewhere")
    with watched.monitored() as watch:
        watched.store(watched.pack)
        watched.folder.path.rename(elsewhere)
        watch(Notice("the study is gone"))
        watch(PackDone(watched.pack.id))
        assert not watched.folder.path.exists()
        elsewhere.rename(watched.folder.path)
    assert "20/20 trials" in watched.told[-1]
    assert _told_of(watched.told, "Trying again") == _told_of(watched.told, "the store is back") == 1


def test_a_store_that_is_away_for_workers_alone_ends_nothing(watched, monkeypatch):
    """Workers train on without it, so what they tell of it is no reason for the driver to lose patience."""
    watched.begin()

    def away(folder: StudyStore) -> None:
        raise StoreAwayError("the store is on holiday")

    monkeypatch.setattr(StudyStore, "check", away)
    with watched.monitored(patience_s=0.0) as watch:
        watch(Notice("no checkpoint was kept, and training goes on"))
    assert _told_of(watched.told, "Trying again") == 0


def test_a_study_that_grows_is_watched_on(watched):
    """Packs that are added when the others are done are counted with them."""
    first, second = halves(watched.pack)
    console = Console(file=io.StringIO())
    watch = Monitor(watched.folder, None, console, watched.stop, 600.0)
    watch.begin(watched.plan, [first], first.trials)
    with watch.showing():
        watched.store(first)
        watch(PackDone(first.id))
        watch.begin(watched.plan, [second], second.trials)
        assert watch.board.counts["done"] == 10
        watched.store(second)
        watch(PackDone(second.id))
        assert watch.board.counts["unsolved"] == watch.board.counts["trials"] == 20
