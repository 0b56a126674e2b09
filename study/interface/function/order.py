"""Trials of a training function called in order in this process, and the state that one leaves behind."""

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
    """Import a function for later calls of `call_in_order`, in this process or its forks.

    Args:
        module: of what returns the function.
        name: of what returns the function.
        arguments: of what returns the function.
        threads: torch's number of threads, if it is imported.
        needs_torch: whether to import torch too, as an engine does: a call that imports it would take seconds.
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
    """Call the loaded function for several trials, one after another, and return what each reports, as JSON.

    Each report has the `steps`, pairs of a step and its metrics; `is_done`, whether the trial ended, since otherwise
    these are its first steps; the `error` because of which it failed, or an empty text; and names of state that it
    `changed`.

    Args:
        calls: `seed`, `values` and `iterations` of each trial.
        limits: the least and the greatest value of each metric that the function reports; None for no limit.
        for_s: seconds after which a function that yields its steps is closed.
        modules: top-level modules whose state is compared before and after each call; none to compare no state.
    """
    metrics = {name: Metric(low=low, high=high) for name, (low, high) in limits.items()}
    reports = []
    for call in calls:
        before, outside = shared_state(modules) if modules else {}, ProcessState.now()
        report = _call(_loaded[0], call, metrics, for_s)
        outside.restore()  # as between trials that are trained
        changed = changed_state(before, shared_state(modules)) if modules else ()
        reports.append(report | {"changed": changed})
    return reports


def _call(
    function: Callable[..., Any], call: Mapping[str, Any], metrics: Mapping[str, Metric], for_s: float
) -> dict[str, Any]:
    steps: list[tuple[int, dict[str, float]]] = []
    report: dict[str, Any] = {"steps": steps, "is_done": True, "error": ""}
    try:
        training = FunctionCall(function, metrics=metrics, **call)
        until = time.perf_counter() + for_s
        while (step := training.next_step()) is not None:
            if isinstance(step, Step):
                steps.append((step.step, step.metrics))
            if not training.reports_steps:
                break
            if time.perf_counter() >= until:
                training.close()
                return report | {"is_done": False}
    except FunctionError as error:
        return report | {"error": str(error)}
    return report
