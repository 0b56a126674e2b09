"""One trial of a training function in the foreground: its output on the terminal, and a debugger where it fails."""

from __future__ import annotations

import os
import pdb
import sys

from study.console import Console
from study.driver.first_call import trial_values
from study.driver.own_engine import own_engine
from study.engine.function import FunctionEngine
from study.errors import InputError
from study.interface.function import FunctionCall, FunctionError, Step
from study.plan.plan import Plan
from study.records import Trial
from study.results.trials import id_beginning
from study.source import parse_import_string
from study.words import measure


def debug_trial(plan: Plan, trial_id: str | None, console: Console) -> bool:
    """Train one trial of a training function in this process, and store nothing.

    Nothing is caught: `breakpoint()` works, and in a terminal a debugger opens where the trial fails.

    Args:
        plan: the study's plan.
        trial_id: the trial's id, or the first letters of it; None for the plan's first trial.
        console: where its steps are printed.

    Returns:
        Whether it came to its end.

    Raises:
        InputError: if the study isn't one of a training function, or no trial or more than one has that id.
    """
    engine = own_engine(plan.spec)
    if not isinstance(engine, FunctionEngine):
        raise InputError("--debug calls a training function, and this study has none: it names models and a task")
    trial = _trial_named(plan, trial_id)
    console.print(f"trial {trial.id}: {trial_values(engine, trial)}; nothing is stored")
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
                told = ", ".join(f"{name} {measure(number)}" for name, number in numbers.items())
                console.print(f"step {step.step}: {told}" if call.reports_steps else told)
                if not call.reports_steps:
                    break
    except FunctionError as failure:
        text = (failure.details or str(failure)).rstrip()
        text = text.replace(f"{folder.path}{os.sep}", "")  # as the user names files
        console.print(text, style="red", highlight=False, soft_wrap=True)
        if failure.error is not None and sys.stdin is not None and sys.stdin.isatty():
            pdb.post_mortem(failure.error.__traceback__)
        return False
    return True


def _trial_named(plan: Plan, text: str | None) -> Trial:
    trials = {trial.id: trial for trial in plan.trials}
    if text is None and trials:
        return next(iter(trials.values()))
    hint = "reports and failures name ids, and so does `study files`"
    return trials[id_beginning(trials, text or "", "file", hint)]
