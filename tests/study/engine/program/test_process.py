"""Processes of programs: exit codes, signals, and no process that outlives its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from study.engine.program.process import Process, ProgramError
from tests.processes import READY_S
from tests.study.engine.function.test_isolated import LINUX, has_ended

Start = Callable[..., Process]
Ids = Callable[[], list[int]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Return a function that starts a program with output in ``output.txt``; a single word is a shell script."""

    def begin(*words: str, memory_gb: float | None = None, **environment: str) -> Process:
        words = ("sh", "-c", *words) if len(words) == 1 else words
        with (tmp_path / "output.txt").open("ab") as output:
            return Process(words, os.environ | environment, tmp_path, output.fileno(), memory_gb)

    return begin


@pytest.fixture
def ids(tmp_path: Path) -> Ids:
    """Make a pipe ``ids`` for a program, and return a function that waits for the process ids written to it.

    All writers must have closed the pipe by then.
    """
    os.mkfifo(tmp_path / "ids")
    return lambda: [int(word) for word in (tmp_path / "ids").read_text().split()]


def ended(process: Process) -> int:
    """Wait until a program has ended, and return its exit code."""
    while process.exit_code is None:
        process.wait(READY_S)
    return process.exit_code


def printed(folder: Path) -> str:
    return (folder / "output.txt").read_text()


WAITS = "sleep 1000 & echo $$ $! > ids; wait"
"""A program that writes its own id and its child's, and runs until it is killed."""


@pytest.mark.parametrize(
    ("text", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("kill -TERM $$", -15), ("nosuch", 127)]
)
def test_exit_codes_are_returned(start: Start, text: str, code: int) -> None:
    """A program's exit code is returned; that of a signal is negative."""
    assert ended(start(text)) == code


def test_a_program_has_its_words_environment_and_folder(start: Start, tmp_path: Path) -> None:
    """Output and errors share one file in their order; standard input is empty."""
    assert ended(start('pwd; echo "$1 $A" >&2; cat; echo end', A="a b")) == 0
    assert ended(start("printf", "%s|", "", "a b", "*", "\u00fc", "\udce9")) == 0
    expected = f"{tmp_path}\n a b\nend\n|a b|*|\u00fc|".encode() + b"\xe9|"
    assert (tmp_path / "output.txt").read_bytes() == expected


@LINUX
def test_a_program_inherits_no_other_files(start: Start, tmp_path: Path) -> None:
    """A program inherits only its standard streams; `ls` itself opens the listed folder."""
    assert ended(start("ls /proc/self/fd")) == 0
    assert printed(tmp_path).split() == ["0", "1", "2", "3"]


def test_a_program_may_have_long_arguments(start: Start, tmp_path: Path) -> None:
    """Arguments may be longer than the buffer of a socket."""
    assert ended(start("printf", "%s", *["x" * 100_000] * 10)) == 0
    assert printed(tmp_path) == "x" * 10**6


def test_a_pipe_ends_quietly(start: Start, tmp_path: Path) -> None:
    """A program is ended by SIGPIPE as usual, although Python ignores this signal."""
    ended(start("yes | head -n 1"))
    assert printed(tmp_path) == "y\n"


def test_an_unrunnable_program_is_an_error(start: Start, tmp_path: Path) -> None:
    """The error has the system's reason; the next program still runs."""
    (tmp_path / "text").write_text("no program")
    reasons = {}
    for name in ("nosuch", "./nosuch", "./text"):
        process = start(name, "1")
        with pytest.raises(ProgramError) as caught:
            ended(process)
        reasons[name] = str(caught.value)
        assert process.exit_code == 127
    assert reasons == {
        "nosuch": "nosuch can't be run: No such file or directory",
        "./nosuch": "./nosuch can't be run: No such file or directory",
        "./text": "./text can't be run: Permission denied",
    }
    assert ended(start("exit 3")) == 3


def test_programs_one_after_another_have_one_guard(start: Start, tmp_path: Path, ids: Ids) -> None:
    """Sequential programs share a guard, to start Python only once; concurrent ones have separate guards."""
    for _ in range(2):
        ended(start("echo $PPID"))
    first, second = printed(tmp_path).split()
    other = start(f"{WAITS}; exit 1")
    ids()
    ended(start("echo $PPID"))
    other.terminate()
    assert ended(other) != 0
    assert first == second != printed(tmp_path).split()[-1]


