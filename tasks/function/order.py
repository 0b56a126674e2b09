"""Trials of a training function called one after another in this process, and the state that one leaves behind."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from tasks.declarations import Metric
from tasks.function.call import FunctionCall, FunctionError, Step
from tasks.function.module_state import changed_state, module_state
from tasks.function.process_state import ProcessState

_loaded: dict[Any, Callable[..., Any]] = {}


@dataclass(frozen=True)
class Called:
    """What a trial reported.

    Args:
        steps: its steps in order, without states.
        is_done: whether it ended; otherwise these are its first steps.
        error: why it failed; empty if it didn't.
        changed: names of the state of this process that it changed, if they were asked for.
    """

    steps: tuple[Step, ...]
    is_done: bool
    error: str = ""
    changed: tuple[str, ...] = ()


def load(loader: partial[Callable[..., Any]], threads: int, needs_torch: bool) -> None:
    """Import a function for later calls of `call_in_order`, in this process or its forks.

    Args:
        loader: returns the function.
        threads: torch's number of threads, if it is imported.
        needs_torch: whether to import torch too, as an engine does: a call that imports it would take seconds.
    """
    if needs_torch:
        with suppress(ImportError):
            importlib.import_module("torch")
    _loaded[_key(loader)] = loader()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


def call_in_order(
    loader: partial[Callable[..., Any]],
    calls: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Metric],
    *,
    for_s: float,
    modules: Sequence[str] = (),
) -> list[Called]:
    """Call a function for several trials, one after another.

    Args:
        loader: what `load` was given.
        calls: `seed`, `values` and `iterations` of each trial.
        metrics: what the function reports.
        for_s: seconds after which a function that yields its steps is closed.
        modules: top-level modules whose state is compared before and after each call; none to compare no state.
    """
    called = []
    for call in calls:
        before, outside = module_state(modules) if modules else {}, ProcessState.now()
        result = _call(_loaded[_key(loader)], call, metrics, for_s)
        outside.restore()  # as between trials that are trained
        changed = changed_state(before, module_state(modules)) if modules else ()
        called.append(Called(*result, changed))
    return called


def _call(
    function: Callable[..., Any], call: Mapping[str, Any], metrics: Mapping[str, Metric], for_s: float
) -> tuple[tuple[Step, ...], bool, str]:
    steps: list[Step] = []
    try:
        training = FunctionCall(function, metrics=metrics, **call)
        until = time.perf_counter() + for_s
        while (step := training.next_step()) is not None:
            steps.append(Step(step.step, step.metrics))
            if not training.reports_steps:
                return tuple(steps), True, ""
            if time.perf_counter() >= until:
                training.close()
                return tuple(steps), False, ""
    except FunctionError as error:
        return tuple(steps), True, str(error)
    return tuple(steps), True, ""


def _key(loader: partial[Callable[..., Any]]) -> tuple[Any, ...]:
    return (loader.func, *loader.args)
