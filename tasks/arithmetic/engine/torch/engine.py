"""The torch engine: any model, any device; a pack is one array program.

One Python step an iteration serves the whole pack: trials are the leading axis of every tensor (`tensors`).

What keeps a trial's bits independent of its pack: every matrix product is batched over trials (a plain product over
stacked rows is not the same for every number of rows), elementwise operations don't look at their neighbours, and
torch runs on one thread while a pack trains, however many the process has. Packs go to cores, not threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from study.engine.base import Training
from study.engine.device import check_device, one_thread, room_for, trials_that_fit
from study.engine.training import Arrays, PendingEvaluation
from study.records import Cell, Checkpoint, Pack, Progress, Trial
from study.stream.compile import is_on_disk
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.engine.shared.engine import ArithmeticEngine
from tasks.arithmetic.engine.shared.initial_weights import PREFIX
from tasks.arithmetic.engine.shared.training import ArithmeticTraining
from tasks.arithmetic.engine.torch.step import compiled_step
from tasks.arithmetic.engine.torch.tensors import TorchTensors


class TorchEngine(ArithmeticEngine):
    """Trains any model on any task, on the CPU or one GPU."""

    name = "torch"
    devices = ("cpu", "cuda")
    tasks = None

    def is_compiled(self, cell: Cell) -> bool:
        """Tell whether the optimiser's step is on disk, which is compiled last; on a GPU, torch makes it."""
        return is_on_disk(compiled_step)

    def memory_mb(self, pack: Pack) -> float:
        """Estimate from what `TorchTensors` holds: activations three times over, targets, weights four times over."""
        cell, trials = typed_cell(pack.trials[0].cell), len(pack.trials)
        batch = 3 * cell.batch_size * (cell.input_size + 8 * cell.hidden_size)
        targets = 2 * cell.evaluation_rows
        weights = 4 * 3 * cell.hidden_size * (cell.input_size + 1)
        shared = 2 * cell.evaluation_rows * cell.input_size
        return 4 * (trials * (batch + targets + weights) + shared) / 2**20

    def trials_at_once(self, cell: Cell) -> int | None:
        """Count the trials that the GPU here has memory for, by training a few; None if there is no GPU."""
        if not torch.cuda.is_available():
            return None

        def peak_bytes(trials: int) -> int:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            training = self.start(Pack(tuple(Trial(cell, seed) for seed in range(trials))), device="cuda")
            training.advance(0.0)  # an evaluation and an update: all that it ever holds
            return torch.cuda.max_memory_allocated() - before

        return trials_that_fit(peak_bytes, torch.cuda.mem_get_info()[0])

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin a pack, or go on from a checkpoint of these very trials."""
        check_device(device)
        with one_thread(), room_for(pack, self.memory_mb(pack)):
            return TorchTraining(self.name, pack, device, checkpoint, self.memory_mb(pack))


class TorchTraining(ArithmeticTraining):
    """One pack being trained by torch."""

    def __init__(self, engine: str, pack: Pack, device: str, checkpoint: Checkpoint | None, memory_mb: float) -> None:
        self._memory_mb = memory_mb
        super().__init__(engine, pack, device, checkpoint)

    def advance(self, for_s: float) -> Progress:
        """Train for about that many seconds, at least one update."""
        with one_thread(), room_for(self._pack, self._memory_mb):
            return super().advance(for_s)

    def _begin(self, arrays: Arrays | None) -> None:
        # The state of all trials when trials were last dropped; that of the tensors is newer.
        self._dropped_at = {n: a for n, a in (arrays or {}).items() if n.startswith(PREFIX)}
        new = arrays is None
        self._tensors = TorchTensors(self._pack.trials, self._device) if new else self._of_active()

    def _update(self, most: int, for_s: float) -> int:
        losses = None
        if self._tensors.asks_for_losses:
            self._record()
            losses = self._scores.history("validation_mse")[self._scores.active]
        self._tensors.update(self._iteration, losses)
        return 1

    def _start_evaluation(self) -> PendingEvaluation:
        metrics = self._tensors.evaluate()
        return lambda: metrics

    def _has_nan(self) -> npt.NDArray[np.bool_]:
        return self._tensors.has_nan()

    def _drop_ended(self) -> None:
        # The others' bits don't depend on who trains beside them.
        self._dropped_at = self._state()
        self._tensors = self._of_active()

    def _of_active(self) -> TorchTensors:
        active = self._scores.active if self._scores.active.any() else np.ones(len(self._pack.trials), bool)
        trials = [trial for trial, on in zip(self._pack.trials, active, strict=True) if on]
        state = {name: array[active] for name, array in self._dropped_at.items()}
        return TorchTensors(trials, self._device, state)

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy out the state of every trial; of an ended one, what it was when trials were last dropped."""
        now = self._tensors.state()
        if len(self._tensors.trials) == len(self._pack.trials):
            return now
        place = {trial.id: i for i, trial in enumerate(self._pack.trials)}
        rows = [place[trial.id] for trial in self._tensors.trials]
        whole = {name: array.copy() for name, array in self._dropped_at.items()}
        for name, array in now.items():
            whole[name][rows] = array
        return whole
