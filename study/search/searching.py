"""Searches as extended studies: the next trials to train, given the stored results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from study.errors import InputError
from study.plan.plan import Plan
from study.records import Cell
from study.search.evidence import Evidence
from study.search.halving import Round, ValueAt, affordable, compare
from study.search.objectives import front, objectives_of, ranked, spread
from study.search.record import NAME, VERSION, Record, SearchFolder, from_json, to_json
from study.search.space import Space
from study.search.storage import write_storage
from study.search.suggest import Suggestions, resume, sampler_name
from study.spec import Spec
from study.spec.tables import Search
from study.summaries.search import Candidate, Objective, Value
from study.trials.table import TrialTable

Notify = Callable[[str], None]

# The most suggestions for each candidate of a round; impossible and repeated suggestions are replaced.
_MOST_SUGGESTIONS = 25


@dataclass(frozen=True)
class Seeds:
    """The seeds of a search.

    Args:
        search: the seeds that a candidate can earn, in order.
        fresh: the seeds of the confirmation, which no decision of the search has used.
    """

    search: Sequence[int]
    fresh: Sequence[int]


def planned_seeds(spec: Spec) -> Seeds:
    """Return the seeds of a search and of its confirmation.

    Example:
        >>> from study.spec import parse_spec
        >>> text = "{study: a, task: {name: simple}, models: [NMU, NAU], seeds: 20, search: {objective: success_rate, "
        >>> planned_seeds(parse_spec(text + "trials: 100, confirm_seeds: 50}}", source="a.yaml")).fresh
        range(20, 70)
    """
    first = spec.last_seed + 1
    return Seeds(spec.first_seeds, range(first, first + _search(spec).confirm_seeds))


def plan_of(spec: Spec, record: Record, evidence: Evidence) -> Plan:
    """Plan the trials of a search: the seeds that each candidate has earned, and the confirmation.

    Args:
        spec: the search's study file.
        record: the suggestions and their values.
        evidence: the results of candidates.
    """
    space, seeds = Space(spec), planned_seeds(spec)
    counts = {space.cell(c.params): c.seeds for c in record.valued}
    compared = [space.cell(c.params) for c in record.compared]
    now = _compare(spec, compared, evidence)
    counts |= dict(zip(compared, now.seeds, strict=True))
    winners = {record.candidates[number].cell_id for number in record.winners or ()}
    own = {
        cell.id: [*seeds.search[:count], *(seeds.fresh if cell.id in winners else ())] for cell, count in counts.items()
    }
    return Plan(spec, tuple(counts), {}, own)


def _compare(spec: Spec, cells: Sequence[Cell], evidence: Evidence) -> Round:
    return compare(_search(spec), _objectives(spec), len(planned_seeds(spec).search), cells, _values(spec, evidence))


def _values(spec: Spec, evidence: Evidence) -> ValueAt:
    search, seeds, most = _search(spec), planned_seeds(spec).search, Space(spec).most_iterations
    return lambda cell, n: evidence.value(cell, seeds[:n], search.objective, most)


def read_record(spec: Spec, folder: SearchFolder) -> Record | None:
    """Read a search's record; None before the first suggestion. An older version's values are computed anew.

    Raises:
        StoreError: if the record isn't valid, or it or, for an older version's, the results can't be read.
        InputError: if the record belongs to another search, or a newer version wrote it or the results.
    """
    data = folder.read_file(NAME)
    if data is None:
        return None
    record = from_json(data, folder.file_address(NAME))
    if record.search_id != search_id(spec):
        raise InputError(
            f"study {spec.study!r} began with other ranges, other code or other settings of the search; only trials, "
            "confirm_seeds and confirm_candidates can change. If only the code has changed and gives the same results, "
            f"`study adopt {spec.study}` keeps the search. Otherwise rename the study, or move "
            f"{folder.file_address(NAME)} away; stored trials aren't trained again"
        )
    if record.version == VERSION:
        return record
    return _revalued(spec, record, Evidence(TrialTable(folder.read_results(), spec.family.metrics)))


def _revalued(spec: Spec, record: Record, evidence: Evidence) -> Record:
    """Recompute the values of an older version's record by current definitions, so that values can be compared.

    Values stay while a trial that they need is pending. The winners stay: they were chosen before their fresh seeds
    were run.
    """
    space, value_at = Space(spec), _values(spec, evidence)
    revalued = [
        replace(c, values=value_at(space.cell(c.params), c.seeds) or c.values) for c in record.candidates if c.values
    ]
    return replace(record.updated(revalued), version=VERSION)


def search_id(spec: Spec) -> str:
    """Return the hash of a search's settings and own code: all that its suggestions and values depend on.

    `trials`, `confirm_seeds` and `confirm_candidates` aren't part of it, so they can change.
    """
    search, space = _search(spec), Space(spec)
    extendable = {"trials", "confirm_seeds", "confirm_candidates"}
    parameters, fixed = list(space.parameters.values()), space.fixed
    if spec.family.own_code is not None:  # tuples of signatures are lists in stored declarations
        parameters = [replace(p, choices=tuple(map(_as_lists, p.choices))) for p in parameters]
        fixed = {model: {name: _as_lists(v) for name, v in values.items()} for model, values in fixed.items()}
    content = {
        "search": search.model_dump(exclude=extendable, mode="json"),
        "space": [repr(parameter) for parameter in parameters],
        "fixed": repr(fixed),
        "task": spec.task_name,
        "seeds": repr(spec.first_seeds),
        **space.choosing,
        **({} if spec.pruning is None else {"prune": repr(spec.pruning)}),
    } | _own(spec)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _as_lists(value: Any) -> Any:
    return list(map(_as_lists, value)) if isinstance(value, list | tuple) else value


def _own(spec: Spec) -> dict[str, Any]:
    """Return the part of the search id for a user's own code: the code, its metrics and the success criterion."""
    if spec.family.own_code is None:
        return {}
    names, metrics = _search(spec).objective, spec.family.metrics
    values = {
        name: [metric.higher_is_better, metric.low, metric.high, metric.resolution]
        for name, metric in metrics.items()
        if name in names
    }
    is_judged = any(name not in metrics for name in names)
    bounds = spec.criterion or {} if is_judged else {}
    criterion = {name: {"at_least": bound.at_least, "below": bound.below} for name, bound in bounds.items()}
    return {"code": spec.family.own_code, "metrics": values, "success": criterion}


