"""Deferral of Ctrl-C during imports: torch, for example, can't be imported again after a partial import."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import Any

_LIBRARIES = (
    *("jax", "lightning", "llvmlite", "matplotlib", "mlflow", "numba", "numpy", "obstore", "optuna", "pandas"),
    *("pyarrow", "pydantic", "ray", "scipy", "sklearn", "tensorflow", "torch", "torchvision", "transformers"),
)


def defer_while_importing() -> None:
    """Defer Ctrl-C while any code imports one of `_LIBRARIES`, even if it is pressed again.

    It is delivered once, as soon as the import has ended.
    """
    if not any(isinstance(finder, _UninterruptedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _UninterruptedFinder())


class _UninterruptedFinder(MetaPathFinder):
    """Import finder that makes the execution of these libraries' modules uninterruptible."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return Python's usual spec of a library's module, with Ctrl-C deferred; None for other modules."""
        if fullname.partition(".")[0] not in _LIBRARIES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            _execute(execute, module)

        loader.exec_module = exec_module
        return spec


class _Deferred:
    """Signal handler that only records signals."""

    def __init__(self) -> None:
        self.is_interrupted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.is_interrupted = True


def _execute(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Execute a library's module, with Ctrl-C deferred until its import has ended.

    It isn't deferred outside the main thread, or if SIGINT is ignored or handled outside Python. Within another
    deferred import, that import defers it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    if before is None or before is signal.SIG_IGN or isinstance(before, _Deferred):
        execute(module)  # the outer import defers for a nested one
        return
    deferred = _Deferred()
    signal.signal(signal.SIGINT, deferred)
    try:
        execute(module)
    finally:
        if signal.getsignal(signal.SIGINT) is deferred:  # else the library has set its own handler
            signal.signal(signal.SIGINT, before)
        if deferred.is_interrupted:
            threading.Thread(target=_interrupt_after, args=(module.__name__,), name="interrupt", daemon=True).start()


def _interrupt_after(name: str) -> None:
    """Interrupt the main thread once it has imported a module; an earlier interrupt would break the import."""
    try:
        importlib.import_module(name)  # waits for the import in the main thread
    finally:
        os.kill(os.getpid(), signal.SIGINT)
