"""Optuna's stored studies as sweeps: ranges, conditions and directions, but not the objective function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.driver.sweeps.sweep import Sweep, seeds_notation
from study.search.read_storage import OptunaStudy, read_optuna_study
from study.settings import check_no_secret
from study.words import count_of

_TRIALS_PER_VALUE = 3


def sweep_of_optuna(storage: str, name: str | None = None, *, are_points: bool = False) -> Sweep:
    """Read a study of Optuna as a sweep: a search of its ranges, or the points of its trials.

    Args:
        storage: the database's URL, such as ``sqlite:///optuna.db``, or the path of a journal file.
        name: the study's name; None for the only one.
        are_points: take the completed trials as points, in place of the ranges.

    Raises:
        InputError: if the storage or study doesn't exist or can't be read, `name` is None although there are several,
            no completed trial (without completed ones, no trial) has parameters, a seed isn't valid, or `storage` holds
            a password.
    """
    check_no_secret(storage, "--from-optuna")
    study = read_optuna_study(storage, name)
    sweep = Sweep(source=f"Optuna's study {study.name} in {storage}", sampler="TPE", objectives=study.objectives)
    domains = {name: {**domain, **_condition(name, study, sweep.notes)} for name, domain in study.domains.items()}
    names = sweep.add(domains)
    if are_points:
        _take_points(study, names, sweep)
    sweep.example = {names[name]: value for name, value in study.best.items() if names[name] != "seed"}
    sweep.notes += study.notes
    if study.trials:
        sweep.notes.append(
            f"{count_of(len(study.trials), 'finished trial')} can be imported if they have seeds: docs/guides/sweeps.md"
        )
    if not are_points:
        sweep.notes.append("sampler and pruner aren't in the storage: TPE is the sampler, and no trial is pruned")
    return sweep


def _take_points(study: OptunaStudy, names: Mapping[str, str], sweep: Sweep) -> None:
    """Replace ranges, fixed values and sampler by the points of the completed trials, with their seeds if known."""
    points = [
        {names[key]: value for key, value in trial.params.items() if names[key] != "seed"} for trial in study.trials
    ]
    seeds = [seed for trial in study.trials if (seed := trial.seed) is not None]
    sweep.points = list({repr(sorted(point.items())): point for point in points}.values())
    sweep.fixed, sweep.ranges, sweep.sampler = {}, {}, ""
    if seeds:
        sweep.seeds = seeds_notation(seeds)


def _condition(name: str, study: OptunaStudy, notes: list[str]) -> dict[str, Any]:
    """Return the `when` condition of a parameter that only some trials have; empty, with a note, if none is found."""
    counts = {other: sum(other in trial.params for trial in study.trials) for other in study.domains}
    if counts[name] == len(study.trials):
        return {}
    # The deciding parameter must be in more trials than this one; otherwise it might depend on this one.
    others = [other for other in study.domains if counts[other] > counts[name]]
    for other in sorted(others, key=lambda other: (-counts[other], "choices" not in study.domains[other])):
        if (values := _deciding_values(name, other, study)) is not None:
            return {"when": {other: values[0] if len(values) == 1 else values}}
    left = f"{counts[name]} of {count_of(len(study.trials), 'trial')}"
    notes.append(f"{name} is in {left}, and no other parameter decides when: all trials get it")
    return {}


def _deciding_values(name: str, other: str, study: OptunaStudy) -> list[Any] | None:
    """Return another parameter's values that imply this one in a trial; None if they don't decide it."""
    domain = study.domains[other]
    if "choices" not in domain and not isinstance(domain.get("step", domain["low"]), int):
        return None
    trials = [trial for trial in study.trials if other in trial.params]
    having = {repr(trial.params[other]): trial.params[other] for trial in trials if name in trial.params}
    without = {repr(trial.params[other]) for trial in trials if name not in trial.params}
    are_all = all(other in trial.params for trial in study.trials if name in trial.params)
    # With few trials, or many values, any parameter would seem to decide it.
    are_enough = len(trials) >= _TRIALS_PER_VALUE * len(having.keys() | without)
    return list(having.values()) if are_all and are_enough and not having.keys() & without else None
