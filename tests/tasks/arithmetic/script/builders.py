"""Builders of cells with short trials, and of their scripts and results."""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from study.engine import engine_for
from study.plugins.scripts import TrialScript
from study.records import Cell, Curve, Outcome, Pack, Result, Trial, Weights
from study.spec.cells import canonical_cell
from tasks.arithmetic.script import trial_script

SEED = 2**40 + 9


def cell_of(model: str, values: dict[str, Any], **more: Any) -> Cell:
    """Build a cell with short training; its task defaults to `arithmetic` if an input size is given, else `simple`."""
    protocol = {"iterations": 30, "evaluate_every": 1, "evaluation_rows": 50, "batch_size": 16}
    of_task = {name: value for name, value in values.items() if name != "task"}
    task = values.get("task", "arithmetic" if "input_size" in values else "simple")
    return canonical_cell(task, model, {**protocol, **of_task, **more})


def train(cell: Cell) -> tuple[Result, Curve, Weights]:
    """Train a trial by the torch engine, and return its result, curve and weights."""
    training = engine_for("torch", cell, "cpu").start(Pack((Trial(cell, SEED),)), device="cpu")
    while not training.done:
        training.advance(1.0)
    (result,), (curve,), (weights,) = training.finish()
    return result, curve, weights


def script_of(cell: Cell, *, iterations: int = 10, solved_at: int | None = None, mse: float = 1.0) -> TrialScript:
    """Return the script of a trial whose curve has a constant MSE."""
    trial, steps = Trial(cell, SEED), np.arange(0, iterations + 1)
    mses = np.full(len(steps), mse, np.float32)
    curve = Curve(trial.id, steps, {"validation_mse": mses, "test_mse": mses})
    result = Result(
        trial=trial, outcome=Outcome.UNSOLVED, threshold=1.2345678901234567e-12, best_iteration=0, metrics={},
        solved_at_iteration=solved_at, iterations=iterations, stopped_early=False, training_s=1.0, engine="fused",
        device="cpu",
    )  # fmt: skip
    return trial_script("a-study", result, curve)


def run(script: str) -> dict[str, Any]:
    """Run a script in this process, and return its variables, with its output as `printed`."""
    threads = torch.get_num_threads()
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        path = Path(folder) / "script.py"
        path.write_text(script, encoding="utf-8")
        names = runpy.run_path(str(path))
    torch.set_num_threads(threads)
    return names | {"printed": printed.getvalue()}


def beginning(cell: Cell) -> dict[str, Any]:
    """Run a script up to its training loop, and return its variables."""
    return run(str(script_of(cell)).split("\nfor iteration in range(")[0])
