"""Calls of training functions, step by step, with checked reports and readable errors.

A function returns a dict of its metrics, or yields such dicts with an increasing `step`. If it takes `resume`, it may
yield a `state`, too; a resumed call gets the latest one. If it takes `trial`, it reports steps and saves states through
that object. Numbers that aren't declared metrics are kept, too.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any

from study.interface.configs import CONFIG
from study.interface.declarations import Metric
from study.interface.error_text import (
    attempt,
    entries_of,
    error_line,
    error_traceback,
    is_users_file,
    shortened,
    storable,
    type_name,
)
from study.interface.function.classes import as_function
from study.interface.function.generators import seed_generators
from study.interface.function.trial import Place, ReportingCall, SavedState, Trial, temporary_place
from study.interface.stop_signals import requested_stop

_RESERVED = ("step", "state")
_LONGEST = 2000


class FunctionError(ValueError):
    """Failure of a training function; the message is one line, with the file and line of the user's code.

    Args:
        message: a description of the failure.
        details: the traceback of the user's code, or an empty text.

    Attributes:
        error: the exception that the user's code raised; None unless the call keeps errors, since the exception's
            traceback keeps memory in use.
    """

    error: BaseException | None = None

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(shortened(storable(message), _LONGEST))
        self.details = storable(details)


@dataclass(frozen=True)
class Step:
    """Report of a training function at a step.

    Args:
        step: the step, >= 0, in the function's own unit.
        metrics: declared metrics by name; values may be NaN or infinite.
        state: state to resume from; None without one. Copy it before the next step, which may change it.
        undeclared: other reported numbers by name.
    """

    step: int
    metrics: dict[str, float]
    state: Any = None
    undeclared: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_finite(self) -> bool:
        """True if every metric is finite."""
        return all(map(math.isfinite, self.metrics.values()))


class FunctionCall:
    """A call of a training function.

    Args:
        function: a function, or a class with a method `fit`. It is called with `seed` and the values, and with `resume`
            and `trial` if it has such parameters.
        seed: the trial's seed; it also seeds the global generators before the call, even before a resumed one.
        values: hyperparameters by name, as in a study file; lists become tuples where the signature asks for tuples.
        metrics: metrics that it must report; empty to accept any.
        iterations: the last step; a generator is closed there. None for no limit.
        resume: the step and state to resume from; None to start.
        place: destination of the trial's files and messages; None for a temporary folder and the terminal.
        keeps_errors: True to attach the function's exception to the `FunctionError`, for a debugger.

    Raises:
        ValueError: if a metric is called ``step`` or ``state``, or Python can't read the function's signature.

    Example:
        >>> def train(seed, *, width):
        ...     for epoch in range(9):
        ...         yield {"step": epoch, "loss": width / (1 + epoch)}
        >>> call = FunctionCall(train, seed=1, values={"width": 2}, metrics={"loss": Metric()}, iterations=1)
        >>> call.next_step(), call.next_step(), call.next_step()
        (Step(step=0, metrics={'loss': 2.0}, ...), Step(step=1, metrics={'loss': 1.0}, ...), None)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        seed: int,
        values: Mapping[str, Any],
        metrics: Mapping[str, Metric],
        iterations: int | None = None,
        resume: tuple[int, Any] | None = None,
        place: Place | None = None,
        keeps_errors: bool = False,
    ) -> None:
        if any(name in metrics for name in _RESERVED):
            raise ValueError(f"no metric may be called step or state, but got {list(metrics)}")
        self._function = function = as_function(function)
        self._seed = seed
        self._values = values
        self._metrics = metrics
        self._iterations = iterations
        self._resume = resume
        self._last = -1 if resume is None else resume[0]
        self._reports: Iterator[Any] | None = None
        self._keeps_errors = keeps_errors
        self._has_ended = False
        self._was_interrupted = False
        self.reports_steps = False
        """True if the function yields or reports its steps; known after the first step."""
        parameters = inspect.signature(function).parameters
        self._takes_resume, self._takes_trial = "resume" in parameters, "trial" in parameters
        self._trial = Trial(seed, None if resume is None else resume[1], self._last, place or temporary_place(self))
        self._trial.note(self._last, is_last=self._last == iterations)

    def next_step(self) -> Step | SavedState | None:
        """Run the function until it reports its next step.

        Returns:
            The step, or a state that the function saved after the previous step. None once the call is over: the
            function has ended or failed, it was closed, a step is beyond `iterations`, or the previous step had a
            metric that isn't finite. A generator is closed at `iterations`; a function that reports through `trial`
            runs on to its end, and may save states.

        Raises:
            FunctionError: if the function can't be called with the seed and the values, raises an exception, makes an
                invalid report or ends without one, or if the call was interrupted before.
            BaseException: the exception of a signal's handler (`noting_stops`), even if the function caught it.
        """
        if self._has_ended:
            return None
        if self._was_interrupted:
            raise FunctionError(f"{self._place()}: it was interrupted, and can't go on")
        step, failure = None, None
        try:
            step = self._begin() if self._reports is None else self._pull()
            if self._is_last(step):
                self._end()
        except FunctionError as error:
            failure = error
        except BaseException as error:  # such as asyncio.CancelledError, or a panic of a Rust extension
            failure = _failure(error, self._place())
            failure.error = error if self._keeps_errors else None
        if (stop := requested_stop()) is not None:
            self._was_interrupted = True  # an interrupted generator would look like a finished one
            raise stop
        if failure is not None:
            self._has_ended = True
            raise failure
        return step

    def _is_last(self, step: Step | SavedState | None) -> bool:
        if step is None or isinstance(step, SavedState):
            return step is None
        if not self.reports_steps or not step.is_finite:
            return True
        # A function that reports through `trial` runs on after its last report, for example to draw a figure.
        return step.step == self._iterations and not isinstance(self._reports, ReportingCall)

    def close(self) -> None:
        """End the function at its current yield or report, if it is at one; `next_step` returns None from then on.

        Raises:
            BaseException: the exception that the function raises when it ends; RuntimeError if a generator yields once
                more.
        """
        self._has_ended = True
        close = getattr(self._reports, "close", None)
        if close is not None:
            close()

    _end = close

    def _begin(self) -> Step | SavedState | None:
        """Seed the generators, call the function, and return its first report, or its only one."""
        arguments = _arguments(self._function, self._values) | {"seed": self._seed}
        if self._takes_resume:
            arguments["resume"] = self._trial.resume
        seed_generators(self._seed)
        if not self._takes_trial:
            return self._returned(self._function(**arguments))
        self._reports = ReportingCall(partial(self._function, **arguments, trial=self._trial))
        self._trial.begin(self._reports)
        try:
            report = next(self._reports)
        except StopIteration as end:  # no report: it returns its metrics, or a generator
            self._trial.begin(None)
            if end.value is None and self._resume is not None:  # the trial was interrupted after its last report
                self.reports_steps = True
                return None
            return self._returned(end.value)
        self.reports_steps = True
        return self._checked(report)

    def _returned(self, reports: Any) -> Step | SavedState | None:
        """Return the step of a returned dict, or a generator's first report; another value raises FunctionError."""
        if isinstance(reports, Mapping):
            self._reports = None
            return self._step(reports, {"step": max(self._last, 0)} | dict(reports))
        if not isinstance(reports, Iterator):
            ways = ", or report them by trial.report" if self._takes_trial else ""
            raise self._error(
                f"must return a dict of metrics, or yield such dicts{ways}, but returned {_description(reports)}"
            )
        self._reports, self.reports_steps = reports, True
        return self._pull()

    def _pull(self) -> Step | SavedState | None:
        """Return the next report; None if the function has ended. An invalid report or end raises FunctionError."""
        assert self._reports is not None
        try:
            report = next(self._reports)
        except StopIteration as end:
            if end.value is not None:
                raise self._error(
                    f"{self._verb}s its metrics, so it must not return any, but returned {_description(end.value)}"
                ) from None
            if self._last < 0:
                raise self._error("must yield at least one dict of metrics, but ended without one") from None
            return None
        return self._checked(report)

    @property
    def _verb(self) -> str:
        """Verb for error messages: return, yield or report."""
        if isinstance(self._reports, ReportingCall):
            return "report"
        return "yield" if self.reports_steps else "return"

    def _checked(self, report: Any) -> Step | SavedState | None:
        """Return a report's step or saved state; None beyond `iterations`. An invalid report raises FunctionError."""
        if isinstance(report, SavedState):
            return report
        if not isinstance(report, Mapping):
            raise self._error(f"must yield dicts of metrics, but yielded {_description(report)}")
        if "step" not in report:
            raise self._error(f"must yield dicts with a step, but yielded one with {_listed(report)} only")
        step = self._step({name: report[name] for name in report if name != "state"}, report)
        if step.step <= self._last:
            raise self._error(f"must {self._verb} steps that increase, but {step.step} came after {self._last}")
        if self._iterations is not None and step.step > self._iterations:
            if self._last < 0:
                raise self._error(
                    f"must {self._verb} a step within iterations: {self._iterations}, but began with {step.step}"
                )
            return None
        self._last = step.step
        self._trial.note(step.step, is_last=step.step == self._iterations)
        return step

    def _step(self, given: Mapping[Any, Any], report: Mapping[Any, Any]) -> Step:
        """Return the numbers in `given` with the step and state in `report`.

        A missing metric or an invalid number, name, step or state raises FunctionError.
        """
        missing = [name for name in self._metrics if name not in given]
        unknown = [name for name in given if name not in self._metrics and name != "step"]
        verb = self._verb
        if missing:
            problem = f"{_listed(missing)} isn't there" + (f" and {_listed(unknown)} isn't declared" if unknown else "")
            raise self._error(f"must {verb} the metrics {_listed(self._metrics)}, but {problem}")
        if report.get("state") is not None and not self._takes_resume:
            raise self._error("yields a state, so it must have a parameter resume for the latest state")
        step = _scalar(report["step"])
        if isinstance(step, bool) or not isinstance(step, numbers.Integral) or not 0 <= int(step) < 2**63:
            raise self._error(f"must {verb} a whole number of at least 0 as step, but got {report['step']!r}")
        metrics = {name: self._number(name, given[name], verb) for name in self._metrics}
        undeclared = {name: self._undeclared(name, given[name], verb) for name in unknown}
        return Step(int(step), metrics, report.get("state"), undeclared)

    def _undeclared(self, name: Any, value: Any, verb: str) -> float:
        """Return an undeclared number as a float, infinite if it is too large.

        An invalid name or value raises FunctionError.
        """
        number: Any = _scalar(value)
        if type(name) is not str or name in _RESERVED:
            raise self._error(
                f"must {verb} numbers by name, a text other than step or state, but got the name {name!r}"
            )
        if not isinstance(number, numbers.Real):
            raise self._error(f"must {verb} numbers, but got {_description(value)} as {name}, which isn't declared")
        try:
            return float(number)
        except OverflowError:  # an integer of more than 308 digits
            return math.copysign(math.inf, 1 if abs(number) == number else -1)

    def _number(self, name: str, value: Any, verb: str) -> float:
        """Return a metric as a float; raise FunctionError unless it is a number within its limits, NaN or infinite."""
        scalar, metric = _scalar(value), self._metrics[name]
        if not isinstance(scalar, numbers.Real):  # bool is a number: True is 1
            raise self._error(f"must {verb} a number as {name}, but got {_description(value)}")
        try:
            number = float(scalar)
        except OverflowError:
            raise self._error(f"must {verb} a number below 1e308 as {name}, but got a larger one") from None
        for limit, words, is_beyond in (
            (metric.low, "at least", metric.low is not None and number < metric.low),
            (metric.high, "at most", metric.high is not None and number > metric.high),
        ):
            if is_beyond and math.isfinite(number):
                raise self._error(f"must {verb} {words} {limit:g} as {name}, as it is declared, but got {number:g}")
        return number

    def _error(self, message: str) -> FunctionError:
        name = getattr(inspect.unwrap(self._function), "__name__", type_name(self._function))
        return FunctionError(f"{self._place()}: {name} {message}")

    def _place(self) -> str:
        """Return the file and line of the latest yield or report, else of the function's definition, else its repr."""

        def find() -> str:
            code = getattr(inspect.unwrap(self._function), "__code__", None)
            frame = getattr(self._reports, "gi_frame", None)
            if isinstance(self._reports, ReportingCall):
                frame = self._reports.frame
                while frame is not None and _is_our_file(frame.f_code.co_filename):
                    frame = frame.f_back
            if frame is not None:
                return f"{frame.f_code.co_filename}:{frame.f_lineno}"
            return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(self._function)

        return attempt(find, type_name(self._function))


