"""The engine that calls a training function, one trial of a pack after another."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from study.engine.base import Engine, Training, TrialFolders
from study.engine.function.pack import Calls, FunctionPack
from study.engine.own_code import OwnCode
from study.interface.function_family import TASK
from study.records import Cell, Checkpoint, Pack
from study.source import CodeFolder, load_copied, parse_import_string

_MIB_PER_GIB = 1024


@dataclass(frozen=True, kw_only=True)
class FunctionEngine(Calls, Engine):
    """Calls a training function; it is data, so that it can be sent to workers, which run the copy of the code in it.

    Trials of a pack run one after another and never in threads beside each other, since all draw from the process's
    global generators. A trial that raises an error fails alone.

    Args:
        code: the function's code.
        is_isolated: whether each trial has a process of its own.
        folders: folders for the files of trials; None if nothing is kept.
        is_shared: whether this process has output of its own beside that of trials.

    The others are those of `Calls`.
    """

    code: OwnCode
    is_isolated: bool = False
    folders: TrialFolders | None = None
    is_shared: bool = True

    name = "function"
    devices = ("cpu", "cuda")
    has_files = True

    def with_folders(self, folders: TrialFolders, *, is_shared: bool) -> FunctionEngine:
        """Return the engine with folders for the files of its trials."""
        return replace(self, folders=folders, is_shared=is_shared)

    def prepare(self, cell: Cell) -> None:
        """Unpack the code, and import the function once, so that what is missing here is said before a trial begins."""
        self._load()

    def refuses(self, cell: Cell) -> str | None:
        """Say why this engine can't train the cell, or None if it can."""
        if (cell.task, cell.model) == (TASK, self.function):
            return None
        return f"it calls {self.function}, and nothing else"

    def memory_mb(self, pack: Pack) -> float:
        """Return the memory that a trial may use, in MiB; 0 if that isn't limited."""
        return (self.limits.memory_gb or 0.0) * _MIB_PER_GIB

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin a pack, or go on from a checkpoint of these very trials."""
        folder, function = self._load()
        load = None
        if self.is_isolated:
            load = partial(load_copied, str(folder.path or ""), self.function)
        return FunctionPack(
            self, pack, device, function, folder, load, checkpoint, self.folders, is_shared=self.is_shared
        )

    def _load(self) -> tuple[CodeFolder, Callable[..., Any]]:
        folder = self.code.folder()
        function: Callable[..., Any] = folder.load(parse_import_string(self.function))
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(self.limits.cpus or 1)  # sums depend on the number of threads
        return folder, function
