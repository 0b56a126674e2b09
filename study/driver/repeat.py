"""Repetition of stored trials: trained again and compared bit for bit, or written as scripts."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study import environment
from study.arrow import curves_table, table_curves, table_results, table_weights
from study.driver.order_check import explain
from study.driver.own_engine import own_engine, proven
from study.engine import Engine, engine_for
from study.engine.function import FunctionEngine
from study.errors import InputError
from study.plan.plan import Plan
from study.plugins import offers
from study.plugins.scripts import TrialScript
from study.records import IMPORTED, Curve, Outcome, Pack, Result, Trial, Weights
from study.results.certificate import Certificate, write_certificate
from study.store import Store, StudyStore
from study.words import duration, join_and

_SLICE_S = 1.0
_FIELDS = ("outcome", "threshold", "best_iteration", "solved_at_iteration", "iterations", "stopped_early")


@dataclass(frozen=True)
class Repetition:
    """A trial that was trained again.

    Args:
        trial: the trial.
        outcome: its outcome, as stored.
        engine: the engine that trained it again.
        device: the kind of device.
        differences: differences from the stored trial; empty if all bits are equal.
        circumstances: differences in engine, device and versions.
        training_s: seconds of training, alone.
        compared: data that both the stored and the repeated trial have.
    """

    trial: Trial
    outcome: str
    engine: str
    device: str
    differences: tuple[str, ...]
    circumstances: tuple[str, ...]
    training_s: float
    compared: tuple[str, ...] = ("result", "learning curve", "weights")

    @property
    def is_same(self) -> bool:
        """True if everything compared has the stored bits."""
        return not self.differences

    def __str__(self) -> str:
        where = f"alone, on the {self.device} with the {self.engine} engine, in {duration(self.training_s)}"
        trial = self.trial
        head = f"trial {trial.id} ({trial.cell.model}, seed {trial.sources}, {self.outcome}) again, {where}:"
        if self.is_same:
            return f"{head} the same {join_and(self.compared)}, bit for bit"
        parts = [f"{head} not the same", *(f"  {line}" for line in (*self.differences, *self.circumstances))]
        return "\n".join(parts)


def repeat(
    plan: Plan, root: str, trial_ids: Collection[str], *, engine: str | None = None, device: str | None = None
) -> Iterator[Repetition]:
    """Train stored trials again, each by itself, one after another; write nothing.

    A training function or a program runs in a new process for each trial. Everything else trains in this process.

    Args:
        plan: the study's plan, with its code.
        root: the store's address.
        trial_ids: the trials' ids.
        engine: the engine's name; None for the one that trained the trial.
        device: ``cpu`` or ``cuda``; None for the device that trained the trial.

    Yields:
        Each trial compared with its stored result, in the given order.

    Raises:
        InputError: if the study or a trial isn't stored, a newer package wrote a file, or a trial failed, was stopped
            early, isn't in the plan, or can't be trained here.
        StoreError: if the store can't be read.
        OSError: if the copy of the code or the data can't be written.
        Exception: the error of a packed task or model. All errors are raised while iterating.
    """
    folder = Store(root, read_only=True).open(plan.spec.study)
    results = folder.read_results()
    planned = {trial.id: trial for trial in plan.trials}
    own = _with_isolation(proven(own_engine(plan.spec), plan, root))
    for trial_id in trial_ids:
        stored = _stored_trial(folder, results, trial_id)
        if trial_id not in planned:
            raise InputError(
                f"trial {trial_id} is stored, but the study doesn't plan it any more: its file or its code has changed"
            )
        is_imported = stored.result.engine == IMPORTED  # then its engine and device are unknown
        kind = device or ("cpu" if is_imported or stored.result.device == "cpu" else "cuda")
        name = engine or ("auto" if is_imported else stored.result.engine)
        chosen = engine_for(name, planned[trial_id].cell, kind, own)
        repeated = _train(planned[trial_id], chosen, kind)
        yield Repetition(
            planned[trial_id],
            str(stored.result.outcome),
            chosen.name,
            kind,
            tuple(_differences(stored, repeated)),
            tuple(_circumstances(stored, repeated, folder)),
            repeated.result.training_s,
            _compared(stored, repeated),
        )


def script(study: str, folder: StudyStore, results: pa.Table, trial_id: str) -> TrialScript:
    """Return a plain Python script that trains a stored trial again with torch alone.

    Nothing is trained here.

    Args:
        study: the study's name.
        folder: the study's part of the store.
        results: its trials' results.
        trial_id: the trial's id.

    Raises:
        InputError: if the trial isn't stored, failed, was stopped early or has no stored learning curve; if no script
            can be written for its task or its cell; or if a newer package wrote one of the study's files.
        StoreError: if the store can't be read.
    """
    stored = _stored_trial(folder, results, trial_id)
    if stored.curve is None:
        raise InputError(
            f"trial {trial_id} has no learning curve in the store for its script to compare with; repeat it without a "
            "script, or choose another trial"
        )
    return _script_writer(stored.result.trial)(study, stored.result, stored.curve)


def _script_writer(trial: Trial) -> Callable[[str, Result, Curve], TrialScript]:
    """Return the installed function that writes scripts for a trial's task; raise InputError if there is none."""
    tasks = offers.names("scripts")
    if trial.cell.task not in tasks:
        raise InputError(
            f"trial {trial.id} has no script: scripts are written for the tasks {', '.join(tasks)}, but its task is "
            f"{trial.cell.task}; without --script it is trained again here"
        )
    writer: Callable[[str, Result, Curve], TrialScript] = offers.load("scripts", trial.cell.task)
    return writer