def test_a_program_is_terminated(start: Start, ids: Ids) -> None:
    """SIGTERM gives a program time to clean up, and also ends its children."""
    process = start(f"trap 'exit 3' TERM; {WAITS}")
    _, started = ids()
    process.terminate()
    process.terminate()
    assert ended(process) == 3
    assert has_ended(started)
    process.terminate()


def test_a_program_that_ignores_sigterm_is_killed(start: Start, ids: Ids) -> None:
    """A program that ignores SIGTERM is killed after its grace period, with its children."""
    process = start(f"trap '' TERM; {WAITS}")
    processes = ids()
    process.terminate(grace_s=0.0)
    assert ended(process) == -signal.SIGKILL
    assert all(map(has_ended, processes))


APART = "setsid sh -c 'echo $$ > ids; exec sleep 1000' < /dev/null > /dev/null 2>&1 &"
"""A process in a separate session, so that a signal to the program's group doesn't reach it."""


@LINUX
@pytest.mark.parametrize("way", ["exit 0", "kill -9 $$", "wait"])
def test_nothing_outlives_a_program(start: Start, ids: Ids, tmp_path: Path, way: str) -> None:
    """A program's end, by itself or by a signal, kills even its children in other sessions."""
    os.mkfifo(tmp_path / "go")
    process = start(f"{APART} read go < go; {way}")
    (child,) = ids()
    (tmp_path / "go").write_text("on\n")
    if way == "wait":
        process.terminate()
    ended(process)
    assert has_ended(child)


def test_waiting_ends_with_output_or_time(start: Start, ids: Ids) -> None:
    """Waiting ends with output or after its time, and a running program has no exit code."""
    process = start(WAITS)
    ids()
    process.wait(0.0)
    process.wait(-1.0)
    reading, writing = os.pipe()
    os.write(writing, b"x")
    process.wait(READY_S, reading)
    assert process.exit_code is None
    process.terminate()
    ended(process)
    for descriptor in (reading, writing):
        os.close(descriptor)


@LINUX
def test_a_killed_guard_ends_its_program(start: Start, ids: Ids) -> None:
    """A killed guard is an error, its program is killed, and the next program gets another guard."""
    process = start("echo $PPID $$ > ids; exec sleep 1000")
    guard, program = ids()
    os.kill(guard, signal.SIGKILL)
    with pytest.raises(ProgramError, match="its guard process was killed, and the program with it"):
        ended(process)
    assert process.exit_code == -signal.SIGKILL
    assert has_ended(program)
    assert ended(start("exit 3")) == 3


@LINUX
def test_a_guard_may_be_killed_with_an_unread_command(start: Start, ids: Ids) -> None:
    """A guard that is killed before it has read a command is the same error."""
    process = start("echo $PPID $$ > ids; exec sleep 1000")
    guard, _ = ids()
    os.kill(guard, signal.SIGSTOP)
    process.terminate()
    os.kill(guard, signal.SIGKILL)
    with pytest.raises(ProgramError, match="its guard process was killed, and the program with it"):
        ended(process)


def test_a_killed_idle_guard_is_replaced(start: Start, tmp_path: Path) -> None:
    ended(start("echo $PPID"))
    guard = int(printed(tmp_path))
    os.kill(guard, signal.SIGKILL)
    assert has_ended(guard)
    assert ended(start("exit 3")) == 3


WORKER = """
import os, sys
from pathlib import Path
from study.engine.program.process import Process

process = Process(["sh", "-c", sys.argv[1]], os.environ, Path(), 2)
while process.exit_code is None:
    process.wait(100.0)
"""


@LINUX
def test_nothing_outlives_a_killed_worker(tmp_path: Path, ids: Ids) -> None:
    """After kill -9 of the worker its program, its guard and all descendants end."""
    text = f"{APART} sleep 1000 & echo $$ $PPID $! > more; wait"
    os.mkfifo(tmp_path / "more")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    worker = subprocess.Popen([sys.executable, "-c", WORKER, text], env=environment, cwd=tmp_path)
    processes = [*ids(), *map(int, (tmp_path / "more").read_text().split())]
    worker.kill()
    worker.wait()
    try:
        assert len(processes) == 4
        assert all(map(has_ended, processes))
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
