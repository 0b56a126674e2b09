"""The torch engine: any model, any device; a pack is one array program.

One Python step an iteration serves the whole pack: trials are the leading axis of every tensor (`torch_parts`).

What keeps a trial's bits independent of its pack: every matrix product is batched over trials (a plain product over
stacked rows is not the same for every number of rows), elementwise operations don't look at their neighbours, and
torch runs on one thread. Packs go to cores, not threads.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from study.engine.base import Engine, Training
from study.engine.score import Scores
from study.engine.torch_parts import Parts, threshold_of
from study.errors import DeviceError
from study.records import Cell, Checkpoint, Curve, Pack, Progress, Result


class TorchEngine(Engine):
    """Trains any model on the CPU or one GPU."""

    name = "torch"
    devices = ("cpu", "cuda")

    def refuses(self, cell: Cell) -> str | None:
        """Say why this engine can't train the cell: it can train all."""
        return None

    def memory_mb(self, pack: Pack) -> float:
        """Estimate from what `Parts` holds: activations three times over, targets, weights four times over."""
        cell, trials = pack.trials[0].cell, len(pack.trials)
        batch = 3 * cell.batch_size * (cell.input_size + 8 * cell.hidden_size)
        targets = 2 * cell.evaluation_rows
        weights = 4 * 3 * cell.hidden_size * (cell.input_size + 1)
        shared = 2 * cell.evaluation_rows * cell.input_size
        return 4 * (trials * (batch + targets + weights) + shared) / 2**20

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin a pack, or go on from a checkpoint of these very trials."""
        if device == "cuda" and not torch.cuda.is_available():
            raise DeviceError(
                "device: 'cuda' was asked for, but torch sees no GPU here; use --device cpu or --device auto"
            )
        torch.set_num_threads(1)
        return TorchTraining(pack, device, checkpoint)


class TorchTraining(Training):
    """One pack being trained by torch."""

    def __init__(self, pack: Pack, device: str, checkpoint: Checkpoint | None) -> None:
        self._pack = pack
        self._device = device
        self._cell = pack.trials[0].cell
        thresholds = {cell: threshold_of(cell) for cell in {trial.cell for trial in pack.trials}}
        self._scores = Scores(self._cell, np.array([thresholds[trial.cell] for trial in pack.trials]))
        self._iteration = 0
        self._training_s = 0.0
        # State of all trials when trials were last dropped; the current parts are newer.
        self._kept: dict[str, npt.NDArray[Any]] = {}
        if checkpoint is None:
            self._parts = Parts(pack.trials, device)
        else:
            self._resume(checkpoint)

    def _resume(self, checkpoint: Checkpoint) -> None:
        if checkpoint.engine != TorchEngine.name:
            raise ValueError(f"checkpoint.engine must be 'torch', but got {checkpoint.engine!r}")
        if checkpoint.trial_ids != tuple(trial.id for trial in self._pack.trials):
            raise ValueError(
                f"the checkpoint of pack {checkpoint.pack_id} is of other trials than pack {self._pack.id}"
            )
        self._iteration = checkpoint.iteration
        self._training_s = checkpoint.training_s
        self._scores.restore(checkpoint.arrays)
        self._kept = {
            name: array for name, array in checkpoint.arrays.items() if name.startswith(Parts.PREFIX)
        }
        self._parts = self._active_parts()

    @property
    def done(self) -> bool:
        """Say whether every update has been made, or every trial has been decided."""
        return self._iteration > self._cell.iterations or not self._scores.active.any()

    def advance(self, for_s: float) -> Progress:
        """Train for about that many seconds, at least one update."""
        began = time.perf_counter()
        while not self.done:
            if self._iteration % self._cell.evaluate_every == 0:
                self._evaluate()
            if self.done:
                break
            self._parts.update(self._iteration)
            self._iteration += 1
            if time.perf_counter() - began >= for_s:
                break
        self._training_s += time.perf_counter() - began
        return Progress(
            pack_id=self._pack.id,
            iteration=self._iteration,
            iterations=self._cell.iterations + 1,
            trials=len(self._pack.trials),
            solved=self._scores.solved,
            diverged=self._scores.diverged,
        )

    def checkpoint(self) -> Checkpoint:
        """Copy out weights, optimiser state and running scores."""
        return Checkpoint(
            pack_id=self._pack.id,
            trial_ids=tuple(trial.id for trial in self._pack.trials),
            iteration=self._iteration,
            arrays=self._state() | self._scores.state(),
            training_s=self._training_s,
            engine=TorchEngine.name,
        )

    def finish(self) -> tuple[list[Result], list[Curve]]:
        """Give each trial's result and curve."""
        if not self.done:
            raise ValueError(f"pack {self._pack.id} must be done, but is at iteration {self._iteration}")
        trials = self._pack.trials
        results = self._scores.results(
            trials, training_s=self._training_s, engine=TorchEngine.name, device=self._device
        )
        return results, self._scores.curves(trials)

    def _evaluate(self) -> None:
        self._scores.record(**self._parts.evaluate())
        if self._cell.stop != "when_decided":
            return
        before = int(self._scores.active.sum())
        self._scores.end_decided(self._parts.lost())
        if 0 < int(self._scores.active.sum()) < before:
            # The others' bits don't depend on who trains beside them.
            self._kept = self._state()
            self._parts = self._active_parts()

    def _active_parts(self) -> Parts:
        active = self._scores.active if self._scores.active.any() else np.ones(len(self._pack.trials), bool)
        trials = [trial for trial, on in zip(self._pack.trials, active, strict=True) if on]
        return Parts(trials, self._device, {name: array[active] for name, array in self._kept.items()})

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """Give the state of every trial; of an ended one, what it was when trials were last dropped."""
        now = self._parts.state()
        if len(self._parts.trials) == len(self._pack.trials):
            return now
        place = {trial.id: i for i, trial in enumerate(self._pack.trials)}
        rows = [place[trial.id] for trial in self._parts.trials]
        whole = {name: array.copy() for name, array in self._kept.items()}
        for name, array in now.items():
            whole[name][rows] = array
        return whole
