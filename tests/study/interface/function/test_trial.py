"""Training functions that take `trial`: they report, save and log by calls."""

from __future__ import annotations

import decimal
import gc
import random
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from study.interface.declarations import Metric
from study.interface.function import FunctionCall, FunctionError, Step
from study.interface.function.trial import Place, SavedState
from study.interface.stop_signals import noting_stops


def call_of(function, *, iterations=None, resume=None, place=None):
    metrics = {"loss": Metric()}
    return FunctionCall(function, seed=3, values={}, metrics=metrics, iterations=iterations, resume=resume, place=place)


def reports(function, **settings):
    return list(iter(call_of(function, **settings).next_step, None))


def yielding(seed, resume=None):
    total = 0.0 if resume is None else resume
    for step in range(3):
        total += random.random()
        yield {"step": step, "loss": total, "rate": 0.1}


def reporting(seed, trial):
    total = 0.0
    for step in range(3):
        total += random.random()
        trial.report(step, loss=total, rate=0.1)


def test_reports_equal_those_of_a_generator():
    """Reports through `trial` equal those of a generator: seeded, and with undeclared numbers."""
    call, steps = call_of(reporting), []
    while (step := call.next_step()) is not None:
        steps.append(step)
    assert steps == reports(yielding)
    assert call.reports_steps


def test_steps_count_by_themselves():
    """A step number may be omitted; after a resume, counting continues."""

    def train(seed, trial):
        trial.report(loss=1)
        trial.report(5, {"loss": 2})
        trial.report(loss=3)

    assert [step.step for step in reports(train)] == [0, 5, 6]
    assert [step.step for step in reports(lambda seed, trial: trial.report(loss=1), resume=(8, None))] == [9]


def test_a_function_that_takes_a_trial_may_still_return_or_yield():
    """A function that takes `trial`, for example for its folder, may still return or yield its metrics."""

    def returning(seed, trial):
        return {"loss": len(list(trial.folder.iterdir()))}

    def generating(seed, trial):
        yield {"step": 4, "loss": trial.seed}

    assert reports(returning) == [Step(0, {"loss": 0.0})]
    assert reports(generating) == [Step(4, {"loss": 3.0})]


def test_a_saved_state_follows_its_step_and_is_given_to_resume():
    def train(seed, trial):
        for step in range(trial.resume or 0, 3):
            trial.report(step, loss=step)
            trial.save(step + 1)

    first, saved, *_ = reports(train)
    assert (first.step, saved) == (0, SavedState(1))
    assert [step.step for step in reports(train, resume=(0, saved.state)) if isinstance(step, Step)] == [1, 2]


def test_a_trial_interrupted_after_its_last_report_resumes():
    """A trial resumed after its last report runs to its end, and is asked to stop if it has reached `iterations`."""
    seen = []

    def train(seed, trial):
        seen.append((trial.last_step, trial.should_stop))
        while trial.last_step != 2:
            trial.report(loss=0)

    assert [step.step for step in reports(train)] == [0, 1, 2]
    assert reports(train, resume=(2, "state")) == []
    assert reports(train, resume=(2, "state"), iterations=2) == []
    assert reports(train, resume=(1, "state"), iterations=2) == [Step(2, {"loss": 0.0})]
    assert seen == [(None, False), (2, False), (2, True), (1, False)]


def test_code_after_the_last_report_still_runs():
    """At `iterations` the function is asked to stop, not cut off: it may still draw a picture."""
    ended_seeds = []

    def train(seed, trial):
        while not trial.should_stop:
            trial.report(loss=0)
        ended_seeds.append(trial.seed)

    assert [step.step for step in reports(train, iterations=4)] == [0, 1, 2, 3, 4]
    assert ended_seeds == [3]


