"""A study file to begin with, for a training function that is there: what it takes and what it reports."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from study.engine.calls import CallTrial
from study.engine.function import IsolatedTraining
from study.errors import InputError
from study.interface.declarations import REQUIRED, Hyperparameter
from study.interface.function_family import FunctionFamily
from study.source import load_copied
from study.spec import parse_spec
from study.spec.document import as_yaml
from study.spec.function_tables import FunctionSpec

_LOWER = re.compile(r"loss|err|mse|mae|rmse|nll|perplexity|ppl|regret|cost|divergence|time|seconds", re.IGNORECASE)
_CALL_S = 30.0
_SLICE_S = 0.2


def study_of_function(name: str, train: str, folder: Path) -> str:
    """Return the text of a study file for a training function, which is called until it reports for the first time.

    Args:
        name: the study's name.
        train: the function's import string.
        folder: the folder of the study file, in which modules are looked for first.

    Raises:
        InputError: if the function doesn't exist, has a parameter without default or of an unknown type, or fails.
    """
    content = {"study": name, "train": train, "metrics": {"loss": "lower"}, "seeds": 20}
    spec = parse_spec(as_yaml(content), source=f"{name}.yaml", folder=folder)
    assert isinstance(spec, FunctionSpec)
    assert isinstance(spec.family, FunctionFamily)
    declared = spec.family.hyperparameters
    if missing := [field for field, hyperparameter in declared.items() if hyperparameter.default is REQUIRED]:
        raise InputError(
            f"{train} has no default for {', '.join(missing)}, so it can't be called to find out what it reports: give "
            "them defaults, or write the file by hand (docs/own-code.md)"
        )
    metrics = _reported(spec, {field: hyperparameter.default for field, hyperparameter in declared.items()})
    return _text(name, train, metrics, declared)


def _reported(spec: FunctionSpec, values: dict[str, Any]) -> list[str]:
    """Call a function in a process of its own, and return the names of what it reports first; none if it takes long."""
    code = spec.source_code
    assert code is not None
    load = partial(load_copied, str(code.unpacked() or ""), spec.train)
    training = IsolatedTraining(load, CallTrial(seed=0, values=values, metrics={}))
    until_s = time.monotonic() + _CALL_S
    try:
        progress = training.advance(0.0)
        while not progress.is_done and progress.step is None and time.monotonic() < until_s:
            progress = training.advance(_SLICE_S)
    finally:
        training.close()
    if training.failure is not None:
        raise InputError(f"{spec.train} fails with its defaults: {training.failure}")
    return training.undeclared


def _text(name: str, train: str, metrics: list[str], declared: Mapping[str, Hyperparameter]) -> str:
    directions = {metric: "lower" if _LOWER.search(metric) else "higher" for metric in metrics} or {"loss": "lower"}
    first, better = next(iter(directions.items()))
    bound = {"below": 0.1} if better == "lower" else {"at_least": 0.9}
    lines = [
        f"# `study plan {name}.yaml` tries it, `study run {name}.yaml` runs it. docs/own-code.md has all keys.",
        f"study: {name}",
        f"train: {train}",
        f"metrics: {_inline(directions)}  # check which is better; the first chooses the best step",
        f"# success: {_inline({first: bound})}  # when a trial is solved; without it, means",
    ]
    if not metrics:
        lines[3] = f"metrics: {_inline(directions)}  # it reported nothing within {_CALL_S:g} s: name what it reports"
    axis = next((field for field, hyperparameter in declared.items() if type(hyperparameter.default) is float), None)
    fixed = {field: hyperparameter.default for field, hyperparameter in declared.items() if field != axis}
    lines += [f"fixed: {_inline(fixed)}  # the defaults"] if fixed else []
    if axis is not None:
        default = declared[axis].default
        lines.append(f"grid: {_inline({axis: [default, float(f'{default / 10:.6g}')]})}")
    return "\n".join([*lines, "seeds: 20", ""])


def _inline(content: Any) -> str:
    return as_yaml([content], width=float("inf"), is_inline=True).strip()[1:-1]
