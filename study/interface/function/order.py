"""Trials of a training function called in order in this process, and the module state that each changes."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from study.interface.declarations import Metric
from study.interface.function.call import FunctionCall, FunctionError, Step
from study.interface.function.process_state import ProcessState
from study.interface.function.shared_state import changed_state, shared_state

_loaded: list[Callable[..., Any]] = []


def load(module: str, name: str, arguments: Sequence[Any], threads: int, needs_torch: bool) -> None:
    """Load a training function for later calls of `call_in_order`, in this process or its forks.

    It replaces the function that was loaded before.

    Args:
        module: module of a callable that returns the training function.
        name: name of that callable.
        arguments: arguments of that callable.
        threads: number of threads of torch, if it is imported.
        needs_torch: True to import torch now, if it is installed, as an engine does; otherwise a call may take seconds
            to import it.

    Raises:
        Exception: the error of the import, or of the callable.
    """
    if needs_torch:
        with suppress(ImportError):
            importlib.import_module("torch")
    _loaded[:] = [getattr(importlib.import_module(module), name)(*arguments)]
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


def call_in_order(
    calls: Sequence[Mapping[str, Any]],
    limits: Mapping[str, tuple[float | None, float | None]],
    for_s: float,
    modules: Sequence[str],
) -> list[dict[str, Any]]:
    """Call the function of `load` for several trials in order, and return a report of each as JSON data.

    The state of the process (`ProcessState`) is restored after each call, as in training.

    Args:
        calls: `seed`, `values` and `iterations` of each trial.
        limits: lower and upper limit of each metric; None for no limit.
        for_s: seconds after which a function that reports steps is closed.
        modules: top-level modules whose state is compared before and after each call; empty to skip the comparison.

    Returns:
        A report of each trial, with these keys:

        - `steps`: pairs of a step and its metrics
        - `is_done`: False if the trial was closed after `for_s`, even at its last step; True also if it failed
        - `error`: the message of its failure, or an empty text
        - `changed`: names of the state that it changed

    Raises:
        IndexError: if no function is loaded.
        ValueError: if a metric is called ``step`` or ``state``, or Python can't read the function's signature.
        BaseException: the exception that a function raises when it is closed.
    """
    metrics = {name: Metric(low=low, high=high) for name, (low, high) in limits.items()}
    reports = []
    for call in calls:
        before, process_state = shared_state(modules) if modules else {}, ProcessState.now()
        report = _call(_loaded[0], call, metrics, for_s)
        process_state.restore()  # as in training between trials
        changed = changed_state(before, shared_state(modules)) if modules else ()
        reports.append(report | {"changed": changed})
    return reports


def _call(
    function: Callable[..., Any], call: Mapping[str, Any], metrics: Mapping[str, Metric], for_s: float
) -> dict[str, Any]:
    """Call the function for one trial, and return its report without `changed`."""
    steps: list[tuple[int, dict[str, float]]] = []
    report: dict[str, Any] = {"steps": steps, "is_done": True, "error": ""}
    try:
        training = FunctionCall(function, metrics=metrics, **call)
        deadline = time.perf_counter() + for_s
        while (step := training.next_step()) is not None:
            if isinstance(step, Step):
                steps.append((step.step, step.metrics))
            if not training.reports_steps:
                break
            if time.perf_counter() >= deadline:
                training.close()
                return report | {"is_done": False}
    except FunctionError as error:
        return report | {"error": str(error)}
    return report
