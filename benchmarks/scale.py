"""A million trials through Ray and the store with an engine that does nothing: what the service itself costs.

python -m benchmarks.scale [--trials N] [--pack-size N] [--out FILE.csv]

A driver of its own runs the study with `study.run.run`, as `study run` does, with MLflow off. Its memory is read while
it runs. When half of the packs are stored it is killed (kill -9) and started again; at the end it is started once
more, with nothing left to do.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import finish, parser, tell
from study import run as running
from study import train
from study.console import Console
from study.engine import Training
from study.plan import plan
from study.records import Checkpoint, Curve, Outcome, Pack, Progress, Result, Weights
from study.spec import parse_spec
from study.store import Store
from study.work import PackWork

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
_STATUS = "/proc/{}/status"
_DEADLINE_S = 3600.0
_QUIET_S = 10.0


class Idle(Training):
    """Has trained as soon as it is asked."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._done = False

    @property
    def done(self) -> bool:
        """Say whether it was asked."""
        return self._done

    def advance(self, for_s: float) -> Progress:
        """End."""
        self._done = True
        return Progress(self._pack.id, 1001, 1001, len(self._pack.trials), 0, 0)

    def checkpoint(self) -> Checkpoint:
        """Keep nothing."""
        return Checkpoint(self._pack.id, tuple(t.id for t in self._pack.trials), 1, {}, 0.0, "none")

    def finish(self) -> tuple[list[Result], list[Curve], list[Weights]]:
        """Give results, curves of three evaluations, and weights that are zero."""
        hidden = self._pack.trials[0].cell.hidden_size
        arrays = {
            "layer_1.weight": np.zeros((hidden, 4), np.float32),
            "layer_2.weight": np.zeros((1, hidden), np.float32),
        }
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
                    validation_mse=0.01,
                    test_mse=0.01,
                    sparsity_error=0.01,
                    solved_at_iteration=1000 if solved else None,
                    iterations=1000,
                    training_s=0.01,
                    engine="none",
                    device="cpu",
                )
            )
            curves.append(Curve(trial.id, iteration, errors, errors, errors))
            weights.append(Weights(trial.id, 1001, arrays))
        return results, curves, weights


class IdleWork(PackWork):
    """Does with a pack what `PackWork` does, but for the training."""

    def _start(self, pack: Pack, kept: Checkpoint | None) -> Training:
        return Idle(pack)


def drive(root: Path, trials: int, pack_size: int) -> None:
    """Run the study, as a driver, and say when what is left is known."""
    train.PackWork = IdleWork  # type: ignore[misc]
    rates = [round(0.001 * (i + 1), 4) for i in range(CELLS // 10)]
    planned = plan(parse_spec(SPEC.format(seeds=trials // CELLS, rates=rates), source="scale"))
    running.run(planned, running.Options(root, None, pack_size=pack_size), Console(width=150))


def _start(root: Path, trials: int, pack_size: int) -> subprocess.Popen[bytes]:
    words = ["--drive", str(root), "--trials", str(trials), "--pack-size", str(pack_size)]
    command = [sys.executable, "-m", "benchmarks.scale", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def _memory_mib(process: int) -> float:
    """Read how much memory a process holds."""
    status = Path(_STATUS.format(process)).read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


def _packs_stored(root: Path) -> int:
    folder = root / NAME / "results"
    return sum(1 for _ in os.scandir(folder)) if folder.is_dir() else 0


def _settled(root: Path) -> int:
    """Count the packs once no worker of a driver that was killed stores any more."""
    stored, since = _packs_stored(root), time.monotonic()
    while time.monotonic() - since < _QUIET_S:
        time.sleep(0.25)
        if (now := _packs_stored(root)) != stored:
            stored, since = now, time.monotonic()
    return stored


def _watched(root: Path, trials: int, pack_size: int, until: int | None) -> dict[str, float]:
    """Run a driver to its end, or kill it when so many packs are stored; say how long it took, and what it held."""
    had, began = _settled(root), time.monotonic()
    driver = _start(root, trials, pack_size)
    first_s, last_s, memory = None, 0.0, []
    while driver.poll() is None:
        stored = _packs_stored(root)
        if first_s is None and stored > had:
            first_s, first_at = time.monotonic() - began, stored
        if memory and stored > memory[-1][0]:
            last_s = time.monotonic() - began
        if first_s is not None:
            memory.append((stored, _memory_mib(driver.pid) if Path(f"/proc/{driver.pid}").exists() else 0.0))
        if until is not None and stored >= until:
            os.killpg(driver.pid, signal.SIGKILL)
        assert time.monotonic() - began < _DEADLINE_S
        time.sleep(0.25)
    whole_s, stored = time.monotonic() - began, _packs_stored(root)
    found: dict[str, float] = {"whole_s": whole_s, "packs": stored - had}
    if first_s is not None:
        held = [(packs, mib) for packs, mib in memory if mib]
        training = [mib for packs, mib in held if packs < stored] or [held[0][1]]
        found |= {
            "first_pack_s": first_s,
            "ms_a_pack": 1e3 * (last_s - first_s) / max(1, stored - first_at),
            "memory_at_the_start_mib": training[0],
            "memory_at_the_end_mib": max(training),
        }
        if until is None:
            found["memory_with_report_mib"] = max(mib for _, mib in held)
    return found


def _text(value: float | int | str) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _rows(trials: int, pack_size: int) -> Iterator[dict[str, str]]:
    packs = 10 * -(-(trials // 10) // pack_size)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "studies"
        for what, until in (("killed at half", packs // 2), ("run again", None), ("nothing left", None)):
            found: dict[str, Any] = {"what": what, "trials": trials, "pack_size": pack_size}
            found |= _watched(root, trials, pack_size, until)
            tell(", ".join(f"{name} {value}" for name, value in found.items()))
            yield {name: _text(found.get(name, "")) for name in COLUMNS}
        done = len(Store(root, read_only=True).study(NAME).done())
        assert done == trials, (done, trials)


def main(words: Sequence[str] | None = None) -> None:
    """Measure."""
    options = parser(__doc__, rounds=1, seconds=0)
    options.add_argument("--trials", type=int, default=1_000_000)
    options.add_argument("--pack-size", type=int, default=256)
    options.add_argument("--drive", type=Path, help="be the driver, with this store")
    arguments = options.parse_args(words)
    if arguments.drive is not None:
        drive(arguments.drive, arguments.trials, arguments.pack_size)
        return
    finish(list(_rows(arguments.trials, arguments.pack_size)), arguments)


if __name__ == "__main__":
    main()
