"""A check before training that a training function's results don't depend on the order of trials.

Trials in one process share the state of its modules. So the first two trials of the plan, or their first steps, are
trained in both orders, each in a fork of a new process. A trial's reports when trained first are compared with its
reports after the other trial.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from study.console import Console
from study.driver.progress import waiting
from study.engine.calls import Limits
from study.engine.calls.fresh import FreshCallError, FreshProcess
from study.errors import StoreAwayError, StoreError
from study.interface.function.order import call_in_order, load
from study.interface.function_family import OWN_NAMES
from study.plan.plan import Plan
from study.records import Trial
from study.results.order_note import WARNINGS, OrderNote, read_order_note, write_order_note
from study.source import SourceCode, load_copied
from study.spec import Spec
from study.spec.function_tables import FunctionSpec
from study.store import StudyStore
from study.store.retry import Patience
from study.words import join_and

Report = Mapping[str, Any]
"""A trial's report, as returned by `call_in_order`."""

_TRIAL_S = 2.0  # time limit of a trial
_STEPS_S = 0.5  # time limit of a trial that reports steps
_IMPORT_S = 60.0
_MOST_NAMES = 5


@contextmanager
def checking_order(
    plan: Plan, folder: StudyStore, console: Console, patience: Patience
) -> Iterator[Callable[[], None]]:
    """Check before training that the first two trials of a function give the same results in either order.

    The block begins with an import of the function in another process, which ends with the block. The verdict is stored
    in the study's folder, and holds until the code, the versions of its distributions or the two trials change.
    Nothing is checked if the study isn't of a function or was read without its code, has fewer than two trials, or they
    don't share a process. If a verdict is stored, only its sentence is printed again.

    Args:
        plan: the study's plan.
        folder: the study's part of the store.
        console: where the verdict's sentence is printed, unless the results are the same.
        patience: waits for a store that is away.

    Yields:
        A function to call before training, which concludes the check.

    Raises:
        StoreAwayError: if the store is away for longer than `patience` allows.
        StoreError: if the verdict can't be written.
        BusyError: if another driver has taken the study over.
        InputError: if the code can't be unpacked.
        OSError: if the cache of code can't be written.
    """
    spec, trials = plan.spec, _checked_trials(plan)
    if not isinstance(spec, FunctionSpec) or len(trials) < 2:
        yield lambda: None
        return
    key, note = _key(spec, trials), patience(partial(_stored_note, folder))
    if note is not None and note.key == key:
        yield partial(_print_note, note, console)
        return

    with order_check(spec) as conclude:

        def finish_check() -> None:
            with waiting(console, "training two trials in both orders"):
                new_note = OrderNote(key, *conclude(trials))
            patience(partial(write_order_note, new_note, folder))
            _print_note(new_note, console)

        yield finish_check


def explain(spec: Spec, first: Trial, second: Trial) -> str:
    """Train two trials in both orders in another process; return a sentence if results depend on the order.

    Args:
        spec: the study.
        first: the trial that is trained first.
        second: the trial whose result may differ after the first.

    Returns:
        The sentence, also if a trial gives other results when it is repeated. Empty if no difference was found, the
        check failed, the study isn't of a function, or each trial has a process of its own.

    Raises:
        InputError: if the code can't be unpacked.
        OSError: if the cache of code can't be written.
    """
    if not isinstance(spec, FunctionSpec) or spec.isolation is not None:
        return ""
    with order_check(spec) as conclude:
        verdict, sentence = conclude((first, second))
    return sentence if verdict in WARNINGS else ""


@contextmanager
def order_check(spec: FunctionSpec) -> Iterator[Callable[[Sequence[Trial]], tuple[str, str]]]:
    """Begin to import a function in another process; it ends with the block.

    Yields:
        A function that trains two trials there in both orders, and returns the verdict and sentence of an `OrderNote`;
        the verdict is ``unknown`` if the function can't be imported, or the trials can't be trained or take too long.

    Raises:
        InputError: if the code can't be unpacked.
        OSError: if the cache of code can't be written.
    """
    code = spec.source_code
    assert code is not None
    cpus = spec.resources.cpus
    environment = Limits(cpus=cpus, gpus=spec.resources.gpus).environment()
    with FreshProcess(environment=environment, is_quiet=True) as fresh:
        path = str(code.unpacked() or "")
        has_torch = any(b"torch" in content for content in code.files.values())
        fresh.prepare(load, load_copied.__module__, load_copied.__name__, [path, spec.train], cpus, has_torch)

        def conclude(trials: Sequence[Trial]) -> tuple[str, str]:
            step = f"importing {spec.train}"
            try:
                fresh.ready(_IMPORT_S)
                step = "training the first two trials"
                return _verdict(partial(_reports, fresh, spec), trials, _modules(code, spec.train))
            except FreshCallError as error:
                reason = str(error).replace(f"{path}{os.sep}", "") if path else str(error)
                return "unknown", (
                    f"Couldn't check that results don't depend on the order of trials ({step}: {reason}). "
                    f"`study verify {spec.study}` trains stored trials again and compares them."
                )

        yield conclude


