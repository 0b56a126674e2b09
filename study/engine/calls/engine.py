"""The engine of trials that are called one after another, each of them a call of the user's own code."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from study.engine.base import Engine, TrialFolders
from study.engine.calls.call import TrialCall
from study.engine.calls.limits import Limits
from study.engine.calls.output import TrialOutput
from study.engine.calls.trial import Arrays, CallTrial
from study.engine.own_code import OwnCode
from study.interface.criterion import Bound
from study.interface.declarations import Metric
from study.interface.pruning import Comparison, Pruning, Rungs
from study.records import Cell, Pack, Trial

_MIB_PER_GIB = 1024

CALLED = "called"
"""The name of the file by which a rehearsed trial says that it is called."""

Begin = Callable[[CallTrial, Arrays | None, Path | None, TrialOutput | None], TrialCall]
"""Begins the call of a trial, given its checkpoint, its folder and its log, or None for each of these."""


@dataclass(frozen=True, kw_only=True)
class CallEngine(Engine):
    """Calls the user's own code, a trial of a pack after another; a trial that fails fails alone.

    It is data, so that it can be sent to workers, which run the copy of the code in it.

    Args:
        code: the code.
        metrics: what trials report.
        criterion: what the metrics of a solved trial meet; empty if nothing says what success is.
        limits: what a trial may use.
        folders: folders for the files of trials; None if nothing is kept.
        is_shared: whether this process has output of its own beside that of trials.
        pruning: when trials are stopped early; None to let all end by themselves.
        rungs: what trials had reached where they are compared; must be there with `pruning`.

    Attributes:
        task: the task of its cells.
        own_names: what its cells have besides hyperparameters.
    """

    code: OwnCode
    metrics: Mapping[str, Metric]
    criterion: Mapping[str, Bound] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    folders: TrialFolders | None = None
    is_shared: bool = True
    pruning: Pruning | None = None
    rungs: Rungs | None = None

    task: ClassVar[str]
    own_names: ClassVar[Collection[str]]
    devices = ("cpu", "cuda")
    has_files = True

    @property
    @abstractmethod
    def called(self) -> str:
        """The name of what is called, which is the model of its cells."""

    @abstractmethod
    def rehearse(self, call: CallTrial, scratch: Path) -> TrialCall:
        """Begin a trial in a process of its own, without a time limit, to find out whether it begins without an error.

        Args:
            call: what it is given.
            scratch: an empty folder. A file `CALLED` appears there once the code is imported.
        """

    def with_folders(self, folders: TrialFolders, *, is_shared: bool) -> Self:
        """Return the engine with folders for the files of its trials."""
        return replace(self, folders=folders, is_shared=is_shared)

    def with_rungs(self, rungs: Rungs) -> Self:
        """Return the engine with what trials had reached where they are compared."""
        return replace(self, rungs=rungs)

    def refuses(self, cell: Cell) -> str | None:
        """Say why this engine can't train the cell, or None if it can."""
        if (cell.task, cell.model) == (self.task, self.called):
            return None
        return f"it calls {self.called}, and nothing else"

    def memory_mb(self, pack: Pack) -> float:
        """Return the memory that a trial may use, in MiB; 0 if that isn't limited."""
        return (self.limits.memory_gb or 0.0) * _MIB_PER_GIB

    def call_of(self, trial: Trial) -> CallTrial:
        """Return what the call of a trial is given."""
        is_stopped_at = None
        if self.pruning is not None and self.rungs is not None and self.pruning.applies_to(trial.seed):
            is_stopped_at = Comparison(trial.id, trial.cell.id, self.pruning, self.rungs, trial.cell.iterations or None)
        return CallTrial(
            seed=trial.seed,
            values=self.values_of(trial.cell),
            metrics=self.metrics,
            iterations=trial.cell.iterations or None,
            is_stopped_at=is_stopped_at,
        )

    def values_of(self, cell: Cell) -> dict[str, Any]:
        """Return a cell's values that are hyperparameters."""
        return {name: value for name, value in cell.values.items() if name not in self.own_names}
