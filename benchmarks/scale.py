"""Overhead of a million trials through Ray and the store, with an engine that does nothing.

    python -m benchmarks.scale [--trials N] [--pack-size N] [--out FILE.csv]

A driver process runs the study with `study.run.run`, as `study run` does, with MLflow off. It notes its memory for each
finished pack. After half of the packs it kills itself (kill -9) and is started again; at the end it is started once
more, with nothing left to do. Prints a row for each of these three runs, and writes it with `--out`: seconds in all and
until the first pack, milliseconds per pack by the times of the stored files, and the driver's memory. `--drive`,
`--notes` and `--kill-at` are for the driver process.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import at_least, finish, parser, tell
from study import run as running
from study.arrow import metric_columns
from study.console import Console
from study.driver import resources
from study.driver.monitor import Monitor
from study.engine import Training
from study.plan.plan import make_plan
from study.records import Checkpoint, Curve, Event, Outcome, Pack, PackDone, Progress, Result, Weights
from study.spec import parse_spec
from study.store import Store
from study.store.trial_files import TrialFiles
from study.worker.pack_work import PackWork

NAME = "nothing"
SPEC = """
study: nothing
question: What does the service itself cost?
task: {{name: simple}}
models: [NMU]
seeds: {seeds}
grid: {{hidden_size: [2, 3, 4, 5, 6, 7, 8, 9, 10, 11], learning_rate: {rates}}}
protocol: {{iterations: 1000, evaluate_every: 500}}
"""
CELLS = 100
COLUMNS = (
    *("what", "trials", "pack_size", "packs", "whole_s", "first_pack_s", "ms_a_pack"),
    *("memory_at_the_start_mib", "memory_at_the_end_mib", "memory_with_report_mib"),
)
_PROC = Path("/proc")
_DEADLINE_S = 3600.0
_RUN = "STUDY_BENCHMARK_RUN"
"""Environment variable that identifies all processes of a driver's run."""


