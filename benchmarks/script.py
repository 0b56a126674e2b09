"""Agreement of a trial's plain script with the stored trial, with the torch engine for comparison.

    python -m benchmarks.script [--models NMU NALU] [--seeds N] [--out benchmarks/results/script.csv]

The trials are the fused engine's, and the torch engine's for models that only it trains. They are short, at a learning
rate that makes differences of rounding grow fast. Curves agree at an evaluation if both MSEs are within 0.1% of the
stored one, or 0.1% of the threshold. Prints a row for each trial, and one for its repetition by the torch engine, and
writes them with `--out`: agreement in the outcome, in solved-at, and the share of evaluations before the first
difference.
"""

from __future__ import annotations

import io
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import finish, one_core, plain_parser, tell
from study.engine import engine_named
from study.records import Cell, Curve, Pack, Result, Trial
from study.spec.cells import canonical_cell
from tasks.arithmetic import MODELS
from tasks.arithmetic.script import trial_script

_MSES = ("validation_mse", "test_mse")
_NEAR = 1e-3
_LENGTH = {"iterations": 8000, "evaluate_every": 200, "evaluation_rows": 2000, "learning_rate": 1e-2}
_SCHEDULE = {"sparsity_start": 1500, "sparsity_end": 4000}
_MORE: Sequence[tuple[str, str, Mapping[str, Any]]] = (
    ("simple", "NAU", {"operation": "add"}),
    ("simple", "NALU", {"operation": "add"}),
    ("arithmetic", "NMU", {"operation": "mul", "input_size": 100}),
    ("arithmetic", "NAC-mul", {"operation": "div", "input_size": 16}),
    ("arithmetic", "NAU", {"operation": "sub", "input_size": 16}),
    ("simple", "NMU", {"operation": "mul", "hidden_size": 6, "init_variance": 0.05}),
    ("simple", "NMU", {"operation": "mul", "bounds": "regularized"}),
    ("simple", "NMU", {"operation": "mul", "optimizer": "momentum", "learning_rate": 1e-4}),
)
"""Cells in addition to each model's multiplication on the simple task."""


def script_cells(models: Sequence[str]) -> list[Cell]:
    """Return the cells to compare: each model's multiplication on the simple task, and its cells of `_MORE`.

    Raises:
        KeyError: if there is no such model.
    """
    cases = [("simple", model, {"operation": "mul"}) for model in models]
    cases += [(task, model, dict(values)) for task, model, values in _MORE if model in models]
    return [
        canonical_cell(task, model, _LENGTH | (_SCHEDULE if MODELS[model].has_bounds else {}) | values)
        for task, model, values in cases
    ]


def trained(cell: Cell, seeds: Sequence[int], engine: str) -> list[tuple[Result, Curve]]:
    """Train a cell's trials by an engine, and return the result and curve of each, in the order of the seeds.

    There is at least one seed.

    Raises:
        InputError: if there is no such engine, or it doesn't run on the CPU.
        KeyError: if the engine lacks a unit of the cell.
        ValueError: if a unit's weights can't have the cell's `init_variance`.
    """
    training = engine_named(engine).start(Pack(tuple(Trial(cell, seed) for seed in seeds)), device="cpu")
    while not training.done:
        training.advance(1.0)
    results, curves, _ = training.finish()
    return list(zip(results, curves, strict=True))


def scripted(result: Result, curve: Curve) -> tuple[str, int | None, Mapping[str, npt.NDArray[Any]], float]:
    """Run a trial's script in this process; return its outcome, solved-at or None, curve by metric, and seconds.

    Raises:
        InputError: if the trial can't be written as a script, such as with an empty curve.
    """
    names: dict[str, Any] = {"__name__": "script"}
    began = time.perf_counter()
    with redirect_stdout(io.StringIO()):
        exec(compile(str(trial_script("script", result, curve)), "script", "exec"), names)  # noqa: S102
    took_s = time.perf_counter() - began
    steps = sorted(names["curve"])
    read = {mse: np.array([names["curve"][step][k] for step in steps]) for k, mse in enumerate(_MSES)}
    solved = names["solved_at"]  # in words, as it prints it
    at = None if solved == "never" else int(solved.rpartition(" ")[2].replace(",", ""))
    return names["outcome"], at, read, took_s


def agreement(curve: Mapping[str, npt.NDArray[Any]], stored: Curve, threshold: float) -> float:
    """Return the share of evaluations before the first that disagrees with the stored one; 0 for unequal lengths.

    An MSE agrees if it differs by at most 0.1% of the stored one plus 0.1% of `threshold`, or if both are NaN.
    """
    count = len(stored.iteration)
    agrees = np.ones(count, bool)
    for mse in _MSES:
        if len(curve[mse]) != count:
            return 0.0
        close = np.isclose(curve[mse], stored.metrics[mse], rtol=_NEAR, atol=_NEAR * threshold, equal_nan=True)
        agrees &= close
    return 1.0 if agrees.all() else float(np.argmin(agrees)) / count


def rows_of(cell: Cell, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Compare a cell's trials with their scripts and with the torch engine; yield two rows for each.

    Raises:
        InputError: if a trial can't be written as a script.
        KeyError: if the torch engine lacks a unit of the cell.
    """
    engine = "fused" if engine_named("fused").refuses(cell) is None else "torch"
    others = trained(cell, seeds, "torch")
    for (result, curve), (other, others_curve) in zip(trained(cell, seeds, engine), others, strict=True):
        outcome, at, read, took_s = scripted(result, curve)
        threshold = result.threshold or 0.0
        for way, *found in (
            ("script", outcome, at, agreement(read, curve, threshold)),
            ("torch", str(other.outcome), other.solved_at_iteration, agreement(others_curve.metrics, curve, threshold)),
        ):
            its_outcome, its_at, share = found
            yield {
                "model": cell.model,
                "kind": f"{cell.value('operation')}, {cell.value('input_size')} inputs",
                "seed": result.trial.seed,
                "engine": engine,
                "what": way,
                "solved": int(str(result.outcome) == "solved"),
                "same_outcome": int(its_outcome == str(result.outcome)),
                "same_solved_at": int(its_outcome == str(result.outcome) and its_at == result.solved_at_iteration),
                "agreement": f"{share:.4f}",
                "s_per_10k_iterations": f"{took_s / result.iterations * 1e4:.2f}" if way == "script" else "",
            }


def main(words: Sequence[str] | None = None) -> None:
    """Compare trials with their scripts; print the table, and write it with `--out`.

    Raises:
        OSError: if the table can't be written.
    """
    known = plain_parser(__doc__)
    known.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="MODEL")
    known.add_argument("--seeds", type=int, default=3, help="trials of each cell")
    arguments: Namespace = known.parse_args(words)
    tried, table = script_cells(arguments.models), []
    with one_core():
        for number, cell in enumerate(tried, 1):
            table += rows_of(cell, range(arguments.seeds))
            tell(f"{number}/{len(tried)} {cell.model}, {cell.value('operation')}")
    finish(table, arguments)


if __name__ == "__main__":
    main()
