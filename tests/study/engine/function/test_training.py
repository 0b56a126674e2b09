"""A trial of a function: the same alone, after others, in slices, after a resume, and in a process of its own."""

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
    """Give all of a record but its seconds, so that it can be compared."""
    curves = {name: curve.tobytes() for name, curve in record.curves.items()}
    rest = replace(record, steps=None, curves=None, training_s=0.0)
    return rest, record.steps.tolist(), curves


@pytest.fixture(params=["once", "steps"])
def function(request, mytrials):
    return getattr(mytrials, request.param)


def test_a_seed_gives_the_same_whatever_ran_before(function):
    """Alone, after other trials, and after others have drawn from the global generators, a trial is the same."""
    alone = bits(record_of(start(function)))
    other = bits(record_of(start(function, trial_of(seed=4))))
    torch.rand(3), random.random()
    assert bits(record_of(start(function))) == alone != other


def test_slices_change_nothing(mytrials):
    """However long slices are, and whoever draws between them, a trial is the same."""
    whole = bits(record_of(start(mytrials.steps)))
    training = start(mytrials.steps)
    steps = []
    while not training.done:
        steps.append(training.advance(0.0).step)
        random.random(), np.random.random(), torch.rand(3)  # noqa: NPY002
    assert steps == [0, 10, 20, 30, 40, 50, 50]
    assert bits(training.finish()) == whole


def test_two_trials_in_turns_do_not_touch_each_other(mytrials):
    """Slices of one trial between those of another change neither."""
    expected = [bits(record_of(start(mytrials.steps, trial_of(seed)))) for seed in (1, 2)]
    trainings = [start(mytrials.steps, trial_of(seed)) for seed in (1, 2)]
    while not all(training.done for training in trainings):
        for training in trainings:
            training.advance(0.0)
    assert [bits(training.finish()) for training in trainings] == expected


def test_between_slices_the_process_is_as_before():
    """A generator goes on in its own state: its folder, its default dtype, and no gradients where it wants none."""

    def train(seed, *, folder: str):
        torch.set_default_dtype(torch.float64)
        os.chdir(folder)
        with torch.no_grad():
            for step in range(3):
                inside = (torch.get_default_dtype(), torch.is_grad_enabled(), Path.cwd())
                yield {"step": step, "loss": inside == (torch.float64, False, Path(folder)), "accuracy": 0.0}

    outside = torch.get_default_dtype(), torch.is_grad_enabled(), Path.cwd()
    training = start(train, trial_of(folder="/"))
    for _ in range(2):  # half done: the next trial of a worker may begin here
        training.advance(0.0)
        assert (torch.get_default_dtype(), torch.is_grad_enabled(), Path.cwd()) == outside
    record = record_of(training)
    assert (torch.get_default_dtype(), torch.is_grad_enabled(), Path.cwd()) == outside
    assert record.curves["loss"].tolist() == [1.0, 1.0, 1.0]


def test_a_trial_that_is_given_up_leaves_the_process_as_before():
    """Its generator ends in its own state."""
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
    """An object that raises what isn't an Exception when it is looked at."""

    @property
    def __class__(self):
        raise asyncio.CancelledError


def nested():
    state = {}
    state["again"] = state
    return state


@pytest.mark.parametrize(("state", "reason"), [(Unreadable, "CancelledError"), (nested, "RecursionError")])
def test_a_state_that_cannot_be_looked_at_fails_the_trial(state, reason):
    """Whatever its objects raise."""

    def train(seed, resume):
        yield {"step": 0, "loss": 1.0, "accuracy": 0.0, "state": state()}
        yield {"step": 1, "loss": 1.0, "accuracy": 0.0}

    assert record_of(start(train)).error.startswith(reason)


def test_a_thread_that_is_left_is_named():
    """It keeps Python from exiting, unless it is a daemon or ends in time."""
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
    """Give a checkpoint as a store gives it back: from bytes, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **checkpoint)
    with np.load(io.BytesIO(buffer.getvalue()), allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("slices", range(1, 7))
def test_a_resumed_trial_ends_as_an_undisturbed_one(mytrials, slices):
    """Stopped at any step and resumed from its checkpoint, a trial has the same steps, curves and best step."""
    whole = record_of(start(mytrials.resumable))
    training = start(mytrials.resumable)
    for _ in range(slices):
        training.advance(0.0)
    checkpoint = through_a_file(training.checkpoint())
    training.close()
    assert checkpoint["steps"].tolist() == list(range(slices))
    again = start(mytrials.resumable, checkpoint=checkpoint)
    assert bits(record_of(again, 0.0)) == bits(whole)
    assert again.finish().training_s > float(checkpoint["training_s"])


def test_a_state_is_that_of_its_step_however_late_it_is_copied(mytrials):
    """What a function changes in place after a step isn't in the checkpoint of that step."""
    found = []
    for state_every_s in (0.0, 1000.0):
        training = start(mytrials.resumable, state_every_s=state_every_s)
        training.advance(0.0)
        training.advance(0.0)
        found.append(training.checkpoint())
        training.advance(0.0)
    for first, second in zip(*(found[i].items() for i in (0, 1)), strict=True):
        assert first[0] == second[0]
        assert first[0] == "training_s" or np.array_equal(first[1], second[1])


