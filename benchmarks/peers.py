"""Overhead per trial of `study run`, beside that of other libraries: empty functions and empty programs.

python -m benchmarks.peers [--trials N] [--rounds N] [--only WAY ...] [--out FILE.csv]
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks import peer_scripts
from benchmarks.commands import environment
from benchmarks.measure import finish, in_turns, parser, ratio, tell
from benchmarks.peer_scripts import CORES, PROGRAM, SCRIPT

MODULE = """
from study import seeded

@seeded
def nothing(seed):
    return {"loss": 0.0}
"""
METRICS = {"metrics": {"loss": "lower"}}
STUDIES: dict[str, Mapping[str, object]] = {
    "function": {"train": "nothing:nothing"},
    "program": {"command": f"sh {SCRIPT} {{seed}}", "results": "metrics.json"},
}
"""Study files by the kind of their trials, without the keys that they share."""

RUN, LOCAL, ALONE = "study run FILE", "study run FILE --local", "the program alone"
OPTIONS = {RUN: [], LOCAL: ["--local"]}
PEERS = {
    "multiprocessing.Pool": "pool",
    "joblib": "joblib",
    "Ray Tune, reuse_actors": "ray-tune-reuse",
    "Ray Tune": "ray-tune",
    "Optuna, SQLite": "optuna",
}
"""Names of the peers' scripts."""

_TUNE = ["ray", "pandas", "pyarrow"]
PACKAGES = {
    "joblib": ["joblib"],
    "Ray Tune, reuse_actors": _TUNE,
    "Ray Tune": _TUNE,
    "Optuna, SQLite": ["optuna", "sqlalchemy"],
}
"""Packages that a peer needs, if it isn't part of Python."""

MOST_TRIALS = {"Ray Tune": 20}
"""Most trials of a slow peer: by default, Ray Tune starts a process for each trial, which takes seconds."""

FUNCTION_TARGETS_MS = {RUN: 1.5, LOCAL: 1.0}
PROGRAM_TARGET_MS = 15.0
"""Milliseconds that a trial may take beyond the start: a function's, and a program's beyond those of the program."""

Key = tuple[str, str, int]
"""Kind, way, and number of trials."""


def script_words(way: str, kind: str, trials: int) -> list[str]:
    """Return the command of a peer's script."""
    return [sys.executable, Path(peer_scripts.__file__).name, way, kind, str(trials)]


def study_words(way: str, trials: int) -> list[str]:
    """Return the command of the service."""
    options = ["--store", "studies", "--tracking-uri", "off", "--cpus", str(CORES), *OPTIONS[way]]
    return [sys.executable, "-m", "study", "run", "nothing.yaml", *options, f"seeds={trials}"]


def write_files(folder: Path, kind: str) -> None:
    """Write the study, what it trains, and the peers' scripts into an empty folder."""
    (folder / "nothing.py").write_text(MODULE)
    (folder / SCRIPT).write_text(PROGRAM)
    (folder / "nothing.yaml").write_text(json.dumps({"study": "nothing", "seeds": 1, **METRICS, **STUDIES[kind]}))
    shutil.copy(peer_scripts.__file__, folder)


def run_in_new_folder(kind: str, words: Sequence[str]) -> tuple[float, str]:
    """Run a command in a new folder, and return its seconds and its output.

    Raises:
        RuntimeError: if the command fails.
    """
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as name:
        write_files(Path(name), kind)
        began = time.perf_counter()
        done = subprocess.run(
            words, cwd=name, env=environment() | {"RAY_USAGE_STATS_ENABLED": "0"}, capture_output=True, text=True
        )
        took_s = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} must succeed, but its exit code is {done.returncode}:\n{done.stderr}")
    return took_s, done.stdout


def run_s(key: Key, seconds: float) -> float:
    """Return the seconds of a whole run; `seconds` is ignored."""
    kind, way, trials = key
    words = study_words(way, trials) if way in OPTIONS else script_words(PEERS[way], kind, trials)
    took_s, _ = run_in_new_folder(kind, words)
    tell(f"{kind}, {way}, {trials:,}: {took_s:.2f} s")
    return took_s


def program_s(times: int, seconds: float) -> float:
    """Return the mean seconds of the program, started by Python; `seconds` is ignored."""
    _, printed = run_in_new_folder("program", script_words("start", "program", times))
    return float(printed) / 1e3


