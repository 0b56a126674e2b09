"""Trials of a function: the same bits alone, after others, in time slices, after a resume and in another process."""

from __future__ import annotations

import asyncio
import inspect
import io
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from study.engine.calls import CallProgress, CallRecord, CallTrial
from study.engine.function import FunctionTraining, IsolatedTraining
from study.interface.declarations import Metric

METRICS = {"loss": Metric(), "accuracy": Metric(higher_is_better=True)}
NAN, INF = float("nan"), float("inf")


def trial_of(seed: int = 3, iterations: int | None = None, **values: Any) -> CallTrial:
    return CallTrial(seed=seed, values=values, metrics=METRICS, iterations=iterations)


def start(function, trial: CallTrial | None = None, **settings) -> FunctionTraining:
    return FunctionTraining(function, trial or trial_of(), **settings)


def record_of(training, for_s: float = 60.0) -> CallRecord:
    while not training.done:
        training.advance(for_s)
    training.close()
    return training.finish()


def bits(record: CallRecord) -> tuple[Any, ...]:
    """Return a record without its times, in a comparable form."""
    curves = {name: curve.tobytes() for name, curve in record.curves.items()}
    scalars = replace(record, steps=None, curves=None, training_s=0.0)
    return scalars, record.steps.tolist(), curves


@pytest.fixture(params=["once", "steps"])
def function(request, mytrials):
    return getattr(mytrials, request.param)


def test_a_trial_does_not_depend_on_earlier_ones(function):
    """A trial is the same alone, after other trials, and after draws from the global generators."""
    alone = bits(record_of(start(function)))
    other = bits(record_of(start(function, trial_of(seed=4))))
    torch.rand(3), random.random()
    assert bits(record_of(start(function))) == alone != other


def test_slices_change_nothing(mytrials):
    """Slices of any length, with draws between them, don't change a trial."""
    undivided = bits(record_of(start(mytrials.steps)))
    training = start(mytrials.steps)
    steps = []
    while not training.done:
        steps.append(training.advance(0.0).step)
        random.random(), np.random.random(), torch.rand(3)  # noqa: NPY002
    assert steps == [0, 10, 20, 30, 40, 50, 50]
    assert bits(training.finish()) == undivided


def test_alternating_trials_do_not_affect_each_other(mytrials):
    """Alternating slices of two trials don't change either."""
    expected = [bits(record_of(start(mytrials.steps, trial_of(seed)))) for seed in (1, 2)]
    trainings = [start(mytrials.steps, trial_of(seed)) for seed in (1, 2)]
    while not all(training.done for training in trainings):
        for training in trainings:
            training.advance(0.0)
    assert [bits(training.finish()) for training in trainings] == expected


def test_the_process_is_restored_between_slices():
    """Folder, default dtype and gradient mode are the generator's in its slices, and the process's between them."""

    def train(seed, *, folder: str):
        torch.set_default_dtype(torch.float64)
        os.chdir(folder)
        with torch.no_grad():
            for step in range(3):
                inside = (torch.get_default_dtype(), torch.is_grad_enabled(), Path.cwd())
                yield {"step": step, "loss": inside == (torch.float64, False, Path(folder)), "accuracy": 0.0}

    outside = torch.get_default_dtype(), torch.is_grad_enabled(), Path.cwd()
    training = start(train, trial_of(folder="/"))
    for _ in range(2):  # between slices, the worker may start another trial
        training.advance(0.0)
        assert (torch.get_default_dtype(), torch.is_grad_enabled(), Path.cwd()) == outside
    record = record_of(training)
    assert (torch.get_default_dtype(), torch.is_grad_enabled(), Path.cwd()) == outside
    assert record.curves["loss"].tolist() == [1.0, 1.0, 1.0]


def test_a_closed_trial_restores_the_process():
    """A generator is closed in its own working folder, and then the process's folder is restored."""
    ends = []

    def train(seed):
        os.chdir("/")
        try:
            for step in range(3):
                yield {"step": step, "loss": 0.0, "accuracy": 0.0}
        finally:
            ends.append(Path.cwd())
            raise KeyboardInterrupt

    before = Path.cwd()
    training = start(train)
    training.advance(0.0)
    training.close()
    assert ends == [Path("/")]
    assert Path.cwd() == before


class Unreadable:
    """An object that raises a BaseException on access to its class."""

    @property
    def __class__(self):
        raise asyncio.CancelledError


def nested():
    state = {}
    state["again"] = state
    return state


