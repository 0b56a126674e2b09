"""Packs on real Ray workers: all slots are busy, crashes are retried, and results have the bits of this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from study import cluster, environment
from study.cluster.callback import SchedulerCallback
from study.cluster.queue import RETRIES
from study.cluster.scheduler import TuneScheduler
from study.errors import ClusterError, InputError, StoreAwayError
from study.records import Event, Notice, Pack, PackCrashed, PackDone, PackFailed, PackSplit, Preparing, Progress
from study.store import Store, StudyStore
from study.worker.concurrent import Work
from study.worker.pack_work import PackWork
from tests.processes import below, command_line, wait_for
from tests.study.builders import bits, small_pack

SLOTS = 2


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    """Start Ray once for this file."""
    with cluster.connection(None, SLOTS):
        yield


def work_in(root: Path, engine: str = "torch") -> tuple[StudyStore, PackWork]:
    folder = Store(root).study("s")
    return folder, PackWork(str(root), "s", folder.begin_attempt(), engine, "cpu", checkpoint_every_s=0.2)


def on_tune(
    packs: list[Pack],
    work: Work,
    on_event: Callable[[Event], None],
    *,
    stop: threading.Event | None = None,
    workers: int = SLOTS,
    silent_after_s: float = 300.0,
) -> set[str]:
    groups = [cluster.WorkerGroup(cluster.CPU, workers, work)]
    scheduler = TuneScheduler(groups, stop or threading.Event(), silent_after_s)
    return scheduler.run([(pack,) for pack in packs], None, on_event)


def actors(name: str) -> set[int]:
    """Return the ids of processes of this test's Ray with an actor of the named class."""
    return {process_id for process_id in below(os.getpid()) if name.encode() in command_line(process_id)}


def test_capacity_is_counted():
    """The capacity is the requested number of cores, and no GPU."""
    assert cluster.capacity() == cluster.Capacity(cpus=SLOTS, gpus=0, cpus_without_gpu=SLOTS)


def test_credentials_of_the_driver_are_not_logged(tmp_path, monkeypatch):
    """Credentials in the driver's environment reach no log of Ray, unlike variables that Tune hands to its workers."""
    import ray

    secret = "a-secret-that-nobody-may-log"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    handed_on = "0000000001"
    monkeypatch.setenv("RAY_CHDIR_TO_TRIAL_DIR", handed_on)  # Tune passes this on, so the variable can reach the logs
    _, work = work_in(tmp_path)
    on_tune([small_pack(0)], work, lambda event: None, workers=1)
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    logs = [path.read_text(errors="replace") for path in (session / "logs").iterdir() if path.is_file()]
    assert any(handed_on in log for log in logs)
    assert not any(secret in log for log in logs)


@pytest.mark.slow
def test_packs_of_a_bundle_share_a_worker(tmp_path):
    """Each pack of a bundle is reported done once, and has the bits of this process."""
    packs = [small_pack(seed, seed + 100) for seed in range(6)]
    folder, work = work_in(tmp_path / "tune")
    events: list[Event] = []
    bundles = [tuple(packs[:1]), tuple(packs[1:3]), tuple(packs[3:])]
    groups = [cluster.WorkerGroup(cluster.CPU, SLOTS, work)]
    TuneScheduler(groups, threading.Event()).run(bundles, None, events.append)
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted(pack.id for pack in packs)
    undisturbed, work = work_in(tmp_path / "here")
    cluster.LocalScheduler(work, threading.Event()).run([(pack,) for pack in packs], None, events.append)
    assert bits(undisturbed) == bits(folder)


class InBatches:
    """A source of batches that records, at each request, the number of stored trials."""

    def __init__(self, batches: list[list[Pack]], folder: StudyStore) -> None:
        self._batches, self._folder = list(batches), folder
        self.done: list[int] = []

    def __call__(self) -> tuple[list[tuple[Pack, ...]], None]:
        self.done.append(len(self._folder.done()))
        return [(pack,) for pack in (self._batches.pop(0) if self._batches else [])], None


