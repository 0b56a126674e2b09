"""When trials of other cells were solved, and which planned cells have fewer iterations than that took."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from study import words
from study.interface.family import Family
from study.records import Cell

# Trials that differ in one of these are no guide to how long others take.
_PACE = ("optimizer", "learning_rate")


@dataclass(frozen=True)
class SolvedTimes:
    """When the trials of a cell were solved.

    Args:
        cell: the cell.
        source: where it is from, in words.
        solved: the number of its trials that were solved.
        mean: the mean of the iterations at which they were, or their median.
        first: the fewest of them; None where only their mean was published.
    """

    cell: Cell
    source: str
    solved: int
    mean: float
    first: int | None = None

    @property
    def least(self) -> float:
        """The fewest iterations that are known to have been enough, or what was enough on average."""
        return self.mean if self.first is None else self.first

    def sentence(self, family: Family) -> str:
        """Write what is known as a sentence, with the cell's sizes.

        Args:
            family: what declares its hyperparameters.
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
    """Say which cells have fewer iterations than any cell like them is known to have needed.

    Cells are alike if they ask the same and have the same model, optimiser and learning rate. Of these, what counts is
    those of each source that are nearest in all else. A cell without its like is passed over.

    Args:
        cells: planned cells.
        times: when trials of other cells were solved.
        family: what declares their hyperparameters.

    Returns:
        A sentence for each model and number of iterations, by the fewest iterations that such cells needed.
    """
    of_kind: dict[tuple[str, int], list[SolvedTimes | None]] = {}
    for cell in cells:
        nearest = min(_nearest(cell, times, family), key=lambda one: one.least, default=None)
        is_short = nearest is not None and cell.iterations < nearest.least
        of_kind.setdefault((cell.model, cell.iterations), []).append(nearest if is_short else None)
    sentences = []
    for (model, iterations), all_ in of_kind.items():
        short = [one for one in all_ if one is not None]
        if short:
            part = "" if len(short) == len(all_) else f" ({len(short)} of {len(all_)} cells)"
            known = min(short, key=lambda one: one.least).sentence(family)
            sentences.append(f"{iterations:,} iterations may be too few for {words.symbol(model)}{part}. {known}")
    return sentences


def _nearest(cell: Cell, times: Sequence[SolvedTimes], family: Family) -> Iterator[SolvedTimes]:
    """Yield the times of those cells of each source that are most like a cell."""
    declared = family.hyperparameters.items()
    others = [name for name, one in declared if one.is_method and name not in _PACE]
    sizes = family.sizes
    protocol = [name for name, one in declared if one.table == "protocol"]
    fixed = [name for name in cell.values if name not in (*others, *sizes, *protocol)]
    apart: dict[str, list[tuple[tuple[int, float], SolvedTimes]]] = {}
    for one in times:
        is_alike = one.cell.task == cell.task and one.cell.model == cell.model
        if is_alike and all(one.cell.value(name) == cell.value(name) for name in fixed):
            apart.setdefault(one.source, []).append((_distance(cell, one.cell, others, sizes), one))
    for of_source in apart.values():
        least = min(distance for distance, _ in of_source)
        yield from (one for distance, one in of_source if distance == least)


def _distance(cell: Cell, other: Cell, names: Collection[str], sizes: Collection[str]) -> tuple[int, float]:
    """Return in how many hyperparameters two cells differ, and by how much in their sizes."""
    differing, apart = sum(cell.value(name) != other.value(name) for name in names), 0.0
    for one, two in ((cell.value(name), other.value(name)) for name in sizes):
        if isinstance(one, int | float) and isinstance(two, int | float):
            apart += abs(one - two)
        else:
            differing += one != two
    return differing, apart
