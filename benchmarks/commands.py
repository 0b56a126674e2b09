"""Time of `study` commands, compared with an empty process and with one that imports numpy and pyarrow.

    python -m benchmarks.commands [--rounds N] [--out FILE.csv]

Each command is timed as a process, from its start to its end, on a store with one finished study. Prints a row for each
command, and writes it with `--out`: medians of seconds and CPU seconds, and the CPU time as a multiple of both
processes'.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import finish, in_turns, parser, ratio, tell

SPEC = """
study: little
question: What does a command cost?
task: {name: simple}
models: [NMU, NAC-mul]
grid: {hidden_size: [2, 3]}
seeds: 10
fixed: {batch_size: 16}
protocol: {iterations: 100, evaluate_every: 50, evaluation_rows: 100}
"""
MISTAKEN = "{study: wrong, task: {name: simple}, models: [NMUU], seeds: 0}"

NOTHING, ARRAYS = "an empty process", "import numpy, pyarrow"
COMMANDS = {
    "study --help": ["--help"],
    "study plan FILE, with mistakes": ["plan", "wrong.yaml"],
    "study list": ["list"],
    "study plan FILE --quick": ["plan", "little.yaml", "--quick"],
    "study plan FILE": ["plan", "little.yaml"],
    "study show NAME": ["show", "little"],
    "study run FILE, nothing to do": ["run", "little.yaml"],
    "study report NAME": ["report", "little"],
}
"""Commands on a store with a finished, reported and published study."""

Used = tuple[float, float]
"""Seconds of wall-clock time and of CPU time."""


def environment() -> dict[str, str]:
    """Return this process's environment without the settings of a store and an MLflow server."""
    own = ("STUDY_STORE", "MLFLOW_TRACKING_URI")
    return {name: value for name, value in os.environ.items() if name not in own}


def run_in_new_folder(words: Sequence[str], fill: Callable[[Path], object], **variables: str) -> tuple[float, str]:
    """Run Python as a process in a new folder, and return its seconds and its standard output.

    The folder is removed afterwards.

    Args:
        words: the arguments of the Python interpreter.
        fill: writes files into the folder.
        variables: added to `environment`, in which Ray's usage statistics are off.

    Raises:
        RuntimeError: if the command fails; its message has the standard error.
    """
    with tempfile.TemporaryDirectory(prefix="run-", ignore_cleanup_errors=True) as name:
        fill(Path(name))
        began_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *words],
            cwd=name,
            env=environment() | {"RAY_USAGE_STATS_ENABLED": "0"} | variables,
            capture_output=True,
            text=True,
        )
        took_s = time.perf_counter() - began_s
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} must succeed, but its exit code is {done.returncode}:\n{done.stderr}")
    return took_s, done.stdout


def used(folder: Path, words: Sequence[str], seconds: float) -> Used:
    """Run Python in a folder; return its seconds and CPU seconds.

    Its output, its exit code and `seconds` are ignored.

    Raises:
        OSError: if the folder doesn't exist.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def row(name: str, measured: Mapping[str, Sequence[Used]]) -> dict[str, str]:
    """Print a command's median seconds, and return its row: medians of seconds, of CPU seconds, and of ratios.

    The ratios are those of the CPU seconds to both baselines' in the same round.

    Args:
        name: the command, a key of `measured`.
        measured: the rounds of each command, and of both baselines, `NOTHING` and `ARRAYS`.
    """
    whole_s, cpu_s = (list(column) for column in zip(*measured[name], strict=True))
    beside = {other: [cpu for _, cpu in measured[other]] for other in (NOTHING, ARRAYS)}
    tell(f"{name}: {statistics.median(whole_s):.2f} s")
    return {
        "command": name,
        "whole_s": f"{statistics.median(whole_s):.3f}",
        "cpu_s": f"{statistics.median(cpu_s):.3f}",
        "times_nothing": f"{ratio(cpu_s, beside[NOTHING]):.1f}",
        "times_arrays": f"{ratio(cpu_s, beside[ARRAYS]):.2f}",
    }


def main(words: Sequence[str] | None = None) -> None:
    """Time each command and both baseline processes; print the table, and write it with `--out`.

    Raises:
        subprocess.CalledProcessError: if the study that the commands need fails.
        OSError: if the table can't be written.
    """
    arguments = parser(__doc__, rounds=7, seconds=0).parse_args(words)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "little.yaml").write_text(SPEC)
        (folder / "wrong.yaml").write_text(MISTAKEN)
        prepare = ["run", "little.yaml", "--local", "--engine", "torch"]
        subprocess.run(
            [sys.executable, "-m", "study", *prepare], cwd=folder, env=environment(), check=True, stdout=sys.stderr
        )
        measures: dict[str, Callable[[float], Used]] = {
            NOTHING: partial(used, folder, ["-c", "pass"]),
            ARRAYS: partial(used, folder, ["-c", "import numpy, pyarrow"]),
        }
        measures |= {name: partial(used, folder, ["-m", "study", *asked]) for name, asked in COMMANDS.items()}
        measured = in_turns(measures, rounds=arguments.rounds, seconds=0)
    finish([row(name, measured) for name in measured], arguments)


if __name__ == "__main__":
    main()
