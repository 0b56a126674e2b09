"""Calls in fresh processes: all begin with the same state, and none affects the test process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from study.engine.calls.fresh import FreshCallError, FreshProcess


def test_calls_do_not_share_changes(tmp_path: Path) -> None:
    """Each call runs in its own fork of the prepared process."""
    with FreshProcess() as fresh:
        fresh.prepare(os.chdir, str(tmp_path))
        fresh.ready()
        fresh.call(os.chdir, "/")
        assert fresh.call(os.getcwd) == str(tmp_path)
        assert len({fresh.call(os.getpid) for _ in range(3)}) == 3


def test_a_call_that_ends_its_process_fails() -> None:
    """An exception, an exit and a signal are errors of their call; the next call works."""
    with FreshProcess() as fresh:
        with pytest.raises(FreshCallError, match="ZeroDivisionError"):
            fresh.call(divmod, 1, 0)
        with pytest.raises(FreshCallError, match="exit code 0"):
            fresh.call(os._exit, 0)
        with pytest.raises(FreshCallError, match="signal 9"):
            fresh.call(signal.raise_signal, signal.SIGKILL)
        assert fresh.call(divmod, 7, 2) == [3, 1]


def hold(pipe: str) -> None:
    """Open a pipe, and keep it open until this process is killed."""
    with Path(pipe).open("w"):
        signal.pause()


def test_a_hanging_call_is_killed(tmp_path: Path) -> None:
    """A call raises an error after its timeout, and is killed at the end of the block at the latest."""
    with FreshProcess() as fresh, pytest.raises(FreshCallError, match=r"longer than 0\.01 s"):
        fresh.call(signal.pause, timeout_s=0.01)
    os.mkfifo(tmp_path / "pipe")
    with FreshProcess() as fresh:
        fresh._send(True, hold, (str(tmp_path / "pipe"),))
        pipe = (tmp_path / "pipe").open()
    assert pipe.read() == ""  # no process holds the other end
    pipe.close()
