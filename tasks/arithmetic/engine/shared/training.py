"""Code shared by the trainings of the arithmetic engines: thresholds, trials that end early, names of layers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from study.engine.score import NO_STEP, Scores
from study.engine.training import SlicedTraining
from study.records import Checkpoint, Outcome, Pack, Weights
from tasks.arithmetic.cell import ArithmeticCell, typed_cell
from tasks.arithmetic.engine.shared.initial_weights import PREFIX, under
from tasks.arithmetic.engine.shared.task import threshold_of
from tasks.arithmetic.task import metrics_with

_WEIGHT = PREFIX + "weight/"
_LAYERS = {"first": "layer_1", "second": "layer_2"}


class ArithmeticScores(Scores):
    """The scores of arithmetic trials; a trial is solved if its test MSE is below a threshold.

    Other trials have diverged if the validation MSE of the last evaluation isn't finite.

    Args:
        cell: any cell of the pack; the values used here are equal in all of them.
        thresholds: success threshold of each trial, float64 [trials].
    """

    def __init__(self, cell: ArithmeticCell, thresholds: npt.NDArray[np.float64]) -> None:
        super().__init__(cell, len(thresholds), metrics_with(bool(cell.relative_error)), finite=["validation_mse"])
        self._thresholds = thresholds

    def _meets(self, metrics: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
        below: npt.NDArray[np.bool_] = metrics["test_mse"] < self._thresholds
        return below

    def _judged_by(self, trial: int) -> dict[str, Any]:
        return {"threshold": float(self._thresholds[trial])}

    def _outcome(self, *, solved: bool, finite: bool) -> Outcome:
        if solved:
            return Outcome.SOLVED
        return Outcome.UNSOLVED if finite else Outcome.DIVERGED

    def end_decided(self, has_nan: npt.NDArray[np.bool_]) -> None:
        """End each trial whose outcome can't change any more.

        There are two such cases:

        - A weight is NaN. It stays NaN under every update. Every later MSE is NaN and skipped, so the best step stays.
        - A validation MSE inside the window is exactly 0. It can't be undercut, and ties go to the first. If its test
          MSE is below the threshold, the trial stays solved.

        Args:
            has_nan: True for a trial with a weight that is NaN, bool [trials still training].
        """
        active = self.active
        not_a_number = np.zeros_like(active)
        not_a_number[active] = has_nan
        perfect = (self._best != NO_STEP) & (self._at("validation_mse", self._best) == 0) & self._solves()
        self._ended_at[active & (not_a_number | perfect)] = self._made - 1


class ArithmeticTraining(SlicedTraining):
    """A pack of arithmetic trials, trained by an engine between evaluations.

    Args:
        engine: name of the engine.
        pack: the pack to train.
        device: ``cpu`` or ``cuda``.
        checkpoint: the checkpoint to continue from, or None.

    Raises:
        ValueError: if the checkpoint belongs to other trials or to another engine, or a success threshold can't be
            computed.
    """

    _scores: ArithmeticScores

    def __init__(self, engine: str, pack: Pack, device: str, checkpoint: Checkpoint | None) -> None:
        self._cell = typed_cell(pack.trials[0].cell)
        thresholds = {cell: threshold_of(typed_cell(cell)) for cell in {trial.cell for trial in pack.trials}}
        scores = ArithmeticScores(self._cell, np.array([thresholds[trial.cell] for trial in pack.trials]))
        super().__init__(engine, pack, device, checkpoint, scores)

    @abstractmethod
    def _has_nan(self) -> npt.NDArray[np.bool_]:
        """Return True for each training trial with a weight that was NaN at the last evaluation, bool [trials]."""

    @abstractmethod
    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy every trial's weights and optimiser state; an ended trial's as at its end.

        Weights are named ``part/weight/LAYER.PARAMETER``, with layers ``first`` and ``second``.
        """

    def _drop_ended(self) -> None:  # engines may keep training all of them
        """Stop training the trials that have just ended, while others still train; a no-op unless overridden."""

    def _evaluate(self) -> None:
        super()._evaluate()
        if self._cell.stop != "when_decided":
            return  # the result is recorded later, so that a device can continue meanwhile
        self._record()
        before = int(self._scores.active.sum())
        self._scores.end_decided(self._has_nan())
        if 0 < int(self._scores.active.sum()) < before:
            self._drop_ended()

    def _weights(self) -> list[Weights]:
        return self._of_each_trial(with_layers(under(self._state(), _WEIGHT)))


def with_layers(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Rename parameters ``first.NAME`` and ``second.NAME`` to ``layer_1.NAME`` and ``layer_2.NAME``."""
    split = {name: name.split(".") for name in arrays}
    return {f"{_LAYERS[layer]}.{parameter}": arrays[name] for name, (layer, parameter) in split.items()}
