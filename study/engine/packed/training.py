"""A pack of trials of a packed task in training, with time slices, evaluations and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from study.engine.device import reproducible, room_for
from study.engine.packed.members import SPARSITY_ERROR
from study.engine.packed.proof import Proof, start
from study.engine.packed.recipe import Member, Recipe
from study.engine.packed.untrained import scored, untrained_means
from study.engine.score import Evaluations, Scores
from study.engine.training import Arrays, PendingEvaluation, SlicedTraining
from study.interface.criterion import Bound, in_words
from study.interface.declarations import Metric
from study.interface.function.process_state import ProcessState
from study.records import Checkpoint, Outcome, Pack, Progress, Result, Trial, Weights
from study.source import CodeFolder

COMPILED = "packed-xla"
"""Engine name in results and checkpoints if XLA computes updates, since bits depend on the backend."""

OFF_CPU = "off_cpu"
"""Name of an array that only checkpoints from devices other than the CPU have."""


class CriterionScores(Scores):
    """Scores of trials that are solved if their metrics are within bounds; `study.store.judge` later judges them again.

    A trial has diverged if a metric of its last evaluation isn't finite, except for sparsity errors, which only models
    with units have.

    Args:
        protocol: length of training and times of evaluations, the same for all trials.
        trials: their number.
        metrics: metrics of each evaluation; the first one selects the best step.
        criterion: bounds that the metrics of a solved trial meet; empty without a success criterion.
    """

    def __init__(
        self, protocol: Evaluations, trials: int, metrics: Mapping[str, Metric], criterion: Mapping[str, Bound]
    ) -> None:
        finite = [name for name in metrics if not name.endswith(SPARSITY_ERROR)]
        super().__init__(protocol, trials, metrics, finite=finite, dtype=np.float64)
        self._criterion = criterion

    def _meets(self, metrics: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
        meets = np.full(len(self._best), bool(self._criterion))
        for name, bound in self._criterion.items():
            meets &= bound.holds(metrics[name])
        return meets

    def _judged_by(self, trial: int) -> dict[str, Any]:
        return {"criterion": in_words(self._criterion) or None}

    def _outcome(self, *, solved: bool, finite: bool) -> Outcome:
        if not finite:
            return Outcome.DIVERGED
        if not self._criterion:
            return Outcome.FINISHED
        return Outcome.SOLVED if solved else Outcome.UNSOLVED

    def results(self, trials: Sequence[Trial], *, training_s: float, engine: str, device: str) -> list[Result]:
        """Return each trial's result as `Scores.results` does; `solved_at_iteration` is None unless it is solved."""
        results = super().results(trials, training_s=training_s, engine=engine, device=device)
        return [
            result if result.outcome is Outcome.SOLVED else replace(result, solved_at_iteration=None)
            for result in results
        ]


class PackedTraining(SlicedTraining):
    """One pack in training.

    Args:
        engine: name of the engine.
        pack: the pack to train.
        device: ``cpu`` or ``cuda``.
        checkpoint: the checkpoint to resume from, or None.
        scores: scores of the pack's trials, without an evaluation.
        folder: the copy of the user's code, from which Python imports while it runs.
        recipe: the trials' common settings.
        members: each trial's own settings.
        proof: the recipe's proof.
        memory_mb: the pack's estimated memory in MiB, for the error of a GPU without room.

    Raises:
        ValueError: if the checkpoint is of other trials or of another engine.
        InputError, ValueError, Exception: as `study.engine.packed.proof.start` does.
    """

    def __init__(
        self,
        engine: str,
        pack: Pack,
        device: str,
        checkpoint: Checkpoint | None,
        scores: Scores,
        *,
        folder: CodeFolder,
        recipe: Recipe,
        members: Sequence[Member],
        proof: Proof,
        memory_mb: float,
    ) -> None:
        self._memory_mb = memory_mb
        self._folder, self._recipe, self._each, self._proof = folder, recipe, members, proof
        self._score_metrics = recipe.task.scores()
        self._untrained: dict[str, float] | None = None
        is_compiled = proof.layout is not None and proof.layout.backend == "xla"
        super().__init__(COMPILED if is_compiled else engine, pack, device, checkpoint, scores)

    def advance(self, for_s: float) -> Progress:
        """Train for about `for_s` seconds, at least one update unless it is done, and return the progress.

        On the CPU, changes of the process by the user's code are then undone, except for settings (`ProcessState`).

        Raises:
            DeviceMemoryError: if a GPU has no room for the pack.
            InputError: if an installed module that the process has imported has the name of one of the code's modules.
            ValueError: if the task's loss or a metric isn't a scalar, or it declares other metrics than it measures.
            Exception: the error of the user's task or model.
        """
        self._folder.activate()
        before = ProcessState.now()
        try:
            with reproducible(self._device), room_for(self._pack, self._memory_mb):
                return super().advance(for_s)
        finally:
            if self._device == "cpu":  # on a GPU, another thread's pack may train meanwhile
                before.restore(keeps_settings=True)

    def _begin(self, arrays: Arrays | None) -> None:
        self._members = start(self._recipe, self._each, self._proof, state=arrays, device=self._device)

    def _synchronise(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def _update(self, most: int, for_s: float) -> int:
        return self._members.update_for(most, for_s)

    def _start_evaluation(self) -> PendingEvaluation:
        # A classifier whose outputs are NaN has an accuracy, too, but a meaningless one.
        is_finite = self._members.is_finite()
        metrics = {name: np.where(is_finite, values, np.nan) for name, values in self._members.evaluate().items()}
        if self._score_metrics:
            metrics |= scored(metrics, self._score_metrics, self._untrained_means())
        return lambda: metrics

    def _untrained_means(self) -> dict[str, float]:
        if self._untrained is None:
            names = list(dict.fromkeys(self._score_metrics.values()))
            self._untrained = untrained_means(self._recipe, self._proof, names, device=self._device)
        return self._untrained

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        elsewhere = {} if self._device == "cpu" else {OFF_CPU: np.ones(len(self._pack.trials), np.int64)}
        return self._members.state() | elsewhere

    def _weights(self) -> list[Weights]:
        floats = {name: array for name, array in self._members.weights().items() if array.dtype.kind == "f"}
        return self._of_each_trial({name: array.astype(np.float32) for name, array in floats.items()})
