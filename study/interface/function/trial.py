"""The trial that a training function takes as `trial`: it reports steps by calls, instead of yielding them.

A call is turned into an iterator of reports by a greenlet, so that a function which reports is driven as one that
yields: in the same thread, a slice of time at a time.
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
        folder: returns the trial's folder, which exists from then on.
        log: writes a line into the trial's log.
    """

    folder: Callable[[], Path]
    log: Callable[[str], None] = print


@dataclass(frozen=True)
class SavedState:
    """A state that a function can go on from, after its latest step.

    Args:
        state: what it saved; it may change once the function runs on.
    """

    state: Any


class Trial:
    """A trial of a training function; a study gives it to functions that have a parameter `trial`.

    Attributes:
        seed: the trial's seed.
        resume: the state that an interrupted call saved last; None to begin.

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
        """The trial's folder. What is written there is kept with the results, as the study file's `keep` says."""
        return self._place.folder()

    @property
    def last_step(self) -> int | None:
        """The latest step, also one before an interruption; None before the first."""
        return None if self._last_step < 0 else self._last_step

    @property
    def should_stop(self) -> bool:
        """True once the latest step has reached the study file's `iterations`."""
        return self._should_stop

    def report(self, step: int | None = None, metrics: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Report numbers at a step.

        Args:
            step: the step, greater than the one before; None for the next one, beginning with 0.
            metrics: numbers by name, such as those whose names aren't Python's.
            more: more of them.

        Raises:
            RuntimeError: if the function yields its steps, or calls this in another thread.
        """
        self._hand_over({"step": self._last_step + 1 if step is None else step, **(metrics or {}), **more})

    def save(self, state: Any) -> None:
        """Save a state to go on from after the latest step, if the trial is interrupted.

        States are copied about once a second, and stored about once a minute.

        Args:
            state: numbers, texts, arrays, tensors, and dicts, lists and tuples of these; objects of a class must be
                taken apart.

        Raises:
            RuntimeError: if no step was reported before, the function yields its steps, or this is another thread.
        """
        if self._last_step < 0:
            raise RuntimeError("trial.save needs a step to go on from: call trial.report before")
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
        """Connect the trial with the call that hands over its reports; None if the function yields them."""
        self._call = call

    def note(self, step: int, *, is_last: bool) -> None:
        """Note that a step was accepted, and whether none must follow."""
        self._last_step, self._should_stop = step, is_last


class ReportingCall(Iterator[Any]):
    """A call of a function as an iterator of what it hands over; its value is in `StopIteration`.

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
        # Settings such as those of decimal and numpy are context variables, which a greenlet doesn't inherit.
        self._greenlet.gr_context = contextvars.copy_context()
        self._driver: greenlet | None = None

    def __next__(self) -> Any:
        """Run the function until it hands something over."""
        if self._greenlet.dead:
            raise StopIteration
        self._driver = self._greenlet.parent = getcurrent()
        given = self._greenlet.switch()
        if self._greenlet.dead:
            raise StopIteration(given)
        return given

    @property
    def is_running_here(self) -> bool:
        """True if the current greenlet runs this call."""
        return getcurrent() is self._greenlet

    @property
    def frame(self) -> FrameType | None:
        """The innermost frame of a suspended call."""
        frame: FrameType | None = self._greenlet.gr_frame
        return frame

    def hand_over(self, report: Any) -> None:
        """Give something to whoever iterates, and wait until it is to go on."""
        assert self._driver is not None
        self._driver.switch(report)

    def close(self) -> None:
        """End the function: `GreenletExit` is raised where it waits, as `GeneratorExit` is in a generator."""
        if self._greenlet and not self._greenlet.dead:
            self._driver = self._greenlet.parent = getcurrent()
            self._greenlet.throw(GreenletExit)


def temporary_place(owner: object) -> Place:
    """Return a place for a trial whose files nobody keeps: a folder that goes with its owner, if the trial asks for it.

    Args:
        owner: lives as long as the trial does.
    """
    folders: list[Path] = []

    def folder() -> Path:
        if not folders:
            folders.append(Path(tempfile.mkdtemp(prefix="study-trial-")))
            weakref.finalize(owner, shutil.rmtree, folders[0], ignore_errors=True)
        return folders[0]

    return Place(folder)
