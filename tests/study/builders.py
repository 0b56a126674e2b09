"""Builders of cells, packs, results, searches and reports for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from study.arrow import metric_columns, results_table, table_results
from study.comparisons.contrasts import Contrasts, contrasts
from study.comparisons.headline import headline
from study.interface.declarations import Metric
from study.outcomes import OUTCOME_SCHEMA
from study.records import Cell, Outcome, Pack, Result, Trial
from study.reports import Report, ResultRows, cell_rows, cells_rows, with_published
from study.search.objectives import objectives_of
from study.spec import canonical_cell
from study.store import StudyStore
from study.summaries.aggregate import CellSummary, GroupSummary, aggregate, aggregate_by
from study.summaries.metrics import MetricSummary
from study.summaries.search import Candidate, Parameter, SearchFindings
from study.trials.table import TrialTable
from tasks.arithmetic import MODELS, ArithmeticTask


def published_cell(model: str = "NMU", **changes: Any) -> Cell:
    """Build the published simple-task cell of a model for multiplication, with some fields changed."""
    return canonical_cell("simple", model, {"operation": "mul"}).replace(**changes)


def arithmetic_cell(model: str = "NMU", **changes: Any) -> Cell:
    """Build the published arithmetic-task cell of a model for multiplication, with some fields changed."""
    return canonical_cell("arithmetic", model, {"operation": "mul"}).replace(**changes)


def small_cell(model: str = "NMU", **changes: Any) -> Cell:
    """Build a cell of the simple task with a short run; its sparsity schedule acts in the middle of the run."""
    small: dict[str, Any] = {
        "batch_size": 16,
        "iterations": 40,
        "evaluate_every": 10,
        "best_step_window": 3,
        "evaluation_rows": 50,
    }
    if MODELS[model].has_bounds:
        small |= {"sparsity_strength": 10.0, "sparsity_start": 10, "sparsity_end": 30}
        small |= {"sparsity_shape": "linear", "sparsity_scaling": "linear"}
    return published_cell(model, **small | changes)


GIVEN: dict[str, Any] = {"success_epsilon": None, "success_threshold": 1e-5}
"""A threshold for cells without one in closed form."""

INPUTS: dict[str, dict[str, Any]] = {
    "halves": {
        "distribution": "halves",
        "interpolation_range": ((-2.0, -1.0), (1.0, 2.0)),
        "extrapolation_range": ((-6.0, -2.0), (2.0, 6.0)),
    },
    "normal": {
        "distribution": "normal",
        "interpolation_mean": -1.0,
        "extrapolation_mean": -10.0,
        "deviation": 3.0,
        "interpolation_range": ((-5.0, 10.0),),
        "extrapolation_range": ((-15.0, -5.0),),
    },
    "benford": {
        "distribution": "benford",
        "interpolation_range": ((10.0, 99.0),),
        "extrapolation_range": ((100.0, 999.0),),
    },
}
"""Values that select each input distribution."""


def small_pack(*seeds: int, model: str = "NMU", **changes: Any) -> Pack:
    """Build a pack of one small cell."""
    cell = small_cell(model, **changes)
    return Pack(tuple(Trial(cell, seed) for seed in seeds))


def exact_result(trial: Trial, **changes: Any) -> Result:
    """Build a solved trial's result with numbers that reveal lost precision; `changes` replaces fields or metrics."""
    result = Result(
        trial=trial,
        outcome=Outcome.SOLVED,
        threshold=0.1 + 0.2,
        best_iteration=1000,
        metrics={"validation_mse": 1 / 3, "test_mse": 1e-300, "sparsity_error": 5e-324},
        solved_at_iteration=1000,
        iterations=trial.cell.iterations,
        training_s=1.1,
        engine="torch",
        device="cpu",
    )
    metrics = result.metrics | {name: changes.pop(name) for name in metric_columns() if name in changes}
    return replace(result, metrics={name: v for name, v in metrics.items() if v is not None}, **changes)


def bits(folder: StudyStore) -> list[Result]:
    """Return a study's results sorted by trial, with training times set to 0."""
    results = (replace(result, training_s=0.0) for result in table_results(folder.read_results()))
    return sorted(results, key=lambda result: result.trial.id)


