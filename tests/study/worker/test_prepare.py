"""Engines are prepared once on a machine, by the first process."""

from __future__ import annotations

import fcntl
import sys
import tempfile
import threading

import pytest

from study.worker import prepare as the_module
from study.worker.prepare import prepare, prepared, preparing
from tests.engines import ENGINES
from tests.study.builders import small_pack

DEADLINE_S = 600


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """Set empty folders for compiled code and locks, so that other tests' code is neither used nor changed."""
    for folder in ("cache", "locks"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "locks"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(the_module, "_prepared", set())


@pytest.mark.slow
def test_a_process_compiles_for_all(tmp_path):
    """A separate process compiles an engine, and leaves its compiled code on disk."""
    with preparing([(ENGINES["fused"], small_pack(0).trials[0].cell)]) as process:
        assert process.wait(DEADLINE_S) == 0
    assert ENGINES["fused"].is_compiled(small_pack(0).trials[0].cell)
    assert list((tmp_path / "cache").rglob("*train*.nbc"))
    assert list((tmp_path / "cache").rglob("*add_squared_errors*.nbc"))


def test_leaving_ends_the_process(tmp_path):
    """Leaving the context early ends the compiling process."""
    with preparing([(ENGINES["fused"], small_pack(0).trials[0].cell)]) as process:
        assert process.poll() is None
    assert process.returncode < 0


def test_a_failing_process_raises_no_error(monkeypatch):
    """A failure of the compiling process raises no error, since workers prepare their engines themselves."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with preparing([(ENGINES["fused"], small_pack(0).trials[0].cell)] * 10_000) as process:
        assert process.wait(DEADLINE_S) == 1


def test_the_first_prepares_and_others_wait(tmp_path, monkeypatch):
    """While one process prepares an engine, another waits without repeating it; a process prepares it once."""
    engine, cell = ENGINES["fused"], small_pack(0).trials[0].cell
    prepared_engines: list[str] = []
    monkeypatch.setattr(type(engine), "prepare", lambda self, cell: prepared_engines.append(self.name))
    monkeypatch.setattr(type(engine), "is_compiled", lambda self, cell: bool(prepared_engines))
    prepare(engine, cell)
    prepare(engine, cell)
    assert prepared_engines == ["fused"]

    the_module._prepared.clear()
    (path,) = (tmp_path / "locks").glob("study-prepare-fused-*")
    with path.open("r+") as holder:  # like another process, because a lock belongs to an open file
        fcntl.flock(holder, fcntl.LOCK_EX)
        other = threading.Thread(target=prepare, args=(engine, cell))
        other.start()
        other.join(0.5)
        assert other.is_alive()
    other.join(DEADLINE_S)
    assert not other.is_alive()
    assert prepared_engines == ["fused"]
    assert the_module._prepared == {"fused"}


@pytest.mark.parametrize(("compiled", "doing"), [(False, "compiling"), (None, "preparing"), (True, None)])
def test_compilation_is_reported_before_its_start(compiled, doing, monkeypatch):
    """Start and end of a compilation or preparation are reported; nothing is reported if the code is on disk."""
    engine, cell = ENGINES["fused"], small_pack(0).trials[0].cell
    prepared_engines: list[str] = []
    monkeypatch.setattr(type(engine), "prepare", lambda self, cell: prepared_engines.append(self.name))
    monkeypatch.setattr(type(engine), "is_compiled", lambda self, cell: compiled)
    heard = [(step.doing, len(prepared_engines)) for step in prepared(engine, cell)]
    assert heard == ([] if doing is None else [(doing, 0), ("ready", 1)])
    assert prepared_engines == ["fused"]


@pytest.mark.parametrize("died", [True, False])
def test_a_waiting_process_compiles_the_missing_code(died, tmp_path, monkeypatch):
    """A waiting process reports the wait, and then compiles only the code that the other process didn't."""
    engine, cell = ENGINES["fused"], small_pack(0).trials[0].cell
    prepared_engines: list[str] = []
    monkeypatch.setattr(type(engine), "prepare", lambda self, cell: prepared_engines.append(self.name))
    monkeypatch.setattr(type(engine), "is_compiled", lambda self, cell: bool(prepared_engines))
    with the_module._lock_file(engine) as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        steps = prepared(engine, cell)
        assert next(steps).doing == "waiting"
        if not died:
            prepared_engines.append("by the other")
    assert [step.doing for step in steps] == (["compiling", "ready"] if died else ["ready"])
    assert prepared_engines == (["fused"] if died else ["by the other"])


def test_compiled_code_is_loaded_without_another_process(monkeypatch):
    """A worker that finds the fused engine's loops on disk starts no process to compile them."""
    engine, cell = ENGINES["fused"], small_pack(0).trials[0].cell
    monkeypatch.setattr(type(engine), "is_compiled", lambda self, cell: True)
    monkeypatch.setattr("tasks.arithmetic.engine.cpu.engine.FreshProcess", None)
    engine.prepare(cell)