@pytest.mark.parametrize(("state", "reason"), [(Unreadable, "CancelledError"), (nested, "RecursionError")])
def test_an_unreadable_state_fails_the_trial(state, reason):
    """A state whose objects raise any exception fails the trial."""

    def train(seed, resume):
        yield {"step": 0, "loss": 1.0, "accuracy": 0.0, "state": state()}
        yield {"step": 1, "loss": 1.0, "accuracy": 0.0}

    assert record_of(start(train)).error.startswith(reason)


def test_a_remaining_thread_is_named():
    """A thread that would keep Python from exiting is named; daemons and ended threads aren't."""
    may_end = threading.Event()

    def train(seed):
        threading.Thread(target=may_end.wait, name="poller").start()
        threading.Thread(target=may_end.wait, daemon=True).start()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int)
        return {"loss": 1.0, "accuracy": 0.0}

    training = start(train)
    record_of(training)
    may_end.set()
    assert training.left_threads == ["poller"]


def through_a_file(checkpoint):
    """Return a checkpoint as a store loads it: from bytes, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **checkpoint)
    with np.load(io.BytesIO(buffer.getvalue()), allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("slices", range(1, 7))
def test_a_resumed_trial_ends_as_an_undisturbed_one(mytrials, slices):
    """Stopped at any step and resumed from its checkpoint, a trial has the same steps, curves and best step."""
    undisturbed = record_of(start(mytrials.resumable))
    training = start(mytrials.resumable)
    for _ in range(slices):
        training.advance(0.0)
    checkpoint = through_a_file(training.checkpoint())
    training.close()
    assert checkpoint["steps"].tolist() == list(range(slices))
    resumed = start(mytrials.resumable, checkpoint=checkpoint)
    assert bits(record_of(resumed, 0.0)) == bits(undisturbed)
    assert resumed.finish().training_s > float(checkpoint["training_s"])


def test_a_state_is_that_of_its_step(mytrials):
    """In-place changes after a step aren't in that step's checkpoint, however late it is copied."""
    checkpoints = []
    for state_every_s in (0.0, 1000.0):
        training = start(mytrials.resumable, state_every_s=state_every_s)
        training.advance(0.0)
        training.advance(0.0)
        checkpoints.append(training.checkpoint())
        training.advance(0.0)
    for first, second in zip(*(checkpoints[i].items() for i in (0, 1)), strict=True):
        assert first[0] == second[0]
        assert first[0] == "training_s" or np.array_equal(first[1], second[1])


def test_a_function_without_resume_has_no_checkpoint(mytrials):
    """A function that can't resume has no checkpoint."""
    training = start(mytrials.steps)
    training.advance(0.0)
    assert training.checkpoint() is None


def test_a_checkpoint_of_other_metrics_is_refused(mytrials):
    """A checkpoint with other metrics is an error, since a curve can't continue with other metrics."""
    training = start(mytrials.resumable)
    training.advance(0.0)
    other = CallTrial(seed=3, values={}, metrics={"loss": Metric()})
    with pytest.raises(ValueError, match=r"must have the metrics \['loss'\], but has \['accuracy', 'loss'\]"):
        FunctionTraining(mytrials.resumable, other, checkpoint=training.checkpoint())


def test_progress_has_the_latest_step(mytrials):
    """Progress has the latest step, the maximum, a flag for the end, and the first metric."""
    training = start(mytrials.steps, trial_of(iterations=10))
    progress = [training.advance(0.0) for _ in range(4)]
    first, second = record_of(start(mytrials.steps, trial_of(iterations=10))).curves["loss"]
    ends = [(0, False, first), (10, False, second), (10, True, second), (10, True, second)]
    assert progress == [CallProgress(step, 10, is_done, value) for step, is_done, value in ends]


def test_a_returned_dict_is_one_step():
    """A returned dict gives no curve over time, and may state the number of steps."""
    record = record_of(start(lambda seed: {"loss": 1, "accuracy": 0}))
    assert (record.best_step, record.steps.tolist(), record.reports_steps) == (0, [0], False)
    record = record_of(start(lambda seed: {"loss": 1, "accuracy": 0, "step": 70}))
    assert (record.best_step, record.last_step, record.reports_steps) == (70, 70, False)