def results_of(cell: Cell, first_seed: int = 0, **counts: int) -> list[Result]:
    """Build a cell's results, with a number of trials for each outcome; only the seeds depend on `first_seed`."""
    outcomes = [Outcome(name) for name, count in counts.items() for _ in range(count)]
    return [
        Result(
            trial=Trial(cell, first_seed + place),
            outcome=outcome,
            solved_at_iteration=10_000 + 1000 * place if outcome is Outcome.SOLVED else None,
            metrics={"sparsity_error": 1e-5 * (place + 1)} if outcome is Outcome.SOLVED else {},
            training_s=0.0 if outcome is Outcome.FAILED else 2.0,
            iterations=cell.iterations,
            error="killed" if outcome is Outcome.FAILED else None,
        )
        for place, outcome in enumerate(outcomes)
    ]


def table_of(summaries: Sequence[CellSummary], first_seed: int = 0) -> TrialTable:
    """Build trials with the outcomes that the summaries count; no two cells share seeds."""
    results = [
        result
        for place, summary in enumerate(summaries)
        for result in results_of(
            summary.cell, first_seed + 1000 * place, **{name: getattr(summary, name) for name in Outcome}
        )
    ]
    return TrialTable(results_table(results), ArithmeticTask.metrics)


def contrasts_of(rows: ResultRows) -> Contrasts:
    """Compare rows of `summaries_of` as independent samples."""
    return contrasts(rows, table_of([s for s in rows.summaries if isinstance(s, CellSummary)]))


def summarised(results: pa.Table, metrics: Mapping[str, Metric] | None = None, **options: Any) -> list[CellSummary]:
    """Summarise the cells of a table of results."""
    return aggregate(TrialTable(results, metrics or {}), **options)


def summarised_by(
    outcomes: pa.Table, by: Sequence[str], metrics: Mapping[str, Metric] | None = None, **options: Any
) -> list[GroupSummary]:
    """Summarise the groups of a table of outcomes."""
    return aggregate_by(TrialTable(outcomes, metrics or {}, tuple(by)), **options)


def summaries_of(*cells: tuple[Cell, dict[str, int]]) -> list[CellSummary]:
    """Build the summaries of cells, with a number of trials for each outcome or ``pending``."""
    planned = {cell: sum(counts.values()) for cell, counts in cells}
    results = [
        result
        for cell, counts in cells
        for result in results_of(cell, **{k: v for k, v in counts.items() if k != "pending"})
    ]
    return summarised(results_table(results), ArithmeticTask.metrics, planned=planned)


def outcomes_table(**columns: Any) -> pa.Table:
    """Build a table of outcomes from the given columns; seeds default to 0, 1, ..., other columns to nulls."""
    count = len(columns["outcome"])
    content = {field.name: pa.nulls(count, field.type) for field in OUTCOME_SCHEMA}
    return pa.table(content | {"seed": pa.array(range(count), pa.int64())} | columns)


def error_of(mean: float) -> dict[str, MetricSummary]:
    """Build the metrics of a row with this mean sparsity error."""
    metric = ArithmeticTask.metrics["sparsity_error"]
    return {"sparsity_error": MetricSummary(metric=metric, count=1, mean=mean)}


def report_of(
    summaries: Sequence[CellSummary], labels: Mapping[str, Mapping[str, str]] | None = None, **changes: Any
) -> Report:
    """Build the report of a study from its summaries; `changes` replaces fields of the report."""
    rows = cell_rows(summaries, labels or {})
    tests = contrasts(rows, table_of(summaries))
    rows = replace(rows, winners=tests.winners)
    content: dict[str, Any] = {
        "name": "demo",
        "question": "How often?",
        "rows": rows,
        "data": cells_rows(summaries, labels or {}),
        "command": "study report demo",
        "headline": headline(rows, tests),
        "contrasts": tests,
        "against": with_published(summaries),
        "notes": ["a note"],
        "provenance": [{"git_commit": "abc", "packages": {"torch": "2.13.0"}, "dirty": False}],
    }
    return Report(**content | changes)


PARAMETERS = (
    Parameter("model", "model", choices=("NMU", "NAC-mul")),
    Parameter("learning_rate", "learning_rate", low=1e-4, high=1e-1, is_log=True),
    Parameter("sparsity_end", "sparsity_end", low=1000, high=20000),
    Parameter("NMU.sparsity_strength", "sparsity_strength", low=0.03, high=30, is_log=True),
)


