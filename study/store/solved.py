"""Iterations at which a study's trials were solved, by cell, read without the other columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from study.arrow import table_cells
from study.records import Cell, Outcome
from study.store.validated import ValidatedFiles

_COLUMNS = ["cell_id", "task", "model", "outcome", "criterion", "solved_at_iteration"]


def solved_cells(
    files: ValidatedFiles, task: str, models: Collection[str], criterion: str | None
) -> Iterator[tuple[Cell, Sequence[int]]]:
    """Yield each cell that has solved trials, with the iterations at which they were solved.

    A trial with two results counts twice. A solved trial without an iteration is left out.

    Args:
        files: the study's files.
        task: name of the task.
        models: names of the models.
        criterion: the criterion of the trials to count, in words; None for trials judged by their cells.

    Raises:
        InputError: if a newer package wrote one of the files.
        StoreError: if a file can't be read.
    """
    iterations: dict[str, list[int]] = {}
    file_of: dict[str, str] = {}
    for key, table in files.tables(files.keys("results"), _COLUMNS):
        if table is None:
            continue
        judged_alike = pc.is_null(table["criterion"]) if criterion is None else pc.equal(table["criterion"], criterion)
        is_solved = pc.and_(pc.equal(table["outcome"], str(Outcome.SOLVED)), pc.is_valid(table["solved_at_iteration"]))
        is_alike = pc.and_(pc.equal(table["task"], task), pc.is_in(table["model"], pa.array(list(models), pa.string())))
        rows = table.filter(pc.and_(pc.and_(judged_alike, is_solved), is_alike))
        cells, values = rows["cell_id"].to_pylist(), rows["solved_at_iteration"].to_pylist()
        for cell_id, iteration in zip(cells, values, strict=True):
            iterations.setdefault(cell_id, []).append(iteration)
            file_of.setdefault(cell_id, key)
    for key, table in files.tables(list(dict.fromkeys(file_of.values()))):
        own = {} if table is None else {cell.id: cell for cell in table_cells(table)}
        yield from ((own[cell_id], iterations[cell_id]) for cell_id in own if file_of.get(cell_id) == key)