def _train(trial: Trial, engine: Engine, device: str) -> _Trained:
    training = engine.start(Pack((trial,)), device=device)
    while not training.done:
        training.advance(_SLICE_S)
    (result,), curves, weights = training.finish()
    return _Trained(result, _as_stored(curves[0]) if curves else None, weights[0] if weights else None)


def _with_isolation(own: Engine | None) -> Engine | None:
    """Return the engine, changed to call a training function in a new process, without memory or time limit.

    Isolated functions and other engines are unchanged.
    """
    if not isinstance(own, FunctionEngine) or own.is_isolated:
        return own
    return replace(own, is_isolated=True, limits=replace(own.limits, memory_gb=None, time_limit_s=None))


def verify(
    plan: Plan, root: str, share: float, *, notify: Callable[[Repetition], None] = lambda repetition: None
) -> Certificate:
    """Train a random sample of stored trials again, and store a certificate in the study's folder.

    Args:
        plan: the study's plan, with its code.
        root: the store's address.
        share: fraction of the planned trials that neither failed nor were stopped early, in (0, 1]; at least one is
            trained.
        notify: called after each repetition.

    Raises:
        InputError: if the study isn't stored or has no such trial, a newer package wrote a file, or a trial can't be
            trained here.
        StoreError: if the store can't be read or written.
        BusyError: if the study is running when all trials are trained; no certificate is stored then.
        OSError: as `repeat` does.
        Exception: as `repeat` does.
    """
    folder = Store(root).open(plan.spec.study)
    outcomes = folder.outcomes()
    excluded = pa.array([str(Outcome.FAILED), str(Outcome.STOPPED)])
    ended = outcomes.filter(pc.invert(pc.is_in(outcomes["outcome"], value_set=excluded)))["trial_id"].to_pylist()
    planned = {trial.id for trial in plan.trials}
    ids = sorted(trial_id for trial_id in ended if trial_id in planned)
    if not ids:
        raise InputError(f"study {plan.spec.study!r} has no trial with a result to compare with")
    sample = random.SystemRandom().sample(ids, max(1, round(share * len(ids))))
    repetitions = []
    for repetition in repeat(plan, root, sample):
        repetitions.append(repetition)
        notify(repetition)
    differing = [each.trial for each in repetitions if not each.is_same]
    others = [trial for trial in plan.trials if trial not in differing[:1]]
    reason = explain(plan.spec, others[0], differing[0]) if differing and others else ""
    certificate = Certificate(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        trials=sample,
        differing=[trial.id for trial in differing],
        of=len(ids),
        engines=sorted({each.engine for each in repetitions}),
        reason=reason,
    )
    write_certificate(certificate, folder)
    return certificate


@dataclass(frozen=True)
class _Trained:
    result: Result
    curve: Curve | None
    weights: Weights | None


