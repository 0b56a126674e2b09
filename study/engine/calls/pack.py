"""A pack of trials that are called one after another, with checkpoints between them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from study.engine.base import Training, latest_by_cell
from study.engine.calls.call import TrialCall
from study.engine.calls.engine import Begin, CallEngine
from study.engine.calls.output import TrialOutput
from study.engine.calls.trial import CallRecord
from study.interface.criterion import Bound, first_success, in_words, is_success
from study.records import Checkpoint, Curve, Outcome, Pack, Progress, Result, Trial, Weights
from study.words import count_of

_RECORD, _CALL = "record/", "call/"
_CURVES = ("curves", "undeclared")
_told: set[str] = set()
"""Functions whose threads this process has warned of."""


class CallPack(Training):
    """Trials that are called one after another.

    Args:
        engine: what calls them.
        pack: the trials.
        device: ``cpu`` or ``cuda``.
        begin: begins the call of a trial.
        checkpoint: to go on from, or None.
        code: path of the folder with the copy of the code; None if all of it is installed.
        activate: is called before each slice.

    Raises:
        ValueError: if the checkpoint is of other trials or of another engine.
    """

    def __init__(
        self,
        engine: CallEngine,
        pack: Pack,
        device: str,
        begin: Begin,
        checkpoint: Checkpoint | None,
        *,
        code: Path | None = None,
        activate: Callable[[], object] = lambda: None,
    ) -> None:
        self._engine, self._pack, self._device = engine, pack, device
        self._begin_call, self._code, self._activate = begin, code, activate
        self._output: TrialOutput | None = None
        self._records: list[CallRecord] = []
        self._call: TrialCall | None = None
        self._call_checkpoint: Mapping[str, npt.NDArray[Any]] | None = None
        self._step = 0
        self._value: float | None = None
        if checkpoint is not None:
            self._resume(checkpoint)

    def _resume(self, checkpoint: Checkpoint) -> None:
        if checkpoint.engine != self._engine.name:
            raise ValueError(f"checkpoint.engine must be {self._engine.name!r}, but got {checkpoint.engine!r}")
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
        self._activate()
        until = perf_counter() + for_s
        while not self.done:
            if self._call is None:
                self._call = self._begin(self._pack.trials[len(self._records)])
            progress = self._call.advance(max(0.0, until - perf_counter()))
            self._step, self._value = progress.step or 0, progress.value
            if progress.is_done:
                self._end(self._pack.trials[len(self._records)], self._call.finish())
                self._tell_threads(self._call.left_threads)
                self._tell_undeclared(self._records[-1].undeclared)
                self._call, self._call_checkpoint, self._step, self._value = None, None, 0, None
            if perf_counter() >= until:
                break
        return self._progress()

    def _tell_threads(self, names: Sequence[str]) -> None:
        """Warn of threads that a trial has left, once for each function in a process."""
        function = self._engine.called
        if not names or function in _told:
            return
        _told.add(function)
        seed = self._pack.trials[len(self._records) - 1].seed
        self.notices = [
            *self.notices,
            f"{function} left {count_of(len(names), 'thread')} running after seed {seed}: {', '.join(names)}. Such "
            "threads run beside later trials: end them in the function, or set isolation: process",
        ]

    def _end(self, trial: Trial, record: CallRecord) -> None:
        self._records.append(record)
        if self._output is not None:
            self._output.close()
        if self._engine.folders is not None:
            error = "" if record.error is None else self._error(record.error, record.details)
            self.notices = [*self.notices, *self._engine.folders.end(trial.id, error)]

    def _tell_undeclared(self, names: Collection[str]) -> None:
        if names:
            self.notices = [
                *self.notices,
                f"numbers that metrics doesn't declare are kept in curves and MLflow only: {', '.join(sorted(names))}",
            ]

    def _begin(self, trial: Trial) -> TrialCall:
        folder = self._open_folder(trial)
        return self._begin_call(self._engine.call_of(trial), self._call_checkpoint, folder, self._output)

    def _open_folder(self, trial: Trial) -> Path | None:
        """Return the path of a trial's folder, and open its log; the folder of a trial that begins anew is empty."""
        folders = self._engine.folders
        if folders is None:
            return None
        if self._call_checkpoint is None:
            folders.begin(trial.id)
        self._output = TrialOutput(folders.log(trial.id), is_shared=self._engine.is_shared)
        return folders.folder(trial.id)

    def _progress(self) -> Progress:
        trials = self._pack.trials
        each = trials[0].cell.iterations + 1
        made = each * len(self._records) + min(self._step, each - 1)
        outcomes = [self._outcome(record) for record in self._records]
        first = next(iter(self._engine.metrics))
        values = [None if one.metrics is None else one.metrics[first] for one in self._records]
        values += [self._value] if self._call is not None else []
        return Progress(
            pack_id=self._pack.id,
            iteration=made // len(trials),
            iterations=each,
            trials=len(trials),
            solved=outcomes.count(Outcome.SOLVED),
            diverged=outcomes.count(Outcome.DIVERGED),
            latest=latest_by_cell(trials[: len(values)], values),
            ended=len(self._records),
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
            engine=self._engine.name,
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

    def _outcome(self, record: CallRecord) -> Outcome:
        return outcome_of(record, self._engine.criterion)

    def _result(self, trial: Trial, record: CallRecord) -> Result:
        outcome, criterion = self._outcome(record), self._engine.criterion
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
            engine=self._engine.name,
            device=self._device,
            error=None if record.error is None else self._error(record.error, record.details),
        )

    def _error(self, error: str, details: str) -> str:
        """Return traceback and message, in which the files of the copy are named as the user's own."""
        return f"{details}\n{error}".strip().replace(f"{self._code}{os.sep}", "")


def outcome_of(record: CallRecord, criterion: Mapping[str, Bound]) -> Outcome:
    """Say how a trial ended.

    Args:
        record: what came of it.
        criterion: what the metrics of a solved trial meet; empty if nothing says what success is.
    """
    if record.error is not None:
        return Outcome.FAILED
    if record.has_diverged or record.metrics is None:
        return Outcome.DIVERGED
    if record.was_stopped:
        return Outcome.STOPPED
    if not criterion:
        return Outcome.FINISHED
    return Outcome.SOLVED if is_success(record.metrics, criterion) else Outcome.UNSOLVED


def _array_of(record: CallRecord) -> npt.NDArray[np.uint8]:
    """Write a record as bytes of JSON, which keeps every bit of its numbers, NaN and infinity among them."""
    content = vars(record) | {
        "steps": record.steps.tolist(),
        **{name: {key: c.tolist() for key, c in getattr(record, name).items()} for name in _CURVES},
    }
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def _record_of(array: npt.NDArray[np.uint8]) -> CallRecord:
    content = json.loads(array.tobytes())
    content["steps"] = np.array(content["steps"], np.int64)
    for name in _CURVES:  # checkpoints of earlier versions have no undeclared numbers
        content[name] = {key: np.array(curve, np.float64) for key, curve in content.get(name, {}).items()}
    return CallRecord(**content)
