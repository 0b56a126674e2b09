"""From a point's values to a canonical cell: with defaults, and None where something doesn't apply.

Points that have the same cell ask for the same trials, whatever the file calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.records import Cell
from tasks import MODELS, TASKS

_MOMENTUM = 0.9
_OUT_OF_BOUNDS_STRENGTH = 1.0
_ITERATIONS = {"arithmetic": 5_000_000, "simple": 200_000}

TASK_NAMES = (
    "operation",
    "input_size",
    "subset_ratio",
    "overlap_ratio",
    "subsets",
    "interpolation_range",
    "extrapolation_range",
)


def canonical_cell(task: str, model: str, values: Mapping[str, Any]) -> Cell:
    """Make the cell of a point.

    Args:
        task: name in `tasks.TASKS`.
        model: name in `tasks.MODELS`.
        values: values of the hyperparameters that are set, by name.

    Raises:
        ValueError: if the task doesn't exist with these values.

    Example:
        >>> cell = canonical_cell("simple", "NAC-mul", {"sparsity_strength": 10.0})
        >>> cell.sparsity_strength, cell.iterations
        (None, 200000)
    """
    task_ = TASKS[task](**{name: values[name] for name in TASK_NAMES if name in values})
    plain = ("learning_rate", "batch_size", "evaluate_every", "best_step_window", "evaluation_rows", "stop")
    return Cell(
        task=task,
        **{name: getattr(task_, name) for name in TASK_NAMES},
        model=model,
        hidden_size=values.get("hidden_size", 2),
        init_variance=values.get("init_variance"),
        iterations=values.get("iterations", _ITERATIONS[task]),
        **{name: values[name] for name in plain if name in values},
        **bounds(model, values),
        **sparsity(model, values),
        **optimizer(values),
        **success(values),
    )


def bounds(model: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say how weights are kept in their bounds."""
    if not MODELS[model].has_bounds:
        return {}
    mode = values.get("bounds", "clipped")
    if mode == "clipped":
        return {"bounds": mode}
    strength = values.get("out_of_bounds_strength", _OUT_OF_BOUNDS_STRENGTH)
    shape = values.get("out_of_bounds_shape", "linear") if strength else None
    return {"bounds": mode, "out_of_bounds_strength": strength, "out_of_bounds_shape": shape}


def sparsity(model: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the sparsity regulariser and its schedule."""
    published = MODELS[model]
    if not published.has_bounds:
        return {}
    strength = values.get("sparsity_strength", published.sparsity_strength or 0.0)
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
        "sparsity_start": values.get("sparsity_start", published.sparsity_start),
        "sparsity_end": values.get("sparsity_end", published.sparsity_end),
    }


def optimizer(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the optimiser."""
    name = values.get("optimizer", "adam")
    return {"optimizer": name, "momentum": values.get("momentum", _MOMENTUM) if name == "momentum" else None}


def success(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the success criterion: a threshold in the file replaces the computed one."""
    threshold = values.get("success_threshold")
    epsilon = values.get("success_epsilon", 1e-5) if threshold is None else None
    return {"success_epsilon": epsilon, "success_threshold": threshold}
