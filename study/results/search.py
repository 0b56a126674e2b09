"""What a search came to, for its report: all candidates, and the rows of the confirmed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from study.analysis.aggregate import CellSummary
from study.plan.plan import Plan
from study.report import Chosen, Searched, Sought, Tried
from study.search import Evidence, Findings, Record, found, plan_of, planned_seeds, read_record, winners_cells
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


def shown(plan: Plan, record: Record) -> Plan:
    """Give what a report shows of a search: what it found, by fresh seeds alone; while it goes on, all of it.

    Cells are called by their candidates: what they chose has more digits than one reads.

    Args:
        plan: what the search has asked for so far.
        record: what was suggested.
    """
    if record.winners is None:
        first = {c.cell_id: c.number for c in reversed(record.candidates) if c.cell_id is not None}
        return replace(plan, labels={cell_id: _label(number) for cell_id, number in first.items()})
    cells = winners_cells(plan.spec, record)
    labels = {cell.id: _label(number) for cell, number in zip(cells, record.winners, strict=True)}
    return Plan(plan.spec, tuple(cells), labels, {cell.id: planned_seeds(plan.spec).fresh for cell in cells})


def _label(number: int) -> dict[str, str]:
    return {"candidate": f"#{number}"}


def searched(plan: Plan, record: Record, results: pa.Table, rows: Sequence[CellSummary]) -> Searched:
    """Say what a search did.

    Args:
        plan: of the search.
        record: what was suggested.
        results: all that is stored of it.
        rows: of the report.
    """
    spec = plan.spec
    assert spec.search is not None
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