@pytest.mark.parametrize("ending", ["iterations", "nan", "close"])
def test_a_function_that_is_ended_cleans_up(ending):
    """A function ended beyond its last step, after divergence, or on cancellation runs its cleanup code."""
    ended = []

    def train(seed, trial):
        try:
            for step in range(99):
                trial.report(step, loss=float("nan") if ending == "nan" and step == 2 else 0)
        finally:
            ended.append(True)

    call = call_of(train, iterations=2)
    if ending == "close":
        call.next_step()
        call.close()
        assert call.next_step() is None
    else:
        assert len(list(iter(call.next_step, None))) == 3
    assert ended == [True]


def outside(trial):
    trial.report(loss=1)


def in_a_thread(seed, trial):
    errors = []

    def work():
        try:
            trial.report(loss=1)
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise errors[0]


def after_a_yield(seed, trial):
    yield {"step": 0, "loss": 1}
    trial.report(loss=1)


def returning_too(seed, trial):
    trial.report(loss=1)
    return {"loss": 1}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda seed, trial: None, "or report them by trial.report, but returned None"),
        (lambda seed, trial: trial.report(rate=1), "must report the metrics loss, but loss isn't there"),
        (lambda seed, trial: trial.report(loss="a"), "must report a number as loss, but got 'a'"),
        (lambda seed, trial: [trial.report(2, loss=1), trial.report(1, loss=1)], "must report steps that increase"),
        (lambda seed, trial: trial.save(1), "trial.save needs a step to go on from"),
        (lambda seed, trial: [trial.report(loss=1), 1 / 0], "ZeroDivisionError: division by zero"),
        (returning_too, "reports its metrics, so it must not return any"),
        (in_a_thread, "must be called by the training function itself, in its own thread"),
        (after_a_yield, "and not by a function that yields its steps"),
    ],
)
def test_mistakes_show_the_users_line(function, message):
    with pytest.raises(FunctionError, match=re.escape(message)) as refused:
        reports(function)
    assert f"{Path(__file__).name}:" in str(refused.value)


def test_the_line_of_a_report_is_reported():
    def train(seed, trial):
        trial.report(0, loss=1)
        trial.report(1, loss="x")

    line = train.__code__.co_firstlineno + 2
    with pytest.raises(FunctionError, match=f"{re.escape(__file__)}:{line}: train must report a number"):
        reports(train)


def test_settings_of_the_thread_are_kept_between_steps():
    """Decimal's precision and numpy's error handling persist in the function between reports."""
    with decimal.localcontext() as context, np.errstate(divide="raise"):
        context.prec = 5

        def train(seed, trial):
            assert decimal.getcontext().prec == 5
            assert np.geterr()["divide"] == "raise"
            decimal.getcontext().prec = 7
            trial.report(loss=0)
            trial.report(loss=decimal.getcontext().prec)

        assert [step.metrics["loss"] for step in reports(train)] == [0, 7]


def test_a_stop_by_a_signal_cannot_be_swallowed():
    """A stop by a signal ends the call even if the function swallows the exception."""

    def train(seed, trial):
        trial.report(loss=1)
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            trial.report(loss=2)

    call = call_of(train)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), noting_stops():
            list(iter(call.next_step, None))
    finally:
        signal.signal(signal.SIGINT, before)


def test_folder_and_log_are_those_of_the_place(tmp_path):
    lines = []

    def train(seed, trial):
        (trial.folder / "picture.txt").write_text("x")
        trial.log("drawn")
        trial.report(loss=0)

    reports(train, place=Place(lambda: tmp_path, lines.append))
    assert [path.name for path in tmp_path.iterdir()] == ["picture.txt"]
    assert lines == ["drawn"]


def test_without_a_place_the_folder_is_deleted_with_the_call():
    def train(seed, trial):
        (trial.folder / "weights.bin").write_bytes(b"0")
        folders.append(trial.folder)
        trial.report(loss=0)

    folders: list[Path] = []
    reports(train)
    gc.collect()
    assert not folders[0].exists()