def test_a_function_without_resume_begins_anew(mytrials):
    """There is no checkpoint of what could not use one."""
    training = start(mytrials.steps)
    training.advance(0.0)
    assert training.checkpoint() is None


def test_a_checkpoint_of_other_metrics_is_refused(mytrials):
    """A curve can't go on with other metrics."""
    training = start(mytrials.resumable)
    training.advance(0.0)
    other = CallTrial(seed=3, values={}, metrics={"loss": Metric()})
    with pytest.raises(ValueError, match=r"must have the metrics \['loss'\], but has \['accuracy', 'loss'\]"):
        FunctionTraining(mytrials.resumable, other, checkpoint=training.checkpoint())


def test_progress_says_how_far_it_is(mytrials):
    """The latest step, the bound, whether it has ended, and the first metric there."""
    training = start(mytrials.steps, trial_of(iterations=10))
    progress = [training.advance(0.0) for _ in range(4)]
    first, second = record_of(start(mytrials.steps, trial_of(iterations=10))).curves["loss"]
    ends = [(0, False, first), (10, False, second), (10, True, second), (10, True, second)]
    assert progress == [CallProgress(step, 10, is_done, value) for step, is_done, value in ends]


def test_a_returned_dict_is_one_step():
    """It has no curve that says anything of time, and may say how many steps there were."""
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
    """It goes by the first metric's direction; NaN and infinity end the trial, and are never the best."""

    def train(seed):
        for step, loss in enumerate(losses):
            yield {"step": step, "loss": loss, "accuracy": -step}

    metrics = {"loss": Metric(higher_is_better=higher), "accuracy": Metric()}
    record = record_of(start(train, CallTrial(seed=1, values={}, metrics=metrics)))
    assert (record.best_step, record.has_diverged, record.error) == (best, has_diverged, None)
    assert record.metrics == (None if best is None else {"loss": losses[best], "accuracy": -best})


def test_the_step_that_is_not_finite_is_the_last():
    """The curve has it, and nothing after it."""

    def train(seed):
        for step, loss in enumerate([1.0, 2.0, NAN, 0.0]):
            yield {"step": step, "loss": loss, "accuracy": 0.0}

    record = record_of(start(train))
    assert record.steps.tolist() == [0, 1, 2]
    assert np.array_equal(record.curves["loss"], [1.0, 2.0, NAN], equal_nan=True)


def test_a_trial_that_fails_keeps_what_it_reported():
    """It has its error in one line, the traceback, and the curve up to there."""

    def train(seed):
        yield {"step": 0, "loss": 1.0, "accuracy": 0.0}
        raise RuntimeError("no convergence")

    record = record_of(start(train))
    line = inspect.getsourcelines(train)[1] + 2
    assert record.error == f"RuntimeError: no convergence ({__file__}:{line})"
    assert record.details.endswith("RuntimeError: no convergence\n")
    assert record.steps.tolist() == [0]


def test_a_time_limit_ends_a_generator_that_never_does():
    """It is looked at after each step; the generator is closed, and the trial has failed."""
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
    """A trial that is resumed again and again has a limit, too."""
    training = start(mytrials.resumable, time_limit_s=1000.0)
    training.advance(0.0)
    checkpoint = training.checkpoint() | {"training_s": np.array(1000.0)}
    record = record_of(start(mytrials.resumable, checkpoint=checkpoint, time_limit_s=1000.0))
    assert "its time limit is 1000 s" in record.error


def test_a_state_that_cannot_be_kept_fails_the_trial():
    """It fails at once and always, not only where it would have been needed."""

    def train(seed, resume):
        for step in range(3):
            yield {"step": step, "loss": 1.0, "accuracy": 0.0, "state": object()}

    assert "state is of type object, but a state can hold only" in record_of(start(train)).error
    training = start(train)
    training.advance(0.0)
    assert training.checkpoint() is None
    assert training.done


@pytest.mark.parametrize(("state_every_s", "steps"), [(0.0, [0, 1]), (1000.0, [0])])
def test_ctrl_c_leaves_the_last_copy_of_the_state(state_every_s, steps, ctrl_c):
    """KeyboardInterrupt goes through, and the trial can be resumed from a state that nothing has changed since."""

    def train(seed, resume, *, stop: bool):
        weights = np.zeros(2) if resume is None else resume
        for step in range(int(weights[0]), 4):
            weights += 1
            if stop and step == 2:
                ctrl_c()
            yield {"step": step, "loss": weights.sum(), "accuracy": 0.0, "state": weights}

    whole = record_of(start(train, trial_of(stop=False)))
    training = start(train, trial_of(stop=True), state_every_s=state_every_s)
    with pytest.raises(KeyboardInterrupt):
        training.advance(60.0)
    assert not training.done
    checkpoint = training.checkpoint()
    assert checkpoint["steps"].tolist() == steps
    assert bits(record_of(start(train, trial_of(stop=False), checkpoint=checkpoint))) == bits(whole)


def test_a_trial_is_done_before_it_has_a_record(mytrials):
    """Half a record would look like a whole one."""
    with pytest.raises(ValueError, match="the trial must be done, but is at step None"):
        start(mytrials.steps).finish()
    with pytest.raises(ValueError, match="the trial must be done, but is at step None"):
        IsolatedTraining(partial(mytrials.load, "steps"), trial_of()).finish()
