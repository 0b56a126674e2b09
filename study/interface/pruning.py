"""Early stopping of trials by comparison with others at the same step."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, Protocol


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """A rule by which trials are stopped early.

    Trials are compared at rungs, which are steps, by the best value of a metric so far, each with those of other cells:
    seeds of a cell don't compete. *Halving* (asynchronous successive halving, Li et al., MLSys 2020) has rungs at
    ``first``, ``first * factor``, ``first * factor**2``, ... At each, a trial goes on if it is among the best ``1 /
    factor`` of itself and the others that have been there. *Median* has rungs at ``first``, ``first + every``, ... A
    trial goes on if it isn't worse than the median of the others there (Golovin et al., KDD 2017). Nobody waits for
    others, so what is stopped depends on the order in which trials arrive.

    Args:
        method: ``halving`` or ``median``.
        metric: what is compared.
        is_higher_better: whether more of it is better.
        first: the first rung, a step.
        factor: of halving, > 1.
        every: steps between two rungs, of the median rule.
        after: how many trials of other cells must have been at a rung before one is stopped there.
        complete_from: trials with this seed or a greater one are never stopped; None to stop any.

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
        """Return the last rung at or before a step; None before the first."""
        if step < self.first:
            return None
        if self.method == "median":
            return step - (step - self.first) % self.every
        rung = self.first
        while (following := max(rung + 1, math.ceil(rung * self.factor - 1e-9))) <= step:
            rung = following
        return rung

    def stops(self, value: float, others: Collection[float]) -> bool:
        """Return whether a trial is stopped at a rung.

        Args:
            value: the best value of the trial so far.
            others: those of the trials of other cells that have been at the rung.
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
        """Return whether a trial with a seed may be stopped."""
        return self.complete_from is None or seed < self.complete_from


class Rungs(Protocol):
    """Values of trials at rungs, shared by all workers of a study."""

    def add(self, rung: int, cell_id: str, trial_id: str, value: float) -> None:
        """Record that a trial of a cell has come to a rung."""

    def values(self, rung: int) -> dict[str, dict[str, float]]:
        """Return the values at a rung, by cell and trial."""


@dataclass
class Comparison:
    """Compares a trial with those of other cells at each rung that it comes to.

    Args:
        trial_id: the trial.
        cell_id: its cell.
        pruning: the rule.
        rungs: the values of other trials.
        iterations: the last step, at which nothing is compared; None if it isn't known.
    """

    trial_id: str
    cell_id: str
    pruning: Pruning
    rungs: Rungs
    iterations: int | None = None
    _best: float = field(default=math.nan, init=False)
    _rung: int | None = field(default=None, init=False)

    def __call__(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Return whether the trial is stopped at a step; never at one with a metric that isn't a finite number.

        At a rung that it has been at before an interruption it isn't judged again.
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
        """Take the steps before an interruption into account: the best value counts, and they were judged at the time.

        Args:
            steps: each with its metrics, in order.
        """
        for step, metrics in steps:
            if all(map(math.isfinite, metrics.values())):
                self._note(metrics)
                self._rung = self.pruning.rung(step)

    def _note(self, metrics: Mapping[str, float]) -> None:
        better = max if self.pruning.is_higher_better else min
        value = metrics[self.pruning.metric]
        self._best = value if math.isnan(self._best) else better(self._best, value)