def grown_on_tune(
    batches: list[list[Pack]], folder: StudyStore, work: Work, on_event: Callable[[Event], None]
) -> tuple[set[str], InBatches]:
    """Run the first batch, and the others on request; return the packs' devices and the source of batches."""
    first, *others = batches
    later_batches = InBatches(others, folder)
    groups = [cluster.WorkerGroup(cluster.CPU, SLOTS, work)]
    scheduler = TuneScheduler(groups, threading.Event(), more=later_batches)
    used = scheduler.run([(pack,) for pack in first], None, on_event)
    return used, later_batches


def test_workers_wait_for_more(tmp_path):
    """Later batches go to the running workers, in any number of batches."""
    batches = [[small_pack(seed) for seed in seeds] for seeds in ([0, 1], [2], [3, 4, 5], [6])]
    folder, work = work_in(tmp_path)
    events: list[Event] = []
    used, later_batches = grown_on_tune(batches, folder, work, events.append)
    assert later_batches.done == [2, 3, 6, 7]
    assert 1 <= len(used) <= SLOTS
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted(
        pack.id for batch in batches for pack in batch
    )


@pytest.mark.slow
def test_a_killed_queue_forgets_no_added_pack(tmp_path):
    """After kill -9 of the queue, packs added since it opened are handed out again, and the run ends."""
    batches = [[small_pack(0)], [small_pack(seed, iterations=4000) for seed in (1, 2, 3)], [small_pack(4)]]
    folder, work = work_in(tmp_path)
    killed: list[int] = []
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Progress) and event.pack_id in {p.id for p in batches[1]} and not killed:
            killed.extend(actors("QueueActor"))
            os.kill(killed[0], signal.SIGKILL)

    _, later_batches = grown_on_tune(batches, folder, work, on_event)
    assert killed
    assert later_batches.done == [1, 4, 5]
    assert any("died and was started again" in e.text for e in events if isinstance(e, Notice))


@pytest.mark.slow
def test_an_error_in_more_is_raised_unchanged(tmp_path):
    """An error in `more` ends the run and is raised unchanged."""
    _, work = work_in(tmp_path)

    def more() -> tuple[list[tuple[Pack, ...]], None]:
        raise InputError("other ranges")

    groups = [cluster.WorkerGroup(cluster.CPU, SLOTS, work)]
    with pytest.raises(InputError, match=r"^other ranges$"):
        TuneScheduler(groups, threading.Event(), more=more).run([(small_pack(0),)], None, lambda event: None)


class BreaksOnePack:
    """Work on packs that crashes whenever it gets the bad pack."""

    def __init__(self, work: PackWork, bad: str) -> None:
        self._work, self._bad = work, bad

    def __call__(self, pack: Pack) -> Iterator[Event]:
        if pack.id == self._bad:
            raise RuntimeError("this one breaks")
        yield from self._work(pack)


def test_only_the_crashing_pack_of_a_bundle_fails(tmp_path):
    """The other packs of its bundle are done and reported once, though the bundle is retried."""
    packs = [small_pack(seed) for seed in range(3)]
    folder, work = work_in(tmp_path)
    events: list[Event] = []
    groups = [cluster.WorkerGroup(cluster.CPU, 1, BreaksOnePack(work, packs[1].id))]
    TuneScheduler(groups, threading.Event()).run([tuple(packs)], None, events.append)
    assert len([e for e in events if isinstance(e, PackCrashed)]) == RETRIES
    assert [e.pack_id for e in events if isinstance(e, PackFailed)] == [packs[1].id]
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted([packs[0].id, packs[2].id])
    assert len(folder.done()) == 2


@pytest.mark.slow
def test_no_pack_is_blamed_for_another_on_the_same_device(tmp_path):
    """A worker with a GPU restarts after a crash; packs that trained beside the crashed one continue normally."""
    packs = [small_pack(seed, iterations=2000, evaluate_every=500) for seed in range(3)]
    _, work = work_in(tmp_path)
    events: list[Event] = []
    groups = [cluster.WorkerGroup(cluster.GPU, 1, BreaksOnePack(work, packs[1].id))]
    shares = {pack.id: 0.3 for pack in packs}
    bundles = [(pack,) for pack in packs]
    TuneScheduler(groups, threading.Event()).run(bundles, shares, events.append)
    assert [e.pack_id for e in events if isinstance(e, PackFailed)] == [packs[1].id]
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted([packs[0].id, packs[2].id])
    assert not [e for e in events if isinstance(e, Notice)]


