"""Differences of a metric between rows, seed by seed: what trials of one seed have in common cancels out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from study import statistics

BySeed = Mapping[int, float]
"""The values of one cell's trials; NaN where a trial has none."""


def values_by_seed(results: pa.Table, metric: str) -> Mapping[str, BySeed]:
    """Return a metric's values by the ids of cells.

    Args:
        results: as `study.arrow.results_table` makes them.
        metric: its name.

    Example:
        >>> results = pa.table({"cell_id": ["a", "a", "b"], "seed": [0, 1, 0], "loss": [0.5, None, 0.25]})
        >>> values_by_seed(results, "loss")
        {'a': {0: 0.5, 1: nan}, 'b': {0: 0.25}}
    """
    if metric not in results.column_names:
        return {}
    values = pc.fill_null(results[metric].cast(pa.float64()), float("nan")).to_pylist()
    of_cells: dict[str, dict[int, float]] = {}
    for cell_id, seed, value in zip(results["cell_id"].to_pylist(), results["seed"].to_pylist(), values, strict=True):
        of_cells.setdefault(cell_id, {})[seed] = value
    return of_cells


def are_paired(first: BySeed, second: BySeed) -> bool:
    """Tell whether two cells have trials of the same seeds."""
    return bool(first) and first.keys() == second.keys()


def difference(first: BySeed, second: BySeed) -> statistics.Contrast | None:
    """Estimate the mean difference by Student's method; None for fewer than two seeds, or where none differ.

    Seeds of which either trial has no finite number are left out.

    Args:
        first: the values of the first cell.
        second: those of the second, of the same seeds.

    Example:
        >>> both = difference({0: 1.0, 1: 3.0, 2: 8.0}, {0: 0.5, 1: 2.0, 2: 7.5})
        >>> round(both.estimate, 3), [round(end, 3) for end in both.interval]
        (0.667, [-0.05, 1.384])
    """
    differences = np.array([first[seed] - second[seed] for seed in sorted(first)])
    differences = differences[np.isfinite(differences)]
    if differences.size < 2:
        return None
    deviation = float(statistics.deviations(differences)[0])
    return statistics.contrast([1.0], [float(differences.mean())], [deviation], [differences.size])
