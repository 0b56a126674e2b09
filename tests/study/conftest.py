"""Cells, packs, results and reports that many tests begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from study.analysis.aggregate import CellSummary, aggregate
from study.analysis.contrasts import contrasts
from study.analysis.headline import headline
from study.arrow import results_table
from study.records import Cell, Outcome, Pack, Result, Trial
from study.report import (
    Chosen,
    Report,
    ResultRows,
    Searched,
    Sought,
    Tried,
    cells,
    cells_rows,
    with_published,
)
from tasks import MODELS


def small_cell(model: str = "NMU", **changes: Any) -> Cell:
    """Build a cell of the simple task with a short run, in the middle of which the sparsity schedule is on."""
    content: dict[str, Any] = {
        "task": "simple",
        "operation": "mul",
        "input_size": 4,
        "subset_ratio": None,
        "overlap_ratio": None,
        "subsets": 2,
        "interpolation_range": ((1.0, 2.0),),
        "extrapolation_range": ((2.0, 6.0),),
        "model": model,
        "hidden_size": 2,
        "batch_size": 16,
        "iterations": 40,
        "evaluate_every": 10,
        "best_step_window": 3,
        "evaluation_rows": 50,
    }
    if MODELS[model].has_bounds:
        content |= {
            "bounds": "clipped",
            "sparsity_strength": 10.0,
            "sparsity_start": 10,
            "sparsity_end": 30,
            "sparsity_shape": "linear",
            "sparsity_scaling": "linear",
        }
    return Cell(**content | changes)


def small_pack(*seeds: int, model: str = "NMU", **changes: Any) -> Pack:
    """Build a pack of one small cell."""
    cell = small_cell(model, **changes)
    return Pack(tuple(Trial(cell, seed) for seed in seeds))


@pytest.fixture(name="small_cell")
def _small_cell() -> Callable[..., Cell]:
    return small_cell


@pytest.fixture(name="small_pack")
def _small_pack() -> Callable[..., Pack]:
    return small_pack


def published_cell(model: str, **changes: Any) -> Cell:
    """Build the published simple-task cell of a model."""
    prescribed = MODELS[model]
    content: dict[str, Any] = {
        "task": "simple",
        "operation": "mul",
        "input_size": 4,
        "subset_ratio": None,
        "overlap_ratio": None,
        "subsets": 2,
        "interpolation_range": ((1.0, 2.0),),
        "extrapolation_range": ((2.0, 6.0),),
        "model": model,
        "hidden_size": 2,
        "iterations": 200_000,
        "bounds": "clipped" if prescribed.has_bounds else None,
    }
    if prescribed.sparsity_strength:
        content |= {
            "sparsity_strength": prescribed.sparsity_strength,
            "sparsity_start": prescribed.sparsity_start,
            "sparsity_end": prescribed.sparsity_end,
            "sparsity_shape": "linear",
            "sparsity_scaling": "linear",
        }
    return Cell(**content | changes)


def arithmetic_cell(model: str, **changes: Any) -> Cell:
    """Build the published arithmetic-task cell of a model, for multiplication."""
    content = {"task": "arithmetic", "input_size": 100, "subset_ratio": 0.25, "overlap_ratio": 0.5}
    return published_cell(model, **content | {"iterations": 5_000_000} | changes)


def results_of(cell: Cell, **counts: int) -> list[Result]:
    """Make a cell's results, with a number of trials for each outcome."""
    outcomes = [Outcome(name) for name, count in counts.items() for _ in range(count)]
    return [
        Result(
            trial=Trial(cell, seed),
            outcome=outcome,
            solved_at_iteration=10_000 + 1000 * seed if outcome is Outcome.SOLVED else None,
            sparsity_error=1e-5 * (seed + 1) if outcome is Outcome.SOLVED else None,
            training_s=0.0 if outcome is Outcome.FAILED else 2.0,
            iterations=cell.iterations,
            error="killed" if outcome is Outcome.FAILED else None,
        )
        for seed, outcome in enumerate(outcomes)
    ]


def table_of(*cells: tuple[Cell, dict[str, int]]) -> pa.Table:
    """Make a table of results."""
    return results_table(result for cell, counts in cells for result in results_of(cell, **counts))


def summaries_of(*cells: tuple[Cell, dict[str, int]]) -> list[CellSummary]:
    """Make the summaries of cells, with a number of trials for each outcome or ``pending``."""
    planned = {cell: sum(counts.values()) for cell, counts in cells}
    done = [(cell, {k: v for k, v in counts.items() if k != "pending"}) for cell, counts in cells]
    return aggregate(table_of(*done), planned=planned)


def report_of(
    summaries: Sequence[CellSummary], labels: Mapping[str, Mapping[str, str]] | None = None, **changes: Any
) -> Report:
    """Put together the report of a study, as `study.results.study` does."""
    rows = cells(summaries, labels or {})
    contrasted = contrasts(rows)
    content: dict[str, Any] = {
        "name": "demo",
        "question": "How often?",
        "rows": rows,
        "data": cells_rows(summaries, labels or {}),
        "command": "study report demo",
        "headline": headline(rows, contrasted),
        "contrasts": contrasted,
        "against": with_published(summaries),
        "notes": ["a note"],
        "provenance": [{"git_commit": "abc", "packages": {"torch": "2.13.0"}, "dirty": False}],
    }
    return Report(**content | changes)


