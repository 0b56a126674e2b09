"""Import of another tool's finished runs as results of a study's trials.

A trial's id contains the identity of its code, which is unknown for finished runs. So the study file must give a
`version`: with it, the user asserts that the command or function computes the same as the runs. The results name
`IMPORTED` as their engine, and their source in the provenance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from study.driver.own_engine import own_engine
from study.driver.sweeps.hydra import HydraJob, override_of, read_jobs
from study.driver.sweeps.sweep import Sweep
from study.engine.calls import CallEngine
from study.engine.calls.pack import CallPack
from study.engine.calls.recorded import RecordedCall
from study.engine.program import ProgramEngine
from study.engine.program.results import OutputReader, ResultsError, Steps, reader_of
from study.errors import InputError
from study.plan.plan import Plan
from study.records import IMPORTED, Curve, Pack, Result, Trial
from study.results.stored_plan import keep_code
from study.search.read_storage import read_optuna_study
from study.settings import check_no_secret
from study.spec.calls import CallSpec
from study.store import Store
from study.words import count_of

Key = frozenset[tuple[str, Any]]
_Steps = Sequence[tuple[int, Mapping[str, float], Mapping[str, float]]]


@dataclass(frozen=True)
class _Run:
    """A finished run.

    Args:
        key: hyperparameters.
        seed: seed; None if unknown.
        read: returns the steps, and True if they are numbered; raises ResultsError if they can't be read.
        training_s: duration in seconds; 0 if unknown.
    """

    key: Key
    seed: int | None
    read: Callable[[], tuple[_Steps, bool]]
    training_s: float = 0.0


@dataclass(frozen=True)
class FinishedRuns:
    """The outcome of an import of finished runs.

    Args:
        study: the study's name.
        source: place of the runs.
        new: number of trials that got a result.
        left_out: numbers of runs that were left out, by reason.
    """

    study: str
    source: str
    new: int
    left_out: Mapping[str, int]

    def __str__(self) -> str:
        left = (f"  left out: {count_of(count, 'run')} {reason}" for reason, count in self.left_out.items())
        return "\n".join([f"{self.study}: {count_of(self.new, 'trial')} imported from {self.source}", *left])


def import_hydra(plan: Plan, path: Path, root: str) -> FinishedRuns:
    """Import the jobs of a Hydra multirun whose overrides and seeds match planned trials without a result.

    If the store lacks the study, its file and code are stored, too.

    Args:
        plan: the plan of the study, whose file has a version.
        path: the folder of the multirun, or a folder above a single one.
        root: the store's address.

    Raises:
        InputError: if the study has no version or no command; if its command runs another program, or the jobs' program
            with options or by a shell; if the multirun can't be read; if no job matches a trial and has readable
            results, unless all jobs' trials already have results; or if a newer package wrote the study's results.
        BusyError: if the study is running.
        StoreError: if the store can't be read or written.
        OSError: if a job's folder or file of results for TensorBoard or MLflow can't be read.
    """
    engine = _engine(plan)
    if not isinstance(engine, ProgramEngine):
        raise InputError(f"study {plan.spec.study!r} has no command, and Hydra's jobs ran a program; give it theirs")
    jobs = read_jobs(path)
    words, script = list(engine.program.words), f"{jobs[0].hydra['job'].get('name')}.py"
    scripts = [place for place, word in enumerate(words) if PurePosixPath(word).name == script]
    if engine.program.is_shell or not scripts or any(word.startswith("-") for word in words[scripts[0] :]):
        raise InputError(f"the jobs ran {script} with overrides alone, but the command is {engine.program.command}")

    def key_of(trial: Trial) -> Key:
        given = {**engine.values_of(trial.cell), "seed": trial.seed, "folder": "", "code": "", "config": ""}
        return _overrides_key(engine.program.filled(given)[scripts[0] + 1 :])

    planned = {(key_of(trial), trial.seed): trial for trial in plan.trials}
    keys = list(dict.fromkeys(name for key, _ in planned for name, _ in key))
    return _import(plan, engine, planned, _hydra_runs(jobs, keys, engine), f"Hydra's multirun {path}", root)


def _hydra_runs(jobs: Sequence[HydraJob], keys: Sequence[str], engine: ProgramEngine) -> Iterator[_Run]:
    for job in jobs:
        given = {key: _comparable(value) for key, value in job.overrides.items()}
        # An override that only the command has gets its value from the job's configuration.
        given |= {key: _comparable(value) for key in keys if key not in given for value in _configured(job, key)}
        given |= dict.fromkeys(job.words, None)
        yield _Run(frozenset(given.items()), job.seed, partial(_read_folder, job.folder, engine))


def _configured(job: HydraJob, key: str) -> Iterator[Any]:
    value: Any = job.config
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return
        value = value[part]
    yield value


def _overrides_key(words: Sequence[str]) -> Key:
    pairs = [override_of(word) or (word, None) for word in words if not word.startswith("hydra.")]
    return frozenset((key, _comparable(value)) for key, value in pairs)


def _read_folder(folder: Path, engine: ProgramEngine) -> tuple[_Steps, bool]:
    """Read the results in a run's folder; return the complete steps, and True if they are numbered.

    Raise ResultsError if there are none, or they can't be read.
    """
    steps = Steps()
    reader = reader_of(engine.program.results, folder, steps)
    if isinstance(reader, OutputReader):
        raise ResultsError("have no record of their output, in which the results are")
    reader.read(has_ended=True)
    complete = list(steps.complete(list(engine.metrics)))
    if not complete:
        raise ResultsError(f"have no {', '.join(engine.metrics)} in {reader.where}")
    return complete, steps.are_numbered


def import_optuna(plan: Plan, storage: str, name: str | None, root: str) -> FinishedRuns:
    """Import completed Optuna trials whose parameters and seeds match planned trials without a result.

    If the store lacks the study, its file and code are stored, too.

    Args:
        plan: the plan of the study, whose file has a version.
        storage: the database's URL, or the path of a journal file.
        name: the name of Optuna's study; None for the only one.
        root: the store's address.

    Raises:
        InputError: if the study has no version, has neither a command nor a function, is a search or has other metrics;
            if `storage` or its study can't be read, has no trial with parameters, or `storage` holds a password; if
            `name` is None although there are several studies; if no Optuna trial matches one of the study's trials; or
            if a newer package wrote the study's results.
        BusyError: if the study is running.
        StoreError: if the store can't be read or written.
    """
    engine = _engine(plan)
    check_no_secret(storage, "STORAGE")
    if plan.spec.search is not None:
        raise InputError(
            f"study {plan.spec.study!r} is a search, which chooses its own cells: `study new NAME --from-optuna "
            "STORAGE --points` writes a file with those of the finished trials"
        )
    study = read_optuna_study(storage, name)
    objectives = [objective for objective, _ in study.objectives]
    metrics = list(engine.metrics) if objectives == [""] else objectives
    if set(metrics) != set(engine.metrics) or len(metrics) != len(objectives):
        raise InputError(
            f"metrics must be those of Optuna's study, {', '.join(filter(None, objectives)) or len(objectives)}, but "
            f"are {', '.join(engine.metrics)}: name these alone"
        )
    names = Sweep(source="").rename(study.domains)
    swept = {study_name for study_name in names.values() if study_name != "seed"}
    planned = {
        (_values_key({key: value for key, value in engine.values_of(trial.cell).items() if key in swept}), trial.seed):
        trial
        for trial in plan.trials
    }  # fmt: skip

    def runs() -> Iterator[_Run]:
        for trial in study.trials:
            values = {names[key]: value for key, value in trial.params.items()}
            values.pop("seed", None)
            read = partial(_single_step, dict(zip(metrics, trial.values, strict=True)))
            yield _Run(_values_key(values), trial.seed, read, trial.seconds or 0.0)

    return _import(plan, engine, planned, runs(), f"Optuna's study {study.name} in {storage}", root)


def _single_step(metrics: Mapping[str, float]) -> tuple[_Steps, bool]:
    return [(0, metrics, {})], False


def _values_key(values: Mapping[str, Any]) -> Key:
    return frozenset((name, _comparable(value)) for name, value in values.items() if value is not None)


def _comparable(value: Any) -> Any:
    """Return a hashable value for comparisons: 1 equals 1.0, but not true."""
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    return repr(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)


def _engine(plan: Plan) -> CallEngine:
    """Return the engine of the trials; raise InputError if the study has no own code or no version."""
    spec = plan.spec
    if not isinstance(spec, CallSpec):
        raise InputError(f"study {spec.study!r} must have a command or train to import finished runs")
    if spec.version is None:
        raise InputError(
            f"study {spec.study!r} must have a version, such as version: 1: the code of finished runs isn't known, and "
            "a version states that the study's code computes the same"
        )
    engine = own_engine(spec)
    assert isinstance(engine, CallEngine)
    return engine


def _import(
    plan: Plan,
    engine: CallEngine,
    planned: Mapping[tuple[Key, int], Trial],
    runs: Iterator[_Run],
    source: str,
    root: str,
) -> FinishedRuns:
    """Store the results of runs that match planned trials without a result, and the study's file if it isn't stored.

    Raise InputError if no run could be imported, unless all trials of the runs already have a result.
    """
    folder = Store(root).study(plan.spec.study)
    left_out: Counter[str] = Counter()
    results: dict[str, tuple[Result, list[Curve]]] = {}
    with folder.lock():
        done = folder.done() if folder.exists else set()
        for run in runs:
            trial = None if run.seed is None else planned.get((run.key, run.seed))
            if run.seed is None:
                left_out["without a seed that is a whole number"] += 1
            elif trial is None:
                left_out["that match no planned trial"] += 1
            elif trial.id in done or trial.id in results:
                left_out["of trials that already have a result"] += 1
            else:
                try:
                    results[trial.id] = _result(trial, engine, *run.read(), run.training_s)
                except ResultsError as error:
                    left_out[f"that {error}"] += 1
        if not results and set(left_out) != {"of trials that already have a result"}:
            reasons = "; ".join(f"{count_of(count, 'run')} {reason}" for reason, count in left_out.items())
            raise InputError(f"{source}: nothing was imported: {reasons or 'there are no finished runs'}")
        if results:
            pack = Pack(tuple(result.trial for result, _ in results.values()))
            curves = [curve for _, own in results.values() for curve in own]
            at = datetime.now(UTC).isoformat(timespec="seconds")
            provenance = {"imported_from": source, "created_at": at}
            folder.write_pack(
                f"{IMPORTED}-{pack.id}", [result for result, _ in results.values()], curves, [], provenance
            )
        if not folder.exists:
            keep_code(plan.spec, folder)
            folder.write_spec(plan.spec.text)
    return FinishedRuns(plan.spec.study, source, len(results), left_out)


def _result(
    trial: Trial, engine: CallEngine, steps: _Steps, are_numbered: bool, training_s: float
) -> tuple[Result, list[Curve]]:
    """Return the result and curves of a trial that reported these steps; steps after its last iteration are ignored."""
    most = trial.cell.iterations
    counted = [step for step in steps if not most or step[0] <= most]
    call = RecordedCall(engine.call_of(trial), counted, reports_steps=are_numbered, training_s=training_s)
    pack = CallPack(engine, Pack((trial,)), "unknown", lambda *_: call, None)
    pack.advance(0.0)
    (result,), curves, _ = pack.finish()
    return replace(result, engine=IMPORTED), curves
