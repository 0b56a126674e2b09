"""Time until the fused engine trains, with and without compiled code, and time of a first study.

    python -m benchmarks.first_use [--rounds N] [--out benchmarks/results/first_use.csv]

`study run` runs as a process of its own, timed from its start to its end: one trial of one iteration on Ray, without
MLflow. It is compared with the necessary parts: the engine alone, Ray's start by `ray.init` and one task, and a start
by Ray Tune and one trial. Prints a row for each command, with an empty and with a filled compile cache, and writes it
with `--out`: the median, least and greatest seconds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.commands import run_in_new_folder
from benchmarks.measure import finish, in_turns, parser, spread, tell

STUDY = """
study: little
task: {name: simple, operation: mul}
models: [NMU]
seeds: 1
protocol: {iterations: 1, evaluate_every: 1, evaluation_rows: 100}
"""
PREPARE = """
from study.engine import engine_named
from study.spec import canonical_cell
engine_named("fused").prepare(canonical_cell("simple", "NMU", {}))
"""
_INIT = """
import logging, ray
ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
"""
TASK = _INIT + "print(ray.get(ray.remote(lambda: 1).remote()))"
TUNE = (
    _INIT
    + """
from pathlib import Path
from ray import tune
run = tune.RunConfig(storage_path=str(Path.cwd()), verbose=0)
tune.Tuner(lambda config: tune.report({"loss": 0.0}), run_config=run).fit()
"""
)
RUN = ["-m", "study", "run", "little.yaml", "--cpus", "2", "--tracking-uri", "off"]
NEW, KEPT = "nothing compiled", "compiled before"
COMMANDS = {
    ("fused engine", NEW): ["-c", PREPARE],
    ("fused engine", KEPT): ["-c", PREPARE],
    ("study run", NEW): RUN,
    ("study run", KEPT): RUN,
    ("ray.init and a task", ""): ["-c", TASK],
    ("Ray Tune and a trial", ""): ["-c", TUNE],
}

Key = tuple[str, str]
"""A command, and the state of the compile cache."""


def run_s(key: Key, kept: Path, seconds: float) -> float:
    """Run a command in a new folder; print and return the seconds that it took.

    Args:
        key: key of `COMMANDS`.
        kept: compile cache of the keys with `KEPT`; the others get an empty one.
        seconds: ignored.

    Raises:
        RuntimeError: if the command fails.
    """
    with tempfile.TemporaryDirectory(prefix="compiled-") as new:
        cache = str(kept) if key[1] == KEPT else new
        took_s, _ = run_in_new_folder(COMMANDS[key], write_study, NUMBA_CACHE_DIR=cache)
    tell(f"{', '.join(filter(None, key))}: {took_s:.1f} s")
    return took_s


def write_study(folder: Path) -> None:
    """Write the study's file, little.yaml, into a folder."""
    (folder / "little.yaml").write_text(STUDY)


def row(key: Key, whole_s: Sequence[float]) -> dict[str, str]:
    """Return a command's row: the median, least and greatest seconds."""
    return {"command": key[0], "machine": key[1]} | spread("whole_s", whole_s)


def main(words: Sequence[str] | None = None) -> None:
    """Time each command, with and without compiled code; print the table, and write it with `--out`.

    Raises:
        RuntimeError: if a command fails.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=3, seconds=0)
    arguments = options.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="first-") as kept:
        measures = {key: partial(run_s, key, Path(kept)) for key in COMMANDS}
        for key in COMMANDS:
            if key[1] == KEPT:
                run_s(key, Path(kept), 0)  # compiles
        measured = in_turns(measures, rounds=arguments.rounds, seconds=0)
    finish([row(key, measured[key]) for key in COMMANDS], arguments)


if __name__ == "__main__":
    main()
