"""Microseconds per trial-iteration: each engine, in packs, beside a plain one-trial PyTorch loop.

    python -m benchmarks.engine [--device cuda] [--out benchmarks/results/engine.csv]

Everything runs on one core, in turns: each round measures every row once, so that a machine whose speed drifts
disturbs all rows alike. The median over rounds is quoted, and the ratio to the plain loop of the same round.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from study.engine import ENGINES
from study.records import Cell, Pack, Trial
from study.spec.cells import canonical_cell
from tasks import MODELS, TASKS, Network

PACKS = (1, 16, 64)
BATCH = 128


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    model: str
    input_size: int
    hidden_size: int
    engine: str
    pack: int

    @property
    def shape(self) -> tuple[str, int, int]:
        """What is trained, whoever trains it."""
        return self.model, self.input_size, self.hidden_size


def cell(model: str, input_size: int, hidden_size: int) -> Cell:
    """Give the published cell, cut so that nothing is evaluated but the start."""
    rare = {"iterations": 5_000_000, "evaluate_every": 5_000_000, "evaluation_rows": 100}
    return canonical_cell(
        _task(input_size), model, {"hidden_size": hidden_size, "input_size": input_size} | rare
    )


def _task(input_size: int) -> str:
    return "simple" if input_size == 4 else "arithmetic"


def plain_loop(row: Row) -> Callable[[float], float]:
    """Give the loop that one writes without a service: one trial, autograd, torch.optim.Adam."""
    network = Network(MODELS[row.model], row.input_size, row.hidden_size)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    task = TASKS[_task(row.input_size)](input_size=row.input_size)
    first, second = torch.from_numpy(task.masks(0))

    def measure(for_s: float) -> float:
        made, began = 0, time.perf_counter()
        while time.perf_counter() - began < for_s:
            x = torch.empty(BATCH, row.input_size).uniform_(1, 2)
            target = ((x @ first) * (x @ second))[:, None]
            loss = torch.nn.functional.mse_loss(network(x), target)
            for layer in network.layers:
                penalty = layer.sparsity("linear")
                if penalty is not None:
                    loss = loss + 0.0 * penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for layer in network.layers:
                layer.clip_()
            made += 1
        return (time.perf_counter() - began) / made * 1e6

    return measure


def engine_loop(row: Row, device: str) -> Callable[[float], float]:
    """Give the measurement of an engine."""
    the_cell = cell(*row.shape)
    pack = Pack(tuple(Trial(the_cell, seed) for seed in range(row.pack)))
    training = ENGINES[row.engine].start(pack, device=device)
    training.advance(0.0)  # the evaluation at the start, and compilation
    training.advance(0.2)

    def measure(for_s: float) -> float:
        before, began = training.checkpoint().iteration, time.perf_counter()
        training.advance(for_s)
        took = time.perf_counter() - began
        return took / (training.checkpoint().iteration - before) / row.pack * 1e6

    return measure


def rows(models: list[str], device: str) -> list[Row]:
    """List what to measure."""
    shapes = [(model, n, hidden) for model in models for n in (4, 100) for hidden in (2, 10)]
    engines = [name for name in ENGINES if device == "cpu" or name == "torch"]
    found = []
    for model, n, hidden in shapes:
        found.append(Row(model, n, hidden, "plain loop", 1))
        for name in engines:
            if ENGINES[name].refuses(cell(model, n, hidden)) is None:
                found += [Row(model, n, hidden, name, pack) for pack in PACKS]
    return found


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--models", nargs="*", default=["NMU", "NAC-mul", "NALU"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    wanted = rows(arguments.models, arguments.device)
    measured: dict[Row, list[float]] = {row: [] for row in wanted}
    for shape in dict.fromkeys(row.shape for row in wanted):
        of_shape = [row for row in wanted if row.shape == shape]
        measures = {
            row: plain_loop(row) if row.engine == "plain loop" else engine_loop(row, arguments.device)
            for row in of_shape
        }
        for _ in range(arguments.rounds):
            for row, measure in measures.items():
                measured[row].append(measure(arguments.seconds))
    table = []
    for row in wanted:
        plain = measured[Row(*row.shape, "plain loop", 1)]
        ratio = statistics.median(p / own for p, own in zip(plain, measured[row], strict=True))
        table.append(
            {
                "model": row.model,
                "input_size": row.input_size,
                "hidden_size": row.hidden_size,
                "engine": row.engine,
                "pack": row.pack,
                "us_per_trial_iteration": f"{statistics.median(measured[row]):.1f}",
                "times_the_plain_loop": f"{ratio:.1f}",
            }
        )
    for out in [sys.stdout, *([arguments.out.open("w", newline="")] if arguments.out else [])]:
        writer = csv.DictWriter(out, table[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
