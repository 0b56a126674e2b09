"""Overhead per trial of `study run`, beside other libraries: functions of several durations, and programs.

    python -m benchmarks.peers [--seconds-a-trial S ...] [--trials N] [--rounds N] [--only WAY ...] [--out FILE.csv]
    python -m benchmarks.peers --kind program [--only WAY ...] [--out FILE.csv]

Each way runs as a process of its own on two cores; a way whose packages aren't installed is skipped. Prints a row for
each way and duration, and writes it with `--out`: the seconds of a run of one empty trial, the seconds of the run, and
the overhead in milliseconds per trial, beside its target. Each has its median, least and greatest value over rounds.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks import peer_scripts
from benchmarks.commands import run_in_new_folder
from benchmarks.measure import finish, in_turns, parser, spread, tell
from benchmarks.peer_scripts import CORES, PROGRAM, SCRIPT

MODULE = """
from peer_scripts import train_function
from study import seeded

@seeded
def nothing(seed, *, busy_s: float = 0.0):
    return {"loss": train_function(seed, busy_s)}
"""
METRICS = {"metrics": {"loss": "lower"}}
STUDIES: dict[str, Mapping[str, object]] = {
    "function": {"train": "nothing:nothing"},
    "program": {"command": f"sh {SCRIPT} {{seed}}", "results": "metrics.json"},
}
"""Study files by the kind of their trials, without the keys that they share."""

RUN, LOCAL, ALONE = "study run FILE", "study run FILE --local", "the program alone"
RUN_OFF, LOCAL_OFF = f"{RUN} --tracking-uri off", f"{LOCAL} --tracking-uri off"
_OFF = ["--tracking-uri", "off"]
OPTIONS = {RUN: [], RUN_OFF: _OFF, LOCAL: ["--local"], LOCAL_OFF: ["--local", *_OFF]}
TUNE, TUNE_MLFLOW, TUNE_DEFAULT = (f"Ray Tune, {name}" for name in ("reuse_actors", "MLflow, reuse_actors", "MLflow"))
OPTUNA = "Optuna, SQLite"
PEERS = {
    "multiprocessing.Pool": "pool",
    "joblib": "joblib",
    TUNE: "ray-tune-reuse",
    TUNE_MLFLOW: "ray-tune-mlflow-reuse",
    TUNE_DEFAULT: "ray-tune-mlflow",
    OPTUNA: "optuna",
}
"""Names of the peers' scripts."""

_TUNE = ["ray", "pandas", "pyarrow", "mlflow"]
PACKAGES = {
    "joblib": ["joblib"],
    TUNE: _TUNE,
    TUNE_MLFLOW: _TUNE,
    TUNE_DEFAULT: _TUNE,
    OPTUNA: ["optuna", "sqlalchemy"],
}
"""Packages that a peer needs, if it isn't part of Python."""

EMPTY_ONLY = {RUN_OFF, LOCAL_OFF, TUNE, TUNE_DEFAULT}
"""Ways measured on empty trials only: the cost of MLflow or a new process doesn't depend on a trial's duration."""

MOST_TRIALS = {TUNE: 100, TUNE_MLFLOW: 100, TUNE_DEFAULT: 10}
"""Most trials of a slow peer: by default, Ray Tune starts a process for each trial, which takes seconds."""

MOST_BUSY_S = 20.0
"""Most seconds of CPU time of all trials of a run."""

TARGETS_MS = {("function", RUN_OFF): 1.5, ("function", LOCAL_OFF): 1.0}
PROGRAM_TARGET_MS = 15.0
"""Milliseconds that a trial may take beyond the start: a function's, and a program's beyond those of the program."""


class Key(NamedTuple):
    """A run: the kind of its trials, the way to run them, their number, and the CPU seconds of each."""

    kind: str
    way: str
    trials: int
    trial_s: float = 0.0


