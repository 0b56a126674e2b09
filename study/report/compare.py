"""Set a study's cells beside the published ones they repeat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from study import statistics
from study.aggregate import CellSummary
from study.records import Cell, Interval
from study.reference.published import Published, published
from tasks.networks import MODELS

LEVEL = 0.05
"""Chance of any false 'differs' in one comparison."""

_PROTOCOL: dict[str, Any] = {
    "subsets": 2,
    "interpolation_range": ((1.0, 2.0),),
    "extrapolation_range": ((2.0, 6.0),),
    "init_variance": None,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "batch_size": 128,
    "evaluate_every": 1000,
    "evaluation_rows": 10_000,
    "success_epsilon": 1e-5,
    "success_threshold": None,
}
_TASKS: dict[str, dict[str, Any]] = {
    "simple": {"input_size": 4, "iterations": 200_000},
    "arithmetic": {
        "input_size": 100,
        "subset_ratio": 0.25,
        "overlap_ratio": 0.5,
        "iterations": 5_000_000,
    },
}
_BEST_STEP_WINDOW = 5000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A cell beside the published one.

    Args:
        summary: the study's cell.
        published: the published one.
        published_rate: solved of seeds.
        published_interval: Wilson, 95%.
        p_value: Fisher's exact test of equal success rates, two-sided.
        p_adjusted: the same after Holm, over all cells compared.
        verdict: ``differs`` if `p_adjusted` is below `LEVEL`, else ``agrees``: no difference was detected.
    """

    summary: CellSummary
    published: Published
    published_rate: float
    published_interval: Interval
    p_value: float
    p_adjusted: float
    verdict: str


def compare(summaries: Sequence[CellSummary]) -> list[Comparison]:
    """Compare each cell that repeats a published one, and has a finished trial, with it.

    Where several published cells have the same protocol, a study that sweeps the hidden size is compared with
    the published sweeps (the NMU with the ablation's, of 50 seeds), and one that doesn't with the seeds.
    """
    pairs = [
        (summary, row)
        for summary in summaries
        if summary.finished and (row := _choose(summary.cell, summaries)) is not None
    ]
    p_values = [statistics.fisher_exact(s.solved, s.finished, row.solved, row.seeds) for s, row in pairs]
    adjusted = statistics.holm(p_values)
    return [
        Comparison(
            summary=summary,
            published=row,
            published_rate=row.solved / row.seeds,
            published_interval=statistics.wilson(row.solved, row.seeds),
            p_value=p_value,
            p_adjusted=p_adjusted,
            verdict="differs" if p_adjusted < LEVEL else "agrees",
        )
        for (summary, row), p_value, p_adjusted in zip(pairs, p_values, adjusted, strict=True)
    ]


def matches(cell: Cell, row: Published) -> bool:
    """Say whether a cell repeats a published one in everything that the published protocol fixes.

    A sparsity schedule that starts after the last iteration is one that is off; a best-step window longer
    than the run is the whole run; `stop: when_decided` changes no outcome.
    """
    fixed = {
        **_PROTOCOL,
        **_TASKS[row.task],
        "task": row.task,
        "operation": row.operation,
        "model": row.model,
        "hidden_size": row.hidden_size,
    }
    return (
        all(getattr(cell, name) == value for name, value in fixed.items())
        and min(cell.best_step_window, cell.evaluations) == min(_BEST_STEP_WINDOW, cell.evaluations)
        and _sparsity(cell) == _published_sparsity(cell, row)
        and _bounds_match(cell, row)
    )


def _choose(cell: Cell, summaries: Iterable[CellSummary]) -> Published | None:
    candidates = [row for row in published() if matches(cell, row)]
    swept = len({s.cell.hidden_size for s in summaries if s.cell.model == cell.model}) > 1
    first = ("hidden_size_ablation", "hidden_size") if swept else ("static_seeds", "hidden_size_ablation")
    ranks = {table: rank for rank, table in enumerate(first)}
    return min(candidates, key=lambda row: ranks.get(row.table, len(ranks)), default=None)


def _sparsity(cell: Cell) -> tuple[Any, ...] | None:
    """Give the schedule of the sparsity regulariser; None if it is never on."""
    if not cell.sparsity_strength or (cell.sparsity_start or 0) >= cell.iterations:
        return None
    shape, scaling = cell.sparsity_shape, cell.sparsity_scaling
    return (cell.sparsity_strength, cell.sparsity_start, cell.sparsity_end, shape, scaling)


def _published_sparsity(cell: Cell, row: Published) -> tuple[Any, ...] | None:
    model = MODELS[row.model]
    if not row.sparsity or not model.sparsity_strength or (model.sparsity_start or 0) >= cell.iterations:
        return None
    return (model.sparsity_strength, model.sparsity_start, model.sparsity_end, "linear", "linear")


def _bounds_match(cell: Cell, row: Published) -> bool:
    if row.clipped:
        return cell.bounds in (None, "clipped")
    return cell.bounds == "regularized" and not cell.out_of_bounds_strength
