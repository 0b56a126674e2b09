"""Training devices: availability, memory, and reproducible computation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch

from study.errors import DeviceError, DeviceMemoryError
from study.records import Pack

# Share of the free memory that is used; the rest is for fragmentation and other processes.
_SHARE = 0.8
_FEW, _MORE = 4, 20


@contextmanager
def one_thread() -> Iterator[None]:
    """Restrict torch to one thread within the context.

    Several threads divide a product by its size, and so round a trial's numbers differently in a pack than alone. Many
    small products on several threads also spend most of their time waiting for each other.

    Example:
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def room_for(pack: Pack, memory_mb: float) -> Iterator[None]:
    """Translate torch's error for a GPU out of memory into `DeviceMemoryError`.

    Args:
        pack: the pack to train.
        memory_mb: its estimated memory, in MiB.

    Raises:
        DeviceMemoryError: if the device runs out of memory within the context.
    """
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise DeviceMemoryError(
            f"device: the GPU has no room for a pack of {len(pack.trials)} trials "
            f"({memory_mb:,.0f} MiB): make room on it, or use --pack-size or --device cpu"
        ) from error


def trials_that_fit(peak_bytes: Callable[[int], int], free_bytes: int) -> int:
    """Return the number of trials that fit into a device's memory, from the peaks of packs of 4 and of 20 trials.

    Args:
        peak_bytes: trains a pack of the given size for a moment, and returns its peak memory.
        free_bytes: the device's free memory, of which 80 % are used.

    Returns:
        The number of trials, at least 1, even if a single one doesn't fit.

    Example:
        >>> trials_that_fit(lambda trials: 1000 + 50 * trials, free_bytes=10_000)
        140
    """
    few, more = peak_bytes(_FEW), peak_bytes(_MORE)
    each = max(1.0, (more - few) / (_MORE - _FEW))
    shared = max(0.0, few - _FEW * each)
    return max(1, int((_SHARE * free_bytes - shared) / each))


@contextmanager
def reproducible(device: str) -> Iterator[None]:
    """On a GPU, compute in full float32 precision, and with torch's deterministic operations, within the context.

    Where an operation has no deterministic version, torch warns, and results may differ each time. The settings are
    those of the whole process: the first thread that enters changes them, and the last that leaves restores them.
    `CUBLAS_WORKSPACE_CONFIG` is also set if it isn't, and remains set.

    Args:
        device: ``cuda``; a no-op for any other.

    Example:
        >>> with reproducible("cuda"):
        ...     torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
        (True, False)
    """
    if device != "cuda":
        yield
        return
    with _REPRODUCIBLE:
        yield


@contextmanager
def _reproducible_settings() -> Iterator[None]:
    """Set torch's settings for reproducible results within the context, for all threads."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it before its first product
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    fill: Any = torch.utils.deterministic
    is_on, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    before = matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, fill.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, fill.fill_uninitialized_memory = False, False, False, False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(is_on, warn_only=warns)
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, fill.fill_uninitialized_memory = before


class _ForAllThreads:
    """Context of the whole process: the first thread enters it, and the last one leaves it."""

    def __init__(self, context: Callable[[], AbstractContextManager[None]]) -> None:
        self._context, self._entered = context, ExitStack()
        self._lock, self._threads = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._threads:
                self._entered.enter_context(self._context())
            self._threads += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._threads -= 1
            if not self._threads:
                self._entered.close()


_REPRODUCIBLE = _ForAllThreads(_reproducible_settings)


def check_device(device: str) -> None:
    """Check that the device is available.

    Raises:
        DeviceError: if the device is ``cuda`` and torch sees no GPU.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise DeviceError("device: 'cuda' was asked for, but torch sees no GPU here; use --device cpu or --device auto")
