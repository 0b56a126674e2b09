"""Which cells and seeds a study that searches asks for, and which of them its report shows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from study.plan.plan import Plan
from study.search import Evidence, Record, plan_of, planned_seeds, read_record, winner_cells
from study.store import StudyStore
from study.trials.table import TrialTable

NOT_CONFIRMED = (
    "The search is not over. These are the numbers by which candidates were chosen: the best of them are optimistic. "
    "What it finds is run again with fresh seeds at its end."
)


def plan_so_far(plan: Plan, folder: StudyStore, results: pa.Table) -> Plan:
    """Return what a search has asked for so far: the cells of its candidates, and their seeds.

    Args:
        plan: of the search's file.
        folder: its part of the store.
        results: all that is stored of it.
    """
    record = read_record(plan.spec, folder)
    if record is None:
        return replace(plan, cells=(), own_seeds={})
    return plan_of(plan.spec, record, Evidence(TrialTable(results, plan.metrics)))


def reported_plan(plan: Plan, record: Record) -> Plan:
    """Return the part of a search that its report shows: what it found, by fresh seeds alone; before its end, all.

    Cells are called by their candidates: what they chose has more digits than one reads.

    Args:
        plan: what the search has asked for so far.
        record: its suggestions, and what came of them.
    """
    if record.winners is None:
        return with_numbers(plan, record)
    cells = winner_cells(plan.spec, record)
    labels = {cell.id: _label(number) for cell, number in zip(cells, record.winners, strict=True)}
    return Plan(plan.spec, tuple(cells), labels, {cell.id: planned_seeds(plan.spec).fresh for cell in cells})


def with_numbers(plan: Plan, record: Record) -> Plan:
    """Return a search's plan with its cells called by the candidates that had them first."""
    first = {c.cell_id: c.number for c in reversed(record.candidates) if c.cell_id is not None}
    return replace(plan, labels={cell_id: _label(number) for cell_id, number in first.items()})


def _label(number: int) -> dict[str, str]:
    return {"candidate": f"#{number}"}