def _search(spec: Spec) -> Search:
    assert spec.search is not None
    return spec.search


def _objectives(spec: Spec) -> tuple[Objective, ...]:
    return objectives_of(_search(spec).objective, spec.family.metrics)


class Searching:
    """Continuation of a search, as a `study.run.Extend`.

    Args:
        storage_uri: the database for Optuna's dashboard; None without a dashboard.
    """

    def __init__(self, storage_uri: str | None) -> None:
        self._storage_uri = storage_uri
        self._suggestions: Suggestions | None = None
        self._written: Record | None = None

    def __call__(self, plan: Plan, folder: SearchFolder, notify: Notify) -> Plan:
        """Report finished rounds to the sampler, ask for the next round, and return the extended plan.

        Args:
            plan: the plan so far; returned itself if nothing changes.
            folder: the study's folder, to which the record is written.
            notify: called with the progress, and with changes of the sampler or failures of the dashboard's database.

        Raises:
            InputError: if the record belongs to another search, no suggestion can be trained, or a newer package wrote
                the record or the results.
            StoreError: if the record isn't valid or can't be written, or the results can't be read.
            StudyError: if the folder's `check` fails.
        """
        spec = plan.spec
        before = read_record(spec, folder)
        record = before or Record(sampler_name(_search(spec)), search_id(spec))
        suggestions = self._resume(spec, record, notify)
        evidence = Evidence(TrialTable(folder.read_results(), spec.family.metrics))
        try:
            record = _continued(spec, record, evidence, suggestions)
            if record != before:
                folder.write_file(NAME, to_json(record))
        except BaseException:
            self._suggestions = None  # the sampler is ahead of the record, and is rebuilt from it
            raise
        if record != before:
            notify(_progress(spec, record))
        if self._storage_uri is not None and self._written != record:
            is_written = write_storage(self._storage_uri, spec, record, notify)
            self._written = record if is_written else None
        next_plan = plan_of(spec, record, evidence)
        return plan if next_plan == plan else next_plan

    def _resume(self, spec: Spec, record: Record, notify: Notify) -> Suggestions:
        if self._suggestions is None:
            self._suggestions, is_exact = resume(Space(spec), _search(spec), record)
            if not is_exact:
                notify(
                    f"the search began with {record.sampler}; {sampler_name(_search(spec))} makes other suggestions, "
                    "and continues from the record"
                )
        return self._suggestions


