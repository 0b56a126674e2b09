"""`study` as a user runs it: in processes of its own, which a test may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DEADLINE_S = 120
STUDY = (sys.executable, "-m", "study")

Process = subprocess.Popen[str]
Start = Callable[..., Process]


@contextmanager
def starting(folder: Path, **environment: str) -> Iterator[Start]:
    """Give what starts `study` with some words in a folder; whatever still runs at the end is killed.

    Args:
        folder: to work in.
        environment: set on top of this process's.
    """
    started: list[Process] = []

    def start(*words: str) -> Process:
        process = subprocess.Popen(
            [*STUDY, *words],
            cwd=folder,
            env=os.environ | environment,
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
