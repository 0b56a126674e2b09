"""Running scores of a pack's trials, shared by all engines: best step, solved-at and outcome.

Definitions (`docs/reference/glossary.md`): the best step is the evaluation with the best first metric, among the last
`best_step_window` evaluations of a full run (ties: the first; values that aren't finite are skipped). A trial is solved
if its metrics there meet the criterion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from study.interface.declarations import Metric
from study.records import Curve, Outcome, Result, Trial

NO_STEP = -1
"""Placeholder for a missing evaluation."""


class Evaluations(Protocol):
    """Length of training and times of evaluations."""

    @property
    def iterations(self) -> int: ...

    @property
    def evaluate_every(self) -> int: ...

    @property
    def best_step_window(self) -> int: ...


class Scores(ABC):
    """The running scores of a pack's trials; every array's first axis is the trial.

    Args:
        protocol: length of training and times of evaluations, the same for all trials.
        trials: their number.
        metrics: metrics of each evaluation, at least one; the first one selects the best step.
        finite: metrics that must be finite at the best step; a trial whose last ones aren't finite has diverged.
        dtype: dtype of the metrics.
    """

    def __init__(
        self,
        protocol: Evaluations,
        trials: int,
        metrics: Mapping[str, Metric],
        finite: Sequence[str],
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        self.protocol = protocol
        self._metrics = tuple(metrics)
        self._finite = tuple(finite)
        self._first, first = next(iter(metrics.items()))
        self._is_better = np.greater if first.higher_is_better else np.less
        self._worst = -np.inf if first.higher_is_better else np.inf
        evaluations = protocol.iterations // protocol.evaluate_every + 1
        self._window_start = max(0, evaluations - protocol.best_step_window)
        self._made = 0
        self._curves = {name: np.full((trials, 64), np.nan, dtype) for name in self._metrics}
        self._best = np.full(trials, NO_STEP, np.int64)
        self._solved_at = np.full(trials, NO_STEP, np.int64)
        self._ended_at = np.full(trials, NO_STEP, np.int64)

    @abstractmethod
    def _meets(self, metrics: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
        """Return a mask of the trials whose metrics, each [trials], meet their criterion; NaN doesn't."""

    @abstractmethod
    def _judged_by(self, trial: int) -> dict[str, Any]:
        """Return the fields of a trial's result that describe its criterion."""

    @abstractmethod
    def _outcome(self, *, solved: bool, finite: bool) -> Outcome:
        """Return a trial's outcome.

        Args:
            solved: whether its metrics at the best step meet the criterion.
            finite: whether the metrics of its last evaluation are finite.
        """

    @property
    def solved(self) -> int:
        """Number of trials whose metrics have met the criterion at some evaluation so far."""
        return int((self._solved_at != NO_STEP).sum())

    @property
    def diverged(self) -> int:
        """Number of trials with a metric of `finite` that isn't finite at their latest evaluation; 0 before any."""
        return int((~self._is_finite(self._last())).sum()) if self._made else 0

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        """Mask of the trials that still train, bool [trials]."""
        return np.equal(self._ended_at, NO_STEP)

    def record(self, **metrics: npt.NDArray[Any]) -> None:
        """Record one evaluation of the trials that still train, and update their best steps and solved-at.

        Args:
            metrics: every metric by name, each [trials still training].

        Raises:
            KeyError: if a metric is missing.
        """
        active, index = self.active, self._made
        if index == self._curves[self._first].shape[1]:
            self._curves = {
                name: np.concatenate([curve, np.full_like(curve, np.nan)], axis=1)
                for name, curve in self._curves.items()
            }
        for name in self._metrics:
            self._curves[name][active, index] = metrics[name]
        self._made += 1

        now = {name: curve[:, index] for name, curve in self._curves.items()}
        self._solved_at[active & self._meets(now) & (self._solved_at == NO_STEP)] = index
        if index >= self._window_start:
            best = np.where(self._best == NO_STEP, self._worst, self._at(self._first, self._best))
            finite = np.logical_and.reduce([np.isfinite(now[name]) for name in self._finite])
            self._best[active & finite & self._is_better(now[self._first], best)] = index

    def history(self, metric: str) -> npt.NDArray[Any]:
        """Return a metric at each evaluation so far, [trials, evaluations]; NaN after a trial has ended.

        Raises:
            KeyError: if there is no such metric.
        """
        return self._curves[metric][:, : self._made]

    def latest(self) -> list[float]:
        """Return the first metric of each trial at its last evaluation; NaN before the first."""
        values: list[float] = self._at(self._first, self._last()).tolist() if self._made else [np.nan] * len(self._best)
        return values

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy out all arrays, for a checkpoint."""
        arrays = {f"curve/{name}": self._curves[name][:, : self._made].copy() for name in self._metrics}
        return arrays | {
            "score/best": self._best.copy(),
            "score/solved_at": self._solved_at.copy(),
            "score/ended_at": self._ended_at.copy(),
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Resume from the arrays that `state` copied out.

        Raises:
            KeyError: if an array is missing.
        """
        self._made = arrays[f"curve/{self._first}"].shape[1]
        room = max(64, 2 * self._made)
        for name in self._metrics:
            curves = np.full((len(self._best), room), np.nan, self._curves[name].dtype)
            curves[:, : self._made] = arrays[f"curve/{name}"]
            self._curves[name] = curves
        self._best = arrays["score/best"].copy()
        self._solved_at = arrays["score/solved_at"].copy()
        self._ended_at = arrays["score/ended_at"].copy()

    def results(self, trials: Sequence[Trial], *, training_s: float, engine: str, device: str) -> list[Result]:
        """Return each trial's result, with its metrics at the best step; without a best step, it has no metrics.

        Metrics that are NaN there are left out.

        Args:
            trials: the pack's trials.
            training_s: seconds that the whole pack trained; each result has an equal share of them.
            engine: name of the engine.
            device: the device that it trained on.
        """
        every, solves, finite = self.protocol.evaluate_every, self._solves(), self._is_finite(self._last())
        metrics = {name: self._at(name, self._best) for name in self._metrics}
        results = []
        for i, trial in enumerate(trials):
            best, at, ended = int(self._best[i]), int(self._solved_at[i]), int(self._ended_at[i])
            results.append(
                Result(
                    trial=trial,
                    outcome=self._outcome(solved=bool(solves[i]), finite=bool(finite[i])),
                    best_iteration=None if best == NO_STEP else best * every,
                    metrics={name: float(values[i]) for name, values in metrics.items() if not np.isnan(values[i])},
                    solved_at_iteration=None if at == NO_STEP else at * every,
                    iterations=trial.cell.iterations if ended == NO_STEP else ended * every,
                    stopped_early=ended != NO_STEP and ended * every < trial.cell.iterations,
                    training_s=training_s / len(trials),
                    engine=engine,
                    device=device,
                    **self._judged_by(i),
                )
            )
        return results

    def curves(self, trials: Sequence[Trial]) -> list[Curve]:
        """Return each trial's curve, up to its last evaluation."""
        last = self._last()
        steps = np.arange(self._made, dtype=np.int64) * self.protocol.evaluate_every
        return [
            Curve(
                trial.id,
                steps[: index + 1],
                {name: self._curves[name][i, : index + 1].copy() for name in self._metrics},
            )
            for i, (trial, index) in enumerate(zip(trials, last, strict=True))
        ]

    def updates(self) -> npt.NDArray[np.int64]:
        """Return the number of updates until each trial's end, int64 [trials]; all updates if it still trains."""
        ended = self._ended_at * self.protocol.evaluate_every
        return np.where(self.active, self.protocol.iterations + 1, ended)

    def _last(self) -> npt.NDArray[np.int64]:
        return np.where(self.active, self._made - 1, self._ended_at)

    def _at(self, name: str, index: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        curve = self._curves[name]
        values = curve[np.arange(len(index)), np.maximum(index, 0)]
        return np.where(index == NO_STEP, curve.dtype.type(np.nan), values)

    def _solves(self) -> npt.NDArray[np.bool_]:
        return self._meets({name: self._at(name, self._best) for name in self._metrics})

    def _is_finite(self, index: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        finite: npt.NDArray[np.bool_] = np.logical_and.reduce(
            [np.ones(len(index), bool), *(np.isfinite(self._at(name, index)) for name in self._finite)]
        )
        return finite
