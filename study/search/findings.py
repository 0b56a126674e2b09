"""The findings of a search so far: its candidates, what mattered, and the winner's study file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from study.analysis.aggregate import CellSummary
from study.analysis.search import Candidate, SearchFindings
from study.records import Cell
from study.search.importance import importance
from study.search.objectives import front, objectives_of
from study.search.record import Record
from study.search.searching import planned_seeds
from study.search.space import Space
from study.spec import Spec


def search_findings(spec: Spec, record: Record, rows: Sequence[CellSummary] = ()) -> SearchFindings:
    """Gather what a search has found so far.

    Args:
        spec: the search's study file.
        record: its suggestions and their values.
        rows: the rows of the report; once the search is over, those of the confirmed candidates.
    """
    assert spec.search is not None
    candidates, is_over = record.valued, record.winners is not None
    row_of = {summary.cell_id: row for row, summary in enumerate(rows)} if is_over else {}
    objectives = objectives_of(spec.search.objective, spec.family.metrics)
    best = front([candidate.values for candidate in candidates], objectives)
    return SearchFindings(
        objectives=objectives,
        parameters=tuple(Space(spec).parameters.values()),
        candidates=tuple(candidates),
        front=tuple(candidates[i].number for i in best),
        rows={c.number: row_of[c.cell_id] for c in candidates if c.cell_id in row_of},
        importance=importance(spec, candidates),
        trials=sum(candidate.seeds for candidate in candidates),
        budget=spec.search.trials,
        fresh=spec.search.confirm_seeds,
        impossible=sum(candidate.impossible is not None for candidate in record.candidates),
        sampler=record.sampler,
        is_over=is_over,
        file=winners_file(spec, record.candidates[record.winners[0]]) if record.winners else "",
    )


def winners_cells(spec: Spec, record: Record) -> list[Cell]:
    """List the cells to be confirmed, in the order in which the search ranked them."""
    space = Space(spec)
    return [space.cell(record.candidates[number].params) for number in record.winners or ()]


def winners_file(spec: Spec, winner: Candidate) -> str:
    """Write a study file for a candidate, with the seeds that confirmed it and only the settings that apply."""
    space, seeds = Space(spec), planned_seeds(spec)
    cell = space.cell(winner.params)
    values = space.fixed[cell.model] | space.by_hyperparameter(winner.params)
    applying = {key: _plain(value) for key, value in values.items() if cell.value(key) is not None}
    # A model's own settings take precedence over the file's tables, and each setting is written once.
    own_tables = {
        table: {key: applying.pop(prefix + key) for key in getattr(spec, table).explicit if prefix + key in applying}
        for table, prefix in spec.tables
    }
    tables: dict[str, Any] = {
        "study": f"{spec.study[:72]}-winner",
        "question": f"How reliable is what the search {spec.study} found?",
        **spec.head,
        **({"models": [cell.model]} if spec.tables else {}),
        "fixed": applying,
    }
    for table, values_of_table in own_tables.items():
        tables[table] = tables.get(table, {}) | values_of_table
    content = {key: value for key, value in tables.items() if value}
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    first, last = seeds.fresh[0], seeds.fresh[-1]
    comment = (
        f"# The search chose by seeds {min(seeds.search)} to {max(seeds.search)}: what these say of it is too good.\n"
        f"# Seeds {first} to {last} confirmed it.\n"
    )
    return f"{text}{comment}{yaml.safe_dump({'seeds': list(seeds.fresh)}, default_flow_style=None, width=110)}"


def _plain(value: Any) -> Any:
    """Turn a range's tuples into lists."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