class StruckOnce:
    """Work on packs that sends a signal to its own process, once, at the given pack.

    Args:
        work: the actual work.
        pack: id of the pack at which the signal is sent.
        marker: file with the process id, written before the signal is sent; while it exists, no signal is sent.
        number: the signal.
        after: number of the pack's events before the signal; 0 sends it before the work begins.
    """

    def __init__(
        self, work: PackWork, pack: str, marker: Path, number: signal.Signals = signal.SIGKILL, after: int = 0
    ) -> None:
        self._work, self._pack, self._marker, self._number, self._after = work, pack, marker, number, after

    def __call__(self, pack: Pack) -> Iterator[Event]:
        self._strike(pack, 0)
        for count, event in enumerate(self._work(pack), start=1):
            self._strike(pack, count)
            yield event

    def _strike(self, pack: Pack, count: int) -> None:
        if pack.id == self._pack and count == self._after and not self._marker.exists():
            self._marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), self._number)


@pytest.mark.slow
def test_a_worker_that_dies_before_telling_the_driver_loses_no_pack(tmp_path):
    """If a worker dies between telling the queue and the driver, all packs are done and the run ends."""
    packs = [small_pack(0), small_pack(1)]
    folder, work = work_in(tmp_path / "store")
    events: list[Event] = []
    on_tune(packs, StruckOnce(work, packs[1].id, tmp_path / "died"), events.append, workers=1)
    assert (tmp_path / "died").exists()
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted(pack.id for pack in packs)
    assert len(folder.done()) == 2


def test_workers_are_not_blamed_for_a_busy_driver(monkeypatch):
    """A driver that was itself busy doesn't kill silent workers; a driver that listens does."""
    events: list[Event] = []
    now = 0.0
    monkeypatch.setattr("study.cluster.callback.time.monotonic", lambda: now)
    callback = SchedulerCallback([(small_pack(0),)], None, events.append, threading.Event(), 2.0, None)
    worker = SimpleNamespace(config={"worker": 0}, temporary_state=SimpleNamespace(ray_actor=None))
    callback.on_trial_start(1, [], worker)
    callback.on_trial_result(1, [], worker, {"worker": "w", "node": "n", "events": [], "idle": False})
    now = 1000.0  # the driver was busy until then
    callback.on_step_end(1, [])
    assert not [event for event in events if isinstance(event, Notice)]
    for _ in range(4):
        now += 0.9  # the driver listens, and hears nothing
        callback.on_step_end(1, [])
    (notice,) = [event.text for event in events if isinstance(event, Notice)]
    assert "worker w hasn't been heard of for 3 s, and is ended" in notice


@pytest.mark.slow
def test_an_error_of_the_driver_is_raised_unchanged(tmp_path):
    """An error in the driver is raised unchanged through Tune, after the workers have saved checkpoints."""
    folder, work = work_in(tmp_path)

    def on_event(event: Event) -> None:
        if isinstance(event, Progress):
            raise StoreAwayError("the store is gone for good")

    with pytest.raises(StoreAwayError, match=r"^the store is gone for good$"):
        on_tune([small_pack(0, iterations=20_000, evaluate_every=5000)], work, on_event)
    assert folder.checkpoints()


def test_a_split_is_reported_once():
    """If a worker gets a pack that another worker has split, the driver hears of the split only once."""
    pack = small_pack(0, 1)
    parts = (small_pack(0), small_pack(1))
    reported: list[Event] = []
    callback = SchedulerCallback([(pack,)], None, reported.append, threading.Event(), 300.0, None)
    repeated = [PackSplit(pack.id, parts), PackDone(parts[0].id)]
    events = [*repeated, *repeated, PackDone(parts[1].id), PackDone(pack.id)]
    trial = SimpleNamespace(config={"worker": 0})
    result = {"worker": "w", "node": "n", "events": events, "idle": False}
    callback.on_trial_result(1, [], trial, result)
    assert reported == [*repeated, PackDone(parts[1].id), PackDone(pack.id)]
    assert not callback.left


