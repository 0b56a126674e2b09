"""Searches with simulated trials: a trial is solved at random, at the success rate of its cell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from study.arrow import results_table
from study.plan.plan import Plan, make_plan
from study.records import Outcome, Result, Trial
from study.search import Searching
from study.spec import Spec, parse_spec

SPEC = """
study: made
task: {name: simple}
models: [NMU]
fixed: {hidden_size: 3}
ranges:
  sparsity_strength: {low: 0.01, high: 100, scale: log}
  sparsity_start: {low: 0, high: 15000}
  sparsity_end: {low: 5000, high: 20000}
seeds: 20
protocol: {iterations: 20000}
search: {objective: success_rate, trials: 300, candidates: 6, first_seeds: 3, confirm_seeds: 50}
"""


def spec_of(text: str = SPEC, **search: Any) -> Spec:
    """Parse a search with some of its table's values replaced."""
    spec = parse_spec(text, source="test")
    assert spec.search is not None
    settings = dict(spec.search.explicit) | search
    table = ", ".join(f"{k}: {list(v) if isinstance(v, tuple) else v}" for k, v in settings.items())
    before, _, _ = text.partition("search: {")
    return parse_spec(f"{before}search: {{{table}}}\n".replace("'", ""), source="test")


def true_rate(trial: Trial) -> float:
    """Return the success rate of a trial's cell: best at a strength of 1."""
    strength = trial.cell.value("sparsity_strength") or 0.01
    return 0.95 * math.exp(-(math.log10(strength) ** 2))


def trained(trial: Trial) -> Result:
    """Return a trial's simulated result; equal trials have equal results."""
    luck = np.random.default_rng([int(trial.id, 16) % 2**32, trial.seed]).random()
    if luck < true_rate(trial):
        return Result(
            trial=trial,
            outcome=Outcome.SOLVED,
            solved_at_iteration=1000 + int(9000 * luck),
            metrics={"sparsity_error": 1e-6 + luck / 1000},
            iterations=20000,
        )
    return Result(trial=trial, outcome=Outcome.UNSOLVED, iterations=20000)


class MemoryFolder:
    """A study's folder in memory, with a list of the trained trials."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.results: dict[str, Result] = {}
        self.trained: list[str] = []

    def write_file(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def read_file(self, name: str) -> bytes | None:
        return self.files.get(name)

    def file_address(self, name: str) -> str:
        return name

    def read_results(self) -> pa.Table:
        return results_table(list(self.results.values()))

    def train(self, plan: Plan, most: int | None = None) -> int:
        """Train the pending trials of a plan, up to a maximum, and return their number."""
        pending = [trial for trial in plan.trials if trial.id not in self.results][:most]
        for trial in pending:
            self.results[trial.id] = trained(trial)
            self.trained.append(trial.id)
        return len(pending)


def search(
    spec: Spec, folder: MemoryFolder, *, most_steps: int | None = None, killed: bool = False, chunk: int | None = None
) -> Plan:
    """Search until no trial is pending, or for `most_steps`; `killed` starts a new search after each step."""
    searching, plan = Searching(None), make_plan(spec)
    step = 0
    while most_steps is None or step < most_steps:
        step += 1
        if killed:
            searching, plan = Searching(None), make_plan(spec)
        plan = searching(plan, folder, lambda sentence: None)
        if not folder.train(plan, chunk):
            return plan
    return plan