class Idle(Training):
    """A training that is done as soon as it is asked."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._done = False

    @property
    def done(self) -> bool:
        """Return True after the first `advance`."""
        return self._done

    def advance(self, for_s: float) -> Progress:
        """End the training at once, and return its progress; `for_s` is ignored."""
        self._done = True
        return Progress(self._pack.id, 1001, 1001, len(self._pack.trials), 0, 0)

    def checkpoint(self) -> Checkpoint:
        """Return an empty checkpoint."""
        return Checkpoint(self._pack.id, tuple(t.id for t in self._pack.trials), 1, {}, 0.0, "none")

    def finish(self) -> tuple[list[Result], list[Curve], list[Weights]]:
        """Return results, curves of three evaluations, and weights of zero."""
        iteration, errors = np.array([0, 500, 1000]), np.array([1, 0.1, 0.01], np.float32)
        results, curves, weights = [], [], []
        for trial in self._pack.trials:
            solved = trial.seed % 3 == 0
            results.append(
                Result(
                    trial=trial,
                    outcome=Outcome.SOLVED if solved else Outcome.UNSOLVED,
                    threshold=0.1,
                    best_iteration=1000,
                    metrics=dict.fromkeys(metric_columns(), 0.01),
                    solved_at_iteration=1000 if solved else None,
                    iterations=1000,
                    training_s=0.01,
                    engine="none",
                    device="cpu",
                )
            )
            curves.append(Curve(trial.id, iteration, dict.fromkeys(metric_columns(), errors)))
            weights.append(Weights(trial.id, 1001, _zeros(trial.cell.value("hidden_size"))))
        return results, curves, weights


def _zeros(hidden: int) -> dict[str, npt.NDArray[np.float32]]:
    """Return the zero weights of an NMU with `hidden` hidden units: a pack has trials of many sizes."""
    return {"layer_1.weight": np.zeros((hidden, 4), np.float32), "layer_2.weight": np.zeros((1, hidden), np.float32)}


class IdleWork(PackWork):
    """The work of `PackWork` on a pack, without the training."""

    def _start(
        self, files: TrialFiles, pack: Pack, checkpoint: Checkpoint | None
    ) -> Generator[Event, None, tuple[Training, int]]:
        yield from ()
        return Idle(pack), 0


def drive(root: Path, trials: int, pack_size: int, notes: Path, kill_at: int | None) -> None:
    """Run the study in this process, as `study run` does, with idle trainings.

    It replaces the worker and the monitor of this process for good.

    Args:
        root: the store.
        trials: number of trials of the study, at least `CELLS`; rounded down to a multiple of it.
        pack_size: trials of a pack.
        notes: receives a line with the memory in MiB for each finished pack, and one at the end.
        kill_at: number of finished packs after which this process and its group are killed; None to let it end.

    Raises:
        InputError: if `trials` is less than `CELLS`, or more than a study may have.
        ClusterError: if Ray can't be started.
        BusyError: if another process runs the study.
        StoreError: if the store can't be read or written.
        OSError: if the file of the notes can't be written.
    """
    resources.PackWork = IdleWork  # type: ignore[misc]
    rates = [round(0.001 * (i + 1), 4) for i in range(CELLS // 10)]
    planned = make_plan(parse_spec(SPEC.format(seeds=trials // CELLS, rates=rates), source="scale"))
    with notes.open("w", buffering=1) as out:
        heard, take = itertools.count(1), Monitor.__call__

        def noted(watch: Monitor, event: Event) -> None:
            take(watch, event)
            if isinstance(event, PackDone):
                print(_memory_mib("VmRSS"), file=out)
                if next(heard) == kill_at:
                    os.killpg(0, signal.SIGKILL)

        Monitor.__call__ = noted  # type: ignore[method-assign]
        running.run(planned, running.Options(root, None, pack_size=pack_size), Console(width=150))
        print(_memory_mib("VmHWM"), file=out)


def _memory_mib(kind: str) -> float:
    """Return the memory of this process, now (VmRSS) or at its peak (VmHWM), in MiB; 0 if it isn't known."""
    found = re.search(rf"{kind}:\s+(\d+)", (_PROC / "self" / "status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def stored_at(root: Path, name: str) -> list[float]:
    """Return the times at which a study's packs were stored, in seconds since 1970, sorted; empty before the first."""
    folder = root / name / "results"
    return sorted(entry.stat().st_mtime for entry in os.scandir(folder)) if folder.is_dir() else []


def _wait_for_the_last_of(run: str) -> None:
    """Wait until no process of a run is left: workers of a killed driver may still store a pack.

    Raises:
        TimeoutError: if one is still left after an hour.
    """
    word, deadline = f"{_RUN}={run}".encode(), time.monotonic() + _DEADLINE_S
    while left := [entry.name for entry in _PROC.glob("[0-9]*") if _has(entry / "environ", word)]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {', '.join(left)} outlived their driver by {_DEADLINE_S:.0f} s")
        time.sleep(0.25)


def _has(environment: Path, word: bytes) -> bool:
    with suppress(OSError):  # it has ended, or belongs to another user
        return word in environment.read_bytes().split(b"\0")
    return False


def _driven(root: Path, trials: int, pack_size: int, kill_at: int | None) -> dict[str, float]:
    """Run a driver to its end, or until it kills itself; return its times, packs and memory by column.

    Raises:
        AssertionError: if the driver ends otherwise.
        subprocess.TimeoutExpired: if it takes more than an hour.
        TimeoutError: if one of its processes is still left an hour after its end.
    """
    run, notes, had = uuid.uuid4().hex, root.with_name("notes"), len(stored_at(root, NAME))
    words = ["--drive", str(root), "--trials", str(trials), "--pack-size", str(pack_size)]
    words += ["--notes", str(notes), *(() if kill_at is None else ("--kill-at", str(kill_at)))]
    command = [sys.executable, "-m", "benchmarks.scale", *words]
    began, began_at = time.monotonic(), time.time()
    ended = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {_RUN: run},
        timeout=_DEADLINE_S,
        check=False,
    )
    whole_s = time.monotonic() - began
    expected = 0 if kill_at is None else -signal.SIGKILL
    assert ended.returncode == expected, f"the driver ended with {ended.returncode}"
    _wait_for_the_last_of(run)
    stored = stored_at(root, NAME)[had:]
    held = [float(line) for line in notes.read_text().split()]
    at_packs = held if kill_at is not None else held[:-1]
    found: dict[str, float] = {"whole_s": whole_s, "packs": len(stored)}
    if stored:
        found |= {
            "first_pack_s": stored[0] - began_at,
            "ms_a_pack": 1e3 * (stored[-1] - stored[0]) / max(1, len(stored) - 1),
            "memory_at_the_start_mib": at_packs[0],
            "memory_at_the_end_mib": max(at_packs),
        }
        if kill_at is None:
            found["memory_with_report_mib"] = held[-1]
    return found


def _text(value: float | int | str) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _rows(trials: int, pack_size: int) -> Iterator[dict[str, str]]:
    packs = 10 * -(-(trials // 10) // pack_size)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "studies"
        for what, kill_at in (("killed at half", packs // 2), ("run again", None), ("nothing left", None)):
            found: dict[str, Any] = {"what": what, "trials": trials, "pack_size": pack_size}
            found |= _driven(root, trials, pack_size, kill_at)
            tell(", ".join(f"{name} {value}" for name, value in found.items()))
            yield {name: _text(found.get(name, "")) for name in COLUMNS}
        done = len(Store(root, read_only=True).study(NAME).done())
        assert done == trials, (done, trials)


def main(words: Sequence[str] | None = None) -> None:
    """Run the driver three times; print the table, and write it with `--out`; with `--drive`, be that driver.

    Raises:
        AssertionError: if a driver fails, or a trial has no result at the end.
        subprocess.TimeoutExpired: if a driver takes more than an hour.
        TimeoutError: if one of its processes is still left an hour after its end.
        StudyError: with `--drive`, as for `drive`.
        OSError: if a file can't be written.
    """
    options = parser(__doc__, rounds=1, seconds=0)
    options.add_argument("--trials", type=at_least(100), default=1_000_000, help="trials, a multiple of 100")
    options.add_argument("--pack-size", type=at_least(1), default=256, help="trials of a pack")
    options.add_argument("--drive", type=Path, help="internal: run as the driver, with this store")
    options.add_argument("--notes", type=Path, help="internal: file for the driver's memory use")
    options.add_argument("--kill-at", type=int, help="internal: finished packs after which the driver kills itself")
    arguments = options.parse_args(words)
    if arguments.trials % 100:
        options.error(f"--trials must be a multiple of 100, not {arguments.trials}")
    if arguments.drive is not None:
        drive(arguments.drive, arguments.trials, arguments.pack_size, arguments.notes, arguments.kill_at)
        return
    finish(list(_rows(arguments.trials, arguments.pack_size)), arguments)


if __name__ == "__main__":
    main()
