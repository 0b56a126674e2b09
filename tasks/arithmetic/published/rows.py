"""Published results from the CSV files of this folder, one row a cell, and the match of cells with them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from itertools import chain, groupby
from statistics import median
from typing import Any

from study.comparisons.published import PublishedCell
from study.records import Cell, Interval
from study.summaries.solved_times import SolvedTimes
from tasks.arithmetic import MODELS
from tasks.arithmetic.canonical import canonical
from tasks.arithmetic.cell import ArithmeticCell, typed_cell
from tasks.arithmetic.symbols import SYMBOLS

SOURCE = "Madsen & Johansen, Neural Arithmetic Units, ICLR 2020"

_PROTOCOL: dict[str, Any] = {
    "subsets": 2,
    "interpolation_range": ((1.0, 2.0),),
    "extrapolation_range": ((2.0, 6.0),),
    "init_variance": None,
    "init_range": None,
    "init_signs": None,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "batch_size": 128,
    "evaluate_every": 1000,
    "evaluation_rows": 10_000,
    "success_epsilon": 1e-5,
    "success_threshold": None,
    "distribution": None,
    "l1_strength": None,
    "clip_norm": None,
    "clip_value": None,
}
_TASKS: dict[str, dict[str, Any]] = {
    "simple": {"input_size": 4, "iterations": 200_000},
    "arithmetic": {"input_size": 100, "subset_ratio": 0.25, "overlap_ratio": 0.5, "iterations": 5_000_000},
}
_BEST_STEP_WINDOW = 5000
_FROM_SEEDS = "static_seeds"
"""The table whose numbers are computed from its seeds, as a study's are."""

PRINTED_CAUTION = (
    "Published times and sparsity errors of these cells aren't comparable with those here: only printed means are "
    "known, and their estimators were faulty. The mean solved-at is mostly off by 1 to 2%, but for 38 seeds at 4,000 "
    "and one at 1,020,000 it is 86,000 instead of 30,051. Most sparsity errors are half the true mean. Success rates "
    "are counts, and comparable."
)

Row = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published cell. None stands for a number that wasn't published.

    Args:
        table: the name of its file, without ``.csv``.
        task: ``simple`` or ``arithmetic``.
        operation: ``add`` or ``mul``.
        model: its name in study files.
        hidden_size: hidden units.
        sparsity: True if the model's own sparsity regulariser was used.
        clipped: True if weights were clipped; False if they were bounded in the forward pass, without a regulariser.
        solved: the number of seeds that solved the task.
        seeds: the number of seeds.
        solved_at_median: median iteration of success.
        solved_at_mean: mean iteration of success.
        solved_at_interval: 95% interval of that mean.
        sparsity_error_mean: mean of the solved seeds.
        sparsity_error_interval: 95% interval of that mean.
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
    """Read every published cell: those of `printed`, then those of the static study.

    Example:
        >>> [(row.solved, row.seeds) for row in published() if row.task == "simple" and row.model == "NMU"]
        [(94, 100)]
    """
    return (*printed(), *_static())


@cache
def printed() -> tuple[Published, ...]:
    """Read the published cells without seeds: only their printed numbers are known."""
    sizes = (_printed(table, "arithmetic") for table in ("hidden_size", "hidden_size_ablation"))
    return (*_printed("simple_summary", "simple"), *chain.from_iterable(sizes))


@cache
def static_seeds() -> dict[tuple[str, str], list[Row]]:
    """Read the rows of the static study, one a seed, by operation and model's name in study files."""
    by_cell = groupby(rows("static_seeds"), lambda row: (row["operation"], SYMBOLS.model_names[row["model"]]))
    return {cell: list(group) for cell, group in by_cell}


def rows(table: str) -> list[Row]:
    """Read the rows of a CSV file of this folder, given its name without ``.csv``; values are texts by column.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    text = resources.files(__package__).joinpath(f"{table}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _printed(table: str, task: str) -> Iterator[Published]:
    """Read a table's printed numbers."""
    for row in rows(table):
        model, *without = row["model"].split(", no ")
        yield Published(
            table=table,
            task=task,
            operation=row.get("operation", "mul"),
            model=SYMBOLS.model_names[model],
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
    """Compute the static study's numbers from its seeds, with the estimators of this study's own numbers."""
    # imported late: scipy takes seconds to import
    from study import statistics
    from study.statistics.samples import intervals, numbers

    seeds = static_seeds()
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
            table=_FROM_SEEDS,
            task="arithmetic",
            operation=operation,
            model=model,
            hidden_size=2,
            **dict(zip(columns, values, strict=True)),
        )


def _number(row: Row, column: str) -> float | None:
    return float(row[column]) if row.get(column) else None


def _interval(row: Row, name: str) -> Interval | None:
    low, high = _number(row, f"{name}_lower"), _number(row, f"{name}_upper")
    return (low, high) if low is not None and high is not None else None


def trained_cell(task: str, operation: str, model: str, hidden_size: int) -> Cell:
    """Return the cell that repeats a published one with the model's own regulariser and bounds.

    Raises:
        KeyError: if the task or the model is unknown.
        ValueError: if the operation is unknown, or the task doesn't have it.

    Example:
        >>> trained_cell("simple", "mul", "NMU", 2).value("iterations")
        200000
    """
    content = asdict(canonical(task, model, {"operation": operation, "hidden_size": hidden_size}))
    return Cell(content.pop("task"), content.pop("model"), content)


