"""The blocks of the fused GPU engine on a CUDA device: memory and streams by torch, launches by cuda.core.

Calls don't wait for the device: `train` returns at once, and `evaluate` returns a function that waits.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numba_cuda
import numpy as np
import numpy.typing as npt
import torch
from cuda.bindings import driver
from cuda.core import Device, Kernel, LaunchConfig, ObjectCode, Stream, launch
from cuda.core.utils import FileStreamProgramCache

import study.stream.stream
from study.errors import DeviceError
from study.stream.compile import digest
from tasks.arithmetic.engine.gpu.arrays import Blocks, Choices, Evaluation, Tables, chunks
from tasks.arithmetic.engine.gpu.groups import deal
from tasks.arithmetic.engine.gpu.kernels import compile_kernels
from tasks.arithmetic.engine.gpu.layout import Layout, new_layout
from tasks.arithmetic.engine.gpu.shape import Shape

_CACHE_BYTES = 256 * 2**20
_ELF = b"\x7fELF"
# The limit of the instruction encoding.
_MOST_REGISTERS = 255
# Threads on a multiprocessor, for example of four trials, so that some work while others wait at a barrier.
_WANTED_THREADS = 512
# The default limit of a block's shared memory.
_DEFAULT_BYTES = 48 * 1024
_STAMP = digest((*sorted(Path(__file__).parents[1].rglob("*.py")), Path(study.stream.stream.__file__)))


class CudaBlocks(Blocks):
    """A pack's blocks on the current CUDA device.

    Args:
        shape: the shape to compile for.
        choices: the pack's choices.
        tables: the trials' tables.
        state: weights and both moments, each [trials, parameters]; copied.
        registers: the most registers of a thread; None to choose them.
        most: the most trials of a block; None for as many as fit.

    Raises:
        DeviceError: if no kernel can be made for the device, or it refuses a block's shared memory.
    """

    def __init__(
        self,
        shape: Shape,
        choices: Choices,
        tables: Tables,
        state: Sequence[npt.NDArray[np.float32]],
        *,
        registers: int | None = None,
        most: int | None = None,
    ) -> None:
        self._device = torch.device("cuda", torch.cuda.current_device())
        self._context = Device(self._device.index)
        self._context.set_current()
        capability = torch.cuda.get_device_capability(self._device)
        self._layout = new_layout(shape)
        registers = registers or registers_of(self._layout)
        fitting = trials_together(self._layout, registers)
        self._most = min(most or fitting, fitting)
        self._train, self._evaluate = _kernels(shape, choices, capability, registers)
        # Independent of `most`: packs of one shape share a kernel.
        _allow(self._train, 4 * self._layout.size(fitting))
        _allow(self._evaluate, 4 * self._layout.size(1))
        self._rows_seen = tables.rows
        self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._to_launch = Stream.from_handle(self._stream.cuda_stream)
        self._shape, self._rows = state[0].shape, tables.evaluated.shape[3]
        self._settled = len(tables.corrections) - 1
        with torch.cuda.stream(self._stream):
            self._tables = {field.name: self._upload(getattr(tables, field.name)) for field in fields(tables)}
            self._state = [self._upload(array) for array in state]
        self._which: tuple[bytes, torch.Tensor] = (b"", self._state[0])
        self._dealt: tuple[bytes, list[tuple[tuple[int, int], torch.Tensor]]] = (b"", [])
        # Blocks of each number of trials have their own launch; the launches run concurrently.
        self._beside = [torch.cuda.Stream(self._device) for _ in range(self._most)]  # type: ignore[no-untyped-call]
        self._launched: deque[torch.cuda.Event] = deque()

    def _upload(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Copy an array to the device as bytes: torch lacks some unsigned types."""
        writable = np.require(array, requirements=["C", "W"])  # torch warns about read-only arrays
        return torch.from_numpy(writable.reshape(-1).view(np.uint8)).to(self._device)

    def _places(self, which: npt.NDArray[np.uint64]) -> int:
        """Upload places, unless they equal those of the last call, and return their address on the device."""
        content = which.tobytes()
        if content != self._which[0]:
            self._which = (content, self._upload(which))
        return self._which[1].data_ptr()

    def _blocks(self, which: npt.NDArray[np.uint64]) -> list[tuple[tuple[int, int], torch.Tensor]]:
        """Assign trials to blocks, with a cache of the last assignment.

        Returns:
            For each block size, the shape [blocks, trials], and the trials' places on the device.
        """
        content = which.tobytes()
        if content != self._dealt[0]:
            dealt = deal(which, self._rows_seen, self._most)
            self._dealt = (content, [((len(blocks), blocks.shape[1]), self._upload(blocks)) for blocks in dealt])
        return self._dealt[1]

    def _addresses(self, *names: str) -> list[int]:
        return [self._tables[name].data_ptr() for name in names]

    def train(self, which: npt.NDArray[np.uint64], iteration: int, count: int) -> None:
        """Update some trials; see `Blocks`."""
        with torch.cuda.stream(self._stream):
            arguments = [
                iteration, count, self._settled, *self._addresses("keys", "spans", "start", "numbers", "corrections"),
                *(tensor.data_ptr() for tensor in self._state),
            ]  # fmt: skip
            for ((blocks, trials), places), beside in zip(self._blocks(which), self._beside, strict=False):
                beside.wait_stream(self._stream)
                self._launch(self._train, (blocks,), [places.data_ptr(), *arguments], trials=trials, stream=beside)
                self._stream.wait_stream(beside)
            event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            event.record(self._stream)
        self._launched.append(event)

    def evaluate(self, which: npt.NDArray[np.uint64]) -> Callable[[], Evaluation]:
        """Start to evaluate some trials; see `Blocks`."""
        count, cut = len(which), chunks(self._rows)
        with torch.cuda.stream(self._stream):
            errors = torch.empty(count, 2, cut, dtype=torch.float64, device=self._device)
            weights = torch.empty(count, 2, dtype=torch.float32, device=self._device)
            arguments = [
                self._places(which), *self._addresses("sets", "evaluated", "spans"), self._state[0].data_ptr(),
                self._rows, errors.data_ptr(), weights.data_ptr(),
            ]  # fmt: skip
            self._launch(self._evaluate, (count, cut, 2), arguments)
            here = [torch.empty_like(tensor, device="cpu", pin_memory=True) for tensor in (errors, weights)]
            for to, tensor in zip(here, (errors, weights), strict=True):
                to.copy_(tensor, non_blocking=True)
            event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            event.record(self._stream)

        def result() -> Evaluation:
            event.synchronize()
            return Evaluation(here[0].numpy(), here[1].numpy())

        return result

    def read(self) -> list[npt.NDArray[np.float32]]:
        """Wait for all updates, and copy weights, first and second moments, each [trials, parameters]."""
        self._stream.synchronize()
        return [tensor.cpu().numpy().view(np.float32).reshape(self._shape) for tensor in self._state]

    def wait(self, left: int) -> None:
        """Wait until at most `left` calls of `train` are unfinished."""
        while len(self._launched) > left:
            self._launched.popleft().synchronize()

    def _launch(
        self,
        kernel: Kernel,
        grid: tuple[int, ...],
        arguments: Sequence[int],
        *,
        trials: int = 1,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self._context.set_current()  # the context of the calling thread
        block, size = trials * self._layout.threads, 4 * self._layout.size(trials)
        to = self._to_launch if stream is None else Stream.from_handle(stream.cuda_stream)
        launch(to, LaunchConfig(grid=grid, block=block, shmem_size=size), kernel, *arguments)


def trials_at_once(layout: Layout, registers: int | None = None) -> int:
    """Count the trials that fit on the current device in full blocks.

    A full block has `trials_together` trials, which see the same rows. If trials see different rows, a few more may
    fit, since blocks of one trial fill shared memory and registers more evenly; or fewer, since their inputs take more
    shared memory.

    Args:
        layout: layout of a block.
        registers: registers of a thread, 1 to 255; None for `registers_of`.

    Returns:
        At least one block's trials for each multiprocessor.
    """
    properties, registers = Device(torch.cuda.current_device()).properties, registers or registers_of(layout)
    trials = trials_together(layout, registers)
    by_registers = properties.max_registers_per_multiprocessor // (registers * layout.threads * trials)
    return int(properties.multiprocessor_count * max(1, min(_blocks_by_memory(layout, trials), by_registers)) * trials)


def blocks_of_one(layout: Layout, registers: int) -> int:
    """Count the blocks of one trial that fit on the current device.

    Args:
        layout: layout of a block.
        registers: registers of a thread, 1 to 255.

    Returns:
        At least one for each multiprocessor.
    """
    properties = Device(torch.cuda.current_device()).properties
    by_registers = properties.max_registers_per_multiprocessor // (registers * layout.threads)
    return int(properties.multiprocessor_count * max(1, min(_blocks_by_memory(layout, 1), by_registers)))


def trials_together(layout: Layout, registers: int) -> int:
    """Choose the most trials of a block: one to four, limited by registers, threads and shared memory.

    Args:
        layout: layout of a block.
        registers: registers of a thread, 1 to 255.
    """
    properties = Device(torch.cuda.current_device()).properties
    threads = min(properties.max_registers_per_block // registers, properties.max_threads_per_block)
    return layout.most_together(properties.max_shared_memory_per_block_optin, threads)


def registers_of(layout: Layout) -> int:
    """Choose the registers of a thread, up to 255.

    A trial of 128 threads gets a fourth of a multiprocessor's registers, one of 256 threads a half, or more if fewer
    one-trial blocks fit into the multiprocessor's shared memory.
    """
    properties = Device(torch.cuda.current_device()).properties
    blocks = max(1, min(_WANTED_THREADS // layout.threads, _blocks_by_memory(layout, 1)))
    return int(min(_MOST_REGISTERS, properties.max_registers_per_multiprocessor // (layout.threads * blocks)))


def _blocks_by_memory(layout: Layout, trials: int) -> int:
    properties = Device(torch.cuda.current_device()).properties
    # A block takes 1 KiB more than its launch requests.
    return int(properties.max_shared_memory_per_multiprocessor // (4 * layout.size(trials) + 1024))


def _allow(kernel: Kernel, shared_bytes: int) -> None:
    """Raise a kernel's limit of shared memory for each block, if the default doesn't suffice.

    Raises:
        DeviceError: if the device refuses.
    """
    if shared_bytes > _DEFAULT_BYTES:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (error,) = driver.cuKernelSetAttribute(attribute, shared_bytes, kernel.handle, torch.cuda.current_device())
        if error != driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(f"device: a block can't have {shared_bytes} bytes of shared memory: {error!r}")


@cache
def _kernels(shape: Shape, choices: Choices, capability: tuple[int, int], registers: int) -> tuple[Kernel, Kernel]:
    """Return the kernels of a shape, train and evaluate, from disk or newly compiled; raise DeviceError on failure."""
    content = (_STAMP, numba.__version__, numba_cuda.__version__, shape, choices, capability, registers)
    key = hashlib.sha256(repr(content).encode()).digest()
    cached = _read_cache(key)
    if cached is not None:
        with suppress(Exception):  # for example, another machine stored it on a shared disk, for another driver
            return _load(cached)
    try:
        layout = new_layout(shape)
        codes = compile_kernels(layout, choices, capability, registers, trials_together(layout, registers))
        return _load(_write_cache(key, codes))
    except Exception as error:
        raise DeviceError(
            "device: no kernel could be made for this GPU, of compute capability {}.{}; see docs/guides/gpu.md, or use "
            "--engine torch or --device cpu: {}".format(*capability, error)
        ) from error


def _load(codes: tuple[bytes, bytes]) -> tuple[Kernel, Kernel]:
    train, evaluate = (
        ObjectCode.from_cubin(code) if code.startswith(_ELF) else ObjectCode.from_ptx(code) for code in codes
    )
    return train.get_kernel("train"), evaluate.get_kernel("evaluate")


def _read_cache(key: bytes) -> tuple[bytes, bytes] | None:
    """Read the machine code of both kernels from disk; None if one is missing or can't be read."""
    with suppress(OSError, KeyError), FileStreamProgramCache(max_size_bytes=_CACHE_BYTES) as cache:
        return cache[key + b"train"], cache[key + b"evaluate"]
    return None


def _write_cache(key: bytes, codes: tuple[ObjectCode, ObjectCode]) -> tuple[bytes, bytes]:
    """Return the bytes of both kernels, after writing them to disk if possible."""
    with suppress(OSError), FileStreamProgramCache(max_size_bytes=_CACHE_BYTES) as cache:
        for name, code in zip((b"train", b"evaluate"), codes, strict=True):
            cache[key + name] = code
    train, evaluate = (bytes(code.code) for code in codes)
    return train, evaluate
