"""A training function's call in a child process that reports to its parent.

The parent, `study.engine.function.isolated`, sends a request as JSON, then the arrays of a state, or nothing. The child
answers with messages (`study.interface.function.messages`): steps, with the arrays of their states if they have some,
and the end. Keys of the request:

- `load`: module, name and arguments of a callable that returns the function
- `call`: arguments of `FunctionCall`, and `resume_step`
- `metrics`: the limits of each metric
- `folder`: the trial's folder, or None
- `memory_gb`: memory limit in GiB, or None
- `state_every_s`: least seconds between two copies of a state
"""

from __future__ import annotations

import importlib
import resource
import sys
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy.typing as npt

from study.interface.declarations import Metric
from study.interface.error_text import error_line
from study.interface.function.call import FunctionCall, FunctionError, Step, failure_of
from study.interface.function.messages import packed, send, unpacked
from study.interface.function.state import state_arrays, state_of
from study.interface.function.trial import Place


def run(parent: Connection, request: Mapping[str, Any]) -> None:
    """Call the function, and send its steps and copies of its states until it ends or fails, then the end or the error.

    Args:
        parent: connection to the parent.
        request: the parent's request, with the keys in this module's docstring.

    Raises:
        OSError: if the connection breaks before the end is sent.
        ValueError: if the function has closed stdout or stderr; then the end isn't sent.
    """
    try:
        _limit_memory(request["memory_gb"])
        _send_steps(parent, request)
        end: dict[str, Any] = {"end": True}
    except FunctionError as error:
        end = {"error": str(error), "details": error.details}
    except BaseException as error:  # this process gets no Ctrl-C, so user code raised it
        failure = failure_of(error)
        end = {"error": str(failure), "details": failure.details}
    sys.stdout.flush()  # the parent may kill this process once it has the end
    sys.stderr.flush()
    send(parent.fileno(), end)


def _send_steps(parent: Connection, request: Mapping[str, Any]) -> None:
    """Send each step of the call, and a copy of its state, or of a saved one, at most every `state_every_s` seconds."""
    call, state_every_s = _call(parent, request), request["state_every_s"]
    began = time.perf_counter()
    copied_at = -state_every_s
    while (step := call.next_step()) is not None:
        now = time.perf_counter() - began
        has_state = step.state is not None and now - copied_at >= state_every_s
        arrays = packed(_arrays(step.state)) if has_state else b""
        content: dict[str, Any] = {"saved": True}
        if isinstance(step, Step):
            content = {
                "step": step.step,
                "metrics": step.metrics,
                "reports_steps": call.reports_steps,
                "undeclared": dict(step.undeclared),
            }
        if has_state or isinstance(step, Step):
            send(parent.fileno(), content | {"training_s": time.perf_counter() - began}, arrays)
        if has_state:
            copied_at = now


def _call(parent: Connection, request: Mapping[str, Any]) -> FunctionCall:
    """Make the call, with the state that the parent sends next; an error, as in an import, raises `FunctionError`."""
    state = parent.recv_bytes()
    try:
        module, name, arguments = request["load"]
        load: Any = importlib.import_module(module)
        for part in name.split("."):
            load = getattr(load, part)
        arguments_of_call = dict(request["call"])
        resume_step = arguments_of_call.pop("resume_step")
        resume = None if resume_step is None else (resume_step, state_of(unpacked(state)))
        metrics = {name: Metric(low=low, high=high) for name, (low, high) in request["metrics"].items()}
        folder = request["folder"]
        place = None if folder is None else Place(lambda: Path(folder), print)
        return FunctionCall(load(*arguments), metrics=metrics, resume=resume, place=place, **arguments_of_call)
    except BaseException as error:
        raise failure_of(error) from None


def _arrays(state: Any) -> dict[str, npt.NDArray[Any]]:
    try:
        return state_arrays(state)
    except BaseException as error:
        raise FunctionError(error_line(error).removeprefix("ValueError: ")) from None


def _limit_memory(memory_gb: float | None) -> None:
    """Limit the process's allocations to this many GiB, without code and mapped files; None for no limit."""
    if memory_gb is not None:
        limit = int(memory_gb * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