def _stored_trial(folder: StudyStore, results: pa.Table, trial_id: str) -> _Trained:
    """Return a trial's stored result, curve and weights; raise InputError if it can't be compared."""
    rows = table_results(results.filter(pc.equal(results["trial_id"], trial_id)))
    if not rows:
        raise InputError(f"no trial of study {folder.name!r} has the id {trial_id}")
    if rows[0].outcome is Outcome.FAILED:
        raise InputError(f"trial {trial_id} failed, so there is nothing to compare with: {rows[0].error}")
    if rows[0].outcome is Outcome.STOPPED:
        raise InputError(f"trial {trial_id} was stopped early because of other trials' values, so it can't be repeated")
    curves, weights = table_curves(folder.read_curves({trial_id})), table_weights(folder.read_weights({trial_id}))
    return _Trained(rows[0], curves[0] if curves else None, weights[0] if weights else None)


def _as_stored(curve: Curve) -> Curve:
    """Return a curve as the store would return it."""
    return table_curves(curves_table([curve]))[0]


def _compared(stored: _Trained, again: _Trained) -> tuple[str, ...]:
    """Return the names of the data that both trials have."""
    pairs = {"learning curve": (stored.curve, again.curve), "weights": (stored.weights, again.weights)}
    return ("result", *(name for name, pair in pairs.items() if all(part is not None for part in pair)))


def _differences(stored: _Trained, again: _Trained) -> Iterator[str]:
    """Yield the differences of a repeated trial from the stored one, in its stored parts, to the last bit."""
    if again.result.error is not None:
        yield f"it failed now: {again.result.error.splitlines()[-1]}"
        return
    for name in _FIELDS:
        before, now = getattr(stored.result, name), getattr(again.result, name)
        if before != now:
            yield f"{name}: {before} is stored, now {now}"
    for name in dict.fromkeys([*stored.result.metrics, *again.result.metrics]):
        before, now = stored.result.metrics.get(name), again.result.metrics.get(name)
        if repr(before) != repr(now):  # NaN equals NaN, and 0 differs from -0
            yield f"{name}: {before!r} is stored, now {now!r}"
    if stored.curve is not None and again.curve is not None:
        yield from _differences_of_curves(stored.curve, again.curve)
    if stored.weights is not None and again.weights is not None:
        arrays = again.weights.arrays
        for name, array in stored.weights.arrays.items():
            if name not in arrays or not _are_same(array, arrays[name]):
                yield f"weights: {name} differs"


def _differences_of_curves(stored: Curve, again: Curve) -> Iterator[str]:
    """Yield a difference for each metric that differs; only one if the curves have different evaluations."""
    if not _are_same(stored.iteration, again.iteration):
        yield f"learning curve: {len(stored.iteration)} evaluations are stored, now {len(again.iteration)}"
        return
    for name, values in stored.metrics.items():
        if name not in again.metrics:
            yield f"learning curve: {name} is stored, and isn't measured now"
        elif not _are_same(values, again.metrics[name]):
            first = stored.iteration[np.flatnonzero(_differ(values, again.metrics[name]))[0]]
            yield f"learning curve: {name} differs from iteration {first:,} on"


def _are_same(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    return first.shape == second.shape and not _differ(first, second).any()


def _differ(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where numbers differ; NaN equals NaN, and 0 differs from -0."""
    is_number = np.issubdtype(first.dtype, np.floating)
    differ = (first != second) | ((np.signbit(first) != np.signbit(second)) if is_number else False)
    return np.asarray(differ & ~(np.isnan(first) & np.isnan(second))) if is_number else np.asarray(differ)


def _circumstances(stored: _Trained, again: _Trained, folder: StudyStore) -> Iterator[str]:
    """Yield the differences in engine, device and versions."""
    if stored.result.engine == IMPORTED:
        yield "it ran elsewhere and was imported"
        return
    if stored.result.engine != again.result.engine:
        yield f"it was trained by the {stored.result.engine} engine"
    if stored.result.device != again.result.device:
        yield f"it was trained on {stored.result.device}, now on {again.result.device}"
    here = environment.provenance("cpu")
    for name in ("packages", "python", "service_git_commit"):
        before = [fields[name] for fields in folder.provenances() if name in fields]  # imported results have none
        if before and here[name] not in before:
            yield f"{name} were {' or '.join(dict.fromkeys(map(_in_words, before)))}, here {_in_words(here[name])}"


def _in_words(value: object) -> str:
    """Format package versions in the order of names, and anything else as it is."""
    return ", ".join(f"{name} {value[name]}" for name in sorted(value)) if isinstance(value, dict) else str(value)
