"""Draft of a study file for an existing training function: its arguments and metrics."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from study.engine.calls import CallTrial
from study.engine.function import IsolatedTraining
from study.errors import InputError
from study.interface.declarations import REQUIRED
from study.interface.function_family import FunctionFamily
from study.source import load_copied
from study.spec import parse_spec
from study.spec.document import as_yaml
from study.spec.function_tables import FunctionSpec

LOWER = re.compile(r"loss|err|mse|mae|rmse|nll|perplexity|ppl|regret|cost|divergence|time|seconds", re.IGNORECASE)
"""Pattern of the names of metrics to minimise."""

CALL_S = 30.0
"""Time limit for trying a function or a program, seconds."""

GUIDE = "docs/guides/own-code.md"
_SLICE_S = 0.2
_NONE: Mapping[str, Any] = {}


def study_of_function(name: str, train: str, folder: Path) -> str:
    """Return a draft of a study file for a training function, after a call up to its first report (at most 30 s).

    Args:
        name: the study's name.
        train: the function's import string.
        folder: folder of the study file, which is searched for modules first.

    Raises:
        InputError: if the name isn't valid; or if the function doesn't exist, isn't marked with `seeded`, has a
            parameter without a default or of an unknown type, or fails.
        OSError: if the cache of code can't be written.
    """
    values, metrics = try_function(name, train, folder)
    return file_text(name, [f"train: {train}"], metrics, values, GUIDE)


def try_function(
    name: str, train: str, folder: Path, given: Mapping[str, Any] = _NONE
) -> tuple[dict[str, Any], list[str]]:
    """Call a training function up to its first report; return its arguments and its metrics' names.

    There are no names if it reports nothing within 30 s.

    Args:
        name: the study's name.
        train: the function's import string.
        folder: folder of the study file.
        given: arguments that replace defaults.

    Raises:
        InputError: as `study_of_function` does, or if the function has no argument named in `given`.
        OSError: as `study_of_function` does.
    """
    content = {"study": name, "train": train, "metrics": {"loss": "lower"}, "seeds": 20}
    spec = parse_spec(as_yaml(content), source=f"{name}.yaml", folder=folder)
    assert isinstance(spec, FunctionSpec)
    assert isinstance(spec.family, FunctionFamily)
    declared = spec.family.hyperparameters
    if unknown := [field for field in given if field not in declared]:
        raise InputError(f"{train} has no argument {unknown[0]}; it has {', '.join(declared) or 'none'}")
    defaults = {field: hyperparameter.default for field, hyperparameter in declared.items()} | dict(given)
    if missing := [field for field, default in defaults.items() if default is REQUIRED]:
        raise InputError(
            f"{train} has no default for {', '.join(missing)}, so it can't be called to find its metrics: give "
            "them defaults, or write the file by hand (docs/guides/own-code.md)"
        )
    return defaults, _reported(spec, defaults)


def _reported(spec: FunctionSpec, values: dict[str, Any]) -> list[str]:
    """Call a function in its own process; return the metrics of its first report, none after a timeout.

    Raise InputError if it fails.
    """
    code = spec.source_code
    assert code is not None
    load = partial(load_copied, str(code.unpacked() or ""), spec.train)
    training = IsolatedTraining(load, CallTrial(seed=0, values=values, metrics={}))
    until_s = time.monotonic() + CALL_S
    try:
        progress = training.advance(0.0)
        while not progress.is_done and progress.step is None and time.monotonic() < until_s:
            progress = training.advance(_SLICE_S)
    finally:
        training.close()
    if training.failure is not None:
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items()) or "no arguments"
        raise InputError(f"{spec.train} fails with {shown}; correct it, or give other defaults: {training.failure}")
    return training.undeclared


def file_text(name: str, keys: Sequence[str], metrics: Sequence[str], values: Mapping[str, Any], guide: str) -> str:
    """Return the text of a study file.

    Args:
        name: the study's name.
        keys: lines that define the call of a trial.
        metrics: names of the reported metrics; empty if unknown, which gives ``loss`` and a remark.
        values: hyperparameters; the first float other than 0 becomes the axis of the grid, with its value and a tenth.
        guide: documentation page that lists all keys.
    """
    directions = {metric: direction_of(metric) for metric in metrics} or {"loss": "lower"}
    remark = "check which is better; the first chooses the best step"
    if not metrics:
        remark = f"it reported nothing within {CALL_S:g} s: name its metrics"
    lines = [
        f"# `study plan {name}.yaml` tries it, `study run {name}.yaml` runs it. {guide} lists all keys.",
        f"study: {name}",
        *keys,
        *metric_lines(directions, remark),
    ]
    axis = next((field for field, value in values.items() if type(value) is float and value), None)
    fixed = {field: value for field, value in values.items() if field != axis}
    lines += [f"fixed: {as_inline(fixed)}"] if fixed else []
    if axis is not None:
        lines.append(f"grid: {as_inline({axis: [values[axis], float(f'{values[axis] / 10:.6g}')]})}")
    return "\n".join([*lines, "seeds: 20", ""])


def direction_of(metric: str) -> str:
    """Guess from a metric's name if ``lower`` or ``higher`` values are better."""
    return "lower" if LOWER.search(metric) else "higher"


def metric_lines(directions: Mapping[str, str], remark: str) -> list[str]:
    """Return the `metrics` line of a study file, and a comment that proposes a success criterion.

    Args:
        directions: ``lower`` or ``higher`` by metric, at least one.
        remark: comment on the line.
    """
    first, better = next(iter(directions.items()))
    bound = {"below": 0.1} if better == "lower" else {"at_least": 0.9}
    return [
        f"metrics: {as_inline(directions)}  # {remark}",
        f"# success: {as_inline({first: bound})}  # when a trial is solved; without it, means",
    ]


def as_inline(content: Any) -> str:
    """Return content as one line of YAML."""
    return as_yaml([content], width=float("inf"), is_inline=True).strip()[1:-1]
