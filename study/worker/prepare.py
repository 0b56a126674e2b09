"""One-time preparation of engines on a machine, such as compiling: one worker does it, the others wait.

`python -m` runs this file as a process, in parallel with other starts.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from study.engine import Engine, engine_named
from study.engine.calls.guarded import import_path
from study.records import Cell, Preparing, with_tuples

_prepared: set[str] = set()


def prepare(engine: Engine, cell: Cell) -> None:
    """Prepare an engine for this process; a no-op if one of this name has been prepared here.

    While another process of this user prepares it, wait, and prepare it afterwards only if `is_compiled` is False, not
    if it is None. The lock is released when its holder dies.

    Args:
        engine: an engine that an installed package offers.
        cell: a cell that the engine supports.

    Raises:
        OSError: if the lock file can't be opened or locked.
        Exception: as `Engine.prepare` raises, usually InputError.
    """
    for _ in prepared(engine, cell):
        pass


def prepared(engine: Engine, cell: Cell) -> Iterator[Preparing]:
    """Do the work of `prepare`; yield each long step before it begins, and after such a step that the engine is ready.

    It yields nothing if no step takes long, or this process has prepared the engine before.

    Raises:
        OSError: if the lock file can't be opened or locked.
        Exception: as `Engine.prepare` raises, usually InputError.
    """
    if engine.name in _prepared:
        return
    has_reported, waited = False, False
    with _lock_file(engine) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            if (step := first_step(engine, cell)) is not None:
                has_reported = True
                yield replace(step, doing="waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        # The other process may have died early, or compiled other sources.
        if not waited or engine.is_compiled(cell) is False:
            if (step := first_step(engine, cell)) is not None:
                has_reported = True
                yield step
            engine.prepare(cell)
    _prepared.add(engine.name)
    if has_reported:
        yield Preparing(engine.name, socket.gethostname(), "ready")


def first_step(engine: Engine, cell: Cell) -> Preparing | None:
    """Return the long step of `prepare` on this machine, preparing or compiling; None if the code is compiled."""
    compiled = engine.is_compiled(cell)
    if compiled:
        return None
    return Preparing(engine.name, socket.gethostname(), "preparing" if compiled is None else "compiling")


@contextmanager
def _lock_file(engine: Engine) -> Iterator[int]:
    path = Path(tempfile.gettempdir(), f"study-prepare-{engine.name}-{os.getuid()}")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def preparing(engines: Sequence[tuple[Engine, Cell]]) -> Iterator[subprocess.Popen[bytes]]:
    """Prepare engines in a separate process, in the background.

    It is a process rather than a thread, so that it doesn't slow down this interpreter and can be ended at any moment.
    If it fails, the workers prepare their engines themselves, and report the error.

    Args:
        engines: engines that installed packages offer, each with a cell that it supports.

    Yields:
        The process. Leaving the ``with`` block ends it.

    Raises:
        OSError: if the process can't be started.

    Example:
        >>> with preparing([]) as process:
        ...     process.wait()
        0
    """
    process = subprocess.Popen(
        # -P: imports nothing from the working folder.
        [sys.executable, "-P", "-m", "study.worker.prepare"],
        stdin=subprocess.PIPE,
        # Not the driver's output: its reader would wait for this process, too, if the driver is killed.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(import_path())},
        start_new_session=True,  # Ctrl-C is for the driver, which ends this
    )
    try:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as to:
            to.write(
                json.dumps([(engine.name, cell.task, cell.model, cell.values) for engine, cell in engines]).encode()
            )
        yield process
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Prepare the engines on standard input: a JSON list of an engine's name, and a cell's task, model and values.

    Raises:
        InputError: if an engine can't be imported.
        Exception: as `prepare` raises.
    """
    for name, task, model, values in json.load(sys.stdin.buffer):
        # JSON has no tuples.
        prepare(engine_named(name), Cell(task, model, {key: with_tuples(value) for key, value in values.items()}))


if __name__ == "__main__":
    main()
