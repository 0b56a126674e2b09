"""Training functions as users write them; trial processes import this file by its name."""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np

from study.interface.function import messages


def load(name: str, *arguments: object):
    """Return a function of this module, as the service's loader does; with arguments, call it as a factory."""
    function = globals()[name]
    return function(*arguments) if arguments else function


def once(seed, *, scale: float = 1.0):
    """Return metrics drawn from the global generators of Python and NumPy."""
    return {"loss": scale * random.random(), "accuracy": np.random.random()}  # noqa: NPY002


def steps(seed, *, count: int = 6, scale: float = 1.0):
    """Yield metrics drawn from both global generators at each step."""
    for step in range(count):
        yield {"step": 10 * step, **once(seed, scale=scale)}


def resumable(seed, resume, *, count: int = 6, die_at: int = -1):
    """Train weights in place, with a separate generator; kill the process at step `die_at`."""
    rng, weights, first = np.random.default_rng(seed), np.zeros(3), 0
    if resume is not None:
        first, weights = resume["next"], resume["weights"]
        rng.bit_generator.state = resume["rng"]
    for step in range(first, count):
        weights *= 1.0 + 1e-3
        weights += rng.random(3)
        if step == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        state = {"next": step + 1, "weights": weights, "rng": rng.bit_generator.state}
        yield {"step": step, "loss": weights.sum(), "accuracy": 0.0, "state": state}


def with_torch(seed):
    """Import torch during the call, and draw from its global generator."""
    import torch

    return {"loss": torch.rand(()), "accuracy": torch.rand(1, dtype=torch.float64)[0]}


def end_by(seed, *, way: str):
    """Fail, end this process or return metrics, depending on `way`."""
    print("about to end", way)
    if way == "segmentation fault":
        ctypes.string_at(0)
    if way == "abort":
        os.abort()
    if way == "exit":
        os._exit(7)
    if way == "sys.exit":
        sys.exit("enough")
    if way == "raise":
        raise RuntimeError("no\nconvergence")
    if way == "interrupt":
        raise KeyboardInterrupt
    if way == "memory":
        return {"loss": np.ones(2**31).sum(), "accuracy": 0.0}
    print("the end", end="")
    return {"loss": 0.5, "accuracy": 0.5}


def meddle(seed, *, how: str):
    """Report a step, write a message chosen by `how` to the pipe of the reports, and sleep."""
    yield {"step": 0, "loss": 0.0, "accuracy": 0.0}
    (pipe,) = (int(name) for name in os.listdir("/proc/self/fd") if int(name) >= 500)  # noqa: PTH208
    if how == "half a message":
        os.write(pipe, messages._MARK + messages._SIZES.pack(100, 0) + b"{")
    elif how == "junk":
        os.write(pipe, b"\x00\x00\x01\x00he")
    elif how == "no state":
        step = {"step": 1, "metrics": {"loss": 0.0, "accuracy": 0.0}, "undeclared": {}}
        step |= {"training_s": 0.0, "reports_steps": True}
        messages.send(pipe, step, b"no state")
    else:
        messages.send(pipe, json.loads(how))
    time.sleep(1000)


def scribble(seed):
    """Write to the descriptors 3 to 63, close them, and return metrics."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\x00\x00\x00\x02[]")
            os.close(descriptor)
        except OSError:
            pass
    os.write(1, b"printed")
    return {"loss": 0.5, "accuracy": 0.5}


def leave(seed, *, pipe_path: str):
    """Start an orphaned process in a new session, write its id to a pipe, and return metrics."""
    code = "import subprocess; print(subprocess.Popen(['sleep', '1000'], start_new_session=True, stdout=2).pid)"
    printed = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True, check=True)
    with open(pipe_path, "wb") as pipe:  # noqa: PTH123
        pipe.write(printed.stdout)
    return {"loss": 0.5, "accuracy": 0.5}


def forever(seed, *, pipe_path: str, is_apart: bool = False):
    """Start a process, write both ids to a pipe, and block in C while holding Python's lock."""
    child = subprocess.Popen(["sleep", "1000"], start_new_session=is_apart)
    with open(pipe_path, "w") as pipe:  # noqa: PTH123
        pipe.write(f"{os.getpid()} {child.pid}\n")
    ctypes.PyDLL(None).pause()
    return {"loss": 0.0, "accuracy": 0.0}


def sleepy(seed):
    """Report a step, then sleep."""
    yield {"step": 0, "loss": 0.0, "accuracy": 0.0}
    time.sleep(1000)


def environment(seed):
    """Report the number of threads and a hash that depends on PYTHONHASHSEED."""
    return {"loss": float(os.environ["OMP_NUM_THREADS"]), "accuracy": hash("seeded") % 1000}


if __name__ == "__main__":  # a worker for tests: it runs a trial that never ends
    from functools import partial

    from study.engine.calls import CallTrial
    from study.engine.function import IsolatedTraining
    from study.interface.declarations import Metric

    metrics = {"loss": Metric(), "accuracy": Metric(higher_is_better=True)}
    trial = CallTrial(seed=1, values={"pipe_path": sys.argv[1]}, metrics=metrics)
    import mytrials

    training = IsolatedTraining(partial(mytrials.load, "forever"), trial)
    while not training.done:
        training.advance(1.0)
