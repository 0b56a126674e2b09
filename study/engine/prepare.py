"""Prepare engines in a process of their own, beside whatever else has to start; `python -m` runs this file there."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from study.engine.base import Engine
from study.engine.registry import ENGINES
from study.records import Cell


@contextmanager
def preparing(engines: Sequence[tuple[Engine, Cell]]) -> Iterator[Callable[[], bool]]:
    """Let each engine do once what each worker would do otherwise, meanwhile.

    What comes of it is on disk. If it fails, each worker does it itself, and says what is wrong. A process, not a
    thread: it takes nothing from the interpreter that waits for it, and can be ended at any moment.

    Args:
        engines: by name registered, each with a cell that it takes.

    Yields:
        What says whether it is over. Leaving the ``with`` block ends it.

    Example:
        >>> with preparing([]) as prepared:
        ...     over = prepared()
    """
    # -P: nothing is imported that happens to lie in the working folder.
    command = [sys.executable, "-P", "-m", "study.engine.prepare"]
    path = os.pathsep.join(folder for folder in sys.path if folder)
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C is for the driver, which ends this
    )
    try:
        with process.stdin as to:  # type: ignore[union-attr]  # it is a pipe
            pickle.dump([(engine.name, cell) for engine, cell in engines], to)
        yield lambda: process.poll() is not None
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Prepare the engines named on standard input."""
    for name, cell in pickle.load(sys.stdin.buffer):
        ENGINES[name].prepare(cell)


if __name__ == "__main__":
    main()