def use_two_cores() -> None:
    """Keep this process, and those that it starts, on two cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def is_installed(way: str) -> bool:
    """Return whether the packages of a way are installed."""
    return all(find_spec(name) is not None for name in PACKAGES.get(way, []))


def target_ms(kind: str, way: str, alone_ms: float) -> float | None:
    """Return the most milliseconds that a trial of the service should take beyond the start; None for a peer."""
    if way not in OPTIONS:
        return None
    return FUNCTION_TARGETS_MS[way] if kind == "function" else alone_ms + PROGRAM_TARGET_MS


def ms_a_trial(totals_s: Sequence[float], starts_s: Sequence[float], trials: int) -> list[float]:
    """Return the milliseconds of each further trial, round by round."""
    return [(total - start) / trials * 1e3 for total, start in zip(totals_s, starts_s, strict=True)]


def row(key: Key, measured: Mapping[Key, Sequence[float]], alone_ms: float) -> dict[str, str]:
    """Return a way's medians, its time per trial, and its whole time as a multiple of the service's."""
    kind, way, trials = key
    total_s, one_s, two_s = (measured[kind, way, count] for count in (trials, 1, CORES))
    beside_s = measured.get((kind, RUN, trials))
    target = target_ms(kind, way, alone_ms)
    return {
        "kind": kind,
        "way": way,
        "trials": str(trials),
        "total_s": f"{statistics.median(total_s):.3f}",
        "start_s": f"{statistics.median(one_s):.3f}",
        "start_of_two_s": f"{statistics.median(two_s):.3f}",
        "ms_a_trial": f"{statistics.median(ms_a_trial(total_s, one_s, trials - 1)):.3f}",
        "ms_a_trial_beyond_two": f"{statistics.median(ms_a_trial(total_s, two_s, trials - CORES)):.3f}",
        "ms_a_trial_of_the_quickest": f"{ms_a_trial([min(total_s)], [min(one_s)], trials - 1)[0]:.3f}",
        "target_ms": "" if target is None else f"{target:.3f}",
        "times_study_run": "" if beside_s is None else f"{ratio(total_s, beside_s):.3f}",
    }


def alone_row(alone_s: Sequence[float], times: int, columns: Sequence[str]) -> dict[str, str]:
    """Return the row of the program without any library."""
    ms = [one * 1e3 for one in alone_s]
    known = {
        "kind": "program",
        "way": ALONE,
        "trials": str(times),
        "ms_a_trial": f"{statistics.median(ms):.3f}",
        "ms_a_trial_of_the_quickest": f"{min(ms):.3f}",
    }
    return {name: known.get(name, "") for name in columns}


def main(words: Sequence[str] | None = None) -> None:
    """Measure."""
    ways = [*OPTIONS, *PEERS]
    options = parser(__doc__, rounds=3, seconds=0)
    options.add_argument("--trials", type=int, default=500, help="trials of a run (default: %(default)s)")
    options.add_argument("--starts", type=int, default=100, help="starts of the program alone (default: %(default)s)")
    options.add_argument("--kinds", nargs="+", choices=list(STUDIES), default=list(STUDIES), metavar="KIND")
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
    most = {way: min(arguments.trials, MOST_TRIALS.get(way, arguments.trials)) for way in chosen}
    keys = [(kind, way, most[way]) for kind in arguments.kinds for way in chosen]
    measures: dict[Key, Callable[[float], float]] = {}
    for kind, way, trials in keys:
        measures |= {key: partial(run_s, key) for key in ((kind, way, 1), (kind, way, CORES), (kind, way, trials))}
    alone_key = ("program", ALONE, arguments.starts)
    measures[alone_key] = partial(program_s, arguments.starts)
    measured = in_turns(measures, rounds=arguments.rounds, seconds=0)
    alone = measured[alone_key]
    alone_ms = statistics.median(alone) * 1e3
    rows = [row(key, measured, alone_ms) for key in keys]
    rows.append(alone_row(alone, arguments.starts, list(rows[0])))
    finish(rows, arguments, runs_s=runs(measured))


def runs(measured: Mapping[Key, Sequence[float]]) -> dict[str, list[float]]:
    """Return the seconds of each run in each round, to be kept beside the table."""
    return {", ".join(map(str, key)): [round(one, 4) for one in took_s] for key, took_s in measured.items()}


if __name__ == "__main__":
    main()
