"""A trial of a training function in its own process: a crash there fails this trial only.

Each trial starts a new process, since a fork of this one, which has threads, wouldn't be safe. It imports the user's
modules again. It reports data only, so that nothing from it can run code here.
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
    """A trial of a function that runs in its own process, from the first slice on.

    The trial continues between slices. Its process ends with `close`, and with this process, even if this one is
    killed.

    Args:
        load: called in the process to return the function; a module's function, or a `functools.partial` of one with
            JSON arguments. Its module should import little, since each trial's process imports it.
        trial: the arguments of the call, and the metrics that it reports.
        limits: resource limits of the process.
        checkpoint: the arrays that `checkpoint` returned, to resume from; None to start.
        state_every_s: seconds between two copies of the function's state.
        folder: the trial's folder, its working directory; None for a temporary one, which isn't the working directory.
        output: the trial's log; None to print to this process's stderr.

    Raises:
        ValueError: if `load` isn't such a function, or if the checkpoint has other metrics.
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
        """True if the function yields or reports its steps; known after the first step."""
        return self._reports_steps

    def advance(self, for_s: float) -> CallProgress:
        """Handle the process's reports for about `for_s` seconds, or until the trial has ended; return the progress.

        The first call starts the process. A trial that exceeds its time limit fails, and is killed.

        Raises:
            OSError: if the trial's folder, log or process can't be created.
            TypeError: if a hyperparameter isn't JSON data.
            StoreError: if values at rungs can't be read or stored.
        """
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
        """Return the arrays to resume from the latest state; None if the function has saved no state."""
        return self._checkpoint

    def close(self) -> None:
        """End the process and everything it has started."""
        if self._process is not None:
            self._process.close()

    def _start(self) -> None:
        """Start the process, and send the request and the state to resume from."""
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
        with suppress(OSError):  # it has already ended; `_receive` finds the reason
            state = b"" if self._checkpoint is None else packed(state_in(self._checkpoint))
            self._process.connection.send_bytes(state)

    def _request(self) -> dict[str, Any]:
        """Return the request to `study.interface.function.child`."""
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
        """Wait up to `timeout_s` seconds, and handle the process's reports; its early end fails the trial."""
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
                process.kill()  # it has closed the connection, and can't report any more
        if ready:
            self._fail(self._reason(process))

    def _take_all(self, messages: MessageReader) -> None:
        """Handle all complete messages; invalid data fail the trial."""
        try:
            while not self._done and (message := messages.take()) is not None:
                self._take(*message)
        except BrokenMessageError as error:
            self._fail(
                f"its process wrote {error} to the pipe of its reports: code in it writes to a file descriptor that "
                "it hasn't opened"
            )

    def _take(self, content: Any, more: bytes) -> None:
        """Handle a message, its JSON content and the bytes of a state; raise BrokenMessageError if it is invalid."""
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
        """Return the reason that the process ended before the function did."""
        code = process.exit_code()
        how = ending(code, self._limits.memory_gb)
        if code >= 0:
            return f"its process ended with {how} before the function did, for example by os._exit"
        return f"its process was ended by {how}"


def _are_numbers(values: Mapping[Any, Any]) -> bool:
    return all(type(name) is str and type(value) is float for name, value in values.items())


def _state(data: bytes) -> dict[str, npt.NDArray[Any]]:
    try:
        return unpacked(data)
    except Exception:  # numpy raises many kinds for bytes that aren't its own
        raise BrokenMessageError(f"{data[:20]!r}") from None


def _reference(load: Callable[..., Any]) -> tuple[str, str, list[Any]]:
    """Return a function's module, name and arguments as data.

    If no other process could import it, or its arguments aren't JSON, it raises ValueError.
    """
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