def _continued(spec: Spec, record: Record, evidence: Evidence, suggestions: Suggestions) -> Record:
    """End finished rounds and begin new ones until results are missing, or until the winners are chosen.

    Raises InputError if no suggestion can be trained.
    """
    search, space = _search(spec), Space(spec)
    while True:
        compared = record.compared
        if record.rounds and any(not c.values for c in record.of_round(record.rounds - 1) if c.cell_id):
            standings = _compare(spec, [space.cell(c.params) for c in compared], evidence)
            if standings.values is None:
                return record
            record = _end_round(record, compared, standings, suggestions)
            continue
        spent = sum(candidate.seeds for candidate in record.valued)
        count = affordable(search, len(spec.first_seeds), search.trials - spent)
        if count == 0 or record.is_exhausted:
            return replace(record, winners=_winners(spec, record))
        record = _begin_round(spec, record, suggestions, count)


def _begin_round(spec: Spec, record: Record, suggestions: Suggestions, count: int) -> Record:
    """Add suggestions of the sampler to the record, until `count` of them are new cells, or they are too many."""
    space, cells = Space(spec), {candidate.cell_id for candidate in record.candidates}
    number, candidates = record.rounds, list(record.candidates)
    for _ in range(_MOST_SUGGESTIONS * count):
        params = suggestions.ask()
        try:
            cell, reason = space.cell(params), None
        except ValueError as error:
            cell, reason = None, str(error)
            suggestions.tell(len(candidates), ())
        cell_id = None if cell is None else cell.id
        candidates.append(Candidate(len(candidates), number, params, cell_id, reason))
        count -= cell_id is not None and cell_id not in cells
        cells.add(cell_id)
        if count == 0:
            break
    return replace(record, candidates=tuple(candidates), winners=None)


def _end_round(record: Record, compared: Sequence[Candidate], standings: Round, suggestions: Suggestions) -> Record:
    """Add the values of the round's candidates to the record, and report them to the sampler.

    A repeated cell keeps its earlier values.
    """
    by_cell: dict[str | None, tuple[int, Value]] = {c.cell_id: (c.seeds, c.values) for c in record.valued}
    for candidate, seeds, values in zip(compared, standings.seeds, standings.values or (), strict=True):
        by_cell[candidate.cell_id] = (seeds, values)
    candidates = []
    for candidate in record.of_round(record.rounds - 1):
        if candidate.cell_id is not None:
            seeds, values = by_cell[candidate.cell_id]
            suggestions.tell(candidate.number, values)
            candidates.append(replace(candidate, seeds=seeds, values=values))
    return record.updated(candidates)


def _winners(spec: Spec, record: Record) -> tuple[int, ...]:
    candidates = record.valued
    if not candidates:
        raise InputError(
            f"none of {len(record.candidates)} suggestions can be trained, the first because "
            f"{record.candidates[0].impossible}: change the ranges"
        )
    best = front([candidate.values for candidate in candidates], _objectives(spec))
    return tuple(candidates[i].number for i in spread(best, _search(spec).confirm_candidates))


def _progress(spec: Spec, record: Record) -> str:
    search, candidates = _search(spec), record.valued
    spent = sum(candidate.seeds for candidate in candidates)
    parts = [f"{len(candidates)} candidates in {spent:,} of {search.trials:,} trials"]
    if candidates:
        objectives = _objectives(spec)
        best = candidates[ranked([c.values for c in candidates], objectives)[0]]
        values = zip(objectives, best.values, strict=True)
        parts.append(
            "best: " + ", ".join(f"{objective.title} {_number(objective, value)}" for objective, value in values)
        )
    if record.winners is not None:
        parts.append(f"{len(record.winners)} confirmed with fresh seeds")
    else:
        parts.append(f"round {record.rounds}: {len(record.compared)} more are being compared")
    return "; ".join(parts)


def _number(objective: Objective, value: float) -> str:
    return f"{value:.4g}" if objective.has_number(value) else "unknown: too many trials diverged or failed"
