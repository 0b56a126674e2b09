"""Ctrl-C that waits for imports: a library such as torch can't be imported again after half an import."""

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
    """Make Ctrl-C wait while one of these libraries is imported, by whatever code; a second one waits, too.

    It is delivered once, as soon as the import has ended.
    """
    if not any(isinstance(finder, _UninterruptedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _UninterruptedFinder())


class _UninterruptedFinder(MetaPathFinder):
    """Finds modules of these libraries where Python does, and makes their execution uninterrupted."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of these libraries; nothing else."""
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
    """A handler of signals that only notes them."""

    def __init__(self) -> None:
        self.is_interrupted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.is_interrupted = True


def _execute(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Execute a module, and deliver what interrupted it afterwards.

    Python interrupts the main thread only. Where the handler is none of Python's, nothing is deferred.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    if before is None or before is signal.SIG_IGN or isinstance(before, _Deferred):
        execute(module)  # an import that is part of another one is deferred by that
        return
    deferred = _Deferred()
    signal.signal(signal.SIGINT, deferred)
    try:
        execute(module)
    finally:
        if signal.getsignal(signal.SIGINT) is deferred:  # else the library has set a handler of its own
            signal.signal(signal.SIGINT, before)
        if deferred.is_interrupted:
            threading.Thread(target=_interrupt_after, args=(module.__name__,), name="interrupt", daemon=True).start()


def _interrupt_after(name: str) -> None:
    """Interrupt the main thread when it has imported a module: an error here would still break the import."""
    try:
        importlib.import_module(name)  # waits for the import in the main thread
    finally:
        os.kill(os.getpid(), signal.SIGINT)
