"""What a column of outcomes may be called and must hold (docs/reports.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from study.arrow import RESULT_SCHEMA
from study.records import CELL_FIELDS

OUTCOME_SCHEMA = pa.schema(
    [
        ("seed", pa.int64()),
        ("outcome", pa.string()),
        ("solved_at_iteration", pa.float64()),
        ("sparsity_error", pa.float64()),
        ("training_s", pa.float64()),
        ("trained_iterations", pa.float64()),
        ("stopped_early", pa.bool_()),
    ]
)
"""The columns of checked outcomes, before those that tell groups apart."""

ALIASES: Mapping[str, Sequence[str]] = {
    "seed": ("seed",),
    "outcome": ("outcome",),
    "solved": ("solved",),
    "solved_at_iteration": ("solved_at_iteration", "solved_at"),
    "sparsity_error": ("sparsity_error",),
    "training_s": ("training_s",),
    "trained_iterations": ("trained_iterations", "iterations"),
    "stopped_early": ("stopped_early",),
}
"""Names that a file may use, the preferred first."""

NUMBERS = ("solved_at_iteration", "sparsity_error", "training_s", "trained_iterations")

MEASURED = {
    *(name for name in RESULT_SCHEMA.names if name not in (*CELL_FIELDS, "seed")),
    *("best_evaluation", "evaluations", "interpolation_mse", "extrapolation_mse", "interpolation_solved_at"),
}
"""Columns that describe a trial's result: they tell no groups apart unless asked to."""

_MLFLOW = ("params.", "metrics.", "tags.study.", "tags.")
_METRICS = {*MEASURED, *(alias for aliases in ALIASES.values() for alias in aliases)}
_MLFLOW_TAGS = ("outcome", "trial_id", "cell_id", "stopped_early", "engine", "device", "error")


def from_mlflow(names: Sequence[str]) -> dict[str, str]:
    """Find what columns of an export of MLflow's runs are called here; the first of several of one name counts.

    Returns:
        Our name by theirs; nothing if they aren't such an export.

    Example:
        >>> from_mlflow(["run_id", "metrics.solved_at_iteration", "params.seed", "tags.study.outcome"])
        {'params.seed': 'seed', 'metrics.solved_at_iteration': 'solved_at_iteration', 'tags.study.outcome': 'outcome'}
    """
    found: dict[str, str] = {}
    if not any(name.startswith("params.") for name in names):
        return found
    for prefix in _MLFLOW:
        for name in names:
            ours = name.removeprefix(prefix)
            is_known = prefix == "params." or ours in (
                _MLFLOW_TAGS if prefix.startswith("tags.") else _METRICS
            )
            if name.startswith(prefix) and is_known and ours not in found.values():
                found[name] = ours
    return found


def own_name(name: str, names: Sequence[str]) -> str | None:
    """Find which name of `ALIASES` a file uses for one of ours; None if it has no such column."""
    return next((alias for alias in ALIASES[name] if alias in names), None)


def missing(names: Sequence[str]) -> list[str]:
    """Say which columns a file lacks."""
    lacking = [
        name for name in ("seed", "solved_at_iteration", "sparsity_error") if own_name(name, names) is None
    ]
    told = [" or ".join(reversed(ALIASES[name])) for name in lacking]
    return told if "solved" in names or "outcome" in names else ["solved or outcome", *told]
