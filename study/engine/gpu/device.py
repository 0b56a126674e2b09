"""The blocks of the fused GPU engine on a CUDA device: memory and streams by torch, launches by cuda.core.

Only what needs results waits for the device: `train` returns at once, and `evaluate` gives a function to call later.
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
from cuda.core import Device, Kernel, LaunchConfig, ObjectCode, Stream, launch
from cuda.core.utils import FileStreamProgramCache

import tasks.stream
from study.engine.gpu.arrays import Blocks, Choices, Evaluation, Tables, chunks
from study.engine.gpu.kernels import compile_kernels
from study.engine.gpu.layout import Layout, Shape, new_layout
from study.errors import DeviceError
from tasks.compile import digest

_CACHE_BYTES = 256 * 2**20
_ELF = b"\x7fELF"
# An instruction has room for no more.
_MOST_REGISTERS = 255
# On a multiprocessor: four blocks of 128, for example, so that some work while others wait at a barrier.
_WANTED_THREADS = 512
_STAMP = digest((*sorted(Path(__file__).parents[1].rglob("*.py")), Path(tasks.stream.__file__)))


class CudaBlocks(Blocks):
    """A pack's blocks on the current CUDA device.

    Args:
        shape: what is compiled.
        choices: of the pack.
        tables: of the trials.
        state: weights and both moments, each [trials, parameters]; copied.
        registers: the most of a thread; None to choose them.
    """

    def __init__(
        self,
        shape: Shape,
        choices: Choices,
        tables: Tables,
        state: Sequence[npt.NDArray[np.float32]],
        *,
        registers: int | None = None,
    ) -> None:
        self._device = torch.device("cuda", torch.cuda.current_device())
        self._context = Device(self._device.index)
        self._context.set_current()
        capability = torch.cuda.get_device_capability(self._device)
        self._layout = new_layout(shape)
        registers = registers or registers_of(self._layout)
        self._train, self._evaluate = _kernels(shape, choices, capability, registers)
        self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._to_launch = Stream.from_handle(self._stream.cuda_stream)
        self._shape, self._rows = state[0].shape, tables.evaluated.shape[3]
        self._settled = len(tables.corrections) - 1
        with torch.cuda.stream(self._stream):
            self._tables = {field.name: self._upload(getattr(tables, field.name)) for field in fields(tables)}
            self._state = [self._upload(array) for array in state]
        self._which: tuple[bytes, torch.Tensor] = (b"", self._state[0])
        self._launched: deque[torch.cuda.Event] = deque()

    def _upload(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Copy an array to the device as bytes: torch has no unsigned numbers of all sizes."""
        return torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8)).to(self._device)

    def _places(self, which: npt.NDArray[np.uint64]) -> int:
        """Upload places, unless they are those of the last call, and return their address on the device."""
        content = which.tobytes()
        if content != self._which[0]:
            self._which = (content, self._upload(which))
        return self._which[1].data_ptr()

    def _addresses(self, *names: str) -> list[int]:
        return [self._tables[name].data_ptr() for name in names]

    def train(self, which: npt.NDArray[np.uint64], iteration: int, count: int) -> None:
        """Update some trials; see `Blocks`."""
        with torch.cuda.stream(self._stream):
            arguments = [
                self._places(which), iteration, count, self._settled,
                *self._addresses("keys", "spans", "start", "numbers", "corrections"),
                *(tensor.data_ptr() for tensor in self._state),
            ]  # fmt: skip
            self._launch(self._train, (len(which),), arguments)
            event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            event.record(self._stream)
        self._launched.append(event)

    def evaluate(self, which: npt.NDArray[np.uint64]) -> Callable[[], Evaluation]:
        """Start to evaluate the trials at some places as they are now; see `Blocks`."""
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
        """Copy weights and both moments out, each [trials, parameters]."""
        self._stream.synchronize()
        return [tensor.cpu().numpy().view(np.float32).reshape(self._shape) for tensor in self._state]

    def wait(self, left: int) -> None:
        """Wait until at most `left` calls of `train` aren't done."""
        while len(self._launched) > left:
            self._launched.popleft().synchronize()

    def _launch(self, kernel: Kernel, grid: tuple[int, ...], arguments: Sequence[int]) -> None:
        self._context.set_current()  # whatever thread this is
        config = LaunchConfig(grid=grid, block=self._layout.threads, shmem_size=4 * self._layout.size)
        launch(self._to_launch, config, kernel, *arguments)


