"""The studies of a store, listed."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from study import words
from study.errors import InputError, StudyError
from study.plan.packs import make_packs, pack_cost
from study.plan.plan import make_plan
from study.presets import preset_names, preset_text
from study.results.stored_plan import stored_plan
from study.spec import load_spec
from study.spec.document import read
from study.store import Store, StudyStore

_ROUGHLY = (
    "Core time is a rough estimate: `study plan PRESET` measures it here. The fused engine, where it trains a study, "
    "takes about a tenth. What needs data says what it takes once they are in this folder or in $STUDY_DATA."
)


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


def presets() -> Table:
    """Return a table of the presets: what each asks, and what it takes.

    The core time is a rough estimate; `study plan` measures it.

    Example:
        >>> presets().columns[0].header, presets().row_count > 15
        ('preset', True)
    """
    table = Table(title="Presets", caption=_ROUGHLY, caption_justify="left")
    for column in ("preset", "task", "trials", "iterations", "core time", "question"):
        table.add_column(column, justify="right" if column in ("trials", "iterations", "core time") else "left")
    for name in preset_names():
        try:
            plan = make_plan(load_spec(name))
        except InputError:  # its data aren't here
            file = read(preset_text(name)).data
            table.add_row(name, file["task"]["name"], "", "", "needs data", file["question"])
            continue
        packs = make_packs(plan.trials, slots=1, family=plan.spec.family)
        seconds = sum(pack_cost(pack.trials, plan.spec.family) for pack in packs) / 1e6
        lengths = sorted({cell.iterations for cell in plan.cells})
        between = " - ".join(words.iterations(length) for length in dict.fromkeys([lengths[0], lengths[-1]]))
        table.add_row(
            name, plan.spec.task_name, f"{len(plan.trials):,}", between, words.duration(seconds), plan.spec.question
        )
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