def test_a_worker_answers_questions():
    """A worker answers a question in its own process; its exceptions are raised unchanged."""
    assert cluster.ask(os.getpid, 0) != os.getpid()

    def refuse() -> None:
        raise InputError("no engine for that")

    with pytest.raises(InputError, match=r"^no engine for that$"):
        cluster.ask(refuse, 0)


def test_every_slot_is_used_and_every_pack_done_once(tmp_path):
    """Packs that wait until all workers run use every slot, and have the bits of a run in this process."""
    packs = [small_pack(seed, seed + 100, iterations=500) for seed in range(2 * SLOTS)]
    folder, work = work_in(tmp_path / "tune")
    events: list[Event] = []
    used = on_tune(packs, Together(work, tmp_path / "here", SLOTS), events.append)
    assert len(used) == SLOTS
    assert sorted(e.pack_id for e in events if isinstance(e, PackDone)) == sorted(pack.id for pack in packs)
    assert not [e for e in events if isinstance(e, PackFailed)]

    undisturbed, work = work_in(tmp_path / "alone")
    cluster.LocalScheduler(work, threading.Event()).run([(pack,) for pack in packs], None, events.append)
    assert bits(undisturbed) == bits(folder)


class Together:
    """Work on a pack that starts once enough processes are running.

    Args:
        work: the actual work.
        folder: holds a file for each process that has begun.
        count: number of processes.
    """

    def __init__(self, work: PackWork, folder: Path, count: int) -> None:
        self._work, self._folder, self._count = work, folder, count
        folder.mkdir()

    def __call__(self, pack: Pack) -> Iterator[Event]:
        (self._folder / str(os.getpid())).touch()
        wait_for(lambda: len(list(self._folder.iterdir())) >= self._count, "the other workers")
        yield from self._work(pack)


@pytest.mark.slow
def test_a_silent_worker_is_killed_and_its_pack_continues(tmp_path):
    """A worker that stays paused is killed with a notice, and its pack continues to the undisturbed bits."""
    packs = [small_pack(seed, iterations=6000, evaluate_every=500) for seed in range(2)]
    folder, work = work_in(tmp_path / "paused")
    paused: set[int] = set()
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Progress) and not paused:  # the worker waits for its next call
            paused.update(actors("PackTrainable"))
            for process_id in paused:
                os.kill(process_id, signal.SIGSTOP)

    on_tune(packs, replace(work, checkpoint_every_s=0.0), on_event, workers=1, silent_after_s=6)
    assert paused
    assert any("hasn't been heard of" in event.text for event in events if isinstance(event, Notice))
    undisturbed, work = work_in(tmp_path / "undisturbed")
    cluster.LocalScheduler(work, threading.Event()).run([(pack,) for pack in packs], None, lambda event: None)
    assert bits(folder) == bits(undisturbed)
    wait_for(lambda: not paused & actors("PackTrainable"), "the silent worker's end")


@pytest.mark.slow
def test_a_worker_of_another_version_is_not_used(monkeypatch):
    """If workers run another version nothing is trained, and the error names both versions."""
    theirs = environment.versions()
    monkeypatch.setattr(environment, "versions", lambda: theirs | {"study": "9.9.9"})
    versions = rf"9\.9\.9.*{theirs['study']}"
    with pytest.raises(ClusterError, match=versions):
        cluster.check_versions()
    events: list[Event] = []
    with pytest.raises(ClusterError, match=f"no worker of the cluster can work.*{versions}"):
        on_tune([small_pack(0)], lambda pack: iter([]), events.append)
    assert not [event for event in events if isinstance(event, PackDone)]
    assert any("ended before its first report" in event.text for event in events if isinstance(event, Notice))


