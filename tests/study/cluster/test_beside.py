"""Packs in a process beside the driver: short studies don't start Ray, and long ones move on to it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.cluster import BesideScheduler, PackProcess, beside
from study.cluster.local import LocalScheduler
from study.console import Console
from study.driver import resources
from study.driver.engines import Engines
from study.driver.options import Options
from study.driver.own_engine import own_engine
from study.driver.resources import Resources
from study.plan.plan import Plan, make_plan
from study.records import Event, Pack, PackCrashed, PackDone, Progress
from study.run import Ending, run
from study.spec import parse_spec
from study.store import Store, StudyStore
from study.worker.beside import event_of
from study.worker.pack_work import PackWork
from tests.processes import is_running
from tests.study.builders import bits
from tests.study.source.builders import deactivate

CODE = '''
import os
import random
from pathlib import Path

from study import Trial, seeded


@seeded
def once(seed):
    return {"loss": random.random()}


@seeded
def stuck(seed):
    """Block at seed 1 until this process is killed, unless the file `go` exists."""
    if seed == 1 and not Path(WAITS, "go").exists():
        os.mkfifo(Path(WAITS, "pipe"))
        Path(WAITS, "process").write_text(str(os.getpid()))
        Path(WAITS, "pipe").open("rb")
    return {"loss": random.random()}


@seeded
def exits(seed):
    if seed == 1 and not Path(WAITS, "go").exists():
        os._exit(0)
    return {"loss": random.random()}


@seeded
def waits(seed, *, trial: Trial):
    """Save states until the file `go` exists."""
    if not trial.resume:
        trial.report(0, loss=1.0)
    while not Path(WAITS, "go").exists():
        trial.save(1)
    trial.report(1, loss=1 / (1 + seed))
'''


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a working folder with a module `brief`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "brief.py").write_text(CODE.replace("WAITS", repr(str(tmp_path))))
    monkeypatch.chdir(folder)
    yield folder
    deactivate()


def plan_of(folder: Path, function: str, seeds: int = 3) -> Plan:
    content = {"study": "brief", "train": f"brief:{function}", "metrics": {"loss": "lower"}, "seeds": seeds}
    return make_plan(parse_spec(yaml.safe_dump(content), source="brief.yaml", folder=folder))


def beside_here(
    plan: Plan, root: Path, stop: threading.Event, on_event: Any, attempt: str | None = None
) -> tuple[StudyStore, PackWork, list[Pack]]:
    """Train a plan as one pack in a process beside this one; return its store, its work and the remaining packs."""
    folder = Store(root).study("brief")
    work = PackWork(str(root), "brief", attempt or folder.begin_attempt(), "auto", "cpu", own=own_engine(plan.spec))
    pack = Pack(tuple(plan.trials))
    with PackProcess(work, plan.cells[0], os.environ) as process:
        scheduler = BesideScheduler(process, stop)
        scheduler.run([(pack,)], None, on_event)
        started = root.parents[1] / "process"
        assert not started.exists() or not is_running(int(started.read_text()))
    return folder, work, [pack for bundle in scheduler.left for pack in bundle]


def go_on(work: PackWork, packs: list[Pack]) -> None:
    """Train packs in this process, as a worker of Ray would."""
    LocalScheduler(work, threading.Event()).run([(pack,) for pack in packs], None, lambda event: None)


def undisturbed(plan: Plan, root: Path) -> StudyStore:
    assert run(plan, Options(root, None, local=True), Console(file=StringIO())) is Ending.FINISHED
    return Store(root).study("brief")


def test_a_short_study_of_a_function_starts_no_ray(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short study trains without Ray and has the bits of a run in this process."""
    monkeypatch.setitem(sys.modules, "ray", None)  # so that importing it fails
    monkeypatch.setattr("study.driver.engines.ray_problem", lambda: None)
    plan = plan_of(lab, "once", seeds=40)
    assert run(plan, Options(lab / "studies", None), Console(file=StringIO())) is Ending.FINISHED
    assert bits(Store(lab / "studies").study("brief")) == bits(undisturbed(plan, lab / "whole"))


def test_long_trials_are_left_to_another_worker(lab: Path, tmp_path: Path) -> None:
    """The process of a function that never returns is killed; another worker trains all trials that aren't stored."""
    plan, events = plan_of(lab, "stuck"), list[Event]()
    folder, work, remaining = beside_here(plan, lab / "studies", threading.Event(), events.append)
    assert not [event for event in events if isinstance(event, PackCrashed | PackDone)]
    assert [trial for pack in remaining for trial in pack.trials] == list(plan.trials)
    (tmp_path / "go").touch()
    go_on(work, remaining)
    assert bits(folder) == bits(undisturbed(plan, lab / "whole"))


def test_packs_of_an_ended_process_go_to_another_worker(lab: Path, tmp_path: Path) -> None:
    """A process that exits counts as a crash, and another worker trains its packs."""
    plan, events = plan_of(lab, "exits"), list[Event]()
    folder, work, remaining = beside_here(plan, lab / "studies", threading.Event(), events.append)
    (crash,) = [event for event in events if isinstance(event, PackCrashed)]
    assert crash.error == "the process that trained it ended with exit code 0"
    (tmp_path / "go").touch()
    go_on(work, remaining)
    assert bits(folder) == bits(undisturbed(plan, lab / "whole"))


def test_a_stop_keeps_a_checkpoint(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a stop, trials continue from the checkpoint to the bits of an undisturbed run."""
    monkeypatch.setattr(beside, "_FIRST_TRIAL_S", float("inf"))
    plan, stop = plan_of(lab, "waits", seeds=2), threading.Event()

    def on_event(event: Event) -> None:
        if isinstance(event, Progress):
            stop.set()

    folder, work, remaining = beside_here(plan, lab / "studies", stop, on_event)
    ((_, trial_ids, _),) = folder.checkpoints()
    assert list(trial_ids) == [trial.id for trial in plan.trials]
    (tmp_path / "go").touch()
    go_on(work, remaining)
    assert bits(folder) == bits(undisturbed(plan, lab / "whole"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Ray
def test_a_study_continues_on_ray(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study begun beside the driver ends on Ray, with the bits of a run in this process."""
    on_ray: list[bool] = []

    def workers(engines: Engines, plan: Plan, console: Console) -> AbstractContextManager[Resources]:
        on_ray.append(True)
        (tmp_path / "go").touch()
        return start_workers(engines, plan, console)

    start_workers = resources.workers
    monkeypatch.setattr(resources, "workers", workers)
    plan, console = plan_of(lab, "waits", seeds=4), Console(file=StringIO())
    assert run(plan, Options(lab / "studies", None, cpus=2), console) is Ending.FINISHED
    assert on_ray == [True]
    assert bits(Store(lab / "studies").study("brief")) == bits(undisturbed(plan, lab / "whole"))
    assert "crashed" not in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("data", [b"", b"junk", b"1", b'{"event": "PackSplit"}', b'{"event": "PackDone", "x": 1}'])
def test_invalid_events_are_refused(data: bytes) -> None:
    """Invalid events are refused: user code can write to the connection's file descriptor."""
    with pytest.raises(ValueError, match="data must be an event"):
        event_of(data)
