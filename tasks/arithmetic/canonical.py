"""Conversion of a point's values to a cell, with defaults, and None for values that don't apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.interface.l1_strengths import l1_fields
from tasks.arithmetic import SINGLE_MODULE, TASKS, Model, model_of
from tasks.arithmetic.cell import TASK_NAMES, ArithmeticCell
from tasks.arithmetic.hyperparameters import OF_NORMAL
from tasks.arithmetic.module_training import l1_strengths

_LEARNING_RATE = 1e-3
_MOMENTUM = 0.9
_OUT_OF_BOUNDS_STRENGTH = 1.0
_ITERATIONS = {"simple": 200_000, SINGLE_MODULE: 100_000}
_MOST_ITERATIONS = 5_000_000
_PAIR_ITERATIONS = 50_000  # the single-module task with two inputs
_OUTWARD_START = 10_001


def canonical(task: str, model: str, values: Mapping[str, Any]) -> ArithmeticCell:
    """Make the cell of a grid point, with all defaults, and None for values that don't apply.

    Args:
        task: name in `tasks.arithmetic.TASKS`.
        model: name in `tasks.arithmetic.MODELS`, or the key of a registered user-defined unit.
        values: the hyperparameters that are set, by name; other names are ignored.

    Raises:
        KeyError: if the task or the model is unknown.
        ValueError: if the task can't be constructed from these values.

    Example:
        >>> cell = canonical("simple", "NAC-mul", {"sparsity_strength": 10.0})
        >>> cell.sparsity_strength, cell.iterations
        (None, 200000)
    """
    task_ = TASKS[task](**task_values(values))
    network = model_of(task, model, task_.input_size)
    plain = ("batch_size", "evaluate_every", "best_step_window", "evaluation_rows", "stop")
    return ArithmeticCell(
        task=task,
        **{name: getattr(task_, name) for name in TASK_NAMES},
        model=model,
        hidden_size=1 if task == SINGLE_MODULE else values.get("hidden_size", 2),
        init_variance=values.get("init_variance"),
        init_range=values.get("init_range") if network.has_nmu else None,
        init_signs="two_negative" if network.multiplies_sums and values.get("init_signs") == "two_negative" else None,
        iterations=values.get("iterations", network.training.get("iterations", _iterations(task, task_.input_size))),
        learning_rate=values.get("learning_rate", network.training.get("learning_rate", _LEARNING_RATE)),
        **{name: values[name] for name in plain if name in values},
        **bounds(network, values),
        **sparsity(network, values),
        **l1(network, task_.operation, values),
        **outward(network, values),
        **limits(network, values),
        **optimizer(values),
        relative_error=values.get("relative_error") or None,
        init=values["init"] if values.get("init") == "independent" else None,
        **success(values),
    )


def task_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values that the task's constructor takes.

    The distribution ``uniform`` is left out, as are means and deviation unless the distribution is ``normal``.
    """
    given = {name: values[name] for name in TASK_NAMES if name in values}
    if given.get("distribution") == "uniform":
        del given["distribution"]
    if given.get("distribution") != "normal":
        return {name: value for name, value in given.items() if name not in OF_NORMAL}
    return given


def _iterations(task: str, input_size: int) -> int:
    if task == SINGLE_MODULE and input_size == 2:
        return _PAIR_ITERATIONS
    return _ITERATIONS.get(task, _MOST_ITERATIONS)


def bounds(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell's fields for the weights' bounds, and if ``regularized`` for the out-of-bounds regulariser.

    They are empty for a model without bounded weights. With a strength of 0, the regulariser's shape is None.
    """
    if not model.has_bounds:
        return {}
    mode = values.get("bounds", "clipped")
    if mode == "clipped":
        return {"bounds": mode}
    strength = values.get("out_of_bounds_strength", _OUT_OF_BOUNDS_STRENGTH)
    shape = values.get("out_of_bounds_shape", "linear") if strength else None
    return {"bounds": mode, "out_of_bounds_strength": strength, "out_of_bounds_shape": shape}


def sparsity(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell's fields for the sparsity regulariser and its schedule, by default as published for the model.

    They are empty for a model without bounded weights. If the strength is 0, it is the only field. Exponential scaling
    has no start and end.
    """
    if not model.has_bounds:
        return {}
    strength = values.get("sparsity_strength", model.sparsity_strength or 0.0)
    if not strength:
        return {"sparsity_strength": 0.0}
    regulariser = {
        "sparsity_strength": strength,
        "sparsity_shape": values.get("sparsity_shape", "linear"),
        "sparsity_scaling": values.get("sparsity_scaling", "linear"),
    }
    if regulariser["sparsity_scaling"] == "exponential":
        return regulariser
    return regulariser | {
        "sparsity_start": values.get("sparsity_start", model.sparsity_start),
        "sparsity_end": values.get("sparsity_end", model.sparsity_end),
    }


def l1(model: Model, operation: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell's fields for the L1 penalty, by default as published for a one-layer model, else off.

    A given last strength replaces both published ones. Without a first strength, the last one applies from the start.
    """
    published = l1_strengths(model.first, operation) if model.second is None else None
    first, last = published or (None, None)
    if "l1_strength" in values:  # the published first strength applies only with the published last strength
        first = None
    return l1_fields(values.get("l1_strength", last), values.get("l1_first_strength", first))


def outward(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell's fields for an iNALU's outward regulariser and restarts; empty for other models.

    They are by default as published for the model. If the strength is None or 0, `restart_memory` is the only field.
    """
    if not model.pushes_outward:
        return {}
    chosen = {**model.training, **values}
    fields = {"restart_memory": chosen.get("restart_memory")}
    if strength := chosen.get("outward_strength"):
        fields |= {"outward_strength": strength, "outward_start": chosen.get("outward_start", _OUTWARD_START)}
    return fields


def limits(model: Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell's gradient limits, `clip_norm` and `clip_value`, by default as published; None for no limit."""
    chosen = {**model.training, **values}
    return {name: chosen.get(name) for name in ("clip_norm", "clip_value")}


def optimizer(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell's fields for the optimiser; momentum is None unless the optimiser is ``momentum``."""
    name = values.get("optimizer", "adam")
    return {"optimizer": name, "momentum": values.get("momentum", _MOMENTUM) if name == "momentum" else None}


def success(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell's fields for the success criterion: a given threshold replaces ε, by default 1e-5."""
    threshold = values.get("success_threshold")
    epsilon = values.get("success_epsilon", 1e-5) if threshold is None else None
    return {"success_epsilon": epsilon, "success_threshold": threshold}
