"""A short run of the first trial of a function or program, to find errors before the study starts."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from study.engine.calls import CallEngine, TrialCall
from study.engine.calls.engine import CALLED
from study.errors import InputError
from study.records import Trial
from study.summaries.reasons import failure_reason
from study.words import format_value, title

_CALL_S = 2.0
_IMPORT_S = 60.0
_SLICE_S = 0.05
_UNKNOWN = "the time per trial isn't known before the first one has ended"


def try_first_trial(engine: CallEngine, trial: Trial) -> list[str]:
    """Run a trial of a function or program until its first step, for at most two seconds.

    The trial runs in a process of its own. Importing its code may take another minute.

    Args:
        engine: the study's engine.
        trial: the trial.

    Returns:
        One or two sentences that describe the outcome.

    Raises:
        InputError: if the trial fails, with its traceback in the message, if there is one; or if the code can't be
            unpacked.
        OSError: if the cache of code can't be written.
    """
    began_s, call_s = time.monotonic(), None
    with tempfile.TemporaryDirectory(prefix="study-plan-") as scratch:
        sign = Path(scratch, CALLED)
        training = engine.rehearse(engine.call_of(trial), Path(scratch))
        try:
            while True:
                progress = training.advance(_SLICE_S)
                now_s = time.monotonic()
                if call_s is None and sign.exists():
                    call_s = now_s
                limit_s = began_s + _IMPORT_S if call_s is None else call_s + _CALL_S
                if progress.is_done or progress.step is not None or now_s > limit_s:
                    break
        finally:
            training.close()
    if progress.is_done and (error := training.finish()).error is not None:
        raise InputError(_failure(engine, trial, f"{error.details}\n{error.error}"))
    return _sentences(training, has_step=progress.step is not None, was_called=call_s is not None)


def trial_values(engine: CallEngine, trial: Trial) -> str:
    """Format a trial's hyperparameters and seed for readers."""
    values = [f"{title(name)} {format_value(name, value)}" for name, value in engine.values_of(trial.cell).items()]
    return ", ".join([*values, f"seed {trial.seed}"])


def _failure(engine: CallEngine, trial: Trial, error: str) -> str:
    folder = engine.code.folder().path
    reason = failure_reason(error if folder is None else error.replace(f"{folder}/", ""))
    head = f"{engine.called} fails in the first trial ({trial_values(engine, trial)}): {reason.text}"
    end = "nothing was started; fix the code or the study file, or skip this call with --quick"
    return "\n".join(filter(None, (head, reason.traceback, end)))


def _sentences(training: TrialCall, *, has_step: bool, was_called: bool) -> list[str]:
    if has_step and not training.reports_steps:
        return ["the first trial was tried: it ended without an error"]
    if has_step:
        return ["the first trial was tried up to its first step: no error", _UNKNOWN]
    if was_called:
        return [f"the first trial was tried for {_CALL_S:g} s: no error, and no step so far", _UNKNOWN]
    return [f"the first trial wasn't tried: importing its code takes more than {_IMPORT_S:g} s", _UNKNOWN]
