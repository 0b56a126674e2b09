"""The studies of a store, listed."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from study.errors import StudyError
from study.results.stored_plan import stored_plan
from study.store import Store, StudyStore


def studies(root: str | Path) -> Table:
    """Return a table of the studies of a store; one that can't be read is listed with the reason.

    Raises:
        InputError: if there is no store at that address.
    """
    store = Store(root, read_only=True)
    store.require()
    table = Table(title=f"Studies in {store.where}")
    for column in ("study", "done", "trials", "cells", "question"):
        table.add_column(column, justify="right" if column in ("done", "trials", "cells") else "left")
    for name in store.studies():
        try:
            table.add_row(name, *_cells_of(store.study(name)))
        except StudyError as error:
            table.add_row(name, "?", "?", "?", f"can't be read: {error}", style="yellow")
    return table


def _cells_of(folder: StudyStore) -> tuple[str, ...]:
    plan = stored_plan(folder)
    if plan.may_extend:
        # imported late: statistics and reports take longer to import than everything else here
        from study.results.load import extended_plan

        folder = folder.judged_by(plan.criterion)
        plan = extended_plan(plan, folder, folder.read_results())
    done = len(folder.done() & {trial.id for trial in plan.trials})
    return f"{done:,}", f"{len(plan.trials):,}", str(len(plan.cells)), plan.spec.question