def script_words(way: str, key: Key) -> list[str]:
    """Return the arguments of Python that run a way of `peer_scripts`, in a folder of `write_files`."""
    return [Path(peer_scripts.__file__).name, way, key.kind, str(key.trials), str(key.trial_s)]


def study_words(key: Key) -> list[str]:
    """Return the arguments of Python that run `study run` by a way of `OPTIONS`, in a folder of `write_files`."""
    options = ["--store", "studies", "--cpus", str(CORES), *OPTIONS[key.way], f"seeds={key.trials}"]
    busy = [f"fixed.busy_s={key.trial_s}"] if key.kind == "function" else []
    return ["-m", "study", "run", "nothing.yaml", *options, *busy]


def write_files(kind: str, folder: Path) -> None:
    """Write the study of a kind, a key of `STUDIES`, its training code, and the peers' scripts into an empty folder."""
    (folder / "nothing.py").write_text(MODULE)
    (folder / SCRIPT).write_text(PROGRAM)
    (folder / "nothing.yaml").write_text(json.dumps({"study": "nothing", "seeds": 1, **METRICS, **STUDIES[kind]}))
    shutil.copy(peer_scripts.__file__, folder)


def run_s(key: Key, seconds: float) -> float:
    """Print and return the seconds of a whole run; `seconds` is ignored.

    Raises:
        RuntimeError: if the run fails.
    """
    words = study_words(key) if key.way in OPTIONS else script_words(PEERS[key.way], key)
    took_s, _ = run_in_new_folder(words, partial(write_files, key.kind))
    tell(f"{', '.join(map(str, key))}: {took_s:.2f} s")
    return took_s


def program_s(key: Key, seconds: float) -> float:
    """Return the mean seconds of the program, started by Python; `seconds` is ignored.

    Raises:
        RuntimeError: if it fails.
    """
    _, printed = run_in_new_folder(script_words("start", key), partial(write_files, key.kind))
    return float(printed) / 1e3


