"""The engine that calls a training function, one trial of a pack after another."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from study.engine.base import Training
from study.engine.calls import CallEngine, CallTrial, TrialCall, TrialOutput
from study.engine.calls.engine import CALLED
from study.engine.calls.pack import CallPack
from study.engine.calls.trial import Arrays
from study.engine.function.isolated import IsolatedTraining
from study.engine.function.training import FunctionTraining
from study.interface.function_family import OWN_NAMES, TASK
from study.records import Cell, Checkpoint, Pack
from study.source import CodeFolder, load_announced, load_copied, parse_import_string


@dataclass(frozen=True, kw_only=True)
class FunctionEngine(CallEngine):
    """An engine that calls a training function.

    Trials never run in threads beside each other, since all draw from the process's global generators.

    Args:
        function: the function's import string.
        is_isolated: whether each trial runs in its own process.

    The other arguments are those of `CallEngine`.
    """

    function: str
    is_isolated: bool = False

    name = "function"
    task = TASK
    own_names = OWN_NAMES

    @property
    def called(self) -> str:
        """Import string of the function."""
        return self.function

    def prepare(self, cell: Cell) -> None:
        """Unpack the code and import the function, to find errors before a trial begins.

        Raises:
            InputError: if the code can't be unpacked, a package has another version, or the function can't be imported
                or isn't marked by `study.seeded`.
            OSError: if the copy of the code can't be written.
        """
        self._load()

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Start a pack, or resume it from a checkpoint of the same trials; set the threads of torch in this process.

        Args:
            pack: trials of equal `pack_key`.
            device: ``cpu`` or ``cuda``.
            checkpoint: the checkpoint to resume from; None to start.

        Raises:
            InputError, OSError: as `prepare` does.
            ValueError: if the checkpoint is of other trials or of another engine.
        """
        folder, function = self._load()
        self._limit_threads()
        begin = partial(self._begin_here, function)
        if self.is_isolated:
            begin = partial(self._begin_isolated, partial(load_copied, str(folder.path or ""), self.function))
        return CallPack(self, pack, device, begin, checkpoint, code=folder.path, activate=folder.activate)

    def rehearse(self, call: CallTrial, scratch: Path) -> TrialCall:
        """Return a call in its own process, without a time limit, to find errors at a trial's start.

        The call's first slice starts the process, which creates the file `CALLED` in `scratch` once it has imported the
        function.

        Raises:
            InputError: if the code can't be unpacked, or a package has another version.
            OSError: if the copy of the code can't be written.
        """
        path = str(self.code.folder().path or "")
        load = partial(load_announced, path, self.function, str(scratch / CALLED))
        return IsolatedTraining(load, call, limits=replace(self.limits, time_limit_s=None))

    def _begin_here(
        self,
        function: Callable[..., Any],
        call: CallTrial,
        checkpoint: Arrays | None,
        folder: Path | None,
        output: TrialOutput | None,
    ) -> TrialCall:
        limit_s = self.limits.time_limit_s
        return FunctionTraining(
            function, call, time_limit_s=limit_s, checkpoint=checkpoint, folder=folder, output=output
        )

    def _begin_isolated(
        self,
        load: Callable[..., Any],
        call: CallTrial,
        checkpoint: Arrays | None,
        folder: Path | None,
        output: TrialOutput | None,
    ) -> TrialCall:
        return IsolatedTraining(load, call, limits=self.limits, checkpoint=checkpoint, folder=folder, output=output)

    def _load(self) -> tuple[CodeFolder, Callable[..., Any]]:
        folder = self.code.folder()
        function: Callable[..., Any] = folder.load(parse_import_string(self.function))
        return folder, function

    def _limit_threads(self) -> None:
        """Set torch's number of threads to `cpus`, or 1, now or for its import, since sums depend on it."""
        threads = self.limits.cpus or 1
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)
        else:
            os.environ["OMP_NUM_THREADS"] = str(threads)
