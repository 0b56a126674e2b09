"""Ctrl-C during imports and calls: libraries and handlers stay intact, and the next call works."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.console import Console
from study.driver.monitor import stopping
from study.interface.stop_signals import noting_stops

INTERRUPTED = """
import os, signal, sys, threading

struck = []


def strike(event, arguments):
    if event == "import" and arguments[0] == {module!r} and not struck:
        struck.append(event)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


sys.addaudithook(strike)
import study

content = {{
    "study": "tiny", "question": "?", "task": {{"name": "simple"}}, "models": ["NMU"], "seeds": 2,
    "protocol": {{"iterations": 2, "evaluate_every": 1}},
}}
tiny = study.load(content, store="studies", tracking_uri={tracking!r})


def act():
    {act}
    for thread in threading.enumerate():
        if struck and thread.name == "interrupt":
            thread.join()


try:
    act()
except KeyboardInterrupt:
    print("interrupted")
print("struck" if struck else "not struck")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
act()
print("works")
"""

RUN = "tiny.run(local=True, engine='torch')"


@pytest.mark.parametrize(
    ("module", "act", "tracking"),
    [
        ("torch.nn.modules.module", RUN, "off"),
        ("torch.nn.modules.module", "exec('import torch')", "off"),
        pytest.param("mlflow.entities.run", RUN, None, marks=pytest.mark.slow),
        ("ray._private.worker", "exec('import ray')", "off"),
        ("pandas.core.frame", "exec('import pandas')", "off"),
    ],
)
def test_a_call_works_after_an_interrupted_import(tmp_path: Path, module: str, act: str, tracking: str | None) -> None:
    """Ctrl-C during an import, even twice, interrupts the call once, after the import; the next call works."""
    code = INTERRUPTED.format(module=module, act=act, tracking=tracking)
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.splitlines()
    assert [line for line in lines if line in ("interrupted", "struck", "not struck", "works")] == [
        "interrupted",
        "struck",
        "works",
    ]


def test_a_users_handler_gets_the_interrupt(tmp_path: Path) -> None:
    """A user's handler is called once, after the import, and stays installed."""
    code = """
import os, signal, sys, threading
import study

called = []
handler = lambda number, frame: called.append(hasattr(sys.modules["pandas"], "DataFrame"))
signal.signal(signal.SIGINT, handler)


def strike(event, arguments):
    if event == "import" and arguments[0] == "pandas.core.frame":
        os.kill(os.getpid(), signal.SIGINT)


sys.addaudithook(strike)
import pandas
[thread.join() for thread in threading.enumerate() if thread.name == "interrupt"]
assert called == [True], called
assert signal.getsignal(signal.SIGINT) is handler
"""
    completed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr


@pytest.fixture
def handler() -> Iterator[object]:
    """Install Python's own handler of Ctrl-C, and restore the earlier one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_second_ctrl_c_leaves_the_earlier_handlers(handler: object) -> None:
    """A second Ctrl-C during the restoration of handlers leaves the earlier handlers installed."""
    stop = threading.Event()

    def interrupted_twice() -> None:
        with stopping(Console(file=io.StringIO()), stop):
            signal.raise_signal(signal.SIGINT)
            assert stop.is_set()
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                assert signal.getsignal(signal.SIGINT) is handler

    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()


def test_an_interrupt_swallowed_by_user_code_is_raised_later(handler: object) -> None:
    """An interrupt that user code swallows is raised at the end of the call, and handlers are as before."""

    def swallowing() -> None:
        with noting_stops():
            assert signal.getsignal(signal.SIGINT) is not handler
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                assert signal.getsignal(signal.SIGINT) is handler

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            swallowing()
