"""A pack of trials of a training function: one call after another, with checkpoints between them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from study.engine.base import Training, TrialFolders
from study.engine.function.base import TrialCall
from study.engine.function.isolated import IsolatedTraining, Limits
from study.engine.function.output import TrialOutput
from study.engine.function.training import FunctionTraining
from study.engine.function.trial import FunctionRecord, FunctionTrial
from study.interface.criterion import Bound, first_success, in_words, is_success
from study.interface.declarations import Metric
from study.interface.function_family import OWN_NAMES
from study.records import Cell, Checkpoint, Curve, Outcome, Pack, Progress, Result, Trial, Weights
from study.source import CodeFolder
from study.words import count_of

_RECORD, _CALL = "record/", "call/"
_CURVES = ("curves", "undeclared")
_told: set[str] = set()
"""Functions whose threads this process has warned of."""


@dataclass(frozen=True, kw_only=True)
class Calls:
    """What the calls of a study have in common.

    Args:
        function: the function's import string.
        metrics: what the function reports.
        criterion: what the metrics of a solved trial meet; empty if nothing says what success is.
        limits: what a trial may use.
    """

    function: str
    metrics: Mapping[str, Metric]
    criterion: Mapping[str, Bound] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    name = "function"

    def values_of(self, cell: Cell) -> dict[str, Any]:
        """Return a cell's values that are arguments of the function."""
        return {name: value for name, value in cell.values.items() if name not in OWN_NAMES}


