"""Solved times of other cells, and warnings about planned cells with fewer iterations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from study import words
from study.interface.family import Family
from study.records import Cell

# Solved times aren't comparable between trials that differ in one of these.
_PACE = ("optimizer", "learning_rate")


@dataclass(frozen=True)
class SolvedTimes:
    """The solved times of a cell's trials.

    Args:
        cell: the cell.
        source: the source of the cell, in words.
        solved: the number of solved trials.
        mean: the mean or median of the iterations at which trials were solved.
        first: the fewest of these iterations; None if only the mean was published.
    """

    cell: Cell
    source: str
    solved: int
    mean: float
    first: int | None = None

    @property
    def least(self) -> float:
        """The fewest iterations that were enough, or the mean if the fewest aren't known."""
        return self.mean if self.first is None else self.first

    def sentence(self, family: Family) -> str:
        """Return the solved times as a sentence, with the cell's sizes.

        Args:
            family: the family that declares the cell's hyperparameters.

        Raises:
            InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
        """
        sizes = ((name, self.cell.value(name)) for name in family.sizes)
        texts = [
            f"{words.title(name, family.titles)} {words.format_value(name, value)}"
            for name, value in sizes
            if value is not None
        ]
        where = f"In {self.source}{f' ({words.join_and(texts)})' if texts else ''}"
        trials = words.count_of(self.solved, "solved trial")
        if self.first is None:
            return f"{where}, {trials} took {self.mean:,.0f} iterations on average."
        if self.solved == 1:
            return f"{where}, the only solved trial was solved at iteration {self.first:,}."
        return f"{where}, the first of {trials} was solved at iteration {self.first:,}, and half by {self.mean:,.0f}."


def too_few_iterations(cells: Iterable[Cell], times: Sequence[SolvedTimes], family: Family) -> list[str]:
    """Return warnings about cells with fewer iterations than comparable cells are known to have needed.

    Cells are comparable if they have the same question, model, optimiser and learning rate. Of these, the cells of each
    source that are nearest in sizes and the other hyperparameters of the method count. Hyperparameters of the table
    ``protocol`` are ignored. Cells without a comparable one are skipped.

    Args:
        cells: planned cells.
        times: solved times of other cells.
        family: the family that declares their hyperparameters.

    Returns:
        A sentence for each model and number of iterations of such cells, with the fewest iterations that comparable
        cells needed.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    by_kind: dict[tuple[str, int], list[SolvedTimes | None]] = {}
    for cell in cells:
        nearest = min(_nearest(cell, times, family), key=lambda entry: entry.least, default=None)
        is_short = nearest is not None and cell.iterations < nearest.least
        by_kind.setdefault((cell.model, cell.iterations), []).append(nearest if is_short else None)
    sentences = []
    for (model, iterations), all_ in by_kind.items():
        short = [entry for entry in all_ if entry is not None]
        if short:
            part = "" if len(short) == len(all_) else f" ({len(short)} of {len(all_)} cells)"
            known = min(short, key=lambda entry: entry.least).sentence(family)
            sentences.append(f"{iterations:,} iterations may be too few for {words.symbol(model)}{part}. {known}")
    return sentences


def _nearest(cell: Cell, times: Sequence[SolvedTimes], family: Family) -> Iterator[SolvedTimes]:
    """Yield, for each source, the times of the comparable cells that are nearest to a cell by `_distance`."""
    declared = family.hyperparameters.items()
    others = [name for name, declaration in declared if declaration.is_method and name not in _PACE]
    sizes = family.sizes
    protocol = [name for name, declaration in declared if declaration.table == "protocol"]
    fixed = [name for name in cell.values if name not in (*others, *sizes, *protocol)]
    apart: dict[str, list[tuple[tuple[int, float], SolvedTimes]]] = {}
    for entry in times:
        is_alike = entry.cell.task == cell.task and entry.cell.model == cell.model
        if is_alike and all(entry.cell.value(name) == cell.value(name) for name in fixed):
            apart.setdefault(entry.source, []).append((_distance(cell, entry.cell, others, sizes), entry))
    for entries in apart.values():
        least = min(distance for distance, _ in entries)
        yield from (entry for distance, entry in entries if distance == least)


def _distance(cell: Cell, other: Cell, names: Collection[str], sizes: Collection[str]) -> tuple[int, float]:
    """Return the number of differing hyperparameters of two cells, and the difference of their sizes."""
    differing, apart = sum(cell.value(name) != other.value(name) for name in names), 0.0
    for first, second in ((cell.value(name), other.value(name)) for name in sizes):
        if isinstance(first, int | float) and isinstance(second, int | float):
            apart += abs(first - second)
        else:
            differing += first != second
    return differing, apart
