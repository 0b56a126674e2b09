"""The log of a trial: complete, bounded and live, without affecting the trial."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from study.engine.calls.output import TrialOutput, _pump
from study.engine.calls.pump import HALF


@contextmanager
def captured(log: Path, *, is_shared: bool = False):
    """Log output within the block, and restore the streams."""
    streams, output = (sys.stdout, sys.stderr), TrialOutput(log, is_shared=is_shared)
    try:
        with output.capturing():
            yield output
    finally:
        sys.stdout, sys.stderr = streams
        output.close()


def test_all_output_is_logged_in_its_order(tmp_path, capfd):
    """The log has the output of Python, libraries and programs in order; none of it is printed."""
    log = tmp_path / "deep" / "log.txt"
    with captured(log) as output:
        print("printed")
        print("wrong", file=sys.stderr)
        os.write(1, b"written\n")
        subprocess.run([sys.executable, "-c", "print('program')"], check=True)
        output.write("logged \ud800")
    assert log.read_text() == "printed\nwrong\nwritten\nprogram\nlogged \\ud800\n"
    print("after")
    assert capfd.readouterr() == ("after\n", "")


def test_without_output_there_is_no_log(tmp_path):
    with captured(tmp_path / "log.txt"):
        pass
    assert not list(tmp_path.iterdir())


def test_shared_output_is_printed_and_logged(tmp_path, capsys):
    """Shared output is logged and printed, even to streams without descriptors, as in a notebook."""
    with captured(tmp_path / "log.txt", is_shared=True):
        print("printed")
        sys.stdout.writelines(["a\n", "b\n"])
        assert sys.stdout.encoding
    assert capsys.readouterr().out == "printed\na\nb\n"
    assert (tmp_path / "log.txt").read_text() == "printed\na\nb\n"


def test_a_long_log_has_its_beginning_and_its_end(tmp_path):
    """A log of any length keeps its beginning and its end, with the number of omitted bytes between them."""
    log, line = tmp_path / "log.txt", b"x" * 99 + b"\n"
    with captured(log):
        os.write(1, b"first\n")
        for _ in range(100):
            os.write(1, line * 600)
        os.write(1, b"last\n")
    content = log.read_bytes()
    assert content.startswith(b"first\n")
    assert content.endswith(b"last\n")
    assert len(content) <= 4 * HALF + 2**16
    (mark,) = [mark for mark in content.split(b"\n") if b"bytes left out]" in mark]
    left_out = int(mark[1:].split(b" ")[0].replace(b",", b""))
    assert len(content) - len(mark) - 2 + left_out == 11 + 100 * 600 * 100


def test_each_trial_has_its_own_log(tmp_path):
    """Late output of a program goes to the log of the trial that started it."""
    with captured(tmp_path / "1.txt"):
        print("first")
        program = subprocess.Popen(["sh", "-c", "read wait; echo late"], stdin=subprocess.PIPE)
    with captured(tmp_path / "2.txt") as output:
        program.communicate(b"\n")
        print("second")
        _pump().wait()
        output.write("third")
    _pump().wait()  # the pump answers only after it has looked at all pipes
    _pump().wait()
    assert (tmp_path / "2.txt").read_text() == "second\nthird\n"
    assert (tmp_path / "1.txt").read_text() == "first\nlate\n"


def test_a_resumed_trial_appends_to_its_log(tmp_path):
    for word in ("first", "resumed"):
        with captured(tmp_path / "log.txt"):
            print(word)
    assert (tmp_path / "log.txt").read_text() == "first\nresumed\n"


def test_a_full_disk_loses_only_the_log():
    """If the log file can't be made, the trial continues."""
    with captured(Path("/dev/full/log.txt")):
        print("x" * 10**6)


def test_streams_may_be_closed_or_replaced(tmp_path):
    with captured(tmp_path / "log.txt"):
        print("before")
        sys.stdout.close()
        sys.stdout = io.StringIO()
    assert (tmp_path / "log.txt").read_text() == "before\n"


def test_a_killed_pump_is_restarted(tmp_path):
    with captured(tmp_path / "1.txt"):
        print("first")
    pump = _pump()
    os.kill(pump.process.pid, signal.SIGKILL)
    pump.process.wait()
    with captured(tmp_path / "2.txt"):
        print("second")
    assert (tmp_path / "2.txt").read_text() == "second\n"


def test_the_output_of_a_process_that_is_killed_is_logged(tmp_path):
    """The log has the output that a process wrote before kill -9."""
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom study.engine.calls.output import TrialOutput\n"
        f"with TrialOutput(Path({str(tmp_path / 'log.txt')!r}), is_shared=False).capturing():\n"
        "    print('x' * 50_000)\n    os.kill(os.getpid(), 9)\n"
    )
    before = subprocess.run([sys.executable, "-c", program], capture_output=True, stdin=subprocess.DEVNULL)
    assert before.returncode == -signal.SIGKILL
    # The pump holds the stderr pipe, so the call returns only after the pump has ended.
    assert (tmp_path / "log.txt").read_text() == "x" * 50_000 + "\n"
