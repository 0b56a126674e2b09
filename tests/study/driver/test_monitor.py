"""The driver's monitor: it counts, stores failures, publishes, and doesn't wait for the store."""

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
    """A study of 20 trials in one pack, with its console output."""

    def __init__(self, root: Path) -> None:
        self.folder: StudyStore = Store(root).study("s")
        self.plan: Plan = make_plan(parse_spec(SPEC, source="test"))
        self.pack = Pack(self.plan.trials)
        self.stop = threading.Event()
        self._out = io.StringIO()

    def begin(self) -> None:
        """Begin an attempt, and hold the study as its driver does."""
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
    def printed(self) -> list[str]:
        return self._out.getvalue().splitlines()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """Return a study without results."""
    return Watched(tmp_path)


def halves(pack: Pack) -> tuple[Pack, Pack]:
    middle = len(pack.trials) // 2
    return Pack(pack.trials[:middle]), Pack(pack.trials[middle:])


def test_a_split_pack_is_counted_by_its_parts(watched):
    """Parts of parts are counted too; the split packs, reported done after them, aren't counted again."""
    first, second = halves(watched.pack)
    quarters = halves(first)
    with watched.monitored() as watch:
        watch(PackSplit(watched.pack.id, (first, second)))
        watch(PackSplit(first.id, quarters))
        for part in (*quarters, second):
            watched.store(part)
        for pack in (*quarters, first, second, watched.pack):
            watch(PackDone(pack.id))
    assert "20/20 trials" in watched.printed[-1]
    assert "20 unsolved" in watched.printed[-1]


def test_compiling_is_reported_once_per_machine(watched):
    """The start and end of compiling are reported once per machine, however many workers wait there."""
    with watched.monitored() as watch:
        for machine in ("node-1", "node-2"):
            watch(Preparing("fused", machine, "compiling", watched.pack.id))
            for doing in ("waiting", "ready", "ready"):
                watch(Preparing("fused", machine, doing, "another"))
    lines = [line for line in watched.printed if "node-" in line]
    assert [message.split(":")[0] for message in lines] == [
        "compiling the fused engine, once on node-1",
        "the fused engine is compiled on node-1",
        "compiling the fused engine, once on node-2",
        "the fused engine is compiled on node-2",
    ]


def test_errors_are_printed_literally(watched):
    """Brackets, escape sequences or an empty error don't end the run; the pack is retried."""
    with watched.monitored() as watch:
        watch(PackCrashed(watched.pack.id, "RuntimeError: [/pytorch/aten] \x1b[2J"))
        watch(PackCrashed(watched.pack.id, "\n"))
        watch(PackFailed(watched.pack.id, "RuntimeError: [/pytorch/aten] \x1b[2J"))
    output = "\n".join(watched.printed)
    assert r"will be retried: RuntimeError: [/pytorch/aten] \x1b[2J" in output
    assert "will be retried: it gave no reason" in output
    assert r"failed: RuntimeError: [/pytorch/aten] \x1b[2J" in output


def test_a_split_pack_that_is_trained_undivided_is_counted(watched):
    """A split pack that another worker trains undivided is counted once."""
    with watched.monitored() as watch:
        watch(PackSplit(watched.pack.id, halves(watched.pack)))
        watched.store(watched.pack)
        watch(PackDone(watched.pack.id))
    assert "20/20 trials" in watched.printed[-1]


def test_only_the_unfinished_part_of_a_split_pack_fails(watched):
    """If a split pack fails, only its unfinished half is stored as failed."""
    first, second = halves(watched.pack)
    with watched.monitored() as watch:
        watch(PackSplit(watched.pack.id, (first, second)))
        watched.store(first)
        watch(PackDone(first.id))
        watch(PackFailed(watched.pack.id, "no room"))
    assert "20/20 trials · 0 solved · 10 unsolved · 0 diverged · 10 failed" in watched.printed[-1]
    outcomes = watched.folder.read_results()["outcome"].to_pylist()
    assert outcomes.count("failed") == outcomes.count("unsolved") == 10


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Return a flag that makes the store unavailable to readers of packs while set; retries don't wait."""
    flag, read = threading.Event(), StudyStore.read_pack

    def read_pack(folder: StudyStore, pack_id: str, *, with_curves: bool = True) -> object:
        if flag.is_set():
            raise StoreAwayError("the store is on holiday")
        return read(folder, pack_id, with_curves=with_curves)

    monkeypatch.setattr(StudyStore, "read_pack", read_pack)
    monkeypatch.setattr(retry, "_FIRST_PAUSE_S", 0.0)
    return flag


def _line_count(lines: Sequence[str], words: str) -> int:
    return sum(words in line for line in lines)


def test_the_driver_does_not_wait_for_the_store(watched, away):
    """Packs done while the store is away are counted on its return; both events are reported once."""
    first, second = halves(watched.pack)
    with watched.monitored() as watch:
        watch(PackSplit(watched.pack.id, (first, second)))
        watched.store(first)
        watched.store(second)
        away.set()
        watch(PackDone(first.id))
        watch(PackDone(second.id))
        watch(PackDone(watched.pack.id))
        assert _line_count(watched.printed, "on holiday. Trying again") == 1
        away.clear()
    assert "20/20 trials" in watched.printed[-1]
    assert _line_count(watched.printed, "the store is back") == 1
    assert _line_count(watched.printed, "on holiday") == 1


def test_a_stopped_driver_does_not_wait_for_its_store(watched, away):
    """A stopped driver ends without waiting, and leaves unreadable packs to the next run."""
    with watched.monitored() as watch:
        watched.store(watched.pack)
        away.set()
        watch(PackDone(watched.pack.id))
        watched.stop.set()
    assert "0/20 trials" in watched.printed[-1]


def test_a_store_that_stays_away_ends_the_run(watched, away, monkeypatch):
    """A store that stays away ends the run with its own error."""
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
def test_a_removed_study_ends_the_run(watched, event):
    """The run ends once its patience after the first report is over, and has written nothing."""
    watched.begin()
    event = PackFailed(watched.pack.id, event.error) if isinstance(event, PackFailed) else event
    with watched.monitored(patience_s=0.0) as watch:
        shutil.rmtree(watched.folder.path)
        with pytest.raises(StudyGoneError, match=r"'s' is not in the store at .* just now: it was removed"):
            watch(event)
        watched.stop.set()
    assert not watched.folder.path.exists()


def test_a_study_that_returns_is_watched_again(watched, monkeypatch):
    """A study that is renamed and returns in time loses no result: missed packs are counted on its return."""
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
    assert "20/20 trials" in watched.printed[-1]
    assert _line_count(watched.printed, "Trying again") == _line_count(watched.printed, "the store is back") == 1


def test_a_store_unavailable_only_to_workers_does_not_end_the_run(watched, monkeypatch):
    """Workers train on without the store, and their notices don't use up the driver's patience."""
    watched.begin()

    def away(folder: StudyStore) -> None:
        raise StoreAwayError("the store is on holiday")

    monkeypatch.setattr(StudyStore, "check", away)
    with watched.monitored(patience_s=0.0) as watch:
        watch(Notice("no checkpoint was kept, and training goes on"))
    assert _line_count(watched.printed, "Trying again") == 0


def test_added_packs_are_counted(watched):
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