@pytest.mark.parametrize(
    ("higher", "losses", "best", "has_diverged"),
    [
        (False, [3, 1, 2, 1], 1, False),
        (True, [1, 3, 2, 3], 1, False),
        (False, [3, 1, NAN], 1, True),
        (True, [1, 3, INF], 1, True),
        (False, [3, 1, -INF], 1, True),
        (False, [NAN], None, True),
        (False, [1, NAN, 0], 0, True),
    ],
)
def test_the_best_step_is_the_first_of_the_best(higher, losses, best, has_diverged):
    """The first metric's direction decides; NaN and infinity end the trial and are never the best."""

    def train(seed):
        for step, loss in enumerate(losses):
            yield {"step": step, "loss": loss, "accuracy": -step}

    metrics = {"loss": Metric(higher_is_better=higher), "accuracy": Metric()}
    record = record_of(start(train, CallTrial(seed=1, values={}, metrics=metrics)))
    assert (record.best_step, record.has_diverged, record.error) == (best, has_diverged, None)
    assert record.metrics == (None if best is None else {"loss": losses[best], "accuracy": -best})


def test_a_step_that_is_not_finite_is_the_last():
    """The curve ends with the first step that isn't finite."""

    def train(seed):
        for step, loss in enumerate([1.0, 2.0, NAN, 0.0]):
            yield {"step": step, "loss": loss, "accuracy": 0.0}

    record = record_of(start(train))
    assert record.steps.tolist() == [0, 1, 2]
    assert np.array_equal(record.curves["loss"], [1.0, 2.0, NAN], equal_nan=True)


def test_a_failed_trial_keeps_its_reports():
    """A failed trial has a one-line error, the traceback, and the curve up to the failure."""

    def train(seed):
        yield {"step": 0, "loss": 1.0, "accuracy": 0.0}
        raise RuntimeError("no convergence")

    record = record_of(start(train))
    line = inspect.getsourcelines(train)[1] + 2
    assert record.error == f"RuntimeError: no convergence ({__file__}:{line})"
    assert record.details.endswith("RuntimeError: no convergence\n")
    assert record.steps.tolist() == [0]


def test_a_time_limit_ends_an_endless_generator():
    """The limit is checked after each step; the generator is closed, and the trial has failed."""
    ends = []

    def train(seed):
        try:
            for step in range(10**9):
                yield {"step": step, "loss": 1.0, "accuracy": 0.0}
        finally:
            ends.append("closed")

    record = record_of(start(train, time_limit_s=0.0))
    assert "and its time limit is 0 s" in record.error
    assert ends == ["closed"]


def test_the_time_before_a_checkpoint_counts(mytrials):
    """Time before a checkpoint counts for the limit, so repeated resumes don't evade it."""
    training = start(mytrials.resumable, time_limit_s=1000.0)
    training.advance(0.0)
    checkpoint = training.checkpoint() | {"training_s": np.array(1000.0)}
    record = record_of(start(mytrials.resumable, checkpoint=checkpoint, time_limit_s=1000.0))
    assert "its time limit is 1000 s" in record.error


def test_an_unsupported_state_fails_the_trial():
    """An unsupported state fails at once, even if no checkpoint is needed."""

    def train(seed, resume):
        for step in range(3):
            yield {"step": step, "loss": 1.0, "accuracy": 0.0, "state": object()}

    assert "state is of type object, but a state can hold only" in record_of(start(train)).error
    training = start(train)
    training.advance(0.0)
    assert training.checkpoint() is None
    assert training.done


@pytest.mark.parametrize(("state_every_s", "steps"), [(0.0, [0, 1]), (1000.0, [0])])
def test_ctrl_c_keeps_the_last_state(state_every_s, steps, ctrl_c):
    """KeyboardInterrupt is raised, and the trial resumes from an unchanged copy of its state."""

    def train(seed, resume, *, stop: bool):
        weights = np.zeros(2) if resume is None else resume
        for step in range(int(weights[0]), 4):
            weights += 1
            if stop and step == 2:
                ctrl_c()
            yield {"step": step, "loss": weights.sum(), "accuracy": 0.0, "state": weights}

    undisturbed = record_of(start(train, trial_of(stop=False)))
    training = start(train, trial_of(stop=True), state_every_s=state_every_s)
    with pytest.raises(KeyboardInterrupt):
        training.advance(60.0)
    assert not training.done
    checkpoint = training.checkpoint()
    assert checkpoint["steps"].tolist() == steps
    assert bits(record_of(start(train, trial_of(stop=False), checkpoint=checkpoint))) == bits(undisturbed)


def test_a_trial_is_done_before_it_has_a_record(mytrials):
    """Asking a trial that isn't done for its record raises ValueError."""
    with pytest.raises(ValueError, match="the trial must be done, but is at step None"):
        start(mytrials.steps).finish()
    with pytest.raises(ValueError, match="the trial must be done, but is at step None"):
        IsolatedTraining(partial(mytrials.load, "steps"), trial_of()).finish()