def matches(cell: Cell, row: Published) -> bool:
    """Return True if a canonical cell repeats a published one.

    Both must have the same task with its input size and subsets, operation, model, hidden size, `_PROTOCOL`, number of
    iterations, sparsity regulariser and bounds.

    A sparsity schedule that starts at the last iteration or later counts as off. A best-step window longer than the run
    counts as the full run. `stop: when_decided` doesn't change outcomes.
    """
    if cell.task not in _TASKS:
        return False
    typed = typed_cell(cell)
    fixed = {
        **_PROTOCOL,
        **_TASKS[row.task],
        "task": row.task,
        "operation": row.operation,
        "model": row.model,
        "hidden_size": row.hidden_size,
    }
    return (
        all(getattr(typed, name) == value for name, value in fixed.items())
        and min(typed.best_step_window, typed.evaluations) == min(_BEST_STEP_WINDOW, typed.evaluations)
        and _sparsity(typed) == _published_sparsity(typed, row)
        and _bounds_match(typed, row)
    )


def choose(cell: Cell, cells: Iterable[Cell]) -> Published | None:
    """Choose the published cell that a cell repeats; None if there isn't one.

    Args:
        cell: the cell.
        cells: all cells of its study. If those of the same model differ in hidden size, tables of published sweeps are
            preferred; otherwise the table of the static study.
    """
    candidates = [row for row in published() if matches(cell, row)]
    swept = len({other.value("hidden_size") for other in cells if other.model == cell.model}) > 1
    preferred = ("hidden_size_ablation", "hidden_size") if swept else ("static_seeds", "hidden_size_ablation")
    ranks = {table: rank for rank, table in enumerate(preferred)}
    return min(candidates, key=lambda row: ranks.get(row.table, len(ranks)), default=None)


def _sparsity(cell: ArithmeticCell) -> tuple[Any, ...] | None:
    """Return the sparsity regulariser's schedule; None if it is never on."""
    if not cell.sparsity_strength or (cell.sparsity_start or 0) >= cell.iterations:
        return None
    shape, scaling = cell.sparsity_shape, cell.sparsity_scaling
    return (cell.sparsity_strength, cell.sparsity_start, cell.sparsity_end, shape, scaling)


def _published_sparsity(cell: ArithmeticCell, row: Published) -> tuple[Any, ...] | None:
    model = MODELS[row.model]
    if not row.sparsity or not model.sparsity_strength or (model.sparsity_start or 0) >= cell.iterations:
        return None
    return (model.sparsity_strength, model.sparsity_start, model.sparsity_end, "linear", "linear")


def _bounds_match(cell: ArithmeticCell, row: Published) -> bool:
    if row.clipped:
        return cell.bounds in (None, "clipped")
    return cell.bounds == "regularized" and not cell.out_of_bounds_strength


@cache
def published_times() -> tuple[SolvedTimes, ...]:
    """Return the solved times of the published cells with regulariser and clipping, if any seed solved the task.

    They have the printed mean; cells with seeds have the median instead, and the first time.

    Example:
        >>> next(times.first for times in published_times() if times.cell.model == "NAU" and times.first)
        15000
    """
    times = [
        SolvedTimes(
            trained_cell(row.task, row.operation, row.model, row.hidden_size), SOURCE, row.solved, row.solved_at_mean
        )
        for row in printed()
        if row.solved_at_mean is not None and row.sparsity and row.clipped
    ]
    for (operation, model), seeds in static_seeds().items():
        solved_at = [int(float(row["solved_at"])) for row in seeds if row["solved"] == "True"]
        if solved_at:
            cell = trained_cell("arithmetic", operation, model, hidden_size=2)
            times.append(SolvedTimes(cell, SOURCE, len(solved_at), median(solved_at), min(solved_at)))
    return tuple(times)


class ArithmeticPublished:
    """The published results of the arithmetic tasks, as `study.comparisons.published.PublishedResults`.

    Attributes:
        sources: the publication.
    """

    sources = (SOURCE,)

    def choose(self, cell: Cell, cells: Iterable[Cell]) -> PublishedCell | None:
        """Return the published cell that a cell repeats, or None; see `choose`."""
        row = choose(cell, cells)
        if row is None:
            return None
        return PublishedCell(
            source=SOURCE,
            table=row.table,
            solved=row.solved,
            seeds=row.seeds,
            solved_at_median=row.solved_at_median,
            solved_at_mean=row.solved_at_mean,
            solved_at_interval=row.solved_at_interval,
            metrics={"sparsity_error": (row.sparsity_error_mean, row.sparsity_error_interval)},
            caution="" if row.table == _FROM_SEEDS else PRINTED_CAUTION,
        )

    def times(self) -> tuple[SolvedTimes, ...]:
        """Return the solved times of the published cells; see `published_times`."""
        return published_times()


PUBLISHED = ArithmeticPublished()
"""The published results, as `study` uses them."""
