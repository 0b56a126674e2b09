"""Calls of a training function: valid reports, and error messages for invalid ones."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
import signal
import sys
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from study.interface.declarations import Metric
from study.interface.function import FunctionCall, FunctionError, Step
from study.interface.stop_signals import noting_stops

METRICS = {"loss": Metric(low=0.0), "accuracy": Metric(higher_is_better=True, low=0.0, high=1.0)}


def call_of(function, *, iterations=None, resume=None, **values):
    return FunctionCall(function, seed=3, values=values, metrics=METRICS, iterations=iterations, resume=resume)


def every_step(function, **settings) -> list[Step]:
    return list(iter(call_of(function, **settings).next_step, None))


def returns(report):
    def train(seed):
        return report

    return train


def yields(*reports):
    def train(seed):
        yield from reports

    return train


def report(step=None, loss=0.5, accuracy=0.5, **more):
    return {"loss": loss, "accuracy": accuracy, **({} if step is None else {"step": step}), **more}


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0), (True, 1.0), (np.float32(0.1), float(np.float32(0.1))), (np.int8(1), 1.0), (np.bool_(False), 0.0),
        (np.array(0.5), 0.5), (torch.tensor(0.25), 0.25), (torch.tensor(0.5, requires_grad=True), 0.5),
        (Fraction(1, 4), 0.25),
    ],
)  # fmt: skip
def test_numbers_of_all_libraries_are_numbers(value, number):
    """NumPy scalars, zero-dimensional arrays and tensors become Python numbers; True and False become 1 and 0."""
    for step in every_step(returns(report(accuracy=value))) + every_step(yields(report(1, accuracy=value))):
        assert (step.metrics["accuracy"], type(step.metrics["accuracy"])) == (number, float)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (returns(None), "must return a dict of metrics, or yield such dicts, but returned None"),
        (returns([1]), "but returned list"),
        (returns({"loss": 1.0}), "metrics loss, accuracy, but accuracy isn't there"),
        (returns(report(note="a")), "must return numbers, but got 'a' as note, which isn't declared"),
        (returns(report() | {1: 2.0}), "a text other than step or state, but got the name 1"),
        (returns({"lss": 1, "accuracy": 1}), "but loss isn't there and lss isn't declared"),
        (returns(report(loss="0.5")), "must return a number as loss, but got '0.5'"),
        (returns(report(loss=None)), "must return a number as loss, but got None"),
        (returns(report(loss=1j)), "must return a number as loss, but got complex"),
        (returns(report(loss=Decimal(1))), "but got Decimal"),
        (returns(report(loss=np.ones(1))), r"must return a number as loss, but got ndarray of shape \(1,\)"),
        (returns(report(loss=torch.ones(2, 3))), r"but got Tensor of shape \(2, 3\)"),
        (returns(report(loss=10**400)), "must return a number below 1e308 as loss"),
        (returns(report(accuracy=93.5)), "must return at most 1 as accuracy, as it is declared, but got 93.5"),
        (returns(report(loss=-1)), "must return at least 0 as loss, as it is declared, but got -1"),
        (returns(report(2.5)), "must return a whole number of at least 0 as step, but got 2.5"),
        (yields(), "must yield at least one dict of metrics, but ended without one"),
        (yields(3), "must yield dicts of metrics, but yielded int"),
        (yields(report()), "must yield dicts with a step, but yielded one with loss, accuracy only"),
        (yields(report(-1)), "must yield a whole number of at least 0 as step, but got -1"),
        (yields(report(True)), "must yield a whole number of at least 0 as step, but got True"),
        (yields({"step": 1}), "must yield the metrics loss, accuracy"),
        (yields(report(1), report(1)), "must yield steps that increase, but 1 came after 1"),
        (yields(report(1, state=2)), "it must have a parameter resume"),
    ],
)  # fmt: skip
def test_invalid_reports_are_refused(function, message):
    """The message has the function's file and line, the rule, and the value given."""
    with pytest.raises(FunctionError, match=message) as refused:
        every_step(function)
    assert re.match(rf"{re.escape(__file__)}:\d+: train ", str(refused.value))


def test_undeclared_numbers_are_kept():
    """Undeclared numbers are kept without limits, so that a script that reports them needs no change."""
    (step,) = every_step(returns(report(grad_norm=torch.tensor(2.0), epoch_time=10**400)))
    assert step.undeclared == {"grad_norm": 2.0, "epoch_time": math.inf}
    steps = every_step(yields(report(1, lr=0.1), report(2)))
    assert [step.undeclared for step in steps] == [{"lr": 0.1}, {}]


