"""Best step, solved-at and outcome of each trial of a pack, updated while it trains: what all engines share.

Definitions (`docs/glossary.md`): the best step is the evaluation of lowest validation MSE among the last
`best_step_window` evaluations of a full run (ties: the first; what isn't finite is skipped). A trial is solved if its
test MSE there is below the threshold, else diverged if its last validation MSE isn't a finite number, else unsolved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from study.records import Curve, Outcome, Result, Trial
from tasks import ArithmeticTask
from tasks.arithmetic_cell import ArithmeticCell

_METRICS = tuple(ArithmeticTask.metrics)
_NONE = -1


class Scores:
    """The running scores of a pack's trials; every array's first axis is the trial.

    Args:
        cell: a cell of the pack; what is read of it is equal in all of them.
        thresholds: success threshold of each trial, float64 [trials].
    """

    def __init__(self, cell: ArithmeticCell, thresholds: npt.NDArray[np.float64]) -> None:
        self._cell = cell
        self._thresholds = thresholds
        self._window_start = max(0, cell.evaluations - cell.best_step_window)
        trials = len(thresholds)
        self._made = 0
        self._curves = {name: np.full((trials, 64), np.nan, np.float32) for name in _METRICS}
        self._best = np.full(trials, _NONE, np.int64)
        self._solved_at = np.full(trials, _NONE, np.int64)
        self._ended_at = np.full(trials, _NONE, np.int64)

    @property
    def solved(self) -> int:
        """Count the trials whose test MSE has been below the threshold."""
        return int((self._solved_at != _NONE).sum())

    @property
    def diverged(self) -> int:
        """Count the trials whose latest validation MSE isn't finite."""
        if not self._made:
            return 0
        return int((~np.isfinite(self._at("validation_mse", self._last()))).sum())

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        """Of each trial whether it still trains, bool [trials]."""
        return np.equal(self._ended_at, _NONE)

    def record(self, **metrics: npt.NDArray[np.float32]) -> None:
        """Record one evaluation of the trials that still train.

        Args:
            metrics: validation_mse, test_mse and sparsity_error, each float32 [trials still training].
        """
        active, index = self.active, self._made
        if index == self._curves["test_mse"].shape[1]:
            self._curves = {
                name: np.concatenate([a, np.full_like(a, np.nan)], axis=1) for name, a in self._curves.items()
            }
        for name in _METRICS:
            self._curves[name][active, index] = metrics[name]
        self._made += 1

        below = self._curves["test_mse"][:, index] < self._thresholds  # NaN is not below
        self._solved_at[active & below & (self._solved_at == _NONE)] = index
        if index >= self._window_start:
            validation = self._curves["validation_mse"][:, index]
            lowest = np.where(self._best == _NONE, np.inf, self._at("validation_mse", self._best))
            self._best[active & (validation < lowest)] = index

    def end_decided(self, has_nan: npt.NDArray[np.bool_]) -> None:
        """End each trial whose outcome no further training can change.

        There are two such cases. A weight that is NaN stays NaN under every update and makes every later MSE
        NaN, which is skipped: the best step stays. And a validation MSE of exactly 0 inside the window can't be
        undercut, ties going to the first: if the test MSE there is below the threshold, the trial stays solved.

        Args:
            has_nan: whether a weight is NaN, bool [trials still training].
        """
        active = self.active
        not_a_number = np.zeros_like(active)
        not_a_number[active] = has_nan
        perfect = (self._best != _NONE) & (self._at("validation_mse", self._best) == 0) & self._solves()
        self._ended_at[active & (not_a_number | perfect)] = self._made - 1

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy everything out, for a checkpoint."""
        arrays = {f"curve/{name}": self._curves[name][:, : self._made].copy() for name in _METRICS}
        return arrays | {
            "score/best": self._best.copy(),
            "score/solved_at": self._solved_at.copy(),
            "score/ended_at": self._ended_at.copy(),
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` copied out."""
        self._made = arrays["curve/test_mse"].shape[1]
        room = max(64, 2 * self._made)
        for name in _METRICS:
            curves = np.full((len(self._thresholds), room), np.nan, np.float32)
            curves[:, : self._made] = arrays[f"curve/{name}"]
            self._curves[name] = curves
        self._best = arrays["score/best"].copy()
        self._solved_at = arrays["score/solved_at"].copy()
        self._ended_at = arrays["score/ended_at"].copy()

    def results(self, trials: Sequence[Trial], *, training_s: float, engine: str, device: str) -> list[Result]:
        """Compute each trial's result.

        Args:
            trials: the pack's trials.
            training_s: seconds the whole pack trained.
            engine: name of the engine.
            device: on what it trained.
        """
        every, solves = self._cell.evaluate_every, self._solves()
        metrics = {name: self._at(name, self._best) for name in _METRICS}
        results = []
        for i, trial in enumerate(trials):
            best, at, ended = int(self._best[i]), int(self._solved_at[i]), int(self._ended_at[i])
            results.append(
                Result(
                    trial=trial,
                    outcome=self._outcome(i, solved=bool(solves[i])),
                    threshold=float(self._thresholds[i]),
                    best_iteration=None if best == _NONE else best * every,
                    metrics={name: float(of[i]) for name, of in metrics.items() if not np.isnan(of[i])},
                    solved_at_iteration=None if at == _NONE else at * every,
                    iterations=trial.cell.iterations if ended == _NONE else ended * every,
                    stopped_early=ended != _NONE and ended * every < trial.cell.iterations,
                    training_s=training_s / len(trials),
                    engine=engine,
                    device=device,
                )
            )
        return results

    def curves(self, trials: Sequence[Trial]) -> list[Curve]:
        """Collect each trial's evaluations."""
        last = self._last()
        steps = np.arange(self._made, dtype=np.int64) * self._cell.evaluate_every
        return [
            Curve(trial.id, steps[: n + 1], {name: self._curves[name][i, : n + 1].copy() for name in _METRICS})
            for i, (trial, n) in enumerate(zip(trials, last, strict=True))
        ]

    def updates(self) -> npt.NDArray[np.int64]:
        """Count the updates that each trial has made by its end, int64 [trials]; one that still trains makes all."""
        ended = self._ended_at * self._cell.evaluate_every
        return np.where(self.active, self._cell.iterations + 1, ended)

    def _last(self) -> npt.NDArray[np.int64]:
        return np.where(self.active, self._made - 1, self._ended_at)

    def _at(self, name: str, index: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        values = self._curves[name][np.arange(len(index)), np.maximum(index, 0)]
        return np.where(index == _NONE, np.float32(np.nan), values)

    def _solves(self) -> npt.NDArray[np.bool_]:
        return np.less(self._at("test_mse", self._best), self._thresholds)

    def _outcome(self, i: int, *, solved: bool) -> Outcome:
        if solved:
            return Outcome.SOLVED
        last = self._curves["validation_mse"][i, self._last()[i]]
        return Outcome.UNSOLVED if np.isfinite(last) else Outcome.DIVERGED