def _verdict(call: Callable[..., list[Report]], trials: Sequence[Trial], modules: Sequence[str]) -> tuple[str, str]:
    """Train two trials in both orders by `call`; return the verdict, and a sentence unless it is "same".

    `call` trains trials in order, as `_reports` does, and returns a report of each, with the changes in `modules`.
    Raise FreshCallError if the trials can't be trained.
    """
    first, second = trials
    first_alone, second_after = call((first, second))
    second_alone, first_after = call((second, first))
    for trial, other, alone, after in (
        (second, first, second_alone, second_after),
        (first, second, first_alone, first_after),
    ):
        difference = _difference(alone, after)
        if difference is None:
            continue
        again = call((trial,))[0]
        if (other_numbers := _difference(alone, again)) is not None:
            return "unrepeatable", _unrepeatable_sentence(trial, *other_numbers)
        changed = call((other, trial), modules)[0]["changed"]
        return "differs", _order_sentence(trial, other, *difference, changed)
    failed = [report["error"] for report in (first_alone, second_alone) if report["error"] and not report["steps"]]
    if failed:
        raise FreshCallError(failed[0])
    return "same", ""


def _reports(
    fresh: FreshProcess, spec: FunctionSpec, trials: Sequence[Trial], modules: Sequence[str] = ()
) -> list[Report]:
    """Train trials in the given order in a fork of the process, and return their reports."""
    calls = [
        {
            "seed": trial.seed,
            "values": {name: value for name, value in trial.cell.values.items() if name not in OWN_NAMES},
            "iterations": trial.cell.iterations or None,
        }
        for trial in trials
    ]
    limits = {name: (metric.low, metric.high) for name, metric in spec.declared_metrics.items()}
    timeout_s = _TRIAL_S * len(trials)
    reports: list[Report] = fresh.call(call_in_order, calls, limits, _STEPS_S, list(modules), timeout_s=timeout_s)
    return reports


def _difference(alone: Report, other: Report) -> tuple[str, str] | None:
    """Return the first difference between two reports of a trial, as two texts; None if they agree.

    If one of them was cut off, only their common steps are compared.
    """
    for (step, metrics), (other_step, other_metrics) in zip(alone["steps"], other["steps"], strict=False):
        at = f" at step {step}" if step else ""
        if step != other_step:
            return f"step {step}", f"step {other_step}"
        for name, value in metrics.items():
            if repr(value) != repr(other_metrics[name]):  # NaN equals NaN, and 0 differs from -0
                return f"{name} {value!r}{at}", f"{name} {other_metrics[name]!r}"
    if not (alone["is_done"] and other["is_done"]):
        return None
    if bool(alone["error"]) != bool(other["error"]):
        return (f"the error {alone['error']}" if alone["error"] else "no error"), other["error"] or "no error"
    if len(alone["steps"]) != len(other["steps"]):
        return f"{len(alone['steps'])} steps", f"{len(other['steps'])} steps"
    return None


def _order_sentence(trial: Trial, other: Trial, alone: str, after: str, changed: Sequence[str]) -> str:
    names = list(changed[:_MOST_NAMES]) + ([f"{len(changed) - _MOST_NAMES} more"] if len(changed) > _MOST_NAMES else [])
    cause = f" A trial changes {join_and(names)}, and the next trial in the process sees the change." if names else ""
    return (
        f"Results depend on the order of trials: {_name(trial, other)} gave {alone} when it was trained first, and "
        f"{after} after {_name(other, trial)}.{cause} Make such objects inside the function, from its seed; or give "
        "each trial a process of its own with `isolation: process`."
    )


def _unrepeatable_sentence(trial: Trial, first: str, again: str) -> str:
    return (
        f"The same seed doesn't give the same result: {_name(trial, trial)} gave {first}, and {again} when it was "
        "trained again in a new process. The function reads something besides its seed and its arguments, such as a "
        "generator without a seed, the time, or an operation of a GPU without a fixed order of sums."
    )


def _name(trial: Trial, other: Trial) -> str:
    is_other_cell = trial.seed == other.seed and trial != other
    return f"trial {trial.id[:10]}" if is_other_cell else f"seed {trial.seed}"


def _checked_trials(plan: Plan) -> Sequence[Trial]:
    """Return the first two trials; none if trials of the study don't share a process."""
    spec = plan.spec
    if not isinstance(spec, FunctionSpec) or spec.isolation is not None or spec.source_code is None:
        return ()
    return plan.trials[:2]


def _key(spec: FunctionSpec, trials: Sequence[Trial]) -> str:
    code = spec.source_code
    assert code is not None
    content = [code.digest, list(code.distributions), spec.train, [trial.id for trial in trials]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _modules(code: SourceCode, function: str) -> list[str]:
    """Return the names of the user's top-level modules."""
    files = (name.partition("/")[0].removesuffix(".py") for name in code.files if name.endswith(".py"))
    return sorted({*files, function.partition(":")[0].partition(".")[0]})


def _stored_note(folder: StudyStore) -> OrderNote | None:
    try:
        return read_order_note(folder)
    except StoreAwayError:
        raise
    except StoreError:  # it will be replaced
        return None


def _print_note(note: OrderNote, console: Console) -> None:
    if note.sentence:
        console.print(note.sentence, style="yellow" if note.warning else "", soft_wrap=True)
