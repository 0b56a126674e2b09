"""Small cells that train in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from study.records import Cell, Pack, Trial
from tasks import MODELS


def small_cell(model: str = "NMU", **changes: Any) -> Cell:
    """Build a cell of the simple task with a short run and a schedule that is on in the middle of it."""
    content: dict[str, Any] = {
        "task": "simple",
        "operation": "mul",
        "input_size": 4,
        "subset_ratio": None,
        "overlap_ratio": None,
        "subsets": 2,
        "interpolation_range": ((1.0, 2.0),),
        "extrapolation_range": ((2.0, 6.0),),
        "model": model,
        "hidden_size": 2,
        "batch_size": 16,
        "iterations": 40,
        "evaluate_every": 10,
        "best_step_window": 3,
        "evaluation_rows": 50,
    }
    if MODELS[model].has_bounds:
        content |= {
            "bounds": "clipped",
            "sparsity_strength": 10.0,
            "sparsity_start": 10,
            "sparsity_end": 30,
            "sparsity_shape": "linear",
            "sparsity_scaling": "linear",
        }
    return Cell(**content | changes)


def small_pack(*seeds: int, model: str = "NMU", **changes: Any) -> Pack:
    """Build a pack of one small cell."""
    cell = small_cell(model, **changes)
    return Pack(tuple(Trial(cell, seed) for seed in seeds))


@pytest.fixture(name="small_cell")
def _small_cell() -> Callable[..., Cell]:
    return small_cell


@pytest.fixture(name="small_pack")
def _small_pack() -> Callable[..., Pack]:
    return small_pack
