"""A pack of trials that are called one after another, with checkpoints."""

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
_warned: set[str] = set()
"""Functions whose leftover threads this process has warned of."""


class CallPack(Training):
    """The training of a pack whose trials are called one after another.

    Args:
        engine: the engine that calls them.
        pack: the trials.
        device: ``cpu`` or ``cuda``.
        begin: starts the call of a trial.
        checkpoint: the checkpoint to resume from, or None.
        code: folder with the copy of the code; None if all of it is installed.
        activate: called before each slice.

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
        """Take the trials' records and arrays from a checkpoint; ValueError if it is of other trials or engines."""
        if checkpoint.engine != self._engine.name:
            raise ValueError(f"checkpoint.engine must be {self._engine.name!r}, but got {checkpoint.engine!r}")
        if checkpoint.trial_ids != tuple(trial.id for trial in self._pack.trials):
            raise ValueError(f"the checkpoint of pack {checkpoint.pack_id} has other trials than pack {self._pack.id}")
        arrays = checkpoint.arrays
        while (record := arrays.get(f"{_RECORD}{len(self._records)}")) is not None:
            self._records.append(_record_of(record))
        call = {name.removeprefix(_CALL): array for name, array in arrays.items() if name.startswith(_CALL)}
        self._call_checkpoint = call or None

    @property
    def done(self) -> bool:
        """True once every trial has ended."""
        return len(self._records) == len(self._pack.trials)

    def advance(self, for_s: float) -> Progress:
        """Train for about `for_s` seconds, and return the progress.

        A function in this process makes at least one step, unless all trials have ended. A program, or a function in a
        process of its own, may make none.

        Raises:
            OSError: if a trial's folder, log or process can't be created.
            StoreError: if a trial's files can't be removed, or values at rungs can't be read or stored.
            InputError: if an installed module that the process has imported has the name of one of the code's modules.
            KeyError, TypeError: as `TrialCall.advance` does.
        """
        self._activate()
        until = perf_counter() + for_s
        while not self.done:
            if self._call is None:
                self._call = self._begin(self._pack.trials[len(self._records)])
            progress = self._call.advance(max(0.0, until - perf_counter()))
            self._step, self._value = progress.step or 0, progress.value
            if progress.is_done:
                self._end(self._pack.trials[len(self._records)], self._call.finish())
                self._warn_of_threads(self._call.left_threads)
                self._note_undeclared(self._records[-1].undeclared)
                self._call, self._call_checkpoint, self._step, self._value = None, None, 0, None
            if perf_counter() >= until:
                break
        return self._progress()

    def _warn_of_threads(self, names: Sequence[str]) -> None:
        """Warn of threads that a trial has left running, once for each function in a process."""
        function = self._engine.called
        if not names or function in _warned:
            return
        _warned.add(function)
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

    def _note_undeclared(self, names: Collection[str]) -> None:
        if names:
            self.notices = [
                *self.notices,
                f"numbers that metrics doesn't declare are kept in curves and MLflow only: {', '.join(sorted(names))}",
            ]

    def _begin(self, trial: Trial) -> TrialCall:
        folder = self._open_folder(trial)
        return self._begin_call(self._engine.call_of(trial), self._call_checkpoint, folder, self._output)

    def _open_folder(self, trial: Trial) -> Path | None:
        """Open a trial's log, and return its folder, emptied if the trial starts anew; None if no files are kept."""
        folders = self._engine.folders
        if folders is None:
            return None
        if self._call_checkpoint is None:
            folders.begin(trial.id)
        self._output = TrialOutput(folders.log(trial.id), is_shared=self._engine.is_shared)
        return folders.folder(trial.id)

    def _progress(self) -> Progress:
        """Return the pack's progress; an ended trial counts as `iterations` + 1 updates, since steps begin at 0."""
        trials = self._pack.trials
        each = trials[0].cell.iterations + 1
        made = each * len(self._records) + min(self._step, each - 1)
        outcomes = [self._outcome(record) for record in self._records]
        first = next(iter(self._engine.metrics))
        values = [None if record.metrics is None else record.metrics[first] for record in self._records]
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
        """Copy out the records of the ended trials, and the saved state of the running one, if it has saved any.

        A state that can't be copied fails its trial.
        """
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
        """Return each trial's result, the curves of trials that report steps or undeclared numbers, and no weights.

        Raises:
            ValueError: if a trial hasn't ended.
        """
        if not self.done:
            raise ValueError(f"pack {self._pack.id} must be done, but {len(self._records)} of its trials are")
        ended = list(zip(self._pack.trials, self._records, strict=True))
        curves = [
            Curve(trial.id, record.steps, {**(record.curves if record.reports_steps else {}), **record.undeclared})
            for trial, record in ended
            if record.reports_steps or record.undeclared
        ]
        return [self._result(trial, record) for trial, record in ended], curves, []

    def close(self) -> None:
        """End the running trial, if there is one, and close its log."""
        if self._call is not None:
            self._call.close()
        if self._output is not None:
            self._output.close()

    def _outcome(self, record: CallRecord) -> Outcome:
        return outcome_of(record, self._engine.criterion)

    def _result(self, trial: Trial, record: CallRecord) -> Result:
        """Return the result of an ended trial."""
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
        """Return traceback and message, with the code's files relative to the root of its copy."""
        return f"{details}\n{error}".strip().replace(f"{self._code}{os.sep}", "")


def outcome_of(record: CallRecord, criterion: Mapping[str, Bound]) -> Outcome:
    """Return a trial's outcome: failed, else diverged, else stopped, else finished, solved or unsolved.

    A trial has diverged if its last step, or every step, has a metric that isn't finite, or if it has no steps. Without
    a criterion, it is finished.

    Args:
        record: the trial's record.
        criterion: bounds that the metrics of a solved trial meet; empty without a success criterion.

    Raises:
        KeyError: if a metric of the criterion is missing.
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
    """Encode a record as JSON bytes; they keep every bit of its numbers, NaN and infinity included."""
    content = vars(record) | {
        "steps": record.steps.tolist(),
        **{name: {key: curve.tolist() for key, curve in getattr(record, name).items()} for name in _CURVES},
    }
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def _record_of(array: npt.NDArray[np.uint8]) -> CallRecord:
    content = json.loads(array.tobytes())
    content["steps"] = np.array(content["steps"], np.int64)
    for name in _CURVES:  # checkpoints of earlier versions have no undeclared numbers
        content[name] = {key: np.array(curve, np.float64) for key, curve in content.get(name, {}).items()}
    return CallRecord(**content)
