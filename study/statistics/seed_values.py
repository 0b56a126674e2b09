"""One method's values by cell and seed; the seed is the sampling unit.

The axes of a plain matrix aren't labelled: if cells and seeds are exchanged, or the episodes of a seed are taken for
seeds, every interval is wrong, and nothing shows it. Here each value has its cell and its seed, and each pair of a cell
and a seed has one value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from study.records import Interval
from study.statistics.checks import Floats, Values

Sample = Mapping[Hashable, float]
"""The value of each seed, in one cell."""


@dataclass(frozen=True)
class MeanOverCells:
    """A number over several cells of equal weight.

    Args:
        value: the estimate.
        interval: its interval; None if there are too few seeds, or nothing varies.
    """

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class SeedValues:
    """The values of one method.

    Args:
        by_cell: for each cell, the value of each seed. Equal seeds of different cells count as the same seed, and their
            values as correlated. If seeds are numbered without that meaning, intervals become slightly wider, and stay
            valid.

    Raises:
        ValueError: if there are no cells, a cell has no seeds, or a value is NaN.
    """

    by_cell: Mapping[Hashable, Sample]

    def __post_init__(self) -> None:
        """Raise ValueError without cells, for a cell without seeds, and for NaN."""
        if not self.by_cell or not all(self.by_cell.values()):
            raise ValueError("there must be at least one cell, and at least one seed in each cell")
        if any(np.isnan(list(sample.values())).any() for sample in self.by_cell.values()):
            raise ValueError(
                "values must be numbers, but NaN is among them: leave such trials out, or give them the infinity that "
                "is worse than any number"
            )

    @property
    def cell_names(self) -> list[Hashable]:
        """The cells, in an order that depends on nothing but their names."""
        return sorted(self.by_cell, key=repr)

    @property
    def samples(self) -> list[Sample]:
        """The values of each cell, in the order of `cell_names`."""
        return [self.by_cell[cell] for cell in self.cell_names]


def seed_values(
    *,
    cells: Sequence[Hashable],
    seeds: Sequence[Hashable],
    values: Values,
    repeats: Literal["refuse", "mean"] = "refuse",
) -> SeedValues:
    """Arrange the rows of a table by cell and seed.

    Args:
        cells: the cell of each row: a task, a data set, a question.
        seeds: the seed of each row: that of a trial trained from scratch.
        values: the value of each row.
        repeats: the treatment of several rows of one seed and cell, such as episodes, folds or checkpoints. They are
            parts of one trial, not seeds: they raise an error or, with "mean", are averaged.

    Raises:
        ValueError: if lengths differ, a value is NaN, there are no rows, or a seed has several rows in a cell and
            `repeats` is "refuse".

    Example:
        >>> rows = {"cells": ["a", "a", "b"], "seeds": [0, 1, 0], "values": [0.5, 0.7, 0.9]}
        >>> seed_values(**rows).by_cell
        {'a': {0: 0.5, 1: 0.7}, 'b': {0: 0.9}}
        >>> seed_values(cells=["a", "a"], seeds=[3, 3], values=[0.5, 0.7], repeats="mean").by_cell
        {'a': {3: 0.6}}
    """
    if not len(cells) == len(seeds) == len(values):
        raise ValueError(f"each row has a cell, a seed and a value, but got {len(cells)}, {len(seeds)}, {len(values)}")
    rows: dict[Hashable, dict[Hashable, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell, seed, value in zip(cells, seeds, values, strict=True):
        rows[cell][seed].append(float(value))
    repeated = [
        (cell, seed, len(own)) for cell, by_seed in rows.items() for seed, own in by_seed.items() if len(own) > 1
    ]
    if repeated and repeats == "refuse":
        cell, seed, count = repeated[0]
        raise ValueError(
            f"seed {seed!r} has {count} values in cell {cell!r}, but the seed is the sampling unit and must have one: "
            'average them with repeats="mean" if they are parts of a trial (episodes, folds), or give them different '
            "cells"
        )
    return SeedValues(
        {cell: {seed: float(np.mean(own)) for seed, own in by_seed.items()} for cell, by_seed in rows.items()}
    )


@dataclass(frozen=True)
class Block:
    """Samples that have seeds in common, directly or through others. Different blocks are independent of each other.

    Args:
        places: the places of the samples.
        values: shape [samples, seeds], with the seeds in the order of their `repr`; NaN where a sample lacks a seed.
    """

    places: tuple[int, ...]
    values: Floats

    @property
    def least(self) -> int:
        """The number of seeds of the smallest sample."""
        return int(np.min(np.sum(~np.isnan(self.values), axis=1)))


def blocks(samples: Sequence[Sample]) -> list[Block]:
    """Group samples into blocks that have no seeds in common.

    Example:
        >>> [block.places for block in blocks([{0: 1.0, 1: 2.0}, {7: 1.0}, {1: 3.0, 2: 0.0}])]
        [(0, 2), (1,)]
    """
    groups: list[tuple[set[Hashable], list[int]]] = []
    for place, sample in enumerate(samples):
        linked = [group for group in groups if not group[0].isdisjoint(sample)]
        groups = [group for group in groups if group[0].isdisjoint(sample)]
        seeds = set(sample).union(*(seeds for seeds, _ in linked))
        groups.append((seeds, sorted([place, *(other for _, places in linked for other in places)])))
    return [
        Block(tuple(places), _matrix([samples[place] for place in places], sorted(seeds, key=repr)))
        for seeds, places in sorted(groups, key=lambda group: group[1])
    ]


def _matrix(samples: Sequence[Sample], seeds: Sequence[Hashable]) -> Floats:
    return np.array([[sample.get(seed, np.nan) for seed in seeds] for sample in samples])


def student(variances: Values, sizes: Values, confidence: float) -> float:
    """Return Student's two-sided quantile for a sum of independent parts, by Satterthwaite's approximation.

    The degrees of freedom are V² / Σ v²/(n - 1), V = Σ v, or the least n - 1 if V is 0.
    Satterthwaite, Biometrics Bulletin 2 (1946) 110-114.

    Args:
        variances: v, the variance of each part.
        sizes: n, the sample size of each part, > 1.
        confidence: in (0, 1).

    Example:
        >>> round(student([2.0], [5], 0.95), 3), round(student([1.0, 1.0], [5, 5], 0.95), 3)
        (2.776, 2.306)
    """
    v, n = np.asarray(variances, np.float64), np.asarray(sizes, np.float64)
    total = v.sum()
    freedom = 1 / np.sum((v / total) ** 2 / (n - 1)) if total > 0 else n.min() - 1
    return float(special.stdtrit(freedom, (1 + confidence) / 2))
