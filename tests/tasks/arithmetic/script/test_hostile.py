"""Hostile stored values in scripts: each becomes a literal, or the script is refused."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from study.errors import InputError
from study.records import Cell, Curve, Outcome, Result, Trial
from study.spec.cells import canonical_cell
from tasks.arithmetic.script import trial_script

HOSTILE = [
    'fused"""\nimport os\nos.abort()\n"""',
    "cpu'''\nimport os\nos.abort()\n'''",
    '")\nimport os\nos.abort()\n("',
    "0\nimport os",
    "{{ 1 }}{% raw %}",
    "\\",
    "\x1b]0;title\x07",
]
CELL = canonical_cell("simple", "NMU", {"iterations": 30, "evaluate_every": 1, "evaluation_rows": 50})
RESULT = Result(
    trial=Trial(CELL, 3), outcome=Outcome.UNSOLVED, threshold=1e-5, iterations=10, engine="fused", device="cpu"
)


def script(result: Result, study: str = "a-study") -> str:
    steps = np.arange(11)
    metrics = {"validation_mse": np.ones(11, np.float32), "test_mse": np.ones(11, np.float32)}
    return str(trial_script(study, result, Curve(result.trial.id, steps, metrics)))


def shape(source: str) -> str:
    """Return a script's structure without its literals."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = type(node.value).__name__
    return ast.dump(tree)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("column", ["study", "engine", "device", "outcome", "criterion", "error"])
def test_texts_of_a_result_are_literals(column: str, text: str) -> None:
    """A script has the same code with any text in any column of a result."""
    hostile: dict[str, Any] = {column: text}
    source = script(RESULT, text) if column == "study" else script(replace(RESULT, **hostile))
    assert shape(source) == shape(script(RESULT))
    assert "\x1b" not in source


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["task", "model", *CELL.values, "a_new_name"])
def test_values_of_a_cell_must_be_valid_in_a_study_file(name: str, text: str) -> None:
    """A cell with a task, model or hyperparameter that a study file can't have is refused."""
    cell = CELL.replace(**{name: text})
    with pytest.raises(InputError, match="has no script"):
        script(replace(RESULT, trial=Trial(cell, 3)))


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), 1e-5])
def test_a_non_finite_threshold_is_a_name_of_math(threshold: float) -> None:
    """A script with a non-finite threshold runs, because the threshold is written as math.nan or math.inf."""
    lines = script(replace(RESULT, threshold=threshold)).splitlines()
    (line,) = [line for line in lines if line.startswith("THRESHOLD")]
    value = line.removeprefix("THRESHOLD = ").partition("  #")[0]
    assert repr(vars(math)[value[5:]] if value.startswith("math.") else float(value)) == repr(threshold)


def test_a_cell_without_its_hyperparameters_is_refused() -> None:
    """A cell that lacks hyperparameters of its task gives an error with a message, and no traceback."""
    for values in ({"hidden_size": None}, {}):
        with pytest.raises(InputError, match="has no script"):
            script(replace(RESULT, trial=Trial(Cell("simple", "NMU", values), 3)))
