"""The engine that runs a program, one trial of a pack after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from study.engine.base import Training
from study.engine.calls import CallEngine, CallTrial, TrialCall, TrialOutput
from study.engine.calls.engine import CALLED
from study.engine.calls.pack import CallPack
from study.engine.calls.trial import Arrays
from study.engine.program.command import command_of
from study.engine.program.training import ProgramTraining
from study.interface.program import Program
from study.interface.program_family import OWN_NAMES, TASK
from study.records import Cell, Checkpoint, Pack


@dataclass(frozen=True, kw_only=True)
class ProgramEngine(CallEngine):
    """An engine that runs a program for each trial, in its own process.

    Args:
        program_name: short name of the program, which is the model of its cells.
        program: the program.
        files: the names of its code's files.

    The other arguments are those of `CallEngine`.
    """

    program_name: str
    program: Program
    files: Sequence[str] = ()

    name = "program"
    task = TASK
    own_names = OWN_NAMES

    @property
    def called(self) -> str:
        """Short name of the program."""
        return self.program_name

    def prepare(self, cell: Cell) -> None:
        """Unpack the code, to find errors before a trial begins.

        Raises:
            InputError: if the code can't be unpacked, or a required package isn't installed in its version.
            OSError: if the copy of the code can't be written.
        """
        self.code.folder()

    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Start a pack, or resume it from a checkpoint of the same trials.

        Args:
            pack: trials of equal `pack_key`.
            device: ``cpu`` or ``cuda``.
            checkpoint: the checkpoint to resume from; None to start.

        Raises:
            InputError, OSError: as `prepare` does.
            ValueError: if the checkpoint is of other trials or of another engine.
        """
        code = self.code.folder().path
        return CallPack(self, pack, device, partial(self._begin, code), checkpoint, code=code)

    def command(self, call: CallTrial, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Return the words and the environment of a trial in the given folder, and prepare its files (`command_of`).

        Raises:
            InputError: if the code can't be unpacked, or a required package isn't installed in its version.
            KeyError, TypeError: as `command_of` does.
            OSError: if the copy of the code can't be written, or as `command_of` does.
        """
        code = self.code.folder().path
        return command_of(self.program, call, folder, code=code, files=self.files, limits=self.limits)

    def rehearse(self, call: CallTrial, scratch: Path) -> TrialCall:
        """Return a call in its own process, without a time limit, to find errors at a trial's start.

        The call's first slice starts the process. Its folder and log are in the folder `scratch`, in which the file
        `CALLED` is created at once.

        Raises:
            InputError, OSError: as `prepare` does; OSError also if `scratch` can't be written.
        """
        (scratch / CALLED).touch()
        limits, output = replace(self.limits, time_limit_s=None), TrialOutput(scratch / "log.txt", is_shared=False)
        return replace(self, limits=limits)._begin(self.code.folder().path, call, None, scratch / "trial", output)

    def _begin(
        self,
        code: Path | None,
        call: CallTrial,
        checkpoint: Arrays | None,
        folder: Path | None,
        output: TrialOutput | None,
    ) -> TrialCall:
        """Return the call of a trial, whose first slice starts the program; a `Begin` once `code` is given."""
        return ProgramTraining(
            self.program,
            call,
            code=code,
            files=self.files,
            limits=self.limits,
            checkpoint=checkpoint,
            folder=folder,
            output=output,
        )
