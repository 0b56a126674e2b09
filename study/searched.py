"""What a search came to, for its report: the candidates that were tried, and the rows of those confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from study.aggregate import CellSummary, aggregate
from study.plan import Plan
from study.report import Chosen, Searched, Sought, Tried
from study.search import Evidence, Findings, found, plan_of, planned_seeds, read_record, winners_cells
from study.store import StudyStore

NOT_CONFIRMED = (
    "The search is not over: these are the numbers by which candidates were chosen, and the best of them are too good. "
    "What it finds is run again with fresh seeds at its end."
)


def planned(plan: Plan, folder: StudyStore, results: pa.Table) -> Plan:
    """Give what a search has asked for so far: the cells of its candidates, and their seeds.

    Args:
        plan: of the search's file.
        folder: its part of the store.
        results: all that is stored of it.
    """
    record = read_record(plan.spec, folder)
    if record is None:
        return replace(plan, cells=(), own_seeds={})
    return plan_of(plan.spec, record, Evidence(results))


def confirmed(plan: Plan, folder: StudyStore) -> Plan | None:
    """Give what a search has asked for to confirm what it found; None while it goes on."""
    record = read_record(plan.spec, folder)
    if record is None or record.winners is None:
        return None
    cells = winners_cells(plan.spec, record)
    labels = {cell.id: _label(number) for cell, number in zip(cells, record.winners, strict=True)}
    return Plan(plan.spec, tuple(cells), labels, {cell.id: planned_seeds(plan.spec).fresh for cell in cells})


def labelled(plan: Plan, folder: StudyStore) -> Plan:
    """Name the cells of a search that goes on by their candidates: what they chose has more digits than one reads.

    Args:
        plan: what it has asked for so far.
        folder: its part of the store.
    """
    record = read_record(plan.spec, folder)
    first: dict[str, int] = {}
    for candidate in () if record is None else record.candidates:
        if candidate.cell_id is not None:
            first.setdefault(candidate.cell_id, candidate.number)
    return replace(plan, labels={cell: _label(number) for cell, number in first.items()})


def _label(number: int) -> dict[str, str]:
    return {"candidate": f"#{number}"}


def searched(
    plan: Plan, folder: StudyStore, results: pa.Table, rows: Sequence[CellSummary]
) -> Searched | None:
    """Say what a search did; None before its first suggestion.

    Args:
        plan: of the search.
        folder: its part of the store.
        results: all that is stored of it.
        rows: of the report.
    """
    spec = plan.spec
    record = read_record(spec, folder)
    if record is None or spec.search is None:
        return None
    findings = found(spec, record, Evidence(results))
    return Searched(
        objectives=tuple(
            Sought(name=one.name, title=one.title, is_sought_high=one.is_sought_high)
            for one in findings.objectives
        ),
        parameters=tuple(
            Chosen(name=p.name, choices=p.choices, low=p.low, high=p.high, is_log=p.is_log)
            for p in findings.parameters.values()
        ),
        candidates=_tried(findings, rows, is_over=record.winners is not None),
        importance=findings.importance,
        trials=findings.trials,
        budget=spec.search.trials,
        fresh=spec.search.confirm_seeds,
        impossible=findings.impossible,
        sampler=findings.sampler,
        is_over=record.winners is not None,
        file=findings.file,
    )


def _tried(findings: Findings, rows: Sequence[CellSummary], *, is_over: bool) -> tuple[Tried, ...]:
    row_of = {summary.cell_id: row for row, summary in enumerate(rows)} if is_over else {}
    return tuple(
        Tried(
            number=candidate.number,
            round=candidate.round,
            params=candidate.params,
            seeds=candidate.seeds,
            values=candidate.values or (),
            is_front=candidate.number in findings.front,
            row=row_of.get(candidate.cell_id or ""),
        )
        for candidate in findings.candidates
    )


def counted(plan: Plan, results: pa.Table) -> list[CellSummary]:
    """Summarise all that a search has asked for, to count its trials."""
    cells = pa.array([cell.id for cell in plan.cells], pa.string())
    table = results.filter(pc.is_in(results["cell_id"], value_set=cells))
    return aggregate(table, planned={cell: len(plan.seeds(cell)) for cell in plan.cells})
