"""Published results: one row a cell, read from the CSV files of study/reference."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain, groupby
from typing import Any

from study import statistics
from study.records import Interval
from study.statistics.samples import intervals, numbers
from study.words import MODEL_NAMES

SOURCE = "Madsen & Johansen, Neural Arithmetic Units, ICLR 2020"


Row = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Published:
    """One published cell. None means that there was no such number.

    Args:
        table: the name of its file, without ``.csv``.
        task: ``simple`` or ``arithmetic``.
        operation: ``add`` or ``mul``.
        model: its name in study files.
        hidden_size: hidden units.
        sparsity: whether the sparsity regulariser was used as the model prescribes.
        clipped: whether weights were clipped; if not, they were bounded in the forward pass, without a regulariser.
        solved: the number of seeds that solved the task.
        seeds: the number of seeds.
        solved_at_median: iterations.
        solved_at_mean: iterations.
        solved_at_interval: of the mean, 95%.
        sparsity_error_mean: of the solved seeds.
        sparsity_error_interval: of the mean, 95%.
    """

    table: str
    task: str
    operation: str
    model: str
    hidden_size: int
    sparsity: bool = True
    clipped: bool = True
    solved: int
    seeds: int
    solved_at_median: float | None = None
    solved_at_mean: float | None = None
    solved_at_interval: Interval | None = None
    sparsity_error_mean: float | None = None
    sparsity_error_interval: Interval | None = None


@cache
def published() -> tuple[Published, ...]:
    """Read every published cell.

    Example:
        >>> [(row.solved, row.seeds) for row in published() if row.task == "simple" and row.model == "NMU"]
        [(94, 100)]
    """
    sizes = (_printed(table, "arithmetic") for table in ("hidden_size", "hidden_size_ablation"))
    return (*_printed("simple_summary", "simple"), *_static(), *chain.from_iterable(sizes))


def rows(table: str) -> list[Row]:
    """Read a file's rows as they are written."""
    text = resources.files("study.reference").joinpath(f"{table}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _printed(table: str, task: str) -> Iterator[Published]:
    """Take the numbers of a table as they are printed: nobody has its seeds."""
    for row in rows(table):
        model, *without = row["model"].split(", no ")
        yield Published(
            table=table,
            task=task,
            operation=row.get("operation", "mul"),
            model=MODEL_NAMES[model],
            hidden_size=int(row.get("hidden_size", 2)),
            sparsity="Rsparse" not in without,
            clipped="W-clamp" not in without,
            solved=int(row["solved"]),
            seeds=int(row["seeds"]),
            solved_at_median=_number(row, "solved_at_median"),
            solved_at_mean=_number(row, "solved_at_mean"),
            solved_at_interval=_interval(row, "solved_at"),
            sparsity_error_mean=_number(row, "sparsity_error_mean"),
            sparsity_error_interval=_interval(row, "sparsity_error"),
        )


def _static() -> Iterator[Published]:
    """Compute the static study's numbers from its seeds, so that both sides of a comparison are estimated alike."""
    by_cell = groupby(rows("static_seeds"), lambda row: (row["operation"], row["model"]))
    seeds = {cell: list(group) for cell, group in by_cell}
    solved = [[row for row in of_cell if row["solved"] == "True"] for of_cell in seeds.values()]
    sizes = [len(of_cell) for of_cell in solved]
    solved_at, sparsity_error = (
        [float(row[column]) for of_cell in solved for row in of_cell] for column in ("solved_at", "sparsity_error")
    )
    columns: dict[str, list[Any]] = {
        "solved": sizes,
        "seeds": [len(of_cell) for of_cell in seeds.values()],
        "solved_at_median": numbers(statistics.medians(solved_at, sizes)),
        "solved_at_mean": numbers(statistics.means(solved_at, sizes)),
        "solved_at_interval": intervals(statistics.gamma_mean_intervals(solved_at, sizes)),
        "sparsity_error_mean": numbers(statistics.means(sparsity_error, sizes)),
        "sparsity_error_interval": intervals(statistics.beta_mean_intervals(sparsity_error, sizes)),
    }
    for (operation, model), values in zip(seeds, zip(*columns.values(), strict=True), strict=True):
        yield Published(
            table="static_seeds",
            task="arithmetic",
            operation=operation,
            model=MODEL_NAMES[model],
            hidden_size=2,
            **dict(zip(columns, values, strict=True)),
        )


def _number(row: Row, column: str) -> float | None:
    return float(row[column]) if row.get(column) else None


def _interval(row: Row, name: str) -> Interval | None:
    low, high = _number(row, f"{name}_lower"), _number(row, f"{name}_upper")
    return (low, high) if low is not None and high is not None else None