def test_the_line_is_that_of_the_yield():
    """An error in a yield names the yield's line, not the function's."""

    def train(seed):
        yield report(1)
        yield {"step": 2}

    with pytest.raises(FunctionError) as refused:
        every_step(train)
    assert str(refused.value).startswith(f"{__file__}:{inspect.getsourcelines(train)[1] + 2}: train must yield")


def test_a_generator_that_returns_something_is_refused():
    """A generator that returns metrics is refused, since they would be lost."""

    def train(seed):
        yield report(1)
        return report()

    with pytest.raises(FunctionError, match="yields its metrics, so it must not return any, but returned dict"):
        every_step(train)


@pytest.mark.parametrize(("iterations", "expected"), [(None, [0, 10, 20, 30]), (20, [0, 10, 20]), (25, [0, 10, 20])])
def test_iterations_bound_a_generator(iterations, expected):
    """No step beyond the bound is reported; the generator is closed before it computes another step."""
    started, ends = [], []

    def train(seed):
        try:
            for step in range(0, 40, 10):
                started.append(step)
                yield report(step)
        finally:
            ends.append("closed")

    call = call_of(train, iterations=iterations)
    assert [step.step for step in iter(call.next_step, None)] == expected
    assert ends == ["closed"]
    assert started == ([0, 10, 20] if iterations == 20 else [0, 10, 20, 30])
    assert call.next_step() is None


def test_a_first_step_beyond_the_bound_is_refused():
    """A generator whose first step is beyond the bound is refused, since the trial would have no result."""
    with pytest.raises(FunctionError, match="must yield a step within iterations: 5, but began with 10"):
        every_step(yields(report(10)), iterations=5)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("-inf"), torch.tensor(float("nan"))])
def test_a_metric_that_is_not_finite_ends_the_call(value):
    """A non-finite metric is the last step; limits of the metric don't apply to it."""
    steps = every_step(yields(report(1), report(2, loss=value), report(3)))
    assert [(step.step, step.is_finite) for step in steps] == [(1, True), (2, False)]


def test_an_error_has_the_users_line():
    """The error has one line (type, message, user's innermost line) and a traceback without the study's frames."""

    def train(seed, *, text: str):
        yield report(0)
        parse(text)

    with pytest.raises(FunctionError) as failed:
        every_step(train, text="no\nJSON")
    line = inspect.getsourcelines(parse)[1] + 1
    message = "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    assert str(failed.value) == f"{message} ({__file__}:{line})"
    assert "in train" in failed.value.details
    assert str(Path("study/interface/function/call.py")) not in failed.value.details.replace(__file__, "")


def parse(text):
    return json.loads(text)


def test_an_error_before_the_first_step_is_one_too():
    """A function that returns a dict fails in the same way; sys.exit ends the trial, not the worker."""

    def train(seed, *, code: int):
        sys.exit(code)

    with pytest.raises(FunctionError, match=r"it ended Python by sys.exit\(3\) \(.*test_call.py:\d+\)"):
        every_step(train, code=3)
    with pytest.raises(FunctionError, match=r"TypeError: .* missing 1 required .*'code' \(.*test_call.py:\d+\)"):
        every_step(train)


def test_an_error_raised_on_close_fails_the_call():
    """An error raised by a generator while it is closed at its bound fails the call."""

    def train(seed):
        try:
            for step in range(9):
                yield report(step)
        finally:
            raise OSError("the disk is full")

    with pytest.raises(FunctionError, match="OSError: the disk is full"):
        every_step(train, iterations=2)


@pytest.fixture
def ctrl_c():
    """Return a function that raises SIGINT with Python's handler set, since shells ignore SIGINT in background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("is_swallowed", [False, True])
def test_ctrl_c_stops_a_call(ctrl_c, is_swallowed):
    """Ctrl-C stops the call even if the function catches it; continuing the call afterwards is an error."""

    def train(seed):
        yield report(0)
        with suppress(BaseException if is_swallowed else ValueError):
            ctrl_c()
        yield report(1)

    call = call_of(train)
    assert call.next_step() is not None
    with pytest.raises(KeyboardInterrupt), noting_stops():
        call.next_step()
    with pytest.raises(FunctionError, match="it was interrupted, and can't go on"):
        call.next_step()


class UnprintableError(Exception):
    """An exception class with a faulty __str__."""

    def __str__(self):
        raise OSError("no text")

    __repr__ = __str__


class PanicError(BaseException):
    """An exception like pyo3's PanicException, derived from BaseException only."""


