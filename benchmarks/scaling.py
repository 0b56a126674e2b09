"""Speed-up of training with cores: threads on one pack, and packs of a whole study under Ray.

    python -m benchmarks.scaling [--cores 1 2 4] [--out benchmarks/results/scaling.csv]

Threads: the fused engine on one pack. Packs: `study run`, a process of its own from its start to its report, with the
same number of trials for each core; once without Ray, and with Ray on each number of cores. The packs time their own
training, evaluations included; all else of the run is its fixed cost. Prints a row for each kind and number of cores,
and writes it with `--out`: trial-iterations a second, the efficiency against one core, and for studies the seconds of
training, of the run and of the fixed cost.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import PACK, cores, finish, in_turns, new_pack, parser, published_cell, ratio, tell, training
from study.records import Cell
from study.store import Store
from tasks.arithmetic.engine.cpu.engine import FusedEngine

ROOT = Path(__file__).resolve().parents[1]
LOCAL = "study, without Ray"
RAY = "study, packs under Ray"
THREADS = "one pack, threads"
_EVALUATE_EVERY = 1000
_STUDY = """
study: {name}
question: How fast?
task: {{name: arithmetic}}
models: [NMU]
fixed: {{hidden_size: {hidden}, sparsity_start: 0}}
seeds: {trials}
protocol: {{iterations: {iterations}, evaluate_every: {every}}}
"""


class Ran(NamedTuple):
    """One run of a study.

    Args:
        trial_iterations: number of trial-iterations.
        training_s: seconds of all packs, divided by the packs that run side by side.
        whole_s: seconds from the start of the process to its end.
    """

    trial_iterations: int
    training_s: float
    whole_s: float


def counts(most: int) -> list[int]:
    """Return 1, 2, 4, ... below `most`, and `most` itself, for `most` of at least 1."""
    return sorted({2**k for k in range(most.bit_length()) if 2**k < most} | {most})


# --- threads ----------------------------------------------------------------------------------------------------


def rows_of_threads(cell: Cell, arguments: Namespace) -> list[dict[str, Any]]:
    """Measure one pack on each number of threads, in turns, and return a row for each."""
    pack = new_pack(cell, max(arguments.trials, 4 * max(arguments.cores)))
    measures = {count: training(FusedEngine(threads=count), pack) for count in arguments.cores}
    measured = in_turns(measures, rounds=arguments.rounds, seconds=arguments.seconds)
    alone = measured[min(measured)]
    rows = []
    for count, us in measured.items():
        per_s = f"{1e6 / statistics.median(us):.0f}"
        gain = ratio(alone, us) * min(measured) / count
        rows.append(_row(THREADS, cell, count, len(pack.trials)) | _rates(per_s, gain))
    return rows


# --- packs of a study -------------------------------------------------------------------------------------------


def run_study(cell: Cell, trials: int, iterations: int, where: Sequence[str], side_by_side: int) -> Ran:
    """Run a study in a process of its own, and return its times.

    Args:
        cell: cell of the NMU with 100 inputs; the study takes only its hidden size.
        trials: number of seeds.
        iterations: iterations of each trial.
        where: further options of `study run`.
        side_by_side: number of packs that run at once.

    Raises:
        subprocess.CalledProcessError: if it failed; its messages are on stderr.
    """
    text = _STUDY.format(
        name="scaling", hidden=cell.value("hidden_size"), trials=trials, iterations=iterations, every=_EVALUATE_EVERY
    )
    with tempfile.TemporaryDirectory(prefix="study-scaling-") as folder:
        file = Path(folder, "scaling.yaml")
        file.write_text(text)
        words = ["run", str(file), "--store", folder, "--tracking-uri", "off", "--engine", "fused", "--device", "cpu"]
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "study", *words, *where], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        whole_s = time.perf_counter() - began
        training_s = Store(Path(folder)).study("scaling").read_results()["training_s"].to_pylist()
    return Ran(trials * (iterations + 1), sum(training_s) / side_by_side, whole_s)


def iterations_for(cell: Cell, trials: int, seconds: float) -> int:
    """Measure a pack, and choose iterations so that the trials take about `seconds` on one core.

    They are whole thousands, at least 1,000.
    """
    us = training(FusedEngine(), new_pack(cell, trials))(min(1.0, seconds))
    return max(1, round(seconds / (trials * us * 1e-6) / _EVALUATE_EVERY)) * _EVALUATE_EVERY


def rows_of_packs(cell: Cell, arguments: Namespace) -> list[dict[str, Any]]:
    """Measure a study without Ray, and with it on each number of cores, in turns, and return a row for each.

    Raises:
        subprocess.CalledProcessError: if a study fails.
        statistics.StatisticsError: if there are no rounds.
    """
    iterations = iterations_for(cell, arguments.trials, arguments.study_seconds)
    ways = {(LOCAL, 1): ["--local"]} | {(RAY, count): ["--cpus", str(count)] for count in arguments.cores}
    measured: dict[tuple[str, int], list[Ran]] = {way: [] for way in ways}
    for number in range(arguments.study_rounds):
        for (kind, count), where in ways.items():
            ran = run_study(cell, count * arguments.trials, iterations, where, count)
            measured[kind, count].append(ran)
            tell(f"round {number + 1}, {kind}, {count}: {ran.training_s:.1f} of {ran.whole_s:.1f} s trained")
    alone = [ran.trial_iterations / ran.training_s for ran in measured[LOCAL, 1]]
    rows = []
    for (kind, count), runs in measured.items():
        rates = [ran.trial_iterations / ran.training_s for ran in runs]
        whole_rates = [ran.trial_iterations / ran.whole_s for ran in runs]
        rows.append(
            _row(kind, cell, count, count * arguments.trials)
            | _rates(f"{statistics.median(rates):.0f}", ratio(rates, alone) / count)
            | {
                "training_s": f"{statistics.median(ran.training_s for ran in runs):.2f}",
                "whole_s": f"{statistics.median(ran.whole_s for ran in runs):.2f}",
                "fixed_s": f"{statistics.median(ran.whole_s - ran.training_s for ran in runs):.2f}",
                "whole_trial_iterations_per_s": f"{statistics.median(whole_rates):.0f}",
            }
        )
    return rows


def _row(kind: str, cell: Cell, count: int, trials: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "cores": count,
        "model": cell.model,
        "input_size": cell.value("input_size"),
        "hidden_size": cell.value("hidden_size"),
        "trials": trials,
    }


def _rates(per_s: str, efficiency: float) -> dict[str, Any]:
    """Return all measured columns; those of a whole run are empty at first."""
    return {
        "trial_iterations_per_s": per_s,
        "efficiency": f"{efficiency:.3f}",
        "training_s": "",
        "whole_s": "",
        "fixed_s": "",
        "whole_trial_iterations_per_s": "",
    }


def main(words: Sequence[str] | None = None) -> None:
    """Measure threads, and packs of a study; print the table, and write it with `--out`.

    Raises:
        subprocess.CalledProcessError: if a study fails.
        statistics.StatisticsError: if `--study-rounds` is less than 1.
        OSError: if the table can't be written.
    """
    known = parser(__doc__, rounds=5, seconds=2.0)
    known.add_argument("--cores", nargs="+", type=int, default=counts(cores()), metavar="N")
    known.add_argument("--hidden", type=int, default=2)
    known.add_argument("--trials", type=int, default=PACK, help="on each core")
    known.add_argument("--study-rounds", type=int, default=3)
    known.add_argument("--study-seconds", type=float, default=20.0, help="of training in each study, about")
    arguments = known.parse_args(words)
    cell = published_cell("NMU", 100, arguments.hidden)
    table = rows_of_threads(cell, arguments)
    tell("threads are done; now studies")
    finish(table + rows_of_packs(cell, arguments), arguments)


if __name__ == "__main__":
    main()