def _arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as keyword arguments of the function, converted by `arguments_of` if necessary."""
    is_plain = not any(value is None or isinstance(value, list) or "." in name for name, value in values.items())
    if is_plain and CONFIG not in inspect.signature(function).parameters:
        return dict(values)
    from study.interface.signature import (
        arguments_of,  # only here: pydantic would slow down the start of a trial's own process
    )

    return arguments_of(function, values)


def failure_of(error: BaseException) -> FunctionError:
    """Describe an exception that user code raised outside a call, such as during an import, as a FunctionError."""
    return _failure(error, "")


def _failure(error: BaseException, fallback: str) -> FunctionError:
    """Describe an exception by a line with the user's file and line, and the traceback without this package.

    If no file of the user's is in the traceback, the line has `fallback`, unless that is empty.
    """
    top = entries_of(error)
    while top is not None and _is_ours(top):
        top = top.tb_next
    place = _users_line(top) or fallback
    text = error_line(error)
    return FunctionError(f"{text} ({place})" if place else text, error_traceback(error, top))


def _is_ours(entry: TracebackType) -> bool:
    file = entry.tb_frame.f_code.co_filename
    return file.startswith("<frozen") or _is_our_file(file)


def _is_our_file(file: str) -> bool:
    return Path(file).parent == Path(__file__).parent


def _users_line(top: TracebackType | None) -> str:
    """Return the file and line of the innermost call in the user's own files, or an empty text."""
    place = ""
    for frame, line in walk_tb(top):
        if is_users_file(frame.f_code.co_filename) and not _is_our_file(frame.f_code.co_filename):
            place = f"{frame.f_code.co_filename}:{line}"
    return place


def _scalar(value: Any) -> Any:
    """Convert a numpy number, or an array or tensor without axes, to a Python number."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def _description(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return (
        f"{value!r:.60}"
        if value is None or type(value) is str
        else type(value).__name__ + (f" of shape {tuple(shape)}" if shape else "")
    )


def _listed(names: Any) -> str:
    return ", ".join(map(str, names)) or "nothing"
