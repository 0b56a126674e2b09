"""A trial of a training function in a process of its own: whatever it does, only it fails.

The process is started anew for each trial, not forked from this one, which has threads, and imports the user's modules
again. What it reports is data: nothing that comes from it could run code here.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy.typing as npt

from study.engine.calls.call import TrialCall
from study.engine.calls.guarded import GuardedProcess, ending
from study.engine.calls.limits import Limits
from study.engine.calls.output import TrialOutput
from study.engine.calls.trial import Arrays, CallProgress, CallTrial, state_in
from study.interface.error_text import shortened
from study.interface.function import Step
from study.interface.function.messages import BrokenMessageError, MessageReader, packed, unpacked

_PROGRAM = "study.interface.function.child"
_GRACE_S = 10.0
_MOST_S = 3600.0


class IsolatedTraining(TrialCall):
    """A trial of a function that runs in a process of its own, from the first slice on.

    The trial goes on between slices. `close` ends its process, and so does the end of this one, in whatever way.

    Args:
        load: returns the function there: a function of a module, or a `functools.partial` of one with arguments of
            JSON. Its module should import little: the process imports it for each trial.
        trial: what the function is called with, and what it reports.
        limits: what the process may use.
        checkpoint: what `checkpoint` returned, to go on from; None to begin.
        state_every_s: seconds between two copies of the function's state.
        folder: the trial's folder, in which it runs; None for a temporary one, which isn't.
        output: the trial's log; None to print to this process's stderr.

    Raises:
        ValueError: if `load` isn't such a function, or if the checkpoint is of other metrics.
    """

    def __init__(
        self,
        load: Callable[..., Any],
        trial: CallTrial,
        *,
        limits: Limits | None = None,
        checkpoint: Arrays | None = None,
        state_every_s: float = 1.0,
        folder: Path | None = None,
        output: TrialOutput | None = None,
    ) -> None:
        super().__init__(trial, checkpoint, state_every_s)
        self._folder, self._output = folder, output
        self._load = _reference(load)
        self._limits = limits or Limits()
        self._before_s = self._history.training_s
        self._process: GuardedProcess | None = None
        self._messages: MessageReader | None = None
        self._started_at = 0.0
        self._reports_steps = checkpoint is not None  # only a function that reports steps saves a state

    @property
    def reports_steps(self) -> bool:
        """Whether the function yields its steps; known after the first."""
        return self._reports_steps

    def advance(self, for_s: float) -> CallProgress:
        """Wait for about that many seconds, or until the trial has ended."""
        if self._process is None and not self._done:
            self._start()
        until = time.monotonic() + for_s
        while not self._done:
            left_s = self._left_s()
            self._receive(min(until - time.monotonic(), left_s))
            if not self._done and self._left_s() <= 0:
                self._fail(f"it took longer than its time limit of {self._limits.time_limit_s:g} s, and was killed")
            if time.monotonic() >= until:
                break
        return self._progress()

    def checkpoint(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return what is needed to go on from the latest state; None if the function has given none."""
        return self._checkpoint

    def close(self) -> None:
        """End the process and everything that it has started."""
        if self._process is not None:
            self._process.close()

    def _start(self) -> None:
        self._started_at = time.monotonic()
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._process = GuardedProcess(
            _PROGRAM,
            self._request(),
            environment=self._limits.environment(),
            output=2 if self._output is None else self._output.descriptor,
            folder=self._folder,
        )
        self._messages = MessageReader(self._process.connection.fileno())
        with suppress(OSError):  # it has ended already; the reason is found when its answer is awaited
            state = b"" if self._checkpoint is None else packed(state_in(self._checkpoint))
            self._process.connection.send_bytes(state)

    def _request(self) -> dict[str, Any]:
        call = {
            "seed": self._trial.seed,
            "values": dict(self._trial.values),
            "iterations": self._trial.iterations,
            "resume_step": None if self._checkpoint is None else self._history.last_step,
        }
        return {
            "path": sys.path,
            "load": self._load,
            "call": call,
            "metrics": {name: (metric.low, metric.high) for name, metric in self._trial.metrics.items()},
            "memory_gb": self._limits.memory_gb,
            "state_every_s": self._state_every_s,
            "folder": None if self._folder is None else str(self._folder),
        }

    def _left_s(self) -> float:
        limit_s = self._limits.time_limit_s
        if limit_s is None:
            return float("inf")
        return limit_s - self._before_s - (time.monotonic() - self._started_at)

    def _receive(self, timeout_s: float) -> None:
        """Take what the process has reported, or see that it has ended."""
        process = self._process
        assert process is not None
        assert self._messages is not None
        ready = wait([process.connection, process.end], max(0.0, min(timeout_s, _MOST_S)))
        if process.connection in ready:
            try:
                is_open = self._messages.receive()
            except OSError:
                is_open = False
            if is_open:
                self._take_all(self._messages)
                return
            if not process.has_ended(_GRACE_S):
                process.kill()  # it has closed the connection, and reports nothing any more
        if ready:
            self._fail(self._reason(process))

    def _take_all(self, messages: MessageReader) -> None:
        try:
            while not self._done and (message := messages.take()) is not None:
                self._take(*message)
        except BrokenMessageError as error:
            self._fail(
                f"its process wrote {error} to the pipe of its reports: code in it writes to a file descriptor that "
                "it hasn't opened"
            )

    def _take(self, content: Any, more: bytes) -> None:
        match content:
            case {
                "step": int(step),
                "metrics": dict(metrics),
                "training_s": float(training_s),
                "reports_steps": bool(reports_steps),
                "undeclared": dict(undeclared),
            } if metrics.keys() == self._trial.metrics.keys() and _are_numbers({**metrics, **undeclared}):
                self._history.add(Step(step, metrics, undeclared=undeclared))
                self._history.training_s = self._before_s + training_s
                self._reports_steps = reports_steps
                if more:
                    self._checkpoint = self._history.arrays(_state(more))
                if reports_steps:
                    self._stop_early(step, metrics)
            case {"saved": True, "training_s": float(training_s)} if more and self._history.last_step is not None:
                self._history.training_s = self._before_s + training_s
                self._checkpoint = self._history.arrays(_state(more))
            case {"error": str(error), "details": str(details)}:
                self._fail(error, details)
            case {"end": True} if self._history.last_step is not None:
                self._done = True
                self.close()
            case _:
                raise BrokenMessageError(shortened(repr(content), 60))

    def _reason(self, process: GuardedProcess) -> str:
        """Say why the process ended before the function did."""
        code = process.exit_code()
        how = ending(code, self._limits.memory_gb)
        if code >= 0:
            return f"its process ended with {how} before the function did, as by os._exit"
        return f"its process was ended by {how}"


def _are_numbers(values: Mapping[Any, Any]) -> bool:
    return all(type(name) is str and type(value) is float for name, value in values.items())


def _state(data: bytes) -> dict[str, npt.NDArray[Any]]:
    try:
        return unpacked(data)
    except Exception:  # numpy raises many kinds for bytes that aren't its own
        raise BrokenMessageError(f"{data[:20]!r}") from None


def _reference(load: Callable[..., Any]) -> tuple[str, str, list[Any]]:
    """Return module, name and arguments of a function, as data."""
    function, arguments = (load.func, load.args) if isinstance(load, partial) else (load, ())
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<none>")
    if module is None or module == "__main__" or "<" in name or (isinstance(load, partial) and load.keywords):
        raise ValueError(
            "load must be a function of a module, or a functools.partial of one with positional arguments: the "
            f"trial's process imports it; but got {load!r}"
        )
    try:
        return module, name, json.loads(json.dumps(list(arguments)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"the arguments of load must be of JSON, but got {arguments!r}: {error}") from None
