"""Time and memory of `study report` on a study of 20,000 trials, from the store to its full report.

    python -m benchmarks.report [--cells N] [--seeds N] [--rounds N] [--out FILE.csv]

The command runs as a process of its own. The study is made up: results, learning curves of 201 evaluations and weights
from random numbers, in files of one cell each. Prints a row for each set of formats, and writes it with `--out`:
medians of seconds, CPU seconds and peak memory.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import command, finish, parser, tell
from study.plan.plan import Plan, make_plan
from study.records import Cell, Curve, Outcome, Result, Trial, Weights
from study.reports import FORMATS
from study.spec import parse_spec
from study.store import Store
from tasks.arithmetic import MODELS
from tasks.arithmetic.networks import Network

SPEC = """
study: made-up
question: How long does a report take?
task: {{name: simple}}
models: [NMU, NAC-mul, NALU, NAU]
seeds: {seeds}
grid: {{hidden_size: {hidden}, init_variance: {variances}}}
protocol: {{iterations: 200000, evaluate_every: 1000}}
"""
PARTS = {"the usual": (), "with PDFs": tuple(FORMATS), "tables only": ("csv", "parquet", "latex")}
"""Measured options, with the report's formats."""


def made_up_plan(cells: int, seeds: int) -> Plan:
    """Plan a study of about `cells` cells, at least four: four models over hidden units and init variance.

    Raises:
        InputError: if `seeds` is less than 1, or there are more trials than a study may have; or if `cells` is at least
            6,889, since the greatest variance is then invalid.
    """
    side = max(1, round((cells / 4) ** 0.5))
    hidden = list(range(2, 2 + side))
    variances = [round(0.002 * (i + 1), 4) for i in range(side)]
    return make_plan(parse_spec(SPEC.format(seeds=seeds, hidden=hidden, variances=variances), source="made-up"))


def store(root: Path, planned: Plan) -> None:
    """Write the study's file, and made-up results, curves and weights of every trial, into a store.

    Raises:
        StoreError: if the store can't be written.
    """
    folder = Store(root).study(planned.spec.study)
    folder.write_spec(planned.spec.text)
    random = np.random.default_rng(1)
    trials: dict[Cell, list[Trial]] = {}
    for trial in planned.trials:
        trials.setdefault(trial.cell, []).append(trial)
    for number, members in enumerate(trials.values()):
        made = [_made_up(trial, random) for trial in members]
        results, curves = zip(*made, strict=True)
        weights = _weights(members, random)
        folder.write_pack(f"pack-{number}", results, curves, weights, {"created_at": "never"})


def _weights(members: Sequence[Trial], random: np.random.Generator) -> list[Weights]:
    """Return random weights for every trial of one cell, of its network's shapes."""
    cell = members[0].cell
    network = Network(MODELS[cell.model], cell.value("input_size"), cell.value("hidden_size"))
    shapes = {
        f"layer_{number}.{name}": tuple(parameter.shape)
        for number, layer in enumerate(network.layers, start=1)
        for name, parameter in layer.named_parameters()
    }
    return [
        Weights(
            trial.id, cell.iterations + 1, {name: random.random(shape, np.float32) for name, shape in shapes.items()}
        )
        for trial in members
    ]


def _made_up(trial: Trial, random: np.random.Generator) -> tuple[Result, Curve]:
    cell = trial.cell
    iteration = np.arange(0, cell.iterations + 1, cell.value("evaluate_every"))
    is_solved = random.random() < 1 / cell.value("hidden_size")
    falls = np.exp(-iteration / random.gamma(8.0, 5e3)).astype(np.float32)
    solved_at = int(iteration[np.argmax(falls < 1e-3)])
    result = Result(
        trial=trial,
        outcome=Outcome.SOLVED if is_solved else Outcome.UNSOLVED,
        threshold=1e-3,
        best_iteration=cell.iterations,
        metrics={
            "validation_mse": float(falls[-1]),
            "test_mse": float(falls[-1]),
            "sparsity_error": float(random.beta(0.5, 50.0) / 2),
        },
        solved_at_iteration=solved_at if is_solved else None,
        iterations=cell.iterations,
        training_s=float(random.gamma(4.0, 1.0)),
        engine="none",
        device="cpu",
    )
    return result, Curve(
        trial.id, iteration, {"validation_mse": falls, "test_mse": 2 * falls, "sparsity_error": falls / 2}
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure `study report` on a made-up study; print the table, and write it with `--out`.

    Raises:
        subprocess.CalledProcessError: if a report fails.
        InputError: if `--seeds` is less than 1, or `--cells` at least 6,889.
        OSError: if the table can't be written.
    """
    options = parser(__doc__, rounds=3, seconds=0)
    options.add_argument("--cells", type=int, default=400)
    options.add_argument("--seeds", type=int, default=50)
    arguments = options.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "studies"
        planned = made_up_plan(arguments.cells, arguments.seeds)
        store(root, planned)
        finish(list(_rows(root, planned, arguments.rounds)), arguments)


def _rows(root: Path, planned: Plan, rounds: int) -> Iterator[dict[str, str]]:
    words = ["study", "report", planned.spec.study, "--store", str(root), "--out", str(root / "out")]
    measured: dict[str, list[tuple[float, float, float]]] = {part: [] for part in PARTS}
    for _ in range(rounds):
        for part, formats in PARTS.items():
            asked = [word for kind in formats for word in ("--format", kind)]
            measured[part].append(command([*words, *asked], MLFLOW_TRACKING_URI="off"))
    for part, turns in measured.items():
        wall_s, user_s, peak_mib = (statistics.median(turn[i] for turn in turns) for i in range(3))
        tell(f"{part}: {wall_s:.1f} s, {user_s:.1f} s of CPU, {peak_mib:.0f} MiB")
        yield {
            "asked": part,
            "trials": str(planned.trials_count),
            "cells": str(len(planned.cells)),
            "whole_s": f"{wall_s:.2f}",
            "user_s": f"{user_s:.2f}",
            "peak_mib": f"{peak_mib:.0f}",
        }


if __name__ == "__main__":
    main()
