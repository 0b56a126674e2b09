"""Pruning: early stopping of trials by comparison with other trials at the same step."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, Protocol


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """Rule for the early stopping of trials.

    Trials are compared at certain steps, called rungs, by their best value of a metric so far. A trial is compared with
    trials of other cells only; seeds of a cell don't compete.

    - ``halving``: asynchronous successive halving (Li et al., MLSys 2020). The rungs are ``first``, ``first * factor``,
      ``first * factor**2``, ... A trial continues if it is among the best ``1 / factor`` of all trials at the rung.
    - ``median``: the median rule (Golovin et al., KDD 2017). The rungs are ``first``, ``first + every``, ... A trial
      continues if it isn't worse than the median of the others at the rung.

    Trials don't wait for each other, so the decisions depend on the order in which they reach a rung.

    Args:
        method: ``halving`` or ``median``.
        metric: name of the compared metric.
        is_higher_better: True if greater values of the metric are better.
        first: step of the first rung.
        factor: reduction factor of halving, > 1.
        every: steps between two rungs of the median rule.
        after: number of trials of other cells that must have reached a rung before a trial is stopped there, >= 1.
        complete_from: trials with this or a greater seed are never stopped; None if all may be stopped.

    Example:
        >>> rule = Pruning(method="halving", metric="loss", is_higher_better=False, first=10, factor=3, after=2)
        >>> [rule.rung(step) for step in (9, 10, 29, 30, 95)]
        [None, 10, 10, 30, 90]
        >>> rule.stops(0.5, [0.4, 0.6]), rule.stops(0.3, [0.4, 0.6]), rule.stops(0.9, [0.4])
        (True, False, False)
    """

    method: Literal["halving", "median"]
    metric: str
    is_higher_better: bool
    first: int = 1
    factor: float = 3.0
    every: int = 1
    after: int = 5
    complete_from: int | None = None

    @property
    def compared(self) -> str:
        """Name of the compared quantity, such as ``lowest loss``."""
        return f"{'highest' if self.is_higher_better else 'lowest'} {self.metric}"

    def rung(self, step: int) -> int | None:
        """Return the last rung at or before a step; None before the first.

        In halving, each rung is the previous one times `factor`, rounded up, and at least one step later.
        """
        if step < self.first:
            return None
        if self.method == "median":
            return step - (step - self.first) % self.every
        rung = self.first
        while (following := max(rung + 1, math.ceil(rung * self.factor - 1e-9))) <= step:
            rung = following
        return rung

    def stops(self, value: float, others: Collection[float]) -> bool:
        """Return True if a trial must stop at a rung.

        Args:
            value: the trial's best value so far, finite.
            others: the best values of trials of other cells at the rung; if fewer than `after`, the trial continues.
                Equal values aren't better than the trial's.
        """
        if len(others) < self.after:
            return False
        sign = -1.0 if self.is_higher_better else 1.0
        loss, losses = sign * value, [sign * other for other in others]
        if self.method == "median":
            return loss > median(losses)
        better = sum(other < loss for other in losses)
        return better >= max(1, math.floor((len(losses) + 1) / self.factor))

    def applies_to(self, seed: int) -> bool:
        """Return True if a trial with this seed may be stopped."""
        return self.complete_from is None or seed < self.complete_from


class Rungs(Protocol):
    """Values of trials at rungs, shared by all workers of a study."""

    def add(self, rung: int, cell_id: str, trial_id: str, value: float) -> None:
        """Record the best value so far of a trial, of the given cell, that has reached a rung."""

    def values(self, rung: int) -> dict[str, dict[str, float]]:
        """Return the values at a rung, by cell id and trial id; empty if no trial has reached it."""


@dataclass
class Comparison:
    """Comparison of a trial with trials of other cells at each rung that it reaches.

    Args:
        trial_id: id of the trial.
        cell_id: id of its cell.
        pruning: the rule.
        rungs: values of all trials at the rungs.
        iterations: the last step, at which trials aren't compared; None if unknown.
    """

    trial_id: str
    cell_id: str
    pruning: Pruning
    rungs: Rungs
    iterations: int | None = None
    _best: float = field(default=math.nan, init=False)
    _rung: int | None = field(default=None, init=False)

    def __call__(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Record a step's metrics, and return True if the trial must stop.

        The trial is compared once per rung, even if it is interrupted. The step `iterations`, and steps with a metric
        that isn't finite, are ignored.

        Args:
            step: the step.
            metrics: the trial's metrics by name.

        Raises:
            KeyError: if the compared metric is missing.
            StoreError: if the values at a rung can't be read or stored.
        """
        if step == self.iterations or not all(map(math.isfinite, metrics.values())):
            return False
        self._note(metrics)
        rung = self.pruning.rung(step)
        if rung is None or rung == self._rung:
            return False
        self._rung = rung
        others = self.rungs.values(rung)
        if self.trial_id in others.pop(self.cell_id, {}):
            return False
        self.rungs.add(rung, self.cell_id, self.trial_id, self._best)
        return self.pruning.stops(self._best, [value for cell in others.values() for value in cell.values()])

    def resume(self, steps: Iterable[tuple[int, Mapping[str, float]]]) -> None:
        """Include steps from before an interruption in the best value, without comparing the trial at their rungs.

        Args:
            steps: pairs of a step and its metrics, in order; steps with a metric that isn't finite are ignored.

        Raises:
            KeyError: if the compared metric is missing.
        """
        for step, metrics in steps:
            if all(map(math.isfinite, metrics.values())):
                self._note(metrics)
                self._rung = self.pruning.rung(step)

    def _note(self, metrics: Mapping[str, float]) -> None:
        better = max if self.pruning.is_higher_better else min
        value = metrics[self.pruning.metric]
        self._best = value if math.isnan(self._best) else better(self._best, value)
