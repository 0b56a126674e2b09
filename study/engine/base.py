"""The interface of engines; one contract test (`tests/study/engine`) runs over all of them.

An engine trains one pack, without disk, network or Ray. Its caller advances it by slices of time and takes records from
it. A faster engine implements this interface, and changes nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from study.plan.packs import shape_key
from study.records import Cell, Checkpoint, Curve, Pack, Progress, Result, Trial, Weights


class Training(ABC):
    """The training of one pack.

    Attributes:
        notices: messages for the user that `take_notices` hasn't returned yet.
    """

    notices: Sequence[str] = ()

    def take_notices(self) -> Sequence[str]:
        """Return the messages for the user since the last call, and clear them."""
        taken, self.notices = self.notices, ()
        return taken

    @property
    @abstractmethod
    def done(self) -> bool:
        """True once every trial has been trained to its end, or has ended early."""

    @abstractmethod
    def advance(self, for_s: float) -> Progress:
        """Train for about `for_s` seconds, and return the progress.

        A slice may end after any iteration; where it ends must not change a single bit of a result. Unless the pack is
        done or trains in another process, the slice has at least one update.

        Raises:
            DeviceMemoryError: if the device has no room for the pack.
            StoreError, OSError: if the files or the process of a trial fail.
            Exception: any error of a packed task or model.
        """

    @abstractmethod
    def checkpoint(self) -> Checkpoint:
        """Copy out everything needed to resume bit for bit."""

    @abstractmethod
    def finish(self) -> tuple[list[Result], list[Curve], list[Weights]]:
        """Return each trial's result, curve and weights, in the pack's order; trials may lack a curve or weights.

        Raises:
            ValueError: if it isn't `done`.
        """

    def close(self) -> None:  # noqa: B027  # most engines have no background work
        """End all background work; the last call on a pack, done or not."""


def latest_by_cell(trials: Sequence[Trial], values: Sequence[float | None]) -> dict[str, tuple[float, int]]:
    """Return each cell's mean latest value and its number of values, by cell id.

    None, NaN and infinite values don't count; a cell without other values is left out.

    Args:
        trials: the trials.
        values: the latest value of each trial, in the same order.

    Raises:
        ValueError: if the lengths differ.
    """
    values_by_cell: dict[str, list[float]] = {}
    for trial, value in zip(trials, values, strict=True):
        if value is not None and math.isfinite(value):
            values_by_cell.setdefault(trial.cell.id, []).append(value)
    return {
        cell: (math.fsum(value / len(finite) for value in finite), len(finite))  # their sum may overflow
        for cell, finite in values_by_cell.items()
    }


class TrialFolders(Protocol):
    """Folders of trials that write files."""

    def folder(self, trial_id: str) -> Path:
        """Return the path of a trial's folder; it may not exist yet."""

    def log(self, trial_id: str) -> Path:
        """Return the path of a trial's log."""

    def begin(self, trial_id: str) -> None:
        """Empty the folder of a trial that starts anew.

        Raises:
            StoreError: if it can't be emptied.
        """

    def end(self, trial_id: str, error: str = "") -> Sequence[str]:
        """Keep the selected files of a trial that has ended.

        Args:
            trial_id: the trial's id.
            error: the error of a failed trial; empty if it didn't fail.

        Returns:
            Messages for the user; empty if there are none.

        Raises:
            StoreError: if files can't be removed.
        """


class Engine(ABC):
    """An engine that trains packs.

    A trial's result must not depend on its pack, its place there, the ends of slices, or a resume. NaN in one trial
    must not affect another. A trial's random numbers must have the bits of `study.stream.stream`.

    Attributes:
        name: the name under which a package offers it.
        devices: the devices that it trains on, of ``cpu`` and ``cuda``.
        has_files: whether its trials may write files; it must then implement `with_folders`.
        backends: other engine names in its results and checkpoints, one per backend that rounds differently.
    """

    name: str
    devices: tuple[str, ...]
    has_files: bool = False
    backends: tuple[str, ...] = ()

    def with_folders(self, folders: TrialFolders, *, is_shared: bool) -> Engine:
        """Return the engine with folders for its trials' files; by default, the engine itself.

        Args:
            folders: the folders.
            is_shared: whether this process also has output of its own, as in a terminal.
        """
        return self

    def prepare(self, cell: Cell) -> None:
        """Do one-time work on a machine, such as compiling; by default, train a trial of the cell for a moment.

        Raises:
            InputError: if the user's code can't be loaded, or can't train the cell.
            OSError: if the copy of the user's code can't be written.
            Exception: any error of a packed task or model.
        """
        self.start(Pack((Trial(cell, 0),)), device="cpu").advance(0.0)

    def is_compiled(self, cell: Cell) -> bool | None:
        """Return True if the code that `prepare` compiles is on disk, else False; None if unknown. By default, True."""
        return True

    @abstractmethod
    def refuses(self, cell: Cell) -> str | None:
        """Return the reason that this engine can't train the cell; None if it can."""

    def pack_key(self, cell: Cell) -> tuple[object, ...]:
        """Return the key that all trials of a pack share: by default, everything that tensors' shapes depend on.

        Raises:
            ValueError: if no installed family has the cell's task.
            InputError: if the family can't be imported.
        """
        return shape_key(cell)

    @abstractmethod
    def memory_mb(self, pack: Pack) -> float:
        """Estimate the memory that the pack needs on its device, in MiB.

        Raises:
            InputError: if the user's code can't be loaded, or can't train the cell.
            OSError: if the copy of the user's code can't be written.
            Exception: any error of a packed model.
        """

    def trials_at_once(self, cell: Cell) -> int | None:
        """Return the number of a cell's trials that this machine's GPU trains side by side.

        None (the default) if there is no limit, or it is unknown.

        Raises:
            InputError: if the trials can't be trained there.
            OSError: if the copy of the user's code can't be written.
        """
        return None

    def goes_on_from(self, checkpoint: Checkpoint, device: str) -> bool:
        """Return True if a pack can resume from this checkpoint on a device; by default, if this engine wrote it."""
        return checkpoint.engine in (self.name, *self.backends)

    @abstractmethod
    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Start a pack, or resume it from a checkpoint of the same trials.

        Args:
            pack: trials of equal `pack_key`.
            device: ``cpu`` or ``cuda``.
            checkpoint: a checkpoint by this engine, of the same trials in the same order; None to start.

        Raises:
            ValueError: if the checkpoint is of other trials or of another engine.
            DeviceError: if the device isn't available.
            DeviceMemoryError: if the device has no room for the pack.
            InputError: if the user's code can't be loaded, or can't train the cell.
            OSError: if the copy of the user's code can't be written.
            Exception: any error of a packed task or model.
        """
