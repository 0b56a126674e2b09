"""Training functions that break everything they can reach: the module of the studies in `test_own_code`.

Of twelve seeds, seed 5 fails, in each function differently. If every seed changes the process, no trial may fail.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress

from study import seeded

FAILING = 5


def result(seed):
    return {"loss": 1.0 / (1 + seed)}


class UnprintableError(Exception):
    def __str__(self):
        raise ValueError("no text")


class PanicException(BaseException):
    """A substitute for the panics of Rust extensions: an exception derived from BaseException."""


def panic():
    raise PanicException("called `Option::unwrap()` on a `None` value")


@seeded
def surrogate(seed, *, how: str = "a"):
    if seed == FAILING:
        raise ValueError("bad file " + b"/caf\xe9.csv".decode("utf-8", "surrogateescape"))
    return result(seed)


@seeded
def unprintable(seed, *, how: str = "a"):
    if seed == FAILING:
        raise UnprintableError
    return result(seed)


@seeded
def panicking(seed, *, how: str = "a"):
    if seed == FAILING:
        panic()
    return result(seed)


@seeded
def cancelled(seed, *, how: str = "a"):
    if seed == FAILING:
        raise asyncio.CancelledError("the task was cancelled")
    return result(seed)


@seeded
def interrupted(seed, *, how: str = "a"):
    if seed == FAILING:
        raise KeyboardInterrupt("by the function itself")
    return result(seed)


@seeded
def exiting(seed, *, how: str = "a"):
    if seed == FAILING:
        sys.exit(3)
    return result(seed)


@seeded
def elsewhere(seed, *, how: str = "a"):
    os.chdir(tempfile.mkdtemp())
    return result(seed)


@seeded
def untidy(seed, *, how: str = "a"):
    """Report as loss if an earlier trial has changed the process, and change the process."""
    import torch

    is_changed = (
        "STUDY_TEST_UNTIDY" in os.environ
        or torch.get_default_dtype() != torch.float32
        or not torch.is_grad_enabled()
        or signal.getsignal(signal.SIGUSR2) != signal.SIG_DFL
    )
    os.environ["STUDY_TEST_UNTIDY"] = "1"
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    return {"loss": float(is_changed)}


@seeded
def threaded(seed, *, how: str = "a"):
    """Leave a thread that never ends, so that Python doesn't exit."""
    threading.Thread(target=threading.Event().wait, name=f"left-by-{seed}").start()
    return result(seed)


def write_everywhere(content):
    for descriptor in range(3, 1024):  # the pipe of its reports is one of them
        with suppress(OSError):
            os.write(descriptor, content)


@seeded
def half_a_message(seed, *, how: str = "a"):
    if seed == FAILING:
        write_everywhere(b"\x00\x00\x01\x00he")
        time.sleep(1000)
    return result(seed)


@seeded
def junk(seed, *, how: str = "a"):
    if seed == FAILING:
        write_everywhere(b"\xff" * 64)
    return result(seed)


@seeded
def empty_message(seed, *, how: str = "a"):
    if seed == FAILING:
        write_everywhere(b"\x00\x00\x00\x02[]")
        time.sleep(1000)
    return result(seed)


@seeded
def orphaning(seed, *, how: str = "a"):
    """Leave a process in a session of its own, whose command names its owner."""
    subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(1000)  # {how}"], start_new_session=True)
    return result(seed)


NOISE = []


@seeded
def leaking(seed, *, how: str = "a"):
    """Return a value that depends on the number of trials run in this process."""
    NOISE.append(seed)
    return {"loss": float(len(NOISE))}
