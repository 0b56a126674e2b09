"""The argument `trial` of training functions, for reporting steps by calls instead of yields.

A greenlet turns a call into an iterator of reports. So a function that reports is driven like one that yields, in the
same thread and in slices of time.
"""

from __future__ import annotations

import contextvars
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet


@dataclass(frozen=True)
class Place:
    """Destination of a trial's files and messages.

    Args:
        folder: returns the trial's folder, and creates it if necessary.
        log: writes a line into the trial's log.
    """

    folder: Callable[[], Path]
    log: Callable[[str], None] = print


@dataclass(frozen=True)
class SavedState:
    """A state saved by a function after its latest step.

    Args:
        state: the state; the function may change it when it continues.
    """

    state: Any


class Trial:
    """A trial of a training function, passed to functions with a parameter `trial`.

    Attributes:
        seed: the trial's seed.
        resume: the last state that the interrupted trial saved; None for a new trial.

    Example:
        >>> def train(seed, *, rate=0.5, trial):
        ...     loss = 1.0 if trial.resume is None else trial.resume
        ...     while not trial.should_stop:
        ...         loss *= rate
        ...         trial.report(loss=loss)
        ...         trial.save(loss)
    """

    def __init__(self, seed: int, resume: Any, last_step: int, place: Place) -> None:
        self.seed = seed
        self.resume = resume
        self._last_step = last_step
        self._place = place
        self._should_stop = False
        self._call: ReportingCall | None = None

    @property
    def folder(self) -> Path:
        """The trial's folder, created if necessary; the study file's `keep` selects files of it to store.

        Raises:
            OSError: if it can't be created.
        """
        return self._place.folder()

    @property
    def last_step(self) -> int | None:
        """The latest step, including steps before an interruption; None before the first."""
        return None if self._last_step < 0 else self._last_step

    @property
    def should_stop(self) -> bool:
        """True once the latest step has reached the study file's `iterations`; always False without them."""
        return self._should_stop

    def report(self, step: int | None = None, metrics: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Report metrics and other numbers at a step.

        The call doesn't return if it ends the trial: an invalid report, such as a step that isn't greater, fails it; a
        declared metric that is NaN or infinite makes it diverge; and a step beyond the study file's `iterations`
        doesn't count.

        Args:
            step: the step, greater than the previous one; None for the previous step + 1, or 0 for the first.
            metrics: numbers by name; necessary for names that aren't Python identifiers.
            more: numbers as keyword arguments. The name ``step``, here or in `metrics`, replaces the argument;
                ``state`` gives a state, as in a yielded dict.

        Raises:
            RuntimeError: if the function yields its steps, or if other code than the running function calls this
                method, such as another thread.

        Example:
            >>> def train(seed, trial):
            ...     trial.report(10, {"val/loss": 0.5}, accuracy=0.9)
        """
        self._hand_over({"step": self._last_step + 1 if step is None else step, **(metrics or {}), **more})

    def save(self, state: Any) -> None:
        """Save a state to resume from after the latest step if the trial is interrupted.

        States are copied about once a second, and stored about once a minute; others are skipped. A state that can't be
        copied fails the trial.

        Args:
            state: numbers, strings, True, False, None, bytes, arrays, tensors, and nested dicts, lists and tuples of
                these. Convert other objects to these types.

        Raises:
            RuntimeError: if no step has been reported yet, if the function yields its steps, or if other code than the
                running function calls this method, such as another thread.
        """
        if self._last_step < 0:
            raise RuntimeError("trial.save needs a step to go on from: call trial.report first")
        self._hand_over(SavedState(state))

    def log(self, text: str) -> None:
        """Write a line into the trial's log."""
        self._place.log(text)

    def _hand_over(self, report: Any) -> None:
        if self._call is None or not self._call.is_running_here:
            raise RuntimeError(
                "trial.report and trial.save must be called by the training function itself, in its own thread, and "
                "not by a function that yields its steps"
            )
        self._call.hand_over(report)

    def begin(self, call: ReportingCall | None) -> None:
        """Connect the trial with the call that passes on its reports; None if the function yields them."""
        self._call = call

    def note(self, step: int, *, is_last: bool) -> None:
        """Record an accepted step; `is_last` tells the function to stop."""
        self._last_step, self._should_stop = step, is_last


class ReportingCall(Iterator[Any]):
    """Iterator of the reports that a function passes to `hand_over`; `StopIteration` has the function's value.

    Args:
        call: calls the function.

    Example:
        >>> reporting = ReportingCall(lambda: reporting.hand_over(1) or "done")
        >>> next(reporting)
        1
        >>> try:
        ...     next(reporting)
        ... except StopIteration as end:
        ...     print(end.value)
        done
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._greenlet = greenlet(call)
        # Settings of decimal and numpy are context variables, which a greenlet doesn't inherit.
        self._greenlet.gr_context = contextvars.copy_context()
        self._driver: greenlet | None = None

    def __next__(self) -> Any:
        """Run the function until its next report.

        Raises:
            StopIteration: if the function returns, with its value; without a value once it has ended.
            BaseException: the exception that the function raises.
        """
        if self._greenlet.dead:
            raise StopIteration
        self._driver = self._greenlet.parent = getcurrent()
        report = self._greenlet.switch()
        if self._greenlet.dead:
            raise StopIteration(report)
        return report

    @property
    def is_running_here(self) -> bool:
        """True if the current greenlet runs this call."""
        return getcurrent() is self._greenlet

    @property
    def frame(self) -> FrameType | None:
        """The innermost frame of a suspended call; None before its first report, while it runs, and after its end."""
        frame: FrameType | None = self._greenlet.gr_frame
        return frame

    def hand_over(self, report: Any) -> None:
        """Pass a report to the iterating code, and wait until it asks for the next one.

        Only the running function may call this (`is_running_here`).

        Raises:
            GreenletExit: if the call is closed instead.
        """
        assert self._driver is not None
        self._driver.switch(report)

    def close(self) -> None:
        """End the function by raising `GreenletExit` at its last report, like `GeneratorExit` in a generator.

        It is a no-op before the function begins and after its end.

        Raises:
            BaseException: another exception that the function raises then.
        """
        if self._greenlet and not self._greenlet.dead:
            self._driver = self._greenlet.parent = getcurrent()
            self._greenlet.throw(GreenletExit)


def temporary_place(owner: object) -> Place:
    """Return a place with a temporary folder, created on demand and removed with its owner; messages are printed.

    The place's `folder` raises OSError if the folder can't be created.

    Args:
        owner: an object that lives as long as the trial.
    """
    folders: list[Path] = []

    def folder() -> Path:
        if not folders:
            folders.append(Path(tempfile.mkdtemp(prefix="study-trial-")))
            weakref.finalize(owner, shutil.rmtree, folders[0], ignore_errors=True)
        return folders[0]

    return Place(folder)
