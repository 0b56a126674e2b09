"""A trial of a program: one process, whose results are read while it runs."""

from __future__ import annotations

import math
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy.typing as npt

from study.engine.calls import CallProgress, CallTrial, Limits, TrialCall, TrialOutput
from study.engine.calls.guard import GRACE_S
from study.engine.calls.guarded import ending
from study.engine.calls.trial import Arrays
from study.engine.program.command import command_of
from study.engine.program.process import Process, ProgramError
from study.engine.program.results import OutputReader, ResultsError, Steps, reader_of
from study.interface.error_text import shortened, storable
from study.interface.function import Step
from study.interface.program import Program

_POLL_S = 0.2
_AT_ONCE = 2**20
_LONGEST_LINE, _MOST_LINES = 300, 10


class ProgramTraining(TrialCall):
    """A trial of a program that runs from the first slice on and continues between slices.

    The program and everything it has started end with `close`, and with this process, even if this one is killed.

    Args:
        program: the program.
        trial: its seed, hyperparameters and metrics.
        code: the folder with the copy of the program's code; None if it has none.
        files: the names of the code's files.
        limits: resource limits of the trial.
        checkpoint: the arrays that `checkpoint` returned, to resume in the trial's folder; None to start.
        folder: the trial's folder, its working directory; None for a temporary one.
        output: the trial's log; None for one in the temporary folder.

    Raises:
        ValueError: if the checkpoint has other metrics.
    """

    def __init__(
        self,
        program: Program,
        trial: CallTrial,
        *,
        code: Path | None = None,
        files: Sequence[str] = (),
        limits: Limits | None = None,
        checkpoint: Arrays | None = None,
        folder: Path | None = None,
        output: TrialOutput | None = None,
    ) -> None:
        super().__init__(trial, checkpoint, 0.0)
        self._program, self._code, self._files = program, code, files
        self._limits = limits or Limits()
        self._is_resumed = checkpoint is not None
        self._temporary = None if folder is not None else Path(tempfile.mkdtemp(prefix="study-trial-"))
        self._folder = folder or self._temporary or Path()
        self._output = output or TrialOutput(self._folder / "log.txt", is_shared=False)
        self._owns_output = output is None
        self._steps = Steps()
        self._reader = reader_of(program.results, self._folder, self._steps)
        self._before_s, self._started_at_s = self._history.training_s, 0.0
        self._process: Process | None = None
        self._pipe: int | None = None
        self._poll_at_s = 0.0
        self._compared = 0

    @property
    def reports_steps(self) -> bool:
        """True if its results have steps; otherwise they describe the end of training only."""
        return self._steps.are_numbered

    def advance(self, for_s: float) -> CallProgress:
        """Read the program's results for about `for_s` seconds, or until it has ended, and return the progress.

        The first call starts the program. The trial fails if it can't be started, exceeds its time limit, has invalid
        results or no step that counts, ends with an exit code other than 0, or its guard process is killed. It ends
        without an error, whatever its exit code, if it is stopped early or a metric isn't finite.

        Raises:
            KeyError, TypeError: as `command_of` does.
            OSError: if the trial's folder, files or process can't be created, or a folder of results can't be read.
            StoreError: if values at rungs can't be read or stored.
        """
        until_s = time.monotonic() + for_s
        try:
            if self._process is None and not self._done:
                self._start()
            while not self._done:
                self._wait(until_s)
                if time.monotonic() >= until_s:
                    break
        except ProgramError as error:
            self._fail(str(error))
        step = max(self._steps.numbers, default=None)
        return CallProgress(
            step, self._trial.iterations, self._done, self._steps.latest(next(iter(self._trial.metrics)))
        )

    def checkpoint(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return the arrays to resume in the trial's folder; None if the program can't resume.

        Before its start, these are the arrays that it was given, None for a new trial.
        """
        if not self._program.resumes or self._process is None:
            return self._checkpoint
        self._count_time()
        return self._history.arrays({})

    def close(self) -> None:
        """End the program and everything it has started, and remove a temporary folder."""
        self._end_process()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        if self._owns_output:
            self._output.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _start(self) -> None:
        """Start the program, with its output to the log, or through a pipe if results are read from it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        words, environment = command_of(
            self._program,
            self._trial,
            self._folder,
            code=self._code,
            files=self._files,
            limits=self._limits,
            is_resumed=self._is_resumed,
        )
        output = self._output.descriptor
        if isinstance(self._reader, OutputReader):
            self._pipe, output = os.pipe()
        self._started_at_s = time.monotonic()
        try:
            self._process = Process(words, environment, self._folder, output, self._limits.memory_gb)
        finally:
            if self._pipe is not None:
                os.close(output)

    def _wait(self, until_s: float) -> None:
        """Wait for a moment, read new results, and end the trial if the program has ended or must end."""
        assert self._process is not None
        now_s = time.monotonic()
        left_s = min(until_s - now_s, _POLL_S, self._left_s())
        self._process.wait(left_s, *([] if self._pipe is None else [self._pipe]))
        has_ended = self._process.exit_code is not None
        self._copy_output(has_ended=has_ended)
        now_s = time.monotonic()
        if not has_ended and now_s < self._poll_at_s and self._left_s() > 0:
            return
        try:
            self._reader.read(has_ended=has_ended)
        except ResultsError as error:
            has_failed = has_ended and self._process.exit_code != 0  # so its results may be broken
            self._conclude(None if has_failed else str(error))
            return
        self._poll_at_s = time.monotonic() + max(_POLL_S, 20 * (time.monotonic() - now_s))  # a folder may be large
        is_stopped = self._is_stopped()
        if has_ended or self._has_diverged():
            self._conclude(None)
        elif is_stopped:
            self._was_stopped = True
            self._conclude(None)
        elif self._left_s() <= 0:
            self._end_process()
            ignored = f"; it ignored SIGTERM for {GRACE_S:g} s, and was killed"
            was_killed = self._process.exit_code == -signal.SIGKILL
            limit = f"it took longer than its time limit of {self._limits.time_limit_s:g} s"
            self._conclude(limit + ignored if was_killed else limit)

    def _end_process(self) -> None:
        """End the program, and log its remaining output."""
        if self._process is None:
            return
        self._process.terminate()
        with suppress(ProgramError):
            while self._process.exit_code is None:
                self._process.wait(_POLL_S, *([] if self._pipe is None else [self._pipe]))
                self._copy_output(has_ended=False)

    def _left_s(self) -> float:
        limit_s = self._limits.time_limit_s
        if limit_s is None:
            return math.inf
        return limit_s - self._before_s - (time.monotonic() - self._started_at_s)

    def _copy_output(self, *, has_ended: bool) -> None:
        """Copy output from the pipe, if there is one, to the log and the reader: a block, or all if `has_ended`."""
        if self._pipe is None or not isinstance(self._reader, OutputReader):
            return
        os.set_blocking(self._pipe, False)
        with suppress(BlockingIOError):
            while data := os.read(self._pipe, _AT_ONCE):
                self._output.write_bytes(data)
                self._reader.feed(data)
                if not has_ended:
                    return
            if not has_ended:  # it has closed its output, but still runs
                os.close(self._pipe)
                self._pipe = None

    def _is_stopped(self) -> bool:
        """Compare the trial at each new step; return True if it is stopped early at one of them."""
        is_stopped_at = self._trial.is_stopped_at
        if is_stopped_at is None or not self.reports_steps:
            return False
        counted = list(self._counted_steps())
        new, self._compared = counted[self._compared :], len(counted)
        decisions = [is_stopped_at(step, metrics) for step, metrics, _ in new]
        return any(decisions)

    def _has_diverged(self) -> bool:
        latest = list(self._steps.numbers.values())[-2:]
        if all(math.isfinite(step.get(name, 0.0)) for step in latest for name in self._trial.metrics):
            return False
        return not all(math.isfinite(number) for _, metrics, _ in self._counted_steps() for number in metrics.values())

    def _counted_steps(self) -> Iterator[tuple[int, dict[str, float], dict[str, float]]]:
        """Yield the steps so far that count, up to `iterations`, each with its metrics and other numbers."""
        most = self._trial.iterations
        steps = self._steps.complete(list(self._trial.metrics))
        return (step for step in steps if most is None or step[0] <= most)

    def _conclude(self, error: str | None) -> None:
        """End the program and the trial: take the steps that count, and determine the error of a failed one.

        Args:
            error: the error if it is known already; None otherwise.
        """
        assert self._process is not None
        self._end_process()
        self._copy_output(has_ended=True)
        self._count_time()
        is_finite = self._take_steps()
        code = self._process.exit_code or 0
        if error is None and code != 0 and is_finite and not self._was_stopped:
            error = _reason(code, self._output.last_lines(), self._limits.memory_gb)
        elif error is None and self._history.last_step is None:
            error = self._missing_results()
        if error is not None:
            lines = self._output.last_lines()
            self._fail(storable(error), storable("\n".join(_traceback(lines) or lines[-_MOST_LINES:])))
            return
        self._done = True
        self.close()

    def _count_time(self) -> None:
        self._history.training_s = self._before_s + time.monotonic() - self._started_at_s

    def _take_steps(self) -> bool:
        """Add the steps that count to the history, up to the first that isn't finite; return True if all are finite."""
        for step, metrics, others in self._counted_steps():
            self._history.add(Step(step, metrics, undeclared=others))
            if not all(map(math.isfinite, metrics.values())):
                return False
        return True

    def _missing_results(self) -> str:
        """Describe the results that a program without an error lacks."""
        reader, metrics = self._reader, list(self._trial.metrics)
        if not self._steps.numbers:
            return f"it ended with exit code 0, but there are no results in {reader.where}"
        missing = self._steps.missing(metrics)
        if missing:
            there = ", ".join(sorted(set().union(*self._steps.numbers.values()))[:10])
            return f"it ended with exit code 0, but {', '.join(missing)} never appeared in {reader.where}, only {there}"
        first_step = next((step for step, _, _ in self._steps.complete(metrics)), None)
        if first_step is not None:
            return f"its first step is {first_step}, beyond iterations: {self._trial.iterations}"
        first, *others = metrics
        return f"no step in {reader.where} counts: {first} must be reported at or after the first {', '.join(others)}"


def _reason(code: int, lines: Sequence[str], memory_gb: float | None) -> str:
    """Return the reason of a failure from the exit code and, without a traceback, the last line of the log."""
    last = f": {shortened(lines[-1].strip(), _LONGEST_LINE)}" if lines else ", and printed nothing"
    if _traceback(lines):
        last = ""
    return f"it {'ended with' if code >= 0 else 'was ended by'} {ending(code, memory_gb)}{last}"


def _traceback(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of a log from its last Python traceback on; empty if there is none."""
    starts = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    return lines[starts[-1] :] if starts else ()