class FunctionPack(Training):
    """Trials of a function, called one after another.

    Args:
        calls: what the calls have in common.
        pack: the trials.
        device: ``cpu`` or ``cuda``.
        function: what is called.
        folder: the copy of its code, whose modules Python imports while it runs.
        load: loads the function in a process of its own; None to call it in this one.
        checkpoint: to go on from, or None.
        folders: folders for the files of trials; None if nothing is kept.
        is_shared: whether this process has output of its own beside that of trials.

    Raises:
        ValueError: if the checkpoint is of other trials or of another engine.
    """

    def __init__(
        self,
        calls: Calls,
        pack: Pack,
        device: str,
        function: Callable[..., Any],
        folder: CodeFolder,
        load: Callable[..., Any] | None,
        checkpoint: Checkpoint | None,
        folders: TrialFolders | None = None,
        *,
        is_shared: bool = True,
    ) -> None:
        self._folders, self._is_shared = folders, is_shared
        self._output: TrialOutput | None = None
        self._calls, self._pack, self._device = calls, pack, device
        self._function, self._folder, self._load = function, folder, load
        self._records: list[FunctionRecord] = []
        self._call: TrialCall | None = None
        self._call_checkpoint: Mapping[str, npt.NDArray[Any]] | None = None
        self._step = 0
        if checkpoint is not None:
            self._resume(checkpoint)

    def _resume(self, checkpoint: Checkpoint) -> None:
        if checkpoint.engine != self._calls.name:
            raise ValueError(f"checkpoint.engine must be {self._calls.name!r}, but got {checkpoint.engine!r}")
        if checkpoint.trial_ids != tuple(trial.id for trial in self._pack.trials):
            raise ValueError(
                f"the checkpoint of pack {checkpoint.pack_id} is of other trials than pack {self._pack.id}"
            )
        arrays = checkpoint.arrays
        while (record := arrays.get(f"{_RECORD}{len(self._records)}")) is not None:
            self._records.append(_record_of(record))
        call = {name.removeprefix(_CALL): array for name, array in arrays.items() if name.startswith(_CALL)}
        self._call_checkpoint = call or None

    @property
    def done(self) -> bool:
        """Whether every trial has ended."""
        return len(self._records) == len(self._pack.trials)

    def advance(self, for_s: float) -> Progress:
        """Go on for about that many seconds, at least one step of a trial."""
        self._folder.activate()
        until = perf_counter() + for_s
        while not self.done:
            if self._call is None:
                self._call = self._begin(self._pack.trials[len(self._records)])
            progress = self._call.advance(max(0.0, until - perf_counter()))
            self._step = progress.step or 0
            if progress.is_done:
                self._end(self._pack.trials[len(self._records)], self._call.finish())
                self._tell_threads(self._call.left_threads)
                self._tell_undeclared(self._records[-1].undeclared)
                self._call, self._call_checkpoint, self._step = None, None, 0
            if perf_counter() >= until:
                break
        return self._progress()

    def _tell_threads(self, names: Sequence[str]) -> None:
        """Warn of threads that a trial has left, once for each function in a process."""
        function = self._calls.function
        if not names or function in _told:
            return
        _told.add(function)
        seed = self._pack.trials[len(self._records) - 1].seed
        self.notices = [
            *self.notices,
            f"{function} left {count_of(len(names), 'thread')} running after seed {seed}: {', '.join(names)}. Such "
            "threads run beside later trials: end them in the function, or set isolation: process",
        ]

    def _end(self, trial: Trial, record: FunctionRecord) -> None:
        self._records.append(record)
        if self._output is not None:
            self._output.close()
        if self._folders is not None:
            error = "" if record.error is None else self._error(record.error, record.details)
            self.notices = [*self.notices, *self._folders.end(trial.id, error)]

    def _tell_undeclared(self, names: Collection[str]) -> None:
        if names:
            self.notices = [
                *self.notices,
                f"numbers that metrics doesn't declare are kept in curves and MLflow only: {', '.join(sorted(names))}",
            ]

    def _begin(self, trial: Trial) -> TrialCall:
        calls = self._calls
        call = FunctionTrial(
            seed=trial.seed,
            values=calls.values_of(trial.cell),
            metrics=calls.metrics,
            iterations=trial.cell.iterations or None,
        )
        folder = self._open_folder(trial)
        if self._load is not None:
            return IsolatedTraining(
                self._load,
                call,
                limits=calls.limits,
                checkpoint=self._call_checkpoint,
                folder=folder,
                output=self._output,
            )
        return FunctionTraining(
            self._function,
            call,
            time_limit_s=calls.limits.time_limit_s,
            checkpoint=self._call_checkpoint,
            folder=folder,
            output=self._output,
        )

    def _open_folder(self, trial: Trial) -> Path | None:
        """Return the path of a trial's folder, and open its log; the folder of a trial that begins anew is empty."""
        if self._folders is None:
            return None
        if self._call_checkpoint is None:
            self._folders.begin(trial.id)
        self._output = TrialOutput(self._folders.log(trial.id), is_shared=self._is_shared)
        return self._folders.folder(trial.id)

    def _progress(self) -> Progress:
        trials = self._pack.trials
        each = trials[0].cell.iterations + 1
        made = each * len(self._records) + min(self._step, each - 1)
        outcomes = [self._outcome(record) for record in self._records]
        return Progress(
            pack_id=self._pack.id,
            iteration=made // len(trials),
            iterations=each,
            trials=len(trials),
            solved=outcomes.count(Outcome.SOLVED),
            diverged=outcomes.count(Outcome.DIVERGED),
        )

    def checkpoint(self) -> Checkpoint:
        """Copy out the records of the trials that have ended, and the state of the one that runs, if it gave one."""
        arrays = {f"{_RECORD}{i}": _array_of(record) for i, record in enumerate(self._records)}
        call = self._call_checkpoint if self._call is None else self._call.checkpoint()
        arrays |= {_CALL + name: array for name, array in (call or {}).items()}
        return Checkpoint(
            pack_id=self._pack.id,
            trial_ids=tuple(trial.id for trial in self._pack.trials),
            iteration=self._progress().iteration,
            arrays=arrays,
            training_s=math.fsum(record.training_s for record in self._records),
            engine=self._calls.name,
        )

    def finish(self) -> tuple[list[Result], list[Curve], list[Weights]]:
        """Collect each trial's result, and the curves of those that reported steps; weights are the function's own."""
        if not self.done:
            raise ValueError(f"pack {self._pack.id} must be done, but {len(self._records)} of its trials are")
        ended = list(zip(self._pack.trials, self._records, strict=True))
        curves = [
            Curve(trial.id, one.steps, {**(one.curves if one.reports_steps else {}), **one.undeclared})
            for trial, one in ended
            if one.reports_steps or one.undeclared
        ]
        return [self._result(trial, one) for trial, one in ended], curves, []

    def close(self) -> None:
        """End the trial that runs."""
        if self._call is not None:
            self._call.close()
        if self._output is not None:
            self._output.close()

    def _outcome(self, record: FunctionRecord) -> Outcome:
        return outcome_of(record, self._calls.criterion)

    def _result(self, trial: Trial, record: FunctionRecord) -> Result:
        outcome, criterion = self._outcome(record), self._calls.criterion
        solved_at = None
        if outcome is Outcome.SOLVED and record.reports_steps:
            solved_at = first_success(record.steps, record.curves, criterion)
        return Result(
            trial=trial,
            outcome=outcome,
            criterion=in_words(criterion) or None,
            best_iteration=record.best_step if record.reports_steps else None,
            metrics=record.metrics or {},
            solved_at_iteration=solved_at,
            iterations=record.last_step or 0,
            training_s=record.training_s,
            engine=self._calls.name,
            device=self._device,
            error=None if record.error is None else self._error(record.error, record.details),
        )

    def _error(self, error: str, details: str) -> str:
        """Return traceback and message, in which the files of the copy are named as the user's own."""
        return f"{details}\n{error}".strip().replace(f"{self._folder.path}{os.sep}", "")


def outcome_of(record: FunctionRecord, criterion: Mapping[str, Bound]) -> Outcome:
    """Say how a trial ended.

    Args:
        record: what came of it.
        criterion: what the metrics of a solved trial meet; empty if nothing says what success is.
    """
    if record.error is not None:
        return Outcome.FAILED
    if record.has_diverged or record.metrics is None:
        return Outcome.DIVERGED
    if not criterion:
        return Outcome.FINISHED
    return Outcome.SOLVED if is_success(record.metrics, criterion) else Outcome.UNSOLVED


def _array_of(record: FunctionRecord) -> npt.NDArray[np.uint8]:
    """Write a record as bytes of JSON, which keeps every bit of its numbers, NaN and infinity among them."""
    content = vars(record) | {
        "steps": record.steps.tolist(),
        **{name: {key: c.tolist() for key, c in getattr(record, name).items()} for name in _CURVES},
    }
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def _record_of(array: npt.NDArray[np.uint8]) -> FunctionRecord:
    content = json.loads(array.tobytes())
    content["steps"] = np.array(content["steps"], np.int64)
    for name in _CURVES:  # checkpoints of earlier versions have no undeclared numbers
        content[name] = {key: np.array(curve, np.float64) for key, curve in content.get(name, {}).items()}
    return FunctionRecord(**content)
