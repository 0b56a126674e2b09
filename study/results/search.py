"""Plans of searches: all cells and seeds so far, and those that the report shows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from study.plan.plan import Plan
from study.search import Evidence, Record, plan_of, planned_seeds, read_record, winner_cells
from study.store import StudyStore
from study.trials.table import TrialTable

NOT_CONFIRMED = (
    "The search is not over. Candidates were chosen by these numbers, so the best of them are optimistic. "
    "The winners are trained again with fresh seeds at the end."
)


def plan_so_far(plan: Plan, folder: StudyStore, results: pa.Table) -> Plan:
    """Return the plan of a search so far: the cells of its candidates with their seeds; no cells without a record.

    Args:
        plan: the plan of the search's file.
        folder: the search's part of the store.
        results: all stored results of the search.

    Raises:
        InputError: if the record belongs to another search, or a newer version wrote it.
        StoreError: if the record can't be read.
    """
    record = read_record(plan.spec, folder)
    if record is None:
        return replace(plan, cells=(), own_seeds={})
    return plan_of(plan.spec, record, Evidence(TrialTable(results, plan.metrics)))


def reported_plan(plan: Plan, record: Record) -> Plan:
    """Return the plan of the cells that a search's report shows: the winners with fresh seeds, or all before its end.

    Cells are labelled by candidate numbers, because their values have too many digits to read.

    Args:
        plan: the search's plan so far.
        record: its suggestions and their values.
    """
    if record.winners is None:
        return with_numbers(plan, record)
    cells = winner_cells(plan.spec, record)
    labels = {cell.id: _label(number) for cell, number in zip(cells, record.winners, strict=True)}
    return Plan(plan.spec, tuple(cells), labels, {cell.id: planned_seeds(plan.spec).fresh for cell in cells})


def with_numbers(plan: Plan, record: Record) -> Plan:
    """Return a search's plan with each cell labelled by its first candidate's number."""
    first = {c.cell_id: c.number for c in reversed(record.candidates) if c.cell_id is not None}
    return replace(plan, labels={cell_id: _label(number) for cell_id, number in first.items()})


def _label(number: int) -> dict[str, str]:
    return {"candidate": f"#{number}"}