def candidate_of(number: int, objectives: Sequence[str]) -> Candidate:
    """Build a candidate with parameters and values that follow from its number."""
    values = {"success_rate": (number % 12) / 12, "time_to_success": 15_000.0 - 500 * (number % 7)}
    values["solved_at"] = values["time_to_success"] - 2000
    values["sparsity_error"] = 10.0 ** -(number % 5)
    params: dict[str, Any] = {
        "model": "NAC-mul" if number % 4 == 1 else "NMU",
        "learning_rate": 10.0 ** (-4 + 3 * (number * 0.618 % 1)),
        "sparsity_end": 1000 + (number * 733) % 19_000,
    }
    if params["model"] == "NMU":
        params["NMU.sparsity_strength"] = 0.03 * 10 ** (3 * (number * 0.382 % 1))
    return Candidate(
        number=number,
        round=number // 12,
        params=params,
        cell_id=f"cell-{number}",
        seeds=(5, 15, 40)[number % 3],
        values=tuple(values[name] for name in objectives),
    )


def search_of(
    objectives: Sequence[str] = ("success_rate",), count: int = 30, winners: Sequence[int] = (11,), **changes: Any
) -> tuple[SearchFindings, ResultRows]:
    """Build a search and the rows of its confirmed candidates; the first of them solved 90 of 100 trials."""
    candidates = tuple(candidate_of(number, objectives) for number in range(count))
    cells_of = [published_cell("NMU", init_variance=0.01 * (row + 1)) for row in range(max(1, len(winners)))]
    summaries = summaries_of(*((c, {"solved": 90 - i, "unsolved": 10 + i}) for i, c in enumerate(cells_of)))
    labels = {c.id: {"candidate": f"#{number}"} for c, number in zip(cells_of, winners, strict=False)}
    shares = {"learning_rate": 0.5, "sparsity_end": 0.3, "NMU.sparsity_strength": 0.15, "model": 0.05}
    content: dict[str, Any] = {
        "objectives": objectives_of(objectives, ArithmeticTask.metrics),
        "parameters": PARAMETERS,
        "candidates": candidates,
        "front": tuple(winners),
        "rows": {number: row for row, number in enumerate(winners)},
        "importance": dict.fromkeys(objectives, shares),
        "trials": sum(candidate.seeds for candidate in candidates),
        "budget": 600,
        "fresh": 100,
        "impossible": 2,
        "sampler": "TPE, Optuna 5.0.0",
        "is_over": bool(winners),
        "file": "study: demo-winner\nseeds: [40, 41]\n" if winners else "",
    }
    return SearchFindings(**content | changes), cell_rows(summaries, labels)


class Dashboard:
    """Links like those into MLflow's dashboard."""

    def trial(self, trial_id: str) -> str:
        """Return the address of a trial's page."""
        return f"http://127.0.0.1:5000/#/runs?trial={trial_id}&more=1"

    def cell(self, cell_id: str) -> str:
        """Return the address of a cell's page."""
        return f"http://127.0.0.1:5000/#/runs?cell={cell_id}"


def listed(summaries: Sequence[CellSummary]) -> pa.Table:
    """Build the table of trials that the summaries count."""
    rows = [
        {
            "row": row,
            "cell_id": s.cell_id,
            "trial_id": Trial(s.cell, seed).id,
            "seed": seed,
            "outcome": outcome,
            "solved_at_iteration": 10_000 + 1000 * seed if outcome == "solved" else None,
            "sparsity_error": 1e-5 * (seed + 1),
            "test_mse": 0.25,
            "training_s": 2.0,
            "error": "it <crashed>" if outcome == "failed" else None,
        }
        for row, s in enumerate(summaries)
        for seed, outcome in enumerate(
            name for name in ("solved", "unsolved", "diverged", "failed") for _ in range(getattr(s, name))
        )
    ]
    return pa.Table.from_pylist(rows)


def demo() -> tuple[list[CellSummary], dict[str, dict[str, str]]]:
    """Build summaries like those of the demo (two schedules, and a model without one), and the cells' labels."""
    schedules: dict[str, dict[str, Any]] = {
        "off": {"sparsity_strength": None, "sparsity_start": None, "sparsity_end": None},
        "late mild": {"sparsity_strength": 1.0, "sparsity_start": 30_000, "sparsity_end": 60_000},
    }
    cells, labels = [], {}
    for hidden_size in (2, 3, 10):
        for rank, (label, schedule) in enumerate(schedules.items()):
            cell = published_cell("NMU", hidden_size=hidden_size, iterations=100_000, **schedule)
            cells.append((cell, {"solved": 8 - rank, "unsolved": 2 + rank}))
            labels[cell.id] = {"schedule": label}
        cell = published_cell("NAC-mul", hidden_size=hidden_size, iterations=100_000)
        counts = {2: {"solved": 1, "diverged": 9}, 3: {"failed": 1, "solved": 2, "pending": 7}, 10: {"unsolved": 10}}
        cells.append((cell, counts[hidden_size]))
        labels[cell.id] = {}
    return summaries_of(*cells), labels