def nameless():
    """Return an exception whose class raises when its name is read."""

    class Nameless(type):
        @property
        def __name__(cls):
            raise RuntimeError

    return Nameless("Hidden", (Exception,), {"__class__": property(lambda self: 1 / 0)})("text")


MISSING = "its message is missing, because its"
RAISED = {
    "surrogates": (lambda: ValueError(b"caf\xe9".decode("utf-8", "surrogateescape")), r"ValueError: caf\udce9"),
    "no text": (UnprintableError, f"UnprintableError: {MISSING} __str__ raised OSError"),
    "no repr": (
        lambda: SystemExit(UnprintableError()),
        "SystemExit: its message is missing, because its __repr__ raised OSError",
    ),
    "long": (lambda: ValueError("x" * 10**6), f"ValueError: {'x' * 497}..."),
    "panic": (lambda: PanicError("unwrap"), "PanicError: unwrap"),
    "cancelled": (asyncio.CancelledError, "CancelledError"),
    "interrupt": (KeyboardInterrupt, "KeyboardInterrupt"),
    "end of a generator": (GeneratorExit, "GeneratorExit"),
    "group": (
        lambda: BaseExceptionGroup("two", [ValueError("a"), PanicError("b")]),
        "BaseExceptionGroup: two (2 sub-exceptions)",
    ),
    "without a name": (nameless, "Hidden: text"),
}


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("does_yield", [False, True])
def test_any_exception_fails_the_call(name, does_yield):
    """The reason is one storable line of text; describing an exception never fails."""
    make, reason = RAISED[name]
    error = make()

    def step(seed):
        raise error

    def steps(seed):
        yield report(0)
        raise error

    function = steps if does_yield else step
    line = inspect.getsourcelines(function)[1] + (2 if does_yield else 1)
    with pytest.raises(FunctionError) as failed:
        every_step(function)
    assert str(failed.value) == f"{reason} ({__file__}:{line})"
    f"{failed.value}{failed.value.details}".encode()
    assert len(failed.value.details) < 30_000


class Awkward:
    """A number whose attributes all raise."""

    def __getattr__(self, name):
        raise PanicError(name)


REPORTED = {
    "object": Awkward,
    "metric": lambda: report(loss=Awkward()),
    "name": lambda: {UnprintableError(): 1.0},
    "step": lambda: report(step=UnprintableError()),
}


@pytest.mark.parametrize("name", REPORTED)
def test_any_invalid_report_fails_the_call(name):
    """Reports of objects that raise on inspection fail the call, too."""
    with pytest.raises(FunctionError, match=re.escape(__file__)):
        every_step(lambda seed: REPORTED[name]())


def test_resume_is_given_to_functions_with_the_parameter():
    """A function with the parameter gets None first and a state later; its next step must exceed the state's step."""

    def train(seed, resume):
        yield report(5, state=(seed, resume))

    (step,) = every_step(train)
    assert step.state == (3, None)
    (step,) = every_step(train, resume=(4, "half"))
    assert step.state == (3, "half")
    with pytest.raises(FunctionError, match="must yield steps that increase, but 5 came after 5"):
        every_step(train, resume=(5, "half"))
    assert every_step(lambda seed, resume: iter(()), resume=(5, "half")) == []


def test_lists_become_tuples_if_annotated():
    """A study file has lists only, so lists become tuples for parameters annotated as tuples."""

    def train(seed, *, layers: tuple[int, ...], sizes: list[int]):
        return report(loss=float(isinstance(layers, tuple)), accuracy=float(isinstance(sizes, list)))

    assert every_step(train, layers=[1, 2], sizes=[1])[0].metrics == {"loss": 1.0, "accuracy": 1.0}


@pytest.mark.parametrize("metrics", [{"step": Metric()}, {"state": Metric()}])
def test_metrics_cannot_have_reserved_names(metrics):
    """A metric can't have the name of a report's other keys, step and state."""
    with pytest.raises(ValueError, match="no metric may be called step or state"):
        FunctionCall(returns({}), seed=1, values={}, metrics=metrics)
