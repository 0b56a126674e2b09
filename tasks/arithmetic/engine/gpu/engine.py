"""The fused GPU engine: its supported cells, the trials that fill a device, and time slices.

A trial's bits don't depend on its pack: blocks are independent, trials of a block share only their rows, and the order
of a trial's sums follows from the cell's shape alone (`layout`). A time slice determines only the number of iterations
in a launch.
"""

from __future__ import annotations

import importlib.util
import time
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from study.engine.base import Training
from study.engine.device import check_device, room_for
from study.engine.training import Arrays, PendingEvaluation
from study.errors import DeviceError
from study.records import Cell, Checkpoint, Pack, Trial
from tasks.arithmetic import ArithmeticTask
from tasks.arithmetic.cell import typed_cell
from tasks.arithmetic.engine.compiled.codes import CODES, NO_LAYER, find_unsupported
from tasks.arithmetic.engine.gpu.arrays import Devices, GpuArrays
from tasks.arithmetic.engine.gpu.layout import Layout, new_layout, refusal
from tasks.arithmetic.engine.gpu.shape import Shape
from tasks.arithmetic.engine.shared.engine import ArithmeticEngine
from tasks.arithmetic.engine.shared.training import ArithmeticTraining

# Seconds of one launch, which can't be interrupted.
_LAUNCH_S = 0.2
_CALIBRATION = 16
_PACKAGES = ("numba_cuda", "cuda.core")
_CAPABILITY = (7, 0)