def use_two_cores() -> None:
    """Keep this process, and those that it starts, on two cores, if the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def is_installed(way: str) -> bool:
    """Return True if the packages of a way are installed."""
    return all(find_spec(name) is not None for name in PACKAGES.get(way, []))


def target_ms(key: Key, alone_s: Sequence[float]) -> float | None:
    """Return the target for a trial's overhead in milliseconds; None without a target.

    A program's target includes the program's own time, the median of `alone_s`.

    Raises:
        statistics.StatisticsError: if a target needs that time, and `alone_s` is empty.
    """
    if key.kind == "program" and key.way in OPTIONS:
        return statistics.median(alone_s) * 1e3 + PROGRAM_TARGET_MS
    return TARGETS_MS.get((key.kind, key.way)) if key.trial_s == 0 else None


def ms_a_trial(key: Key, totals_s: Sequence[float], starts_s: Sequence[float]) -> list[float]:
    """Return each round's overhead in milliseconds per trial.

    It is the time of the run, less that of a run of one empty trial, and less the trials' own CPU time, which `CORES`
    processes share, or one with ``--local``.

    Raises:
        ZeroDivisionError: if the run has a single trial.
        ValueError: if the numbers of rounds differ.
    """
    busy_s = key.trial_s / (1 if "--local" in key.way else CORES)
    return [
        ((total - start) / (key.trials - 1) - busy_s) * 1e3 for total, start in zip(totals_s, starts_s, strict=True)
    ]


def row(key: Key, measured: Mapping[Key, Sequence[float]], alone_s: Sequence[float]) -> dict[str, str]:
    """Return the row of a run's times over rounds; that of the program alone has neither start, total nor target.

    Args:
        key: the run.
        measured: seconds of each round, by run, those of one empty trial included.
        alone_s: seconds of the program alone in each round; empty if trials aren't programs.

    Raises:
        KeyError: if the run, or that of one empty trial, wasn't measured.
        ValueError: as for `target_ms` or `ms_a_trial`, or if there are no rounds.
        ZeroDivisionError: as for `ms_a_trial`.
    """
    known = {"kind": key.kind, "way": key.way, "trial_s": f"{key.trial_s:g}", "trials": str(key.trials)}
    if key.way == ALONE:
        empty = dict.fromkeys(("start_s", *spread("total_s", [0])), "")
        return known | empty | spread("ms_a_trial", [seconds * 1e3 for seconds in alone_s]) | {"target_ms": ""}
    total_s, start_s = measured[key], measured[Key(key.kind, key.way, 1)]
    target = target_ms(key, alone_s)
    return (
        known
        | {"start_s": f"{statistics.median(start_s):.3f}"}
        | spread("total_s", total_s)
        | spread("ms_a_trial", ms_a_trial(key, total_s, start_s))
        | {"target_ms": "" if target is None else f"{target:.3f}"}
    )


def keys(kind: str, ways: Sequence[str], durations_s: Sequence[float], most: int) -> list[Key]:
    """List the runs of several trials, for each duration and way; those of `EMPTY_ONLY` have only empty trials.

    Args:
        kind: kind of the trials; programs have no durations.
        ways: the ways to run them.
        durations_s: CPU seconds of a trial.
        most: the most trials of a run; slow ways and long trials have fewer.
    """
    found = []
    for trial_s in durations_s if kind == "function" else [0.0]:
        fit = most if trial_s == 0 else min(most, max(CORES + 1, round(MOST_BUSY_S / trial_s)))
        found += [
            Key(kind, way, min(fit, MOST_TRIALS.get(way, fit)), trial_s)
            for way in ways
            if trial_s == 0 or way not in EMPTY_ONLY
        ]
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Time runs of each way; print the table, and write it with `--out`.

    Raises:
        SystemExit: for wrong options, or if none of the ways is installed.
        RuntimeError: if a run fails.
        OSError: if the table can't be written.
    """
    ways = [*OPTIONS, *PEERS]
    options = parser(__doc__, rounds=3, seconds=0)
    options.add_argument("--trials", type=int, default=500, help="most trials of a run (default: %(default)s)")
    options.add_argument("--seconds-a-trial", type=float, nargs="+", default=[0, 0.01, 1], metavar="S")
    options.add_argument("--starts", type=int, default=100, help="starts of the program alone (default: %(default)s)")
    options.add_argument("--kind", choices=list(STUDIES), default="function", help="of trials (default: %(default)s)")
    options.add_argument("--only", nargs="+", choices=ways, default=ways, metavar="WAY", help="by default all")
    arguments = options.parse_args(words)
    if arguments.trials <= CORES:
        options.error(f"--trials must be greater than {CORES}, but is {arguments.trials}")
    use_two_cores()
    for way in (missing := [way for way in arguments.only if not is_installed(way)]):
        tell(f"{way} isn't installed, and isn't measured")
    chosen = [way for way in ways if way in arguments.only and way not in missing]
    if not chosen:
        options.error("nothing to measure: install the packages of one of --only")
    runs = keys(arguments.kind, chosen, arguments.seconds_a_trial, arguments.trials)
    starts = [Key(arguments.kind, way, 1) for way in chosen]
    measures: dict[Key, Callable[[float], float]] = {key: partial(run_s, key) for key in (*starts, *runs)}
    alone = Key("program", ALONE, arguments.starts)
    if arguments.kind == "program":
        measures[alone] = partial(program_s, alone)
        runs.append(alone)
    measured = in_turns(measures, rounds=arguments.rounds, seconds=0)
    rows = [row(key, measured, measured.get(alone, [])) for key in runs]
    noted = {", ".join(map(str, key)): [round(seconds, 4) for seconds in took_s] for key, took_s in measured.items()}
    finish(rows, arguments, runs_s=noted)


if __name__ == "__main__":
    main()
