"""Reports of a library's steps to a trial, each step once.

A library resumes from its own checkpoint, which may be older or newer than the last step stored by the study. So each
report is first written to a file in the trial's folder. A resumed trial reports the steps of that file that the study
hasn't stored, and skips the steps that the library repeats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from study.interface.function.trial import Trial

FILE = "reports.jsonl"
"""Name of the file of reports in the trial's folder."""


class Reports:
    """Reports of a library's steps to a trial.

    Reports from before an interruption are passed on at once.

    Args:
        trial: the trial.
        names: the study's names by the library's names, where they differ.

    Example:
        >>> from study.interface.function import FunctionCall
        >>> def train(seed, trial):
        ...     reports = Reports(trial, {"val/acc": "accuracy"})
        ...     is_last = reports.add(1, {"val/acc": 0.5, "step": 7, "note": "skipped"})
        >>> FunctionCall(train, seed=0, values={}, metrics={}).next_step()
        Step(step=1, metrics={}, state=None, undeclared={'accuracy': 0.5, 'step_': 7.0})
    """

    def __init__(self, trial: Trial, names: Mapping[str, str] | None = None) -> None:
        self._trial = trial
        self._names = {"step": "step_", "state": "state_"} | dict(names or {})
        self._file = trial.folder / FILE
        if self._file.exists():
            for line in self._file.read_text("utf-8").splitlines():
                with suppress(ValueError):  # an empty line, or one cut off by a kill
                    self._hand_over(*json.loads(line))

    def add(self, step: int, values: Mapping[str, Any]) -> bool:
        """Report and save a step with the numbers in `values`, unless it or a later one was reported before.

        The report is first written to the file of reports. Once the trial should stop, it is only written there. The
        call doesn't return if the report ends the trial, as for `Trial.report`.

        Args:
            step: the step, > 0.
            values: values by the library's names; those that `float` can't convert are skipped.

        Returns:
            True if training should stop.

        Raises:
            RuntimeError: if the training function yields its steps, or another thread calls this method.
            OSError: if the file of reports can't be written.
        """
        if step > (self._trial.last_step or 0):
            numbers = dict(self._numbers(values))
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"\n{json.dumps([step, numbers])}\n")
            self._hand_over(step, numbers)
        return self._trial.should_stop

    def _hand_over(self, step: int, numbers: Mapping[str, float]) -> None:
        if step > (self._trial.last_step or 0) and not self._trial.should_stop:
            self._trial.report(step, numbers)
            self._trial.save(step)  # without a state, an interrupted trial would start again

    def _numbers(self, values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        for name, value in values.items():
            with suppress(TypeError, ValueError, OverflowError, RuntimeError):  # a string, an array, a huge integer
                yield self._names.get(name, name), float(value)
