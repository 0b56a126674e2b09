"""`study` as a user runs it: in this process, or in processes that a test may kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

from study.cli import main

DEADLINE_S = 600
"""Seconds after which a process counts as hanging; no test waits for time to pass."""
STUDY = (sys.executable, "-m", "study")

CHECKPOINT = "study.store.study_store:StudyStore.save_checkpoint"
PACK_STORED = "study.store.study_store:StudyStore.write_pack"
PROGRESS_HEARD = "study.driver.progress:Board.progress"
PACK_HEARD = "study.driver.progress:Board.done"
"""Methods that a blow may count: the first two run in the worker, the others in the driver."""

Process = subprocess.Popen[str]
Start = Callable[..., Process]


def invoke(*words: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, words)


def blow(marker: Path, method: str, number: signal.Signals, *, count: int = 1, group: bool = False) -> dict[str, str]:
    """Return the environment of a process that sends itself a signal at a counted event, once.

    Args:
        marker: a file that is made at the blow.
        method: the method whose calls are counted, such as `CHECKPOINT`.
        number: the signal.
        count: the number of calls after which the signal is sent.
        group: whether its whole process group gets the signal, as from Ctrl-C in a terminal.
    """
    request = {"method": method, "count": count, "number": number, "group": group, "marker": str(marker)}
    paths = [str(Path(__file__).parent / "blows"), os.environ.get("PYTHONPATH", "")]
    return {"STUDY_TEST_BLOW": json.dumps(request), "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def stopped(process: Process) -> None:
    """Wait until a signal has stopped a process; the process must not end before."""
    ended = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert ended is not None
    assert ended.si_code == os.CLD_STOPPED, f"it ended before it could be stopped: {process.communicate()[0]}"


@contextmanager
def starting(folder: Path, **environment: str) -> Iterator[Start]:
    """Yield a function that starts `study` in a folder, with arguments and more environment variables.

    Processes still running at the end are killed.

    Args:
        folder: the working folder.
        environment: variables that are set on top of this process's.
    """
    started: list[Process] = []

    def start(*words: str, **more: str) -> Process:
        process = subprocess.Popen(
            [*STUDY, *words],
            cwd=folder,
            env=os.environ | environment | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
