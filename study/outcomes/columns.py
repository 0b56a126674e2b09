"""Schema and accepted column names of outcomes (docs/guides/reports.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from study.arrow import RESULT_COLUMNS, metric_columns

OUTCOME_SCHEMA = pa.schema(
    [
        ("seed", pa.int64()),
        ("outcome", pa.string()),
        ("solved_at_iteration", pa.float64()),
        ("training_s", pa.float64()),
        ("trained_iterations", pa.float64()),
        ("stopped_early", pa.bool_()),
    ]
)
"""The columns of checked outcomes; those of metrics and of groups follow them."""

ALIASES: Mapping[str, Sequence[str]] = {
    "seed": ("seed",),
    "outcome": ("outcome",),
    "solved": ("solved",),
    "solved_at_iteration": ("solved_at_iteration", "solved_at"),
    "training_s": ("training_s",),
    "trained_iterations": ("trained_iterations", "iterations"),
    "stopped_early": ("stopped_early",),
}
"""Names that a file may use for each column, the preferred one first."""

NUMBERS = ("solved_at_iteration", "training_s", "trained_iterations")

_DESCRIBING = {
    *("trial_id", "cell_id"),
    *(name for name in RESULT_COLUMNS if name != "criterion"),  # a hyperparameter in many files
    *("best_evaluation", "evaluations", "interpolation_mse", "extrapolation_mse", "interpolation_solved_at"),
}


_MLFLOW = ("params.", "metrics.", "tags.study.", "tags.")
_ALIASES = {alias for aliases in ALIASES.values() for alias in aliases}
_MLFLOW_TAGS = ("outcome", "trial_id", "cell_id", "stopped_early", "engine", "device", "error")


def measured() -> set[str]:
    """Return the columns that describe a trial's result; they distinguish groups only on request.

    Raises:
        InputError: if an installed package of tasks can't be imported, or two offer the same task.
    """
    return {*_DESCRIBING, *metric_columns()}


def from_mlflow(names: Sequence[str], metrics: Collection[str] = ()) -> dict[str, str]:
    """Map the columns of an export of MLflow's runs to our names.

    Included are all parameters, the metrics and tags that describe a trial, and those of `metrics`. Of several columns
    with one of our names, a parameter takes precedence over a metric, and a metric over a tag.

    Args:
        names: the export's columns.
        metrics: the metrics that are needed.

    Returns:
        Our names by MLflow's names; empty without a column of parameters, ``params.NAME``.

    Raises:
        InputError: if an installed package of tasks can't be imported, or two offer the same task.

    Example:
        >>> from_mlflow(["run_id", "metrics.solved_at_iteration", "params.seed", "tags.study.outcome"])
        {'params.seed': 'seed', 'metrics.solved_at_iteration': 'solved_at_iteration', 'tags.study.outcome': 'outcome'}
    """
    our_names: dict[str, str] = {}
    if not any(name.startswith("params.") for name in names):
        return our_names
    for prefix in _MLFLOW:
        for name in names:
            ours = name.removeprefix(prefix)
            is_known = prefix == "params." or ours in (
                _MLFLOW_TAGS if prefix.startswith("tags.") else measured().union(_ALIASES, metrics)
            )
            if name.startswith(prefix) and is_known and ours not in our_names.values():
                our_names[name] = ours
    return our_names


def own_name(name: str, names: Sequence[str]) -> str | None:
    """Return the alias that a file uses for a column, a key of `ALIASES`; None if it has no such column."""
    return next((alias for alias in ALIASES[name] if alias in names), None)