class GpuEngine(ArithmeticEngine):
    """The engine of the arithmetic task on a CUDA device.

    Args:
        emulated: True to run blocks in sequence on the CPU instead, slowly, for tests.
    """

    name = "fused-gpu"
    tasks = (ArithmeticTask,)

    def __init__(self, *, emulated: bool = False) -> None:
        self._emulated = emulated
        self.devices = ("cpu",) if emulated else ("cuda",)

    def refuses(self, cell: Cell) -> str | None:
        """Return the reason why this engine can't train the cell, or None if it can; devices aren't checked.

        Raises:
            KeyError: if the model is neither built in nor a registered unit.
        """
        reason = super().refuses(cell) or find_unsupported(typed_cell(cell))
        if reason is None and not self._emulated and not _installed():
            reason = "its packages aren't installed: pip install '.[gpu]'"
        return reason or refusal(_shape(cell))

    def memory_mb(self, pack: Pack) -> float:
        """Estimate MiB of `GpuArrays`: three copies of the parameters, and the evaluation rows of each range.

        Further rows, of trials with evaluation seeds of their own, aren't counted.

        Raises:
            KeyError: if the engine lacks a unit of the cell.
            ValueError: for some cells with more inputs than it supports.
        """
        cell, trials = typed_cell(pack.trials[0].cell), len(pack.trials)
        layout = _layout(pack.trials[0].cell)
        cells = {typed_cell(trial.cell) for trial in pack.trials}
        sets = {(p, r) for c in cells for p, r in enumerate((c.interpolation_range, c.extrapolation_range))}
        evaluated = len(sets) * cell.evaluation_rows * layout.features * (1 + layout.logs)
        return 4 * (trials * (3 * layout.parameters + 64) + evaluated) / 2**20

    def trials_at_once(self, cell: Cell) -> int | None:
        """Count the trials that the current device trains at once in full blocks; None if emulated or without a device.

        The trials of a full block have equal seeds and interpolation ranges. If all trials differ in these, a few more
        or fewer may fit.

        Raises:
            KeyError: if the engine lacks a unit of the cell.
            ValueError: for some cells with more inputs than it supports.
            ModuleNotFoundError: if the packages of ``.[gpu]`` aren't installed.
        """
        if self._emulated or not torch.cuda.is_available():
            return None
        from tasks.arithmetic.engine.gpu.device import trials_at_once

        return trials_at_once(_layout(cell))

    def is_compiled(self, cell: Cell) -> bool | None:
        """Return True without a device or if emulated; else None, since kernels depend on the shape."""
        return None if torch.cuda.is_available() and not self._emulated else True

    def prepare(self, cell: Cell) -> None:
        """Compile the cell's kernels by one update of a trial; a no-op without a device, unless emulated.

        Raises:
            ValueError: if the cell's success threshold can't be computed.
            DeviceError: if the device or its memory doesn't suit the engine, or no kernel can be made for it.
        """
        if self._emulated or torch.cuda.is_available():
            self.start(Pack((Trial(cell, 0),)), device=self.devices[0]).advance(0.0)

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin a pack, or continue it from a checkpoint.

        Raises:
            ValueError: if the checkpoint is of other trials or of another engine, a success threshold can't be
                computed, or a unit's weights can't have the cell's `init_variance`; and for some cells with more inputs
                than it supports.
            KeyError: if the engine lacks a unit of the cell.
            DeviceError: if the device isn't available or doesn't suit the engine, or its memory doesn't suffice.
            ModuleNotFoundError: if the packages of ``.[gpu]`` aren't installed.
        """
        if self._emulated:
            from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks

            return GpuTraining(self.name, pack, device, checkpoint, EmulatedBlocks)
        _check_device(device)
        from tasks.arithmetic.engine.gpu.device import CudaBlocks

        with room_for(pack, self.memory_mb(pack)):
            return GpuTraining(self.name, pack, device, checkpoint, CudaBlocks)


def _check_device(device: str) -> None:
    if device != "cuda":
        raise DeviceError(f"device: the fused-gpu engine runs on a GPU, but got {device!r}; use --engine fused")
    check_device(device)
    capability = torch.cuda.get_device_capability()
    if capability < _CAPABILITY:
        raise DeviceError(
            "device: the fused-gpu engine needs compute capability {}.{} or later, but this GPU has {}.{}; "
            "use --engine torch or --device cpu".format(*_CAPABILITY, *capability)
        )


@lru_cache
def _installed() -> bool:
    try:
        return all(importlib.util.find_spec(name) is not None for name in _PACKAGES)
    except ModuleNotFoundError:  # a parent package is missing
        return False


def _shape(cell: Cell) -> Shape:
    """Make the shape of a cell, without its update rules, on which neither the layout nor the memory depends."""
    typed = typed_cell(cell)
    first, second = typed.network.first, typed.network.second
    units = (CODES[first], NO_LAYER if second is None else CODES[second])
    return Shape(typed.input_size, typed.hidden_size, typed.batch_size, typed.subsets, *units, ())


def _layout(cell: Cell) -> Layout:
    return new_layout(_shape(cell))


class GpuTraining(ArithmeticTraining):
    """One pack being trained on a device."""

    def __init__(
        self, engine: str, pack: Pack, device: str, checkpoint: Checkpoint | None, new_blocks: Devices
    ) -> None:
        self._new_blocks = new_blocks
        self._calls = 0
        self._update_s = 0.0
        self._nan: npt.NDArray[np.bool_] = np.zeros(0, bool)
        self._since: tuple[float, int] | None = None
        super().__init__(engine, pack, device, checkpoint)

    def _begin(self, arrays: Arrays | None) -> None:
        self._arrays = GpuArrays(self._pack.trials, arrays, self._new_blocks)

    def _active_places(self) -> npt.NDArray[np.int64]:
        """Return the places of the trials that still train."""
        return np.flatnonzero(self._scores.active)

    def _start_evaluation(self) -> PendingEvaluation:
        pending = self._arrays.evaluate(self._active_places())

        def result() -> dict[str, npt.NDArray[np.float32]]:
            metrics = pending()
            self._nan = metrics.pop("has_nan") != 0
            return metrics

        return result

    def _has_nan(self) -> npt.NDArray[np.bool_]:
        return self._nan

    def _update(self, most: int, for_s: float) -> int:
        count = min(most, self._count_for(for_s))
        began = time.perf_counter()
        if self._since is None:
            self._since = (began, self._iteration)
        self._arrays.update(self._active_places(), self._iteration, count)
        self._calls += 1
        if self._update_s:
            self._arrays.wait(2)  # the device has work while the next launch is prepared
        else:
            self._arrays.wait()
            # The first call loads or compiles code, so its time doesn't predict the next.
            self._update_s = (time.perf_counter() - began) / count if self._calls > 1 else 0.0
            self._since = None
        return count

    def _count_for(self, for_s: float) -> int:
        if not self._update_s:
            return 1 if self._calls == 0 else _CALIBRATION
        return max(1, int(min(for_s, _LAUNCH_S) / self._update_s))

    def _synchronise(self) -> None:
        self._arrays.wait()
        if self._since is not None:
            began, first = self._since
            if self._iteration > first:
                self._update_s = (time.perf_counter() - began) / (self._iteration - first)
            self._since = None

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return self._arrays.state()
