"""The base class of called trials: history, end and record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from study.engine.calls.trial import Arrays, CallProgress, CallRecord, CallTrial, History


class TrialCall(ABC):
    """A called trial that advances in time slices.

    Args:
        trial: the arguments of the call, and the metrics that it reports.
        checkpoint: the arrays that `checkpoint` returned, to resume from; None to start.
        state_every_s: seconds between two copies of the function's state.

    Attributes:
        left_threads: names of the threads that the call left running in this process; set once it is done.

    Raises:
        ValueError: if the checkpoint has other metrics.
    """

    left_threads: Sequence[str] = ()

    def __init__(self, trial: CallTrial, checkpoint: Arrays | None, state_every_s: float) -> None:
        self._trial = trial
        self._state_every_s = state_every_s
        self._history = History(trial.metrics, checkpoint)
        self._checkpoint = None if checkpoint is None else dict(checkpoint)
        self._error: tuple[str, str] | None = None
        self._done = False
        self._was_stopped = False
        if trial.is_stopped_at is not None:
            trial.is_stopped_at.resume(self._history.metrics_by_step())

    @property
    def done(self) -> bool:
        """True once the trial has ended."""
        return self._done

    @property
    @abstractmethod
    def reports_steps(self) -> bool:
        """True if the function yields or reports its steps; known after the first step."""

    @abstractmethod
    def advance(self, for_s: float) -> CallProgress:
        """Continue for about `for_s` seconds, and return the progress; a user's error ends the trial, as `failure`.

        Raises:
            OSError: if the trial's folder or process can't be created.
            KeyError, TypeError: if a placeholder of a program has no value, or a hyperparameter isn't JSON data.
            StoreError: if values at rungs can't be read or stored.
        """

    @abstractmethod
    def checkpoint(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return the arrays to resume from the latest state; None if the function has saved no state."""

    @abstractmethod
    def close(self) -> None:
        """End the call; a trial that is ended early has no result."""

    @property
    def failure(self) -> str | None:
        """The error of a failed trial, with its traceback; None otherwise."""
        return None if self._error is None else "\n".join(filter(None, reversed(self._error)))

    @property
    def undeclared(self) -> list[str]:
        """Names of the numbers reported so far that aren't declared metrics, at most 100."""
        return self._history.undeclared

    def finish(self) -> CallRecord:
        """Return the trial's record.

        Raises:
            ValueError: if the trial isn't done.
        """
        if not self._done:
            raise ValueError(f"the trial must be done, but is at step {self._history.last_step}")
        error, details = self._error or (None, "")
        return self._history.record(
            reports_steps=self.reports_steps, error=error, details=details, was_stopped=self._was_stopped
        )

    def _progress(self) -> CallProgress:
        return CallProgress(self._history.last_step, self._trial.iterations, self._done, self._history.latest)

    def _stop_early(self, step: int, metrics: Mapping[str, float]) -> bool:
        """End the trial if it is to be stopped at this step; return True if so."""
        if self._trial.is_stopped_at is not None and self._trial.is_stopped_at(step, metrics):
            self._was_stopped = self._done = True
            self.close()
        return self._was_stopped

    def _fail(self, error: str, details: str = "") -> None:
        self._error, self._done = (error, details), True
        self.close()
