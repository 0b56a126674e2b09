"""The base class of packs in training: time slices, evaluations, scores and checkpoints."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from study.engine.base import Training, latest_by_cell
from study.engine.score import Scores
from study.records import Checkpoint, Curve, Pack, Progress, Result, Weights

Arrays = Mapping[str, npt.NDArray[Any]]
PendingEvaluation = Callable[[], Mapping[str, npt.NDArray[np.floating[Any]]]]
"""Waits for an evaluation and returns the trials' metrics, each [trials]."""


class SlicedTraining(Training):
    """A pack that an engine trains in time slices, with evaluations.

    Args:
        engine: name of the engine.
        pack: the pack to train.
        device: ``cpu`` or ``cuda``.
        checkpoint: the checkpoint to resume from, or None.
        scores: scores of the pack's trials, without an evaluation.

    Raises:
        ValueError: if the checkpoint is of other trials or of another engine.
    """

    def __init__(self, engine: str, pack: Pack, device: str, checkpoint: Checkpoint | None, scores: Scores) -> None:
        self._engine = engine
        self._pack = pack
        self._device = device
        self._scores = scores
        self._iteration = 0
        self._training_s = 0.0
        self._pending: PendingEvaluation | None = None
        if checkpoint is not None:
            self._resume(checkpoint)
        self._begin(None if checkpoint is None else checkpoint.arrays)

    @abstractmethod
    def _begin(self, arrays: Arrays | None) -> None:
        """Set up the trials' state from the arrays of `_state`; if they are None, set up the initial state."""

    @abstractmethod
    def _update(self, most: int, for_s: float) -> int:
        """Update the trials that still train: at least once, at most `most` times, for about `for_s` seconds.

        Returns:
            The number of updates of each of them.
        """

    @abstractmethod
    def _start_evaluation(self) -> PendingEvaluation:
        """Start to evaluate the trials that still train, as they are now; return a function that waits for the metrics.

        The device may compute them later.
        """

    @abstractmethod
    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy out every trial's weights and optimiser state; those of an ended trial are as at its end."""

    @abstractmethod
    def _weights(self) -> list[Weights]:
        """Return each trial's weights."""

    def _synchronise(self) -> None:  # most engines compute synchronously
        """Wait until the device has finished all work, at the end of a slice; by default, a no-op."""

    def _resume(self, checkpoint: Checkpoint) -> None:
        if checkpoint.engine != self._engine:
            raise ValueError(f"checkpoint.engine must be {self._engine!r}, but got {checkpoint.engine!r}")
        if checkpoint.trial_ids != tuple(trial.id for trial in self._pack.trials):
            raise ValueError(f"the checkpoint of pack {checkpoint.pack_id} has other trials than pack {self._pack.id}")
        self._iteration = checkpoint.iteration
        self._training_s = checkpoint.training_s
        self._scores.restore(checkpoint.arrays)

    @property
    def done(self) -> bool:
        """True once every update has been made, or every trial has ended early."""
        return self._iteration > self._scores.protocol.iterations or not self._scores.active.any()

    def advance(self, for_s: float) -> Progress:
        """Train for about `for_s` seconds, at least one update unless it is done, and return the progress.

        There is no update either if the evaluation at its beginning ends all trials that still train.

        Raises:
            Exception: any error of an update or an evaluation.
        """
        protocol, began = self._scores.protocol, time.perf_counter()
        every, updates = protocol.evaluate_every, protocol.iterations + 1
        while not self.done:
            if self._iteration % every == 0:
                self._evaluate()
            if self.done:
                break
            most = min(every - self._iteration % every, updates - self._iteration)
            self._iteration += self._update(most, for_s - (time.perf_counter() - began))
            if time.perf_counter() - began >= for_s:
                break
        self._synchronise()
        self._record()
        self._training_s += time.perf_counter() - began
        return Progress(
            pack_id=self._pack.id,
            iteration=self._iteration,
            iterations=updates,
            trials=len(self._pack.trials),
            solved=self._scores.solved,
            diverged=self._scores.diverged,
            latest=latest_by_cell(self._pack.trials, self._scores.latest()),
        )

    def _evaluate(self) -> None:
        self._record()
        self._pending = self._start_evaluation()

    def _record(self) -> None:
        """Record the pending evaluation, if there is one."""
        if self._pending is not None:
            self._scores.record(**self._pending())
            self._pending = None

    def checkpoint(self) -> Checkpoint:
        """Copy out weights, optimiser state and running scores."""
        return Checkpoint(
            pack_id=self._pack.id,
            trial_ids=tuple(trial.id for trial in self._pack.trials),
            iteration=self._iteration,
            arrays=self._state() | self._scores.state(),
            training_s=self._training_s,
            engine=self._engine,
        )

    def finish(self) -> tuple[list[Result], list[Curve], list[Weights]]:
        """Return each trial's result, curve and weights.

        Raises:
            ValueError: if the pack isn't done.
        """
        if not self.done:
            raise ValueError(f"pack {self._pack.id} must be done, but is at iteration {self._iteration}")
        results = self._scores.results(
            self._pack.trials, training_s=self._training_s, engine=self._engine, device=self._device
        )
        return results, self._scores.curves(self._pack.trials), self._weights()

    def _of_each_trial(self, arrays: Arrays) -> list[Weights]:
        """Split arrays by name, each [trials, ...], into each trial's weights; copy them."""
        return [
            Weights(trial.id, int(updates), {name: array[i].copy() for name, array in arrays.items()})
            for i, (trial, updates) in enumerate(zip(self._pack.trials, self._scores.updates(), strict=True))
        ]
