"""Findings of a search so far: candidates, importance of parameters, and the winner's study file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from study.records import Cell
from study.search.importance import importance
from study.search.objectives import front, objectives_of
from study.search.record import Record
from study.search.searching import planned_seeds
from study.search.space import Space
from study.spec import Spec
from study.spec.document import as_yaml
from study.spec.seeds import format_seeds
from study.summaries.aggregate import CellSummary
from study.summaries.parts import Parts
from study.summaries.search import Candidate, SearchFindings

T = TypeVar("T")

_WIDTH = 110


def search_findings(
    spec: Spec, record: Record, rows: Sequence[CellSummary] = (), parts: Parts | None = None
) -> SearchFindings:
    """Return the findings of a search so far.

    Args:
        spec: the search's study file.
        record: its suggestions and their values.
        rows: the rows of the report; after the end of the search, those of the confirmed candidates.
        parts: collects failures of parts; None to raise them.
    """
    assert spec.search is not None
    attempt = _at_once if parts is None else parts.attempt
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
        importance=attempt("importance of parameters", lambda: importance(spec, candidates), {}),
        trials=sum(candidate.seeds for candidate in candidates),
        budget=spec.search.trials,
        fresh=spec.search.confirm_seeds,
        impossible=sum(candidate.impossible is not None for candidate in record.candidates),
        sampler=record.sampler,
        is_over=is_over,
        file=attempt("winner.yaml", lambda: _file(spec, record), ""),
    )


def _at_once(part: str, make: Callable[[], T], fallback: T) -> T:
    return make()


def _file(spec: Spec, record: Record) -> str:
    return winner_file(spec, record.candidates[record.winners[0]]) if record.winners else ""


def winner_cells(spec: Spec, record: Record) -> list[Cell]:
    """List the cells to confirm, the best by the first objective first; empty before they are chosen."""
    space = Space(spec)
    return [space.cell(record.candidates[number].params) for number in record.winners or ()]


def winner_file(spec: Spec, winner: Candidate) -> str:
    """Return the text of a candidate's study file, with fresh seeds and only the settings that have an effect.

    If its conditions leave hyperparameters out of calls, the file has these conditions, with a valid value for each.

    Raises:
        ValueError: if the candidate's values make no valid cell.
    """
    space, seeds = Space(spec), planned_seeds(spec)
    cell = space.cell(winner.params)
    values = _effective(space, cell, space.fixed[cell.model] | space.by_hyperparameter(winner.params))
    left_out = space.left_out(cell)
    settings = {name: _as_written(spec, name, value) for name, value in (left_out | values).items()}
    # A model's own settings take precedence over the file's tables, so each setting is written once.
    own_tables = {
        table: {key: settings.pop(prefix + key) for key in getattr(spec, table).explicit if prefix + key in settings}
        for table, prefix in spec.tables
    }
    content: dict[str, Any] = {
        "study": f"{spec.study[:72]}-winner",
        "question": f"How reliable is the winner of the search {spec.study}?",
        **spec.head,
        **({"models": [cell.model]} if spec.tables else {}),
        **({"fixed": settings} if settings else {}),
        **({"when": space.conditions_of(cell, left_out)} if left_out else {}),
    }
    for table, values_of_table in own_tables.items():
        if values_of_table:
            content[table] = content.get(table, {}) | values_of_table
    first, last = seeds.fresh[0], seeds.fresh[-1]
    comment = (
        f"# The search chose it by seeds {min(seeds.search)} to {max(seeds.search)}, whose results are optimistic.\n"
        f"# Seeds {first} to {last} confirmed it.\n"
    )
    if spec.family.own_code is not None:
        comment = f"# Its code and data are in the folder of the search's study file: put this file there.\n{comment}"
    return f"{as_yaml(content, width=_WIDTH)}{comment}seeds: {format_seeds(seeds.fresh)}\n"


def _effective(space: Space, cell: Cell, values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the values without an effect on a cell: study files must not set them.

    A value has none if the cell holds None in its place, and is the same without it. A None has an effect if the
    default is another value.
    """
    effective = dict(values)
    for name in values:
        others = {key: value for key, value in effective.items() if key != name}
        if cell.value(name) is None and space.makes(cell, others):
            effective = others
    return effective


def _as_written(spec: Spec, name: str, value: Any) -> Any:
    """Return a value as written in study files: a data file by its path instead of its digest."""
    paths = {digest: path for path, digest in spec.family.data.get(name, {}).items()}
    return paths.get(value, value) if isinstance(value, str) else value
