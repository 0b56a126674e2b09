"""The results of cells by seed, in order: what rules that add seeds judge by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from study.arrow import with_metrics
from study.records import Cell, Outcome
from study.statistics.checks import Floats
from tasks.declarations import Metric

PENDING, FAILED = -1, -2
Outcomes = npt.NDArray[np.int8]
"""The outcomes of a cell's seeds, in order: 1 solved, 0 not solved, or one of the above."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A metric of a cell's seeds, in order.

    Args:
        values: NaN where a trial has no number: it diverged, failed or is pending, or it isn't solved and the metric is
            of solved trials.
        outcomes: 1 with a number, 0 without, or one of the codes above.
        sign: with which less is better: -1 or 1.
    """

    values: Floats
    outcomes: Outcomes
    sign: float

    def first(self, n: int) -> Numbers:
        """Return those of the first n seeds."""
        return replace(self, values=self.values[:n], outcomes=self.outcomes[:n])

    @property
    def is_complete(self) -> bool:
        """Whether no seed is pending."""
        return PENDING not in self.outcomes

    @property
    def known(self) -> Floats:
        """The numbers."""
        numbers: Floats = self.values[self.outcomes == 1]
        return numbers

    @property
    def without(self) -> int:
        """How many trials ended without a number."""
        return int(np.count_nonzero(self.outcomes == 0))

    def losses(self) -> Floats:
        """Return what is less where a trial is better: infinity without a number."""
        return np.asarray(np.where(self.outcomes == 1, self.sign * self.values, np.inf))


def outcomes_of(cells: Sequence[Cell], most: int, results: pa.Table) -> dict[str, Outcomes]:
    """Sort outcomes into one array a cell, by its id.

    Args:
        cells: the cells; rows of others are ignored.
        most: the number of seeds, from 0 on.
        results: columns of `study.arrow.RESULT_SCHEMA`, one row a trial.
    """
    outcomes = {cell.id: np.full(most, PENDING, np.int8) for cell in cells}
    codes = {str(Outcome.SOLVED): 1, str(Outcome.FAILED): FAILED}
    columns = (results[name].to_pylist() for name in ("cell_id", "seed", "outcome"))
    for cell_id, seed, outcome in zip(*columns, strict=True):
        if cell_id in outcomes and 0 <= seed < most:  # below 0 are combined seeds of an earlier version of the study
            outcomes[cell_id][seed] = codes.get(outcome, 0)
    return outcomes


def numbers_of(cells: Sequence[Cell], most: int, results: pa.Table, name: str, metric: Metric) -> dict[str, Numbers]:
    """Sort a metric's values into one array a cell, by its id.

    Args:
        cells: the cells; rows of others are ignored.
        most: the number of seeds, from 0 on.
        results: columns of `study.arrow.RESULT_SCHEMA`, one row a trial.
        name: the metric's name.
        metric: its declaration.
    """
    having = {Outcome.SOLVED} if metric.of == "solved" else {Outcome.SOLVED, Outcome.UNSOLVED, Outcome.FINISHED}
    values = {cell.id: np.full(most, np.nan) for cell in cells}
    outcomes = {cell.id: np.full(most, PENDING, np.int8) for cell in cells}
    columns = (with_metrics(results, [name])[column].to_pylist() for column in ("cell_id", "seed", "outcome", name))
    for cell_id, seed, outcome, value in zip(*columns, strict=True):
        if cell_id not in values or not 0 <= seed < most:
            continue
        if outcome == Outcome.FAILED:
            outcomes[cell_id][seed] = FAILED
        elif outcome in having and value is not None and math.isfinite(value):
            values[cell_id][seed], outcomes[cell_id][seed] = value, 1
        else:
            outcomes[cell_id][seed] = 0
    sign = -1.0 if metric.higher_is_better else 1.0
    return {cell_id: Numbers(values[cell_id], outcomes[cell_id], sign) for cell_id in values}
