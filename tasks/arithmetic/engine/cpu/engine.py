"""The fused engine: the arithmetic task on the CPU, with compiled iterations and one draw of rows per seed.

Trials that see the same rows train side by side, whatever their models (`groups`). A trial's bits don't depend on its
neighbours: each of its numbers has its own vector lane, and its sums have a fixed order (`products`). A time slice
determines only the number of iterations in a call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from study.engine.base import Training
from study.engine.calls.fresh import FreshCallError, FreshProcess
from study.engine.training import Arrays, PendingEvaluation
from study.errors import DeviceError
from study.records import Cell, Checkpoint, Pack, Weights
from study.stream.compile import is_on_disk
from tasks.arithmetic import ArithmeticTask
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.engine.compiled.codes import find_unsupported
from tasks.arithmetic.engine.cpu.arrays import CpuArrays, compile_evaluation, compile_training
from tasks.arithmetic.engine.cpu.evaluation import add_squared_errors, sparsity_errors
from tasks.arithmetic.engine.cpu.first_layers import planes_of
from tasks.arithmetic.engine.cpu.loop import train
from tasks.arithmetic.engine.shared.engine import ArithmeticEngine
from tasks.arithmetic.engine.shared.training import ArithmeticTraining, with_layers

_Result = TypeVar("_Result")

# Values that the trials of a pack share: row sizes and protocol.
_EQUAL = ("input_size", "batch_size", "iterations", "evaluate_every", "best_step_window", "evaluation_rows", "stop")

# A mark in checkpoints: a trial must not continue with another order of sums, which would give irreproducible bits.
_ORDER_OF_SUMS = "order_of_sums"
_ORDER = 2

# Seconds of one compiled call, which can't be interrupted.
_CALL_S = 0.5


class FusedEngine(ArithmeticEngine):
    """The engine of the arithmetic task on the CPU.

    Args:
        threads: threads that share a pack's trials; packs themselves run in processes.
    """

    name = "fused"
    devices = ("cpu",)
    tasks = (ArithmeticTask,)

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    def prepare(self, cell: Cell) -> None:
        """Compile the loops unless they are on disk, evaluation and training in a process each, and load them.

        Loading trains a trial of the cell for a moment.

        Raises:
            ValueError: if the cell's success threshold can't be computed.
            OSError: if the second process can't be started.
        """
        if not self.is_compiled(cell):
            with FreshProcess(is_quiet=True) as other:
                other.prepare(compile_evaluation)
                compile_training()
                with suppress(FreshCallError):  # this process then compiles them, or reports the error
                    other.ready()
        super().prepare(cell)

    def is_compiled(self, cell: Cell) -> bool:
        """Return True if the loops are on disk."""
        return all(map(is_on_disk, (train, add_squared_errors, sparsity_errors)))

    def refuses(self, cell: Cell) -> str | None:
        """Return the reason why this engine can't train the cell, or None if it can."""
        return super().refuses(cell) or find_unsupported(typed_cell(cell))

    def pack_key(self, cell: Cell) -> tuple[object, ...]:
        """Return the values that all trials of a pack must share: the task, row sizes and the protocol."""
        typed = typed_cell(cell)
        return (cell.task, *(getattr(typed, name) for name in _EQUAL))

    def memory_mb(self, pack: Pack) -> float:
        """Estimate MiB of `CpuArrays`: three copies of the parameters, and the evaluation rows of each range."""
        cells = [typed_cell(trial.cell) for trial in pack.trials]
        cell = cells[0]
        parameters = sum(5 * c.hidden_size * (c.input_size + 1) for c in cells)
        ranges = {r for c in set(cells) for r in (c.interpolation_range, c.extrapolation_range)}
        numbers = planes_of(c.network for c in cells) * cell.input_size + 4
        shared = max(2, len(ranges)) * cell.evaluation_rows * numbers
        return 4 * (3 * parameters + shared) / 2**20

    def goes_on_from(self, checkpoint: Checkpoint, device: str) -> bool:
        """Return True if a pack can continue from a checkpoint: it is this engine's, with the same order of sums."""
        order = checkpoint.arrays.get(_ORDER_OF_SUMS, 0)
        return super().goes_on_from(checkpoint, device) and bool(np.all(np.equal(order, _ORDER)))

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin a pack, or continue it from a checkpoint.

        Raises:
            ValueError: if the checkpoint is of other trials or of another engine, or a success threshold can't be
                computed.
            DeviceError: if the device isn't ``cpu``.
        """
        if device != "cpu":
            raise DeviceError(f"device: the fused engine runs on the CPU only, but got {device!r}; use --engine torch")
        return FusedTraining(pack, checkpoint, self._threads)


class FusedTraining(ArithmeticTraining):
    """One pack being trained by compiled code."""

    def __init__(self, pack: Pack, checkpoint: Checkpoint | None, threads: int = 1) -> None:
        self._threads = threads
        self._calls = 0
        self._update_s = 0.0
        super().__init__(FusedEngine.name, pack, "cpu", checkpoint)

    def _begin(self, arrays: Arrays | None) -> None:
        self._arrays = CpuArrays(self._pack.trials, arrays)

    def _active_places(self) -> npt.NDArray[np.int64]:
        """Return the places of the trials that still train."""
        return np.flatnonzero(self._scores.active)

    def _each(self, work: Callable[[npt.NDArray[np.int64]], _Result]) -> list[_Result]:
        """Call a function with each thread's share of the places of trials that still train; return its results."""
        shares = [share for share in np.array_split(self._active_places(), self._threads) if len(share)]
        if len(shares) == 1:
            return [work(shares[0])]
        with ThreadPoolExecutor(len(shares)) as pool:
            return list(pool.map(work, shares))

    def _start_evaluation(self) -> PendingEvaluation:
        parts = self._each(self._arrays.evaluate)
        metrics = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return lambda: metrics

    def _has_nan(self) -> npt.NDArray[np.bool_]:
        return self._arrays.has_nan(self._active_places())

    def _update(self, most: int, for_s: float) -> int:
        count = min(most, self._count_for(for_s))
        began = time.perf_counter()
        self._each(lambda which: self._arrays.update(which, self._iteration, count))
        took_s = time.perf_counter() - began
        self._calls += 1
        # The first call compiles or loads code, so its time doesn't predict the next.
        self._update_s = took_s / count if self._calls > 1 else 0.0
        return count

    def _count_for(self, for_s: float) -> int:
        if not self._update_s:
            return 1 if self._calls == 0 else 16
        return max(1, int(min(for_s, _CALL_S) / self._update_s))

    def _weights(self) -> list[Weights]:
        made = zip(self._pack.trials, self._scores.updates(), self._arrays.weights(), strict=True)
        return [Weights(trial.id, int(updates), with_layers(arrays)) for trial, updates, arrays in made]

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return self._arrays.state() | {_ORDER_OF_SUMS: np.full(len(self._pack.trials), _ORDER)}
