"""One trial in the foreground, with its output on the terminal and a debugger on errors."""

from __future__ import annotations

import os
import pdb
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from study.console import Console
from study.driver.first_call import trial_values
from study.driver.own_engine import own_engine
from study.engine.calls import CallEngine
from study.engine.function import FunctionEngine
from study.engine.program import ProgramEngine
from study.errors import InputError
from study.interface.function import FunctionCall, FunctionError, Step
from study.plan.plan import Plan
from study.records import Trial
from study.results.trials import id_beginning
from study.source import parse_import_string
from study.words import join_and, measure


def debug_trial(plan: Plan, trial_id: str | None, console: Console) -> bool:
    """Run one trial of a training function or a program in the foreground, and store nothing.

    A training function is called in this process: `breakpoint()` works, and on a terminal a debugger opens where it
    raises an exception. A program shares the terminal and runs in a temporary folder; its results aren't read.

    Args:
        plan: the study's plan.
        trial_id: the trial's id or its beginning; None for the plan's first trial.
        console: where progress and the error are printed.

    Returns:
        True if the function ended without an error and made valid reports, or the program's exit code is 0.

    Raises:
        InputError: if the study trains models on a task or was read without its code, the code can't be unpacked or
            imported, the program can't be run, or the id matches no trial or several.
        OSError: if the cache of code can't be written.
    """
    engine = own_engine(plan.spec)
    if not isinstance(engine, CallEngine):
        raise InputError("--debug needs a training function or a program, but this study names a task and models")
    trial = _trial_named(plan, trial_id)
    console.print(f"trial {trial.id}: {trial_values(engine, trial)}; nothing is stored")
    if isinstance(engine, ProgramEngine):
        return _run_program(engine, trial, console)
    assert isinstance(engine, FunctionEngine)
    return _call_function(engine, trial, console)


def _run_program(engine: ProgramEngine, trial: Trial, console: Console) -> bool:
    """Run a trial's program in a temporary folder, on the terminal; return True if its exit code is 0.

    Raise InputError if it can't be started.
    """
    with tempfile.TemporaryDirectory(prefix="study-debug-", ignore_cleanup_errors=True) as folder:
        words, environment = engine.command(engine.call_of(trial), Path(folder))
        console.print(f"in {folder}: {shlex.join(words)}", soft_wrap=True, highlight=False)
        try:
            code = subprocess.run(words, cwd=folder, env=environment, check=False).returncode
        except OSError as error:
            raise InputError(f"{words[0]} can't be run: {error.strerror}") from None
        written = sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())
    console.print(f"it ended with exit code {code}, and wrote {join_and(written[:20]) or 'no files'}", soft_wrap=True)
    return code == 0


def _call_function(engine: FunctionEngine, trial: Trial, console: Console) -> bool:
    """Call a trial's function and print its steps; if it fails, print the error, open a debugger, and return False.

    The debugger opens only on a terminal. Raise InputError if the function can't be imported.
    """
    folder = engine.code.folder()
    call = FunctionCall(
        folder.load(parse_import_string(engine.function)),
        seed=trial.seed,
        values=engine.values_of(trial.cell),
        metrics=engine.metrics,
        iterations=trial.cell.iterations or None,
        keeps_errors=True,
    )
    try:
        while (step := call.next_step()) is not None:
            if isinstance(step, Step):
                numbers = {**step.metrics, **step.undeclared}
                values_text = ", ".join(f"{name} {measure(number)}" for name, number in numbers.items())
                console.print(f"step {step.step}: {values_text}" if call.reports_steps else values_text)
                if not call.reports_steps:
                    break
    except FunctionError as failure:
        text = (failure.details or str(failure)).rstrip()
        text = text.replace(f"{folder.path}{os.sep}", "")  # users know their files by relative paths
        console.print(text, style="red", highlight=False, soft_wrap=True)
        if failure.error is not None and sys.stdin is not None and sys.stdin.isatty():
            pdb.post_mortem(failure.error.__traceback__)
        return False
    return True


def _trial_named(plan: Plan, text: str | None) -> Trial:
    trials = {trial.id: trial for trial in plan.trials}
    if text is None and trials:
        return next(iter(trials.values()))
    hint = "reports, failures and `study files` show trial ids"
    return trials[id_beginning(trials, text or "", "file", hint)]
