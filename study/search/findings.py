"""What a search found: its candidates, what mattered, and those confirmed with fresh seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from study.analysis.aggregate import CellSummary
from study.records import Cell
from study.search.evidence import Evidence
from study.search.importance import _FEWEST_FOR_IMPORTANCE, _importance
from study.search.objectives import OBJECTIVES, Objective, front
from study.search.record import Candidate, Record
from study.search.searching import planned_seeds
from study.search.space import Parameter, Space
from study.spec import Spec


@dataclass(frozen=True)
class Findings:
    """What a search found.

    Args:
        objectives: what was sought, in order.
        parameters: what could be chosen.
        candidates: those that have values, each cell once, in order of suggestion; their seeds are the search's.
        front: numbers of the candidates that none is better than in all respects.
        confirmed: the winners by fresh seeds only, in order; empty before that.
        winner: the first of them; None before that.
        importance: of each parameter for each objective, shares that add up to 1; empty where there are too few
            candidates to tell.
        impossible: suggestions that no cell has.
        trials: that the candidates took.
        sampler: what suggested them.
        file: the study's file of the winner; empty before there is one.
    """

    objectives: tuple[Objective, ...]
    parameters: Mapping[str, Parameter]
    candidates: tuple[Candidate, ...]
    front: tuple[int, ...]
    confirmed: tuple[CellSummary, ...]
    winner: Candidate | None
    importance: Mapping[str, Mapping[str, float]]
    impossible: int
    trials: int
    sampler: str
    file: str


def found(spec: Spec, record: Record, evidence: Evidence) -> Findings:
    """Gather what a search has found so far.

    Args:
        spec: of the search.
        record: what was suggested.
        evidence: the results.
    """
    assert spec.search is not None
    space, told = Space(spec), record.told
    best = front([candidate.values or () for candidate in told], spec.search.objective)
    winners = [record.candidates[number] for number in record.winners or ()]
    winner = winners[0] if winners else None
    return Findings(
        objectives=tuple(OBJECTIVES[name] for name in spec.search.objective),
        parameters=space.parameters,
        candidates=tuple(told),
        front=tuple(told[i].number for i in best),
        confirmed=tuple(_confirmations(spec, record, evidence)),
        winner=winner,
        importance=_importance(spec, told) if len(told) >= _FEWEST_FOR_IMPORTANCE else {},
        impossible=sum(candidate.impossible is not None for candidate in record.candidates),
        trials=sum(candidate.seeds for candidate in told),
        sampler=record.sampler,
        file="" if winner is None else winners_file(spec, winner),
    )


def winners_cells(spec: Spec, record: Record) -> list[Cell]:
    """Give the cells that are confirmed, the best by the search's values first."""
    space = Space(spec)
    return [space.cell(record.candidates[number].params) for number in record.winners or ()]


def _confirmations(spec: Spec, record: Record, evidence: Evidence) -> list[CellSummary]:
    """Summarise the winners' trials of fresh seeds, once they all have a result."""
    fresh = planned_seeds(spec).fresh
    summaries = [evidence.summary(cell, fresh) for cell in winners_cells(spec, record)]
    return [summary for summary in summaries if summary is not None]


def winners_file(spec: Spec, winner: Candidate) -> str:
    """Write the study's file of a candidate, with the seeds that confirmed it: of all that is given, what applies."""
    space, seeds = Space(spec), planned_seeds(spec)
    cell = space.cell(winner.params)
    values = space.fixed[cell.model] | space.chosen(winner.params)
    applying = {key: _plain(value) for key, value in values.items() if getattr(cell, key) is not None}
    # What a model sets for itself goes before what the file's tables say, so that each stands once.
    given = {
        table: {
            key: applying.pop(prefix + key) for key in getattr(spec, table).given if prefix + key in applying
        }
        for table, prefix in (("task", ""), ("protocol", ""), ("success", "success_"))
    }
    tables: dict[str, Any] = {
        "study": f"{spec.study[:72]}-winner",
        "question": f"How reliable is what the search {spec.study} found?",
        "task": {"name": spec.task.name} | given["task"],
        "models": [cell.model],
        "fixed": applying,
        "protocol": given["protocol"],
        "success": given["success"],
    }
    kept = {key: value for key, value in tables.items() if value}
    text = yaml.safe_dump(kept, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    first, last = seeds.fresh[0], seeds.fresh[-1]
    told = (
        f"# The search chose by seeds {min(seeds.search)} to {max(seeds.search)}: what these say of it is too good.\n"
        f"# Seeds {first} to {last} confirmed it.\n"
    )
    return f"{text}{told}{yaml.safe_dump({'seeds': list(seeds.fresh)}, default_flow_style=None, width=110)}"


def _plain(value: Any) -> Any:
    """Turn a range's tuples into lists."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
