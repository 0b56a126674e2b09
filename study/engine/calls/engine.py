"""The base class of engines that call user code, one trial after another."""

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
"""Name of the file that a rehearsed trial creates once its code is loaded."""

Begin = Callable[[CallTrial, Arrays | None, Path | None, TrialOutput | None], TrialCall]
"""Starts the call of a trial, given its checkpoint, folder and log, each of which may be None."""


@dataclass(frozen=True, kw_only=True)
class CallEngine(Engine):
    """An engine that calls user code, one trial of a pack after another; a failed trial doesn't affect the others.

    It is data, so that it can be sent to workers, which run its copy of the code.

    Args:
        code: the user's code.
        metrics: the metrics that trials report.
        criterion: bounds that the metrics of a solved trial meet; empty without a success criterion.
        limits: resource limits of a trial.
        folders: folders for the files of trials; None to keep no files.
        is_shared: whether this process also has output of its own.
        pruning: the rule that stops trials early; None to stop none.
        rungs: values of trials at the steps where they are compared; required with `pruning`.

    Attributes:
        task: the task of its cells.
        own_names: names of its cells' values that aren't hyperparameters.
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
        """Name of the called function or program; the model of its cells."""

    @abstractmethod
    def rehearse(self, call: CallTrial, scratch: Path) -> TrialCall:
        """Return a call in its own process, without a time limit, to find errors at a trial's start.

        The call's first slice starts the process.

        Args:
            call: the arguments of the call.
            scratch: an empty folder. The file `CALLED` appears there once the code is imported; at once for a program.

        Raises:
            InputError: if the code can't be unpacked, or a package has another version.
            OSError: if the copy of the code can't be written.
        """

    def with_folders(self, folders: TrialFolders, *, is_shared: bool) -> Self:
        """Return the engine with folders for its trials' files."""
        return replace(self, folders=folders, is_shared=is_shared)

    def with_rungs(self, rungs: Rungs) -> Self:
        """Return the engine with the given `rungs`, the values by which `pruning` compares trials."""
        return replace(self, rungs=rungs)

    def refuses(self, cell: Cell) -> str | None:
        """Return the reason that this engine can't train the cell; None if it can."""
        if (cell.task, cell.model) == (self.task, self.called):
            return None
        return f"it calls {self.called}, and nothing else"

    def memory_mb(self, pack: Pack) -> float:
        """Return a trial's memory limit, in MiB; 0 without a limit."""
        return (self.limits.memory_gb or 0.0) * _MIB_PER_GIB

    def call_of(self, trial: Trial) -> CallTrial:
        """Return the arguments of a trial's call.

        `is_stopped_at` is None unless the engine has `pruning` and `rungs`, and `pruning` applies to the seed.
        `iterations` is None if the cell's is 0.
        """
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
        """Return a cell's hyperparameters by name."""
        return {name: value for name, value in cell.values.items() if name not in self.own_names}
