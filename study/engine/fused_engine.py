"""The fused engine: the arithmetic task on the CPU, compiled; one trial at a time, without Python in its iterations.

What keeps a trial's bits independent of its pack: each trial is computed alone, by the same compiled loop, whose sums
have an order of their own (`fused_simd`). What a slice of time decides is only how many iterations one call makes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from study.engine.base import Engine, Training
from study.engine.fused_layers import CODES
from study.engine.fused_parts import Parts
from study.engine.score import Scores
from study.engine.torch_parts import threshold_of
from study.errors import DeviceError
from study.records import Cell, Checkpoint, Curve, Pack, Progress, Result, Trial
from tasks import MODELS

_Found = TypeVar("_Found")

# Seconds of one compiled call: it can't be interrupted.
_CALL_S = 0.5


class FusedEngine(Engine):
    """Trains the arithmetic task on the CPU.

    Args:
        threads: among which a pack's trials are dealt out; packs themselves go to processes.
    """

    name = "fused"
    devices = ("cpu",)

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    def prepare(self, cell: Cell) -> None:
        """Compile, unless that has been done on this machine; the cell doesn't matter: all models share the code."""
        self.start(Pack((Trial(cell, 0),)), device="cpu").advance(0.0)

    def refuses(self, cell: Cell) -> str | None:
        """Say why this engine can't train the cell, or None if it can."""
        model = MODELS[cell.model]
        unknown = [name for name in (model.first, model.second) if name not in CODES]
        if unknown:
            return f"it has no gradient for the unit {unknown[0]}"
        return None

    def memory_mb(self, pack: Pack) -> float:
        """Estimate from what `Parts` holds: parameters three times over, evaluation rows of each range."""
        cell, trials = pack.trials[0].cell, len(pack.trials)
        parameters = 5 * cell.hidden_size * (cell.input_size + 1)
        ranges = {r for t in pack.trials for r in (t.cell.interpolation_range, t.cell.extrapolation_range)}
        shared = max(2, len(ranges)) * cell.evaluation_rows * (cell.input_size + 4)
        return 4 * (trials * 3 * parameters + shared) / 2**20

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin a pack, or go on from a checkpoint of these very trials."""
        if device != "cpu":
            raise DeviceError(
                f"device: the fused engine runs on the CPU only, but got {device!r}; use --engine torch"
            )
        return FusedTraining(pack, checkpoint, self._threads)


class FusedTraining(Training):
    """One pack being trained by compiled code."""

    def __init__(self, pack: Pack, checkpoint: Checkpoint | None, threads: int = 1) -> None:
        self._threads = threads
        self._pack = pack
        self._cell = pack.trials[0].cell
        thresholds = {cell: threshold_of(cell) for cell in {trial.cell for trial in pack.trials}}
        self._scores = Scores(self._cell, np.array([thresholds[trial.cell] for trial in pack.trials]))
        self._iteration = 0
        self._training_s = 0.0
        self._calls = 0
        self._update_s = 0.0
        if checkpoint is None:
            self._parts = Parts(pack.trials)
        else:
            self._resume(checkpoint)

    def _resume(self, checkpoint: Checkpoint) -> None:
        if checkpoint.engine != FusedEngine.name:
            raise ValueError(f"checkpoint.engine must be 'fused', but got {checkpoint.engine!r}")
        if checkpoint.trial_ids != tuple(trial.id for trial in self._pack.trials):
            raise ValueError(
                f"the checkpoint of pack {checkpoint.pack_id} is of other trials than pack {self._pack.id}"
            )
        self._iteration = checkpoint.iteration
        self._training_s = checkpoint.training_s
        self._scores.restore(checkpoint.arrays)
        self._parts = Parts(self._pack.trials, checkpoint.arrays)

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
            self._update(for_s - (time.perf_counter() - began))
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
            arrays=self._parts.state() | self._scores.state(),
            training_s=self._training_s,
            engine=FusedEngine.name,
        )

    def finish(self) -> tuple[list[Result], list[Curve]]:
        """Give each trial's result and curve."""
        if not self.done:
            raise ValueError(f"pack {self._pack.id} must be done, but is at iteration {self._iteration}")
        trials = self._pack.trials
        results = self._scores.results(
            trials, training_s=self._training_s, engine=FusedEngine.name, device="cpu"
        )
        return results, self._scores.curves(trials)

    def _which(self) -> npt.NDArray[np.int64]:
        """Give the places of the trials that still train."""
        return np.flatnonzero(self._scores.active)

    def _each(self, work: Callable[[npt.NDArray[np.int64]], _Found]) -> list[_Found]:
        """Do some work for all trials that still train, on as many threads as were asked for."""
        shares = [share for share in np.array_split(self._which(), self._threads) if len(share)]
        if len(shares) == 1:
            return [work(shares[0])]
        with ThreadPoolExecutor(len(shares)) as pool:
            return list(pool.map(work, shares))

    def _evaluate(self) -> None:
        found = self._each(self._parts.evaluate)
        self._scores.record(**{name: np.concatenate([part[name] for part in found]) for name in found[0]})
        if self._cell.stop == "when_decided":
            self._scores.end_decided(self._parts.lost(self._which()))

    def _update(self, for_s: float) -> None:
        """Make as many updates as fit, up to the next evaluation."""
        every, cell = self._cell.evaluate_every, self._cell
        count = min(
            every - self._iteration % every, cell.iterations + 1 - self._iteration, self._fitting(for_s)
        )
        began = time.perf_counter()
        self._each(lambda which: self._parts.update(which, self._iteration, count))
        took_s = time.perf_counter() - began
        self._iteration += count
        self._calls += 1
        # The first call compiles, or loads what was compiled: it says nothing of the next.
        self._update_s = took_s / count if self._calls > 1 else 0.0

    def _fitting(self, for_s: float) -> int:
        if not self._update_s:
            return 1 if self._calls == 0 else 16
        return max(1, int(min(for_s, _CALL_S) / self._update_s))