def test_a_killed_worker_loses_at_most_a_checkpoint_interval(tmp_path):
    """After kill -9 of a worker in mid-pack, the pack continues from its checkpoint to the same bits."""
    pack = small_pack(*range(4), iterations=2000, evaluate_every=500)
    folder, work = work_in(tmp_path / "killed")
    work, marker = replace(work, checkpoint_every_s=0.0), tmp_path / "struck"
    events: list[Event] = []
    on_tune([pack], StruckOnce(work, pack.id, marker, after=1), events.append, workers=1)
    assert marker.exists()
    assert any("died" in event.text for event in events if isinstance(event, Notice))
    undisturbed, work = work_in(tmp_path / "undisturbed")
    cluster.LocalScheduler(work, threading.Event()).run([(pack,)], None, lambda event: None)
    assert bits(folder) == bits(undisturbed)
    assert not folder.checkpoints()


def test_a_pack_that_always_crashes_fails_alone(tmp_path):
    """A pack that crashes at each try fails with the reason; the other pack is done."""
    good, bad = small_pack(0), small_pack(1, task="no such task")
    folder, work = work_in(tmp_path)
    events: list[Event] = []
    on_tune([bad, good], work, events.append, workers=1)
    (failure,) = [e for e in events if isinstance(e, PackFailed)]
    assert failure.pack_id == bad.id
    assert "no such task" in failure.error
    assert folder.done() == {good.trials[0].id}


@pytest.mark.slow
def test_a_pack_that_exits_its_worker_fails_with_a_reason():
    """A pack whose code exits the worker fails with a reason, although Ray sees only a closed connection."""
    events: list[Event] = []
    with suppress(ClusterError):  # a worker that always ends early is given up
        on_tune([small_pack(0)], lambda pack: os._exit(3), events.append, workers=1)
    (failure,) = [e for e in events if isinstance(e, PackFailed)]
    assert failure.error.startswith("a worker's process died without a word: it was killed")


@pytest.mark.slow
def test_stopping_keeps_checkpoints(tmp_path):
    """Stopped packs save a checkpoint and end; a second run ends with the undisturbed bits."""
    packs = [small_pack(seed, iterations=10_000, evaluate_every=5_000) for seed in range(SLOTS)]
    folder, work = work_in(tmp_path / "stopped")
    work = replace(work, checkpoint_every_s=1e9)
    stop = threading.Event()

    def unfinished(pack: Pack) -> Iterator[Event]:
        """Repeat a pack's first progress event, so that the pack isn't done before the stop."""
        with closing(work(pack)) as steps:
            for event in steps:
                yield event
                while isinstance(event, Progress):
                    yield event

    def on_event(event: Event) -> None:
        if isinstance(event, Progress):
            stop.set()

    on_tune(packs, unfinished, on_event, stop=stop)
    assert folder.checkpoints()
    assert not folder.done()
    on_tune(packs, work, lambda event: None)
    undisturbed, work = work_in(tmp_path / "undisturbed")
    cluster.LocalScheduler(work, threading.Event()).run([(pack,) for pack in packs], None, lambda event: None)
    assert bits(folder) == bits(undisturbed)


def test_compiling_is_reported_while_it_lasts(tmp_path):
    """The driver hears that a worker compiles while it compiles, not afterwards."""
    heard = tmp_path / "heard"

    def work(pack: Pack) -> Iterator[Event]:
        yield Preparing("fused", "here", "compiling", pack.id)
        wait_for(heard.exists, "the driver to hear of it", timeout_s=60)

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Preparing):
            heard.touch()

    events: list[Event] = []
    pack = small_pack(0)
    on_tune([pack], work, on_event, workers=1)
    assert [event for event in events if isinstance(event, PackDone | PackCrashed | PackFailed)] == [PackDone(pack.id)]


# This test starts its own Ray, in a process that has used JAX.
@pytest.mark.slow
def test_jax_does_not_warn_about_the_processes_of_ray(tmp_path):
    """JAX doesn't warn about forks when Ray starts processes, because they execute another program at once."""
    pytest.importorskip("jax")
    code = (
        "import jax.numpy\njax.numpy.ones(3).sum()\nfrom study import cluster\n"
        "with cluster.connection(None, 1):\n    print('connected')\n"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    assert completed.stdout == "connected\n"
    assert "fork" not in completed.stderr
