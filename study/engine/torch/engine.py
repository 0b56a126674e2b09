"""The torch engine: any model, any device; a pack is one array program.

One Python step an iteration serves the whole pack: trials are the leading axis of every tensor (`torch_parts`).

What keeps a trial's bits independent of its pack: every matrix product is batched over trials (a plain product over
stacked rows is not the same for every number of rows), elementwise operations don't look at their neighbours, and
torch runs on one thread while a pack trains, whatever the process gives it else. Packs go to cores, not threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from study.engine.base import Engine, Training
from study.engine.device import check_device, room_for, trials_that_fit
from study.engine.torch.step import compiled_step
from study.engine.torch.tensors import Parts
from study.engine.training import Arrays, Looked, SlicedTraining
from study.records import Cell, Checkpoint, Pack, Progress, Trial
from tasks.compile import is_kept
from units.kernels import one_thread


class TorchEngine(Engine):
    """Trains any model on any task, on the CPU or one GPU."""

    name = "torch"
    devices = ("cpu", "cuda")
    tasks = None

    def is_compiled(self, cell: Cell) -> bool:
        """Say whether the optimiser's step is on disk, which is compiled last; a GPU takes torch's own."""
        return is_kept(compiled_step)

    def memory_mb(self, pack: Pack) -> float:
        """Estimate from what `Parts` holds: activations three times over, targets, weights four times over."""
        cell, trials = pack.trials[0].cell, len(pack.trials)
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


class TorchTraining(SlicedTraining):
    """One pack being trained by torch."""

    def __init__(
        self, engine: str, pack: Pack, device: str, checkpoint: Checkpoint | None, memory_mb: float
    ) -> None:
        self._memory_mb = memory_mb
        super().__init__(engine, pack, device, checkpoint)

    def advance(self, for_s: float) -> Progress:
        """Train for about that many seconds, at least one update."""
        with one_thread(), room_for(self._pack, self._memory_mb):
            return super().advance(for_s)

    def _begin(self, arrays: Arrays | None) -> None:
        # State of all trials when trials were last dropped; the current parts are newer.
        self._kept = {} if arrays is None else {n: a for n, a in arrays.items() if n.startswith(Parts.PREFIX)}
        self._parts = Parts(self._pack.trials, self._device) if arrays is None else self._active_parts()

    def _update(self, most: int, for_s: float) -> int:
        self._parts.update(self._iteration)
        return 1

    def _evaluate(self) -> Looked:
        found = self._parts.evaluate()
        return lambda: found

    def _lost(self) -> npt.NDArray[np.bool_]:
        return self._parts.lost()

    def _ended(self) -> None:
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
