"""The tables of a search: confirmed candidates, all candidates, and rows for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import add

import pyarrow as pa

from study import words
from study.reports.content import DataRows
from study.reports.search import names as search_names
from study.reports.table import seeds_column
from study.reports.text_table import Column, TextTable, count_column, names_column, places, text_column
from study.summaries.rows import ResultRows
from study.summaries.search import Candidate, Parameter, SearchFindings

MOST_CANDIDATES = 500
"""The most rows of the table of candidates: more make the page slow, and candidates.csv has all."""
_MOST_NAMED = 6
CAUTION = (
    "The search chose candidates by the worse end of a 95% interval, so these values are optimistic. The best of "
    "several confirmed candidates is a choice, too, which makes its estimate optimistic."
)


def winners_table(search: SearchFindings, rows: ResultRows) -> TextTable:
    """Lay out one row for each confirmed candidate: its parameters, its values in the search, and by fresh seeds.

    Success rates by fresh seeds are included, if known, even if they aren't an objective.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    confirmed = search_names.confirmed(search)
    candidates = [candidate for candidate, _ in confirmed]
    summaries = [rows.summaries[row] for _, row in confirmed]
    rates = [search_names.SUCCESS_RATE] if rows.has_rates else []
    seeds = [f", {words.count_of(c.seeds, 'seed')}" for c in candidates]
    in_search = [
        replace(column, title=f"in the search: {column.title}", texts=tuple(map(add, column.texts, seeds)))
        for column in _values(search, candidates)
    ]
    measured = dict.fromkeys([*rates, *map(search_names.measured, search.objectives)])
    return TextTable(
        (
            text_column("candidate", [(f"#{c.number}", c.number) for c in candidates]),
            *_parameters(search, candidates),
            *in_search,
            *(
                text_column(f"by fresh seeds: {m.title}", [(m.text(s), m.measure(s)[0]) for s in summaries])
                for m in measured
            ),
            seeds_column("fresh seeds", summaries),
        )
    )


def candidates_table(search: SearchFindings) -> TextTable:
    """Lay out one row a candidate, in order, and mark the front; of more than 500, those of `search_names.selected`.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    candidates = search_names.selected(search, MOST_CANDIDATES)
    states = dict.fromkeys(search.front, "front") | dict.fromkeys(search.rows, "confirmed")
    return TextTable(
        (
            text_column("candidate", [(f"#{c.number}", c.number) for c in candidates]),
            count_column("round", [c.round + 1 for c in candidates]),
            *_parameters(search, candidates),
            count_column("seeds", [c.seeds for c in candidates]),
            *_values(search, candidates),
            names_column("front", [states.get(c.number, "") for c in candidates]),
        ),
        marked=places(c.number in search.front for c in candidates),
    )


def candidates_rows(search: SearchFindings) -> DataRows:
    """Make one row for each candidate: number, round, parameters, seeds, values, and flags (front, confirmed)."""
    names = [parameter.name for parameter in search.parameters]
    objectives = [f"value_{objective.name}" for objective in search.objectives]
    types: list[tuple[str, pa.DataType]] = [
        ("candidate", pa.int64()),
        ("round", pa.int64()),
        *((p.name, pa.float64() if _is_number(p) else pa.string()) for p in search.parameters),
        ("seeds", pa.int64()),
        *((name, pa.float64()) for name in objectives),
        ("front", pa.bool_()),
        ("confirmed", pa.bool_()),
    ]
    return DataRows(
        pa.schema(types),
        [
            {"candidate": c.number, "round": c.round + 1, "seeds": c.seeds}
            | {name: c.params.get(name) for name in names}
            | dict(zip(objectives, c.values, strict=True))
            | {"front": c.number in search.front, "confirmed": c.number in search.rows}
            for c in search.candidates
        ],
    )


def progress_note(search: SearchFindings) -> str:
    """Return sentences on the suggestions, the trials that they took, and the confirmation by fresh seeds.

    The sentence on trials is left out without candidates. A search that isn't over is called running.
    """
    seeds = [candidate.seeds for candidate in search.candidates]
    rounds = len({candidate.round for candidate in search.candidates})
    parts = [
        f"{search.sampler} suggested {words.count_of(len(seeds), 'candidate')} in {words.count_of(rounds, 'round')}"
        + (f", and {words.count_of(search.impossible, 'impossible setting')}." if search.impossible else ".")
    ]
    if seeds:
        each = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
        parts.append(f"They took {search.trials:,} of {search.budget:,} trials, {each} seeds each.")
    fresh = words.count_of(search.fresh, "fresh seed")
    if search.is_over:
        count = len(search_names.confirmed(search))
        subject = "1 of them was" if count == 1 else f"{count} of them were"
        each = "it is" if count == 1 else "they are"
        parts.append(
            f"{subject} run again with {fresh}{'' if count == 1 else ' each'}, on which no decision of the search "
            f"depends: only these say how good {each}."
        )
    else:
        parts.append(f"The search is running; at its end, its best candidates are run again with {fresh} each.")
    return " ".join(parts)


def importance_line(search: SearchFindings) -> str:
    """List the most important parameters in a line; empty if their importance is unknown.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    names = search_names.by_importance(search)
    if not names:
        return ""
    shares = [
        f"{search_names.title(search.parameter(name))} {search_names.importance(search, name):.2f}"
        for name in names[:_MOST_NAMED]
    ]
    more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    over = "" if len(search.importance) == 1 else ", mean over the objectives"
    return f"Parameter importance (PED-ANOVA{over}): {', '.join(shares)}{more}."


def _is_number(parameter: Parameter) -> bool:
    return all(isinstance(choice, int | float) and not isinstance(choice, bool) for choice in parameter.choices)


def _parameters(search: SearchFindings, candidates: Sequence[Candidate]) -> list[Column]:
    """Lay out one column for each parameter that any of the candidates has."""

    def column(parameter: Parameter) -> Column:
        values = [c.params.get(parameter.name) for c in candidates]
        texts = [search_names.value(parameter.name, value) or words.NONE for value in values]
        pairs = list(zip(texts, values, strict=True))
        return text_column(search_names.title(parameter), pairs, is_number=_is_number(parameter))

    return [column(p) for p in search.parameters if any(p.name in c.params for c in candidates)]


def _values(search: SearchFindings, candidates: Sequence[Candidate]) -> list[Column]:
    return [
        text_column(objective.title, [(search_names.worth(objective, c.values[i]), c.values[i]) for c in candidates])
        for i, objective in enumerate(search.objectives)
    ]