SOUGHT = {
    "solved_at": Sought(
        name="solved_at", title="solved at, geometric mean of all trials, upper end", is_sought_high=False
    ),
    "success_rate": Sought(name="success_rate", title="success rate, lower end", is_sought_high=True),
    "time_to_success": Sought(
        name="time_to_success", title="time to success, restricted mean, upper end", is_sought_high=False
    ),
    "sparsity_error": Sought(
        name="sparsity_error",
        title="sparsity error, geometric mean of all trials, upper end",
        is_sought_high=False,
    ),
}
PARAMETERS = (
    Chosen(name="model", choices=("NMU", "NAC-mul")),
    Chosen(name="learning_rate", low=1e-4, high=1e-1, is_log=True),
    Chosen(name="sparsity_end", low=1000, high=20000),
    Chosen(name="NMU.sparsity_strength", low=0.03, high=30, is_log=True),
)


def tried(number: int, objectives: Sequence[str], **changes: Any) -> Tried:
    """Make a candidate whose parameters and values follow from its number."""
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
    content: dict[str, Any] = {
        "number": number,
        "round": number // 12,
        "params": params,
        "seeds": (5, 15, 40)[number % 3],
        "values": tuple(values[name] for name in objectives),
    }
    return Tried(**content | changes)


def search_of(
    objectives: Sequence[str] = ("success_rate",),
    count: int = 30,
    winners: Sequence[int] = (11,),
    **changes: Any,
) -> tuple[Searched, ResultRows]:
    """Make a search and the rows of its confirmed candidates; the first of them solved 90 of 100 trials."""
    candidates = [tried(number, objectives, is_front=number in winners) for number in range(count)]
    for row, number in enumerate(winners):
        candidates[number] = tried(number, objectives, is_front=True, row=row)
    cells_of = [published_cell("NMU", init_variance=0.01 * (row + 1)) for row in range(max(1, len(winners)))]
    summaries = summaries_of(*((c, {"solved": 90 - i, "unsolved": 10 + i}) for i, c in enumerate(cells_of)))
    labels = {c.id: {"candidate": f"#{number}"} for c, number in zip(cells_of, winners, strict=False)}
    shares = {"learning_rate": 0.5, "sparsity_end": 0.3, "NMU.sparsity_strength": 0.15, "model": 0.05}
    content: dict[str, Any] = {
        "objectives": tuple(SOUGHT[name] for name in objectives),
        "parameters": PARAMETERS,
        "candidates": tuple(candidates),
        "importance": dict.fromkeys(objectives, shares),
        "trials": sum(candidate.seeds for candidate in candidates),
        "budget": 600,
        "fresh": 100,
        "impossible": 2,
        "sampler": "TPE, Optuna 5.0.0",
        "is_over": bool(winners),
        "file": "study: demo-winner\nseeds: [40, 41]\n" if winners else "",
    }
    return Searched(**content | changes), cells(summaries, labels)


class Dashboard:
    """Links like those into MLflow's dashboard."""

    def trial(self, trial_id: str) -> str:
        """Return the address of a trial's page."""
        return f"http://127.0.0.1:5000/#/runs?trial={trial_id}&more=1"

    def cell(self, cell_id: str) -> str:
        """Return the address of a cell's page."""
        return f"http://127.0.0.1:5000/#/runs?cell={cell_id}"


def listed(summaries: Sequence[CellSummary]) -> pa.Table:
    """Make a table of the trials that summaries count."""
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


@pytest.fixture(name="search_of")
def _search_of() -> Callable[..., tuple[Searched, ResultRows]]:
    return search_of


@pytest.fixture(name="tried")
def _tried() -> Callable[..., Tried]:
    return tried


@pytest.fixture(name="listed")
def _listed() -> Callable[..., pa.Table]:
    return listed


@pytest.fixture
def dashboard() -> Dashboard:
    """Return links into a dashboard."""
    return Dashboard()


@pytest.fixture(name="report_of")
def _report_of() -> Callable[..., Report]:
    return report_of


@pytest.fixture(name="published_cell")
def _published_cell() -> Callable[..., Cell]:
    return published_cell


@pytest.fixture(name="arithmetic_cell")
def _arithmetic_cell() -> Callable[..., Cell]:
    return arithmetic_cell


@pytest.fixture(name="summaries_of")
def _summaries_of() -> Callable[..., list[CellSummary]]:
    return summaries_of


@pytest.fixture(name="demo")
def _demo() -> tuple[list[CellSummary], dict[str, dict[str, str]]]:
    """Return a small study like the demo (two schedules, and a model without one) and its labels."""
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
        counts = {
            2: {"solved": 1, "diverged": 9},
            3: {"failed": 1, "solved": 2, "pending": 7},
            10: {"unsolved": 10},
        }
        cells.append((cell, counts[hidden_size]))
        labels[cell.id] = {}
    return summaries_of(*cells), labels
