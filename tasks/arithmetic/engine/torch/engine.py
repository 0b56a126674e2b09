"""The torch engine, for any model and device; a pack is one array program.

One Python step an iteration serves the full pack: trials are the leading axis of every tensor (`tensors`).

A trial's bits don't depend on its pack:

- Every matrix product is batched over trials, since a plain product over stacked rows varies with the number of rows.
- Elementwise operations are independent.
- While a pack trains, torch runs on one thread, however many the process has.

Packs run in parallel on cores, not threads.
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
    """The engine of any model and task, on the CPU or one GPU."""

    name = "torch"
    devices = ("cpu", "cuda")
    tasks = None

    def is_compiled(self, cell: Cell) -> bool:
        """Return True if the optimiser's step, compiled last, is on disk; GPUs use torch's own step."""
        return is_on_disk(compiled_step)

    def memory_mb(self, pack: Pack) -> float:
        """Estimate MiB of `TorchTensors`: activations three times, targets, weights four times, and evaluation rows.

        The rows are those of one validation and one test set, though trials may have different ones.
        """
        cell, trials = typed_cell(pack.trials[0].cell), len(pack.trials)
        batch = 3 * cell.batch_size * (cell.input_size + 8 * cell.hidden_size)
        targets = 2 * cell.evaluation_rows
        weights = 4 * 3 * cell.hidden_size * (cell.input_size + 1)
        shared = 2 * cell.evaluation_rows * cell.input_size
        return 4 * (trials * (batch + targets + weights) + shared) / 2**20

    def trials_at_once(self, cell: Cell) -> int | None:
        """Count the trials that fit into 80 % of the GPU's free memory, >= 1, by training a few; None without a GPU.

        Raises:
            ValueError: if the cell's success threshold can't be computed, or a unit's weights can't have its
                `init_variance`.
            DeviceMemoryError: if the GPU has no room for 20 trials.
        """
        if not torch.cuda.is_available():
            return None

        def peak_bytes(trials: int) -> int:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            training = self.start(Pack(tuple(Trial(cell, seed) for seed in range(trials))), device="cuda")
            training.advance(0.0)  # an evaluation and an update: the peak of its memory
            return torch.cuda.max_memory_allocated() - before

        return trials_that_fit(peak_bytes, torch.cuda.mem_get_info()[0])

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin a pack, or continue it from a checkpoint.

        Raises:
            ValueError: if the checkpoint is of other trials or of another engine, a success threshold can't be
                computed, or a unit's weights can't have the cell's `init_variance`.
            KeyError: if a unit is unknown, or its code isn't available.
            DeviceError: if the device isn't available, or its memory doesn't suffice.
        """
        check_device(device)
        with one_thread(), room_for(pack, self.memory_mb(pack)):
            return TorchTraining(self.name, pack, device, checkpoint, self.memory_mb(pack))


class TorchTraining(ArithmeticTraining):
    """One pack being trained by torch."""

    def __init__(self, engine: str, pack: Pack, device: str, checkpoint: Checkpoint | None, memory_mb: float) -> None:
        self._memory_mb = memory_mb
        super().__init__(engine, pack, device, checkpoint)

    def advance(self, for_s: float) -> Progress:
        """Train for about `for_s` seconds, at least one update unless it is done, and return the progress.

        Raises:
            DeviceMemoryError: if the GPU runs out of memory.
        """
        with one_thread(), room_for(self._pack, self._memory_mb):
            return super().advance(for_s)

    def _begin(self, arrays: Arrays | None) -> None:
        # The state of all trials when trials were last dropped; the tensors have the newer state of those that train.
        self._dropped_at = {n: a for n, a in (arrays or {}).items() if n.startswith(PREFIX)}
        new = arrays is None
        self._tensors = TorchTensors(self._pack.trials, self._device) if new else self._active_tensors()

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
        # The remaining trials' bits don't depend on their neighbours.
        self._dropped_at = self._state()
        self._tensors = self._active_tensors()

    def _active_tensors(self) -> TorchTensors:
        active = self._scores.active if self._scores.active.any() else np.ones(len(self._pack.trials), bool)
        trials = [trial for trial, on in zip(self._pack.trials, active, strict=True) if on]
        state = {name: array[active] for name, array in self._dropped_at.items()}
        return TorchTensors(trials, self._device, state)

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy the state of every trial; for an ended trial, that of when trials were last dropped."""
        now = self._tensors.state()
        if len(self._tensors.trials) == len(self._pack.trials):
            return now
        place = {trial.id: i for i, trial in enumerate(self._pack.trials)}
        rows = [place[trial.id] for trial in self._tensors.trials]
        state = {name: array.copy() for name, array in self._dropped_at.items()}
        for name, array in now.items():
            state[name][rows] = array
        return state
