"""A trial of a training function in this process, in time slices."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy.typing as npt

from study.engine.calls.call import TrialCall
from study.engine.calls.output import TrialOutput
from study.engine.calls.trial import Arrays, CallProgress, CallTrial, state_in
from study.interface.error_text import error_line
from study.interface.function import FunctionCall, FunctionError, GeneratorStates, Step, state_arrays, state_of
from study.interface.function.left_threads import note_left, running_threads
from study.interface.function.process_state import ProcessState
from study.interface.function.trial import Place, SavedState
from study.interface.stop_signals import noting_stops, requested_stop


class FunctionTraining(TrialCall):
    """A trial of a function that runs in this process.

    Two of them must not run in parallel threads: both would draw from the same global generators. Others may run
    between its slices: its changes to the process (`ProcessState`) hold only during its slices.

    Args:
        function: the function to call.
        trial: the arguments of the call, and the metrics that it reports.
        time_limit_s: seconds after which the trial fails; None for no limit. It is checked after each step: a function
            that returns a dict, or a long step, can't be interrupted here.
        checkpoint: the arrays that `checkpoint` returned, to resume from; None to start.
        state_every_s: seconds between two copies of the function's state.
        folder: path of the trial's folder, created when the trial asks for it; None for a temporary one.
        output: the trial's log; None to log nothing.

    Raises:
        ValueError: if the checkpoint has other metrics.

    Example:
        >>> from study.interface.declarations import Metric
        >>> def train(seed, *, width):
        ...     return {"loss": seed / width}
        >>> trial = CallTrial(seed=3, values={"width": 2}, metrics={"loss": Metric()})
        >>> training = FunctionTraining(train, trial)
        >>> while not training.done:
        ...     progress = training.advance(for_s=1.0)
        >>> training.finish().metrics
        {'loss': 1.5}
    """

    def __init__(
        self,
        function: Callable[..., Any],
        trial: CallTrial,
        *,
        time_limit_s: float | None = None,
        checkpoint: Arrays | None = None,
        state_every_s: float = 1.0,
        folder: Path | None = None,
        output: TrialOutput | None = None,
    ) -> None:
        super().__init__(trial, checkpoint, state_every_s)
        self._output = output
        self._time_limit_s = time_limit_s
        self._copied_at: float | None = None
        self._step: Step | SavedState | None = None
        self._generators: GeneratorStates | None = None
        self._inside: ProcessState | None = None
        self._threads_before = running_threads()
        self._is_running = self._is_closed = False
        self._call = FunctionCall(
            function,
            seed=trial.seed,
            values=trial.values,
            metrics=trial.metrics,
            iterations=trial.iterations,
            resume=None if checkpoint is None else (self._history.steps[-1], state_of(state_in(checkpoint))),
            place=None
            if folder is None
            else Place(partial(_make_folder, folder), print if output is None else output.write),
        )

    @property
    def reports_steps(self) -> bool:
        """True if the function yields or reports its steps; known after the first step."""
        return self._call.reports_steps

    def advance(self, for_s: float) -> CallProgress:
        """Train for about `for_s` seconds, at least one step unless it is done, and return the progress.

        A function that returns a dict has only one step.

        A signal handler's exception ends the slice and the call; `checkpoint` still returns the latest copy of the
        state. KeyboardInterrupt and SystemExit that the function itself raises fail the trial.

        Raises:
            StoreError: if values at rungs can't be read or stored.
            OSError: if the trial's log can't be opened.
        """
        with self._own_process_state():
            began = now = time.perf_counter()
            while not self._done and (now == began or now - began < for_s):
                self._take_step()
                now, before = time.perf_counter(), now
                self._history.training_s += now - before
                self._check_time()
        if self._done:
            self.left_threads = note_left(self._threads_before)
        return self._progress()

    @contextmanager
    def _own_process_state(self) -> Iterator[None]:
        """Restore the trial's process state and log its output within the context; then restore the outer state.

        Within itself it is a no-op.
        """
        if self._is_running:
            yield
            return
        outside, self._is_running = ProcessState.now(), True
        try:
            if self._inside is not None:
                self._inside.restore()
            if self._generators is not None:
                self._generators.restore()
            with nullcontext() if self._output is None else self._output.capturing(), noting_stops():
                yield
        finally:
            if not self._done:
                self._inside, self._generators = ProcessState.now(), GeneratorStates.now()
            outside.restore()
            self._is_running = False

    def checkpoint(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return the arrays to resume from the latest state; None if the function has saved no state.

        A state that can't be copied fails the trial.
        """
        self._copy_state()
        return self._checkpoint

    def close(self) -> None:
        """End the call early, for example after a last checkpoint, ignoring its errors; a no-op if it is closed."""
        if self._is_closed:
            return
        self._is_closed = True
        with self._own_process_state(), suppress(BaseException):  # the trial has no result that an error could change
            self._call.close()

    def _take_step(self) -> None:
        """Copy the latest state if that is due, run the function until its next step, and record it.

        The trial may end with it.
        """
        if self._copied_at is None or time.perf_counter() - self._copied_at >= self._state_every_s:
            self._copy_state()
        self._step = None  # the function may change the objects that it refers to
        try:
            step = None if self._done else self._call.next_step()
        except FunctionError as error:
            self._fail(str(error), error.details)
            return
        if isinstance(step, Step):
            self._history.add(step)
            if self._call.reports_steps and self._stop_early(step.step, step.metrics):
                return
        self._step = step
        self._done = step is None or not self._call.reports_steps or (isinstance(step, Step) and not step.is_finite)

    def _copy_state(self) -> None:
        """Copy the state of the latest step, if it has one; a state that can't be copied fails the trial."""
        if self._step is None or self._step.state is None:
            return
        try:
            self._checkpoint = self._history.arrays(state_arrays(self._step.state))
        except BaseException as error:  # user objects may raise anything
            if requested_stop() is not None:
                raise
            self._fail(error_line(error).removeprefix("ValueError: "))
        self._copied_at, self._step = time.perf_counter(), None

    def _check_time(self) -> None:
        took_s, limit_s = self._history.training_s, self._time_limit_s
        if limit_s is not None and took_s > limit_s and not self._error:
            self._fail(f"it took {took_s:.1f} s, and its time limit is {limit_s:g} s")


def _make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