def blocks_at_once(layout: Layout, registers: int | None = None) -> int:
    """Count the blocks that the current device has room for.

    Args:
        layout: of a block.
        registers: of a thread, 1 to 255; None for `registers_of`.

    Returns:
        At least one for each multiprocessor.
    """
    has = Device(torch.cuda.current_device()).properties
    by_registers = has.max_registers_per_multiprocessor // ((registers or registers_of(layout)) * layout.threads)
    return int(has.multiprocessor_count * max(1, min(_blocks_by_memory(layout), by_registers)))


def registers_of(layout: Layout) -> int:
    """Choose how many registers a thread may have, up to 255.

    A block gets a fourth of a multiprocessor's, or more if fewer blocks fit into its shared memory.
    """
    has = Device(torch.cuda.current_device()).properties
    blocks = max(1, min(_WANTED_THREADS // layout.threads, _blocks_by_memory(layout)))
    return int(min(_MOST_REGISTERS, has.max_registers_per_multiprocessor // (layout.threads * blocks)))


def _blocks_by_memory(layout: Layout) -> int:
    has = Device(torch.cuda.current_device()).properties
    # A block takes a KiB more than its launch says.
    return int(has.max_shared_memory_per_multiprocessor // (4 * layout.size + 1024))


@cache
def _kernels(shape: Shape, choices: Choices, capability: tuple[int, int], registers: int) -> tuple[Kernel, Kernel]:
    """Load the kernels of a shape, from disk or newly compiled."""
    made_of = (_STAMP, numba.__version__, numba_cuda.__version__, shape, choices, capability, registers)
    key = hashlib.sha256(repr(made_of).encode()).digest()
    cached = _read_cache(key)
    if cached is not None:
        with suppress(Exception):  # assembled under another driver, on a disk that machines share
            return _load(cached)
    try:
        codes = compile_kernels(new_layout(shape), choices, capability, registers)
        return _load(_write_cache(key, codes))
    except Exception as error:
        raise DeviceError(
            "device: no kernel could be made for this GPU, of compute capability {}.{}; see docs/gpu.md, or use "
            "--engine torch or --device cpu: {}".format(*capability, error)
        ) from error


def _load(codes: tuple[bytes, bytes]) -> tuple[Kernel, Kernel]:
    train, evaluate = (
        ObjectCode.from_cubin(code) if code.startswith(_ELF) else ObjectCode.from_ptx(code) for code in codes
    )
    return train.get_kernel("train"), evaluate.get_kernel("evaluate")


def _read_cache(key: bytes) -> tuple[bytes, bytes] | None:
    """Find machine code on disk."""
    with suppress(OSError, KeyError), FileStreamProgramCache(max_size_bytes=_CACHE_BYTES) as cache:
        return cache[key + b"train"], cache[key + b"evaluate"]
    return None


def _write_cache(key: bytes, codes: tuple[ObjectCode, ObjectCode]) -> tuple[bytes, bytes]:
    """Write machine code to disk, if there is a place for it."""
    with suppress(OSError), FileStreamProgramCache(max_size_bytes=_CACHE_BYTES) as cache:
        for name, code in zip((b"train", b"evaluate"), codes, strict=True):
            cache[key + name] = code
    train, evaluate = (bytes(code.code) for code in codes)
    return train, evaluate
