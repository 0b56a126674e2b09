"""The interface of engines; one contract test (`tests/study/engine`) runs over all of them.

An engine trains one pack. It knows no disk, no network and no Ray: it is pulled, a slice of time at a time, and
hands out records. A faster engine implements this interface, and changes nothing else.
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
    """One pack being trained.

    Attributes:
        notices: sentences for the user that `take_notices` hasn't returned yet.
    """

    notices: Sequence[str] = ()

    def take_notices(self) -> Sequence[str]:
        """Return the sentences for the user since the last call."""
        taken, self.notices = self.notices, ()
        return taken

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether every update has been made."""

    @abstractmethod
    def advance(self, for_s: float) -> Progress:
        """Train for about that many seconds, at least one update, and say how far it is.

        A slice ends after any iteration; where it ends changes no bit of any result.
        """

    @abstractmethod
    def checkpoint(self) -> Checkpoint:
        """Copy out everything needed to go on bit for bit."""

    @abstractmethod
    def finish(self) -> tuple[list[Result], list[Curve], list[Weights]]:
        """Collect each trial's result, curve and weights, in the pack's order; only when `done`."""

    def close(self) -> None:  # noqa: B027  # most engines have nothing that would go on
        """End what would go on by itself; the last call, whether the pack is done or not."""


def latest_by_cell(trials: Sequence[Trial], values: Sequence[float | None]) -> dict[str, tuple[float, int]]:
    """Return by cell the mean of trials' latest values and the number of these; NaN and None don't count.

    Args:
        trials: the trials.
        values: the latest value of each.
    """
    of_cells: dict[str, list[float]] = {}
    for trial, value in zip(trials, values, strict=True):
        if value is not None and math.isfinite(value):
            of_cells.setdefault(trial.cell.id, []).append(value)
    return {cell: (math.fsum(own) / len(own), len(own)) for cell, own in of_cells.items()}


class TrialFolders(Protocol):
    """Folders of trials, for engines whose trials write files."""

    def folder(self, trial_id: str) -> Path:
        """Return the path of a trial's folder, which needn't exist."""

    def log(self, trial_id: str) -> Path:
        """Return the path of a trial's log."""

    def begin(self, trial_id: str) -> None:
        """Empty the folder of a trial that begins anew."""

    def end(self, trial_id: str, error: str = "") -> Sequence[str]:
        """Keep what is to be kept of a trial that has ended; return sentences for the user."""


class Engine(ABC):
    """What trains a pack.

    A trial's result must not depend on its pack, its place there, where slices end, or a resume; NaN in one
    trial must touch no other; what a trial sees must be the bits of `study.stream.stream`.

    Attributes:
        name: under which a package offers it.
        devices: of ``cpu`` and ``cuda``, those it trains on.
        has_files: whether its trials may write files; then it has `with_folders`.
        backends: names that its results and checkpoints bear where something else than usual computes, with bits of
            its own.
    """

    name: str
    devices: tuple[str, ...]
    has_files: bool = False
    backends: tuple[str, ...] = ()

    def with_folders(self, folders: TrialFolders, *, is_shared: bool) -> Engine:
        """Return the engine with folders for the files of its trials.

        Args:
            folders: the folders.
            is_shared: whether this process has output of its own beside that of trials.
        """
        return self

    def prepare(self, cell: Cell) -> None:
        """Do what is done once on a machine, such as compiling, by training a trial of the cell for a moment."""
        self.start(Pack((Trial(cell, 0),)), device="cpu").advance(0.0)

    def is_compiled(self, cell: Cell) -> bool | None:
        """Tell whether `prepare` finds on disk what it would compile; None if that isn't known. Here, it does."""
        return True

    @abstractmethod
    def refuses(self, cell: Cell) -> str | None:
        """Say why this engine can't train the cell, or None if it can."""

    def pack_key(self, cell: Cell) -> tuple[object, ...]:
        """Return what must be equal among the trials of a pack: here, all that tensors' shapes depend on."""
        return shape_key(cell)

    @abstractmethod
    def memory_mb(self, pack: Pack) -> float:
        """Estimate the memory the pack needs on its device, in MiB."""

    def trials_at_once(self, cell: Cell) -> int | None:
        """Count the trials of a cell that this machine's device trains side by side; None if packs may be any size."""
        return None

    def goes_on_from(self, checkpoint: Checkpoint, device: str) -> bool:
        """Tell whether a pack goes on from a checkpoint on a device, or begins anew: here, if it is this engine's."""
        return checkpoint.engine in (self.name, *self.backends)

    @abstractmethod
    def start(self, pack: Pack, *, device: str, checkpoint: Checkpoint | None = None) -> Training:
        """Begin a pack, or go on from a checkpoint of these very trials.

        Args:
            pack: trials of equal `pack_key`.
            device: ``cpu`` or ``cuda``.
            checkpoint: taken by this engine of the same trials in the same order.

        Raises:
            ValueError: if the checkpoint is of other trials or of another engine.
            DeviceError: if the device isn't there.
        """
