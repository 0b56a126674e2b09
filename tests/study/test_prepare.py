"""Engines prepared once on a machine, by whoever comes first."""

from __future__ import annotations

import fcntl
import sys
import tempfile
import threading

import pytest

from study import prepare as the_module
from study.engine import ENGINES
from study.prepare import prepare, preparing

DEADLINE_S = 600


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """Nothing is compiled or locked yet, and what other tests compiled stays theirs."""
    for folder in ("cache", "locks"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "locks"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(the_module, "_prepared", set())


def test_a_process_compiles_for_all(tmp_path, small_pack):
    """When the process is done, what it compiled is on disk."""
    with preparing([(ENGINES["fused"], small_pack(0).trials[0].cell)]) as process:
        assert process.wait(DEADLINE_S) == 0
    assert list((tmp_path / "cache").rglob("*train*.nbc"))


def test_leaving_ends_the_process(tmp_path, small_pack):
    """Who leaves early leaves no process behind."""
    with preparing([(ENGINES["fused"], small_pack(0).trials[0].cell)]) as process:
        assert process.poll() is None
    assert process.returncode < 0


def test_a_process_that_fails_fails_alone(small_pack, monkeypatch):
    """If it can't even start Python, nothing is raised: workers prepare their engines themselves."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with preparing([(ENGINES["fused"], small_pack(0).trials[0].cell)] * 10_000) as process:
        assert process.wait(DEADLINE_S) == 1


def test_the_first_prepares_and_others_wait(tmp_path, small_pack, monkeypatch):
    """While one process prepares an engine, another waits, and doesn't do it again; in one process it is done once."""
    engine, cell = ENGINES["fused"], small_pack(0).trials[0].cell
    done: list[str] = []
    monkeypatch.setattr(type(engine), "prepare", lambda self, cell: done.append(self.name))
    prepare(engine, cell)
    prepare(engine, cell)
    assert done == ["fused"]

    the_module._prepared.clear()
    (path,) = (tmp_path / "locks").glob("study-prepare-fused-*")
    with path.open("r+") as holder:  # as another process would: a lock belongs to an open file
        fcntl.flock(holder, fcntl.LOCK_EX)
        other = threading.Thread(target=prepare, args=(engine, cell))
        other.start()
        other.join(0.5)
        assert other.is_alive()
    other.join(DEADLINE_S)
    assert not other.is_alive()
    assert done == ["fused"]
    assert the_module._prepared == {"fused"}
