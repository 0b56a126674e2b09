"""The device under test: a GPU, or its slow emulation on the CPU, through the same code."""

from __future__ import annotations

import subprocess
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

from benchmarks.measure import published_cell, tell
from study.engine import Training
from study.records import Cell, Pack, Trial
from tasks.arithmetic.engine.gpu.arrays import Devices, GpuArrays
from tasks.arithmetic.engine.gpu.emulated import EmulatedBlocks
from tasks.arithmetic.engine.gpu.engine import GpuEngine, GpuTraining, _layout

Task = TypeVar("Task")
Found = TypeVar("Found")

OLDEST = (7, 0)
_PACKAGES = ("cuda-core", "numba-cuda", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvrtc-cu12")
_ASKED = "name,driver_version,clocks.max.sm,power.limit,compute_mode"

# Warp instructions that a multiprocessor issues a cycle, on every device from 7.0 on.
ISSUED = 4

SLOTS = {2: 11_300, 10: 23_000}
"""Warp instructions of an iteration of the NMU with 100 inputs, by hidden units: of the machine code for 9.0.

They are those of a trial that sees rows of its own, as in the benchmark's packs; see count.py.
"""

LEAST_SLOTS = {2: 8_000, 10: 20_000}
"""Lower bounds of these numbers."""


@dataclass(frozen=True)
class Machine:
    """A device that trains packs.

    Args:
        name: the device's name.
        device: as engines and torch call it: ``cuda``, or ``cpu`` for the emulation.
        multiprocessors: blocks are dealt out among these.
        clock_hz: the highest clock rate.
        emulated: whether blocks are loops on the CPU.
    """

    name: str
    device: str
    multiprocessors: int
    clock_hz: float
    emulated: bool

    @property
    def engine(self) -> GpuEngine:
        """The fused GPU engine of this device."""
        return GpuEngine(emulated=self.emulated)

    def blocks(self, registers: int | None = None, most: int | None = None) -> Devices:
        """Return the constructor of a pack's blocks.

        Args:
            registers: registers of a thread; None to let the engine choose them. The emulation ignores them.
            most: maximum number of trials in a block; None to let the engine choose it.

        Raises:
            ImportError: if a package of the extra `gpu` isn't installed, unless emulated.
        """
        if self.emulated:
            # The compared blocks have other options: a check that these don't affect the bits.
            return partial(EmulatedBlocks, backwards=True, most=most)
        from tasks.arithmetic.engine.gpu.device import CudaBlocks

        return partial(CudaBlocks, registers=registers, most=most)

    def at_once(self, cell: Cell, registers: int | None = None) -> int:
        """Count the trials that the device trains at once, in full blocks; the emulation has one a multiprocessor.

        Args:
            cell: the trials' cell.
            registers: registers of a thread; None to let the engine choose them. The emulation ignores them.

        Raises:
            ImportError: if a package of the extra `gpu` isn't installed, unless emulated.
        """
        if self.emulated:
            return self.multiprocessors
        from tasks.arithmetic.engine.gpu.device import trials_at_once

        return trials_at_once(_layout(cell), registers)

    def start(self, pack: Pack, registers: int | None = None, most: int | None = None) -> Training:
        """Start to train a pack, and return the training; see `blocks` for the options."""
        return GpuTraining(self.engine.name, pack, self.device, None, self.blocks(registers, most))

    def estimate(self, slots: float, share: float = 1.0) -> float:
        """Estimate the trial-iterations a second, if each takes `slots` warp instructions.

        Args:
            slots: warp instructions of a trial's iteration.
            share: used share of the instructions that the device can issue at its highest clock.
        """
        return ISSUED * self.multiprocessors * self.clock_hz * share / slots

    def about(self) -> dict[str, Any]:
        """Return the device's name, multiprocessors and clock; for a GPU also capability, driver and CUDA packages.

        Packages that aren't installed, and values that nvidia-smi doesn't return, are left out.
        """
        found: dict[str, Any] = {
            "gpu": self.name,
            "multiprocessors": self.multiprocessors,
            "clock_mhz": round(self.clock_hz / 1e6),
        }
        if not self.emulated:
            found["capability"] = ".".join(map(str, torch.cuda.get_device_capability()))
            found["cuda_of_torch"] = torch.version.cuda
            found["nvidia_smi"] = dict(zip(_ASKED.split(","), smi(_ASKED), strict=False))
            for name in _PACKAGES:
                with suppress(ImportError):  # it isn't installed, or has another name
                    found[name] = version(name)
        return found


def without_gpu() -> str | None:
    """Return the reason why nothing can be measured on a GPU here; None if it can."""
    if not torch.cuda.is_available():
        return "torch sees no GPU here"
    has = torch.cuda.get_device_capability()
    if has < OLDEST:
        return "the GPU has compute capability {}.{}, and {}.{} is needed".format(*has, *OLDEST)
    return GpuEngine().refuses(published_cell("NMU", 4, 2))


def gpu() -> Machine:
    """Return the current GPU as a `Machine`; see `without_gpu` for its availability.

    Raises:
        ImportError: if the package cuda-core isn't installed.
        RuntimeError: if there is no GPU.
        AssertionError: if torch was built without CUDA.
    """
    from cuda.core import Device

    device = Device(torch.cuda.current_device())
    device.set_current()
    has = device.properties
    name = torch.cuda.get_device_name()
    return Machine(name, "cuda", int(has.multiprocessor_count), 1e3 * has.clock_rate, emulated=False)


EMULATION = Machine("emulated on the CPU", "cpu", 2, 1e9, emulated=True)


def smi(asked: str) -> list[str]:
    """Query nvidia-smi about the current GPU.

    Args:
        asked: names of the queried values, separated by commas.

    Returns:
        The values as texts; an empty list if the query fails.

    Raises:
        AssertionError: if torch was built without CUDA.
    """
    with suppress(OSError, subprocess.SubprocessError, AttributeError, RuntimeError):
        ours = f"GPU-{torch.cuda.get_device_properties().uuid}"
        words = ["nvidia-smi", "-i", ours, f"--query-gpu={asked}", "--format=csv,noheader,nounits"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
        return [text.strip() for text in done.stdout.split(",")]
    return []


class PartlyFailedError(Exception):
    """Some parts failed; each failure has been printed."""


def each(shapes: Sequence[Task], rows: Callable[[Task], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of every shape; a failure is printed, and the others go on.

    Raises:
        PartlyFailedError: at the end, if a shape failed.

    Example:
        >>> list(each([1, 2], lambda shape: [{"shape": shape}]))
        [{'shape': 1}, {'shape': 2}]
    """
    failed = []
    for shape in shapes:
        try:
            yield from rows(shape)
        except Exception:
            tell(traceback.format_exc())
            failed.append(shape)
    if failed:
        raise PartlyFailedError(f"{len(failed)} of {len(shapes)} failed: {failed}")


def compile_blocks(task: tuple[Machine, Cell, int | None]) -> None:
    """Compile the kernels of a task, (machine, cell, limit of registers or None), into the cache on disk.

    Kernels in the cache aren't compiled again. The emulation's are compiled later, at their first call.

    Raises:
        ImportError: if a package of the extra `gpu` isn't installed, unless emulated.
        DeviceError: if no kernel can be made for the device.
    """
    machine, cell, registers = task
    GpuArrays([Trial(cell, 0)], None, machine.blocks(registers))


def spread(work: Callable[[Task], Found], tasks: Iterable[Task], workers: int) -> Iterator[Found]:
    """Yield the result of each task, in their order, from several processes; from this one if `workers` is at most 1.

    An error of a task is raised in its place.
    """
    if workers <= 1:
        yield from map(work, tasks)
        return
    # Not forked: a forked process can't use a GPU that its parent has used.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, tasks)
