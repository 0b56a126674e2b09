"""Script of a stored trial, from the templates and its cell, result and learning curve."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from pydantic import TypeAdapter

from study.errors import InputError
from study.plugins.scripts import TrialScript
from study.records import Cell, Curve, Result, Trial
from study.words import count_of
from tasks.arithmetic.cell import ArithmeticCell, task_of, typed_cell
from tasks.arithmetic.distributions import uniform_mean
from tasks.arithmetic.init_seed import init_seed
from tasks.arithmetic.own_family import ARITHMETIC
from tasks.arithmetic.script.layers import layers
from tasks.arithmetic.script.literals import docstring, literal
from tasks.arithmetic.script.task import ScriptTarget, target
from tasks.arithmetic.script.training import constants, has_two_intervals, limits, optimizer, penalties, restart

_EVALUATIONS = 10
"""The number of a stored curve's evaluations in a script, besides those around the solved time."""
_A_LINE = 3
_MSES = ("validation_mse", "test_mse")


def trial_script(study: str, result: Result, curve: Curve) -> TrialScript:
    """Write a stored trial as one plain Python file that repeats its training with torch alone.

    The file draws the same initial weights and rows bit for bit, and compares its learning curve with the stored one.
    It adds numbers in a different order than the engines, so the curves agree only up to rounding.

    Args:
        study: the study's name.
        result: the trial's result.
        curve: the trial's curve.

    Raises:
        InputError: if the trial's model is user-defined, its task isn't of the arithmetic family, its cell has a value
            that a study file can't have, or its curve is empty or lacks the validation or test MSE.
        TypeError: if a number that a study file can't leave out, such as the batch size, is None.
        ValueError: unless 0 < first strength <= last strength holds for the cell's L1 penalty.
    """
    trial = result.trial
    if not len(curve.iteration) or not {*_MSES} <= curve.metrics.keys():
        raise InputError(f"trial {trial.id} has no script: its stored curve lacks {' or '.join(_MSES)}")
    cell = _checked_cell(trial)
    of_name = layers(cell)
    first_seed = init_seed(trial)
    has_two_seeds = trial.sources.are_combined or first_seed != trial.seed
    script_target, at = target(cell), result.solved_at_iteration
    signs = [f"{name}.{parameter}" for name, layer in of_name.items() for parameter in layer.signs]
    pairs = [f"{name}.{p}: {low}" for name, layer in of_name.items() for p, low in layer.bounded]
    units = count_of(cell.hidden_size, "hidden unit") if len(of_name) > 1 else "one layer"
    solved_at = "never" if at is None else f"first at iteration {at:,}"
    text = _template().render(
        trial=trial,
        cell=cell,
        has_two_seeds=has_two_seeds,
        input_mean=uniform_mean(cell.interpolation_range),
        first_seed=first_seed,
        init_seed="INIT_SEED" if has_two_seeds else "SEED",
        data_seed="DATA_SEED" if has_two_seeds else "SEED",
        layers=list(of_name.values()),
        target=script_target,
        constants=constants(cell, result.threshold or 0.0),
        two_intervals=has_two_intervals(cell),
        evaluations=evaluations(curve, result.solved_at_iteration),
        bounded=", ".join(pairs),
        weights=", ".join(layer.weights.format(name) for name, layer in of_name.items()),
        optimizer=optimizer(cell),
        penalties=penalties(cell, signs),
        limits=limits(cell),
        restart=restart(cell, of_name),
        has_modes=any(layer.has_modes for layer in of_name.values()),
        about=_about(study, result, units, script_target),
        stored=f"stored: {result.outcome}, test MSE below the threshold {solved_at}",
        best_from=max(0, cell.evaluations - cell.best_step_window) * cell.evaluate_every,
    )
    return TrialScript(trial.id, text)


def _about(study: str, result: Result, units: str, learns: ScriptTarget) -> str:
    trial = result.trial
    return (
        f"A trial in plain PyTorch: {trial.cell.model} with {units}, seed {trial.sources}.\n\n"
        f"It learns {learns.equation} ({learns.source}).\n"
        f"It is trial {trial.id} of study {study}, trained by the {result.engine} engine ({result.device}).\n"
    )


def _checked_cell(trial: Trial) -> ArithmeticCell:
    """Return a stored trial's cell if a study file could have all of its values.

    The check matters because the script executes these values, and a stored value may be of any type.

    Raises:
        InputError: if the model is user-defined, the task isn't of the family, a value is missing, or a value isn't
            valid for its hyperparameter.
    """
    cell = trial.cell
    if "code" in cell.values:
        raise InputError(
            f"trial {trial.id} has no script: {cell.model} is your own code; without --script it is trained again here"
        )
    if cell.task not in ARITHMETIC.tasks:
        raise InputError(f"trial {trial.id} has no script: its task, {cell.task!r}, isn't of the arithmetic family")
    try:
        wrong = "model" if cell.model not in ARITHMETIC.models else _wrong_value(cell)
        typed = typed_cell(cell)
        task_of(typed)
    except (KeyError, TypeError, ValueError) as error:
        wrong = str(error)
    if wrong is not None:
        raise InputError(
            f"trial {trial.id} has no script: its cell has a value that a study file can't have (see {wrong}), so its "
            "results were changed, or written by another program"
        )
    return typed


def _wrong_value(cell: Cell) -> str | None:
    """Return the name of the first hyperparameter with an invalid value, or None; it takes every None as valid."""
    for name, value in cell.values.items():
        try:
            if value is not None:  # with lists, as in a study file
                TypeAdapter(ARITHMETIC.hyperparameters[name].type).validate_python(json.loads(json.dumps(value)))
        except (KeyError, ValueError):
            return name
    return None


def evaluations(curve: Curve, solved_at: int | None) -> Iterator[str]:
    """Yield lines with a selection of a stored curve's evaluations, denser at the beginning.

    Args:
        curve: the stored curve, with at least one evaluation, and with validation and test MSE.
        solved_at: iteration of an evaluation to include, with the evaluation before it; None to include no such pair.
    """
    last = len(curve.iteration) - 1
    places = {round(last * (i / (_EVALUATIONS - 1)) ** 2) for i in range(_EVALUATIONS)}
    if solved_at is not None:
        at = int(np.searchsorted(curve.iteration, solved_at))
        places |= {max(0, at - 1), at}
    mses = [curve.metrics[name] for name in _MSES]
    rows = [f"({curve.iteration[i]}, {_number(mses[0][i])}, {_number(mses[1][i])})," for i in sorted(places)]
    for start in range(0, len(rows), _A_LINE):
        yield " ".join(rows[start : start + _A_LINE])


def _number(value: float) -> str:
    digits, _, power = f"{value:.5e}".partition("e")
    return f"{digits}e{int(power)}" if math.isfinite(value) else literal(float(value))


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("tasks.arithmetic.script", "."),
        autoescape=False,  # the output is Python
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"docstring": docstring, "literal": literal}
    return environment.get_template("trial.py.j2")
